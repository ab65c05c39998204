/*
 * r2r.c, metadata.c: each method of a small assembly (tests/data/pe/tiny.cs), broken copies of it,
 * and the runtime's own library.
 */
#include "unit/test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/diag.h"
#include "code/codemap.h"
#include "code/r2r.h"
#include "image/pe.h"

#define TINY TEST_DATA "/pe/tiny_r2r.dll"

static const char *const tiny_names[] = {
	"Spoor.Tiny.Work::Add(int32,string)",
	"Spoor.Tiny.Work::Use()",
	"Spoor.Tiny.Work::Twice[System.__Canon](!!0,int32&,int32[])",
	"Spoor.Tiny.Box`1<int32>::.ctor(!0)",
	"Spoor.Tiny.Box`1<int32>::Get()",
	"Spoor.Tiny.Box`1+Inner`1<int64,float64>::Same(!1)",
	"Spoor.Tiny.Box`1+Inner`1<int64,float64>::.ctor()",
	"Spoor.Tiny.Box`1<System.__Canon>::.ctor(!0)",
	"Spoor.Tiny.Box`1<System.__Canon>::Get()",
	"Spoor.Tiny.Box`1+Inner`1<System.__Canon,System.__Canon>::Same(!1)",
	"Spoor.Tiny.Box`1+Inner`1<System.__Canon,System.__Canon>::.ctor()",
};
#define TINY_COUNT (sizeof(tiny_names) / sizeof(tiny_names[0]))

static void test_tiny(void **state)
{
	int fd = open(TINY, O_RDONLY | O_CLOEXEC);
	struct r2r *image;
	struct r2r_hit hit;
	bool seen[TINY_COUNT] = { false };
	uint32_t covered = 0;

	(void)state;
	assert_int_equal(r2r_open(fd, &image, NULL), 0);
	assert_int_equal(r2r_method_count(image), TINY_COUNT);
	for (uint32_t rva = 0; rva < 0x20000; rva++) {
		if (!r2r_find_rva(image, rva, &hit))
			continue;
		assert_true(hit.begin_rva <= rva && rva < hit.end_rva);
		covered++;
		size_t i = 0;
		while (i < TINY_COUNT && strcmp(tiny_names[i], hit.name) != 0)
			i++;
		assert_true(i < TINY_COUNT);
		seen[i] = true;
		/* The same lookup by the offset in the file. */
		struct r2r_hit same;
		uint64_t offset = hit.begin_offset + (rva - hit.begin_rva);
		assert_true(r2r_find_offset(image, offset, &same));
		assert_int_equal(same.begin_rva, hit.begin_rva);
	}
	for (size_t i = 0; i < TINY_COUNT; i++)
		assert_true(seen[i]);
	assert_true(covered < 0x400);
	r2r_close(image);
}

static void test_broken(void **state)
{
	static uint8_t data[64 << 10];
	FILE *file = fopen(TINY, "rb");
	struct r2r *image;
	struct r2r_hit hit;

	(void)state;
	assert_non_null(file);
	size_t size = fread(data, 1, sizeof(data), file);
	fclose(file);
	for (size_t i = 0; i < size; i++) {
		uint8_t *copy = malloc(size);
		memcpy(copy, data, size);
		copy[i] ^= (uint8_t)(1u << (i % 8));
		if (r2r_open_memory(copy, size, &image, NULL) == 0) {
			for (uint32_t rva = 0x10600; rva < 0x10740; rva += 8)
				/* any result is accepted, but the call must return */
				(void)r2r_find_rva(image, rva, &hit);
			r2r_close(image);
		}
		free(copy);
	}
}

static void test_refused(void **state)
{
	struct r2r *image;
	struct diag diag = { 0 };

	(void)state;
	assert_int_equal(r2r_open_memory("MZ", 2, &image, &diag), -EBADMSG);
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_int_equal(r2r_open(fd, &image, NULL), -EINVAL);
	assert_int_equal(fcntl(fd, F_GETFD), -1); /* the descriptor is owned also after an error */
	r2r_close(NULL);
}

/* The library that every .NET program uses: tens of thousands of methods, each with a name. */
static void test_corelib(void **state)
{
	static const char *const roots[] = { "/usr/share/dotnet", "/usr/lib/dotnet" };
	char path[512] = "";
	struct r2r *image;
	struct r2r_hit hit;
	unsigned named = 0;
	bool dictionary = false;

	(void)state;
	for (size_t i = 0; i < 2 && !*path; i++) {
		char folder[256];
		snprintf(folder, sizeof(folder), "%s/shared/Microsoft.NETCore.App", roots[i]);
		DIR *dir = opendir(folder);
		for (struct dirent *entry; dir && (entry = readdir(dir));) {
			if (entry->d_name[0] != '.')
				snprintf(path, sizeof(path),
					"%.200s/%.64s/System.Private.CoreLib.dll", folder,
					entry->d_name);
		}
		if (dir)
			closedir(dir);
	}
	int fd = *path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (fd < 0) {
		print_message("skipped: no .NET runtime here\n");
		skip();
	}
	assert_int_equal(r2r_open(fd, &image, NULL), 0);
	assert_true(r2r_method_count(image) > 20000);
	uint32_t rva = pe_text_rva(r2r_pe(image));
	uint32_t end = r2r_pe(image)->image_size;
	for (uint32_t last = 0; rva < end; rva += 16) {
		if (!r2r_find_rva(image, rva, &hit) || hit.begin_rva == last)
			continue;
		last = hit.begin_rva;
		named++;
		dictionary |= strstr(hit.name, "System.Collections.Generic.Dictionary`2<") &&
			      strstr(hit.name, "::TryInsert(");
	}
	assert_true(dictionary);
	assert_true(named > r2r_method_count(image) / 2);
	print_message("%u methods, %u seen at a multiple of 16\n", r2r_method_count(image), named);
	r2r_close(image);
}

/* The IL offsets of each method: ascending, inside the method, and of the begin of its IL. */
static void test_il_offsets(void **state)
{
	int fd = open(TINY, O_RDONLY | O_CLOEXEC);
	struct il_offset offsets[64];
	struct r2r *image;
	struct r2r_hit hit;
	uint32_t methods = 0;

	(void)state;
	assert_int_equal(r2r_open(fd, &image, NULL), 0);
	assert_int_equal(r2r_il_offsets(image, 1, offsets, 64), -ENODATA);
	for (uint32_t rva = 0; rva < 0x20000; rva++) {
		if (!r2r_find_rva(image, rva, &hit) || hit.begin_rva != rva)
			continue;
		int count = r2r_il_offsets(image, rva, offsets, 64);
		assert_true(count > 0 && count < 64);
		bool has_begin = false;
		for (int i = 0; i < count; i++) {
			assert_true(offsets[i].native <= hit.end_rva - hit.begin_rva);
			assert_true(!i || offsets[i].native >= offsets[i - 1].native);
			assert_true(offsets[i].il < 100 || offsets[i].il >= IL_EPILOG);
			has_begin |= offsets[i].il == 0 || offsets[i].il == IL_PROLOG;
		}
		assert_true(has_begin);
		methods++;
	}
	assert_int_equal(methods, TINY_COUNT);
	r2r_close(image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tiny),
		cmocka_unit_test(test_il_offsets),
		cmocka_unit_test(test_broken),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_corelib),
	};

	return cmocka_run_group_tests_name("r2r", tests, NULL, NULL);
}
