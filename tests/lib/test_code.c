/*
 * Names for generated code: the table, the files for perf, and the functions of this process's
 * objects.
 */
#include "unit/test.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <spoor/code.h>

#include "lib/code/code.h"
#include "lib/sink/code_hits.h"
#include "lib/platform/objects.h"

static uint8_t area[4096];

static const char *name_at(size_t offset)
{
	static char name[256];
	struct announced_code range;
	int found = code_after((uintptr_t)area + offset, &range);

	if (found <= 0)
		return NULL;
	bool inside = range.begin <= (uintptr_t)area + offset;
	snprintf(name, sizeof(name), "%s%s", range.removed ? "-" : "", range.name);
	code_range_done(&range);
	return inside ? name : NULL;
}

static void test_table(void **state)
{
	(void)state;
	assert_int_equal(spoor_code_add(area, 0, "x", NULL), -EINVAL);
	assert_int_equal(spoor_code_add(NULL, 1, "x", NULL), -EINVAL);
	assert_int_equal(spoor_code_add(area, 1, "", NULL), -EINVAL);
	assert_int_equal(spoor_code_add(area + 100, (size_t)-50, "x", NULL), -EINVAL);
	assert_int_equal(spoor_code_add(area + 100, 50, "b", NULL), 0);
	assert_int_equal(spoor_code_add(area, 100, "a", NULL), 0);
	assert_string_equal(name_at(99), "a");
	assert_string_equal(name_at(100), "b");
	assert_string_equal(name_at(149), "b");
	assert_null(name_at(150));
	/*
	 * A new range replaces those that it overlaps; a removed range keeps its name until then.
	 */
	assert_int_equal(spoor_code_remove(area + 100), 0);
	assert_int_equal(spoor_code_remove(area + 100), -ENOENT);
	assert_string_equal(name_at(120), "-b");
	assert_int_equal(spoor_code_add(area + 90, 20, "c", NULL), 0);
	assert_string_equal(name_at(95), "c");
	assert_null(name_at(10));
	assert_null(name_at(120));
	/* Moved to a place that overlaps the old one. */
	assert_int_equal(spoor_code_move(area + 1, area), -ENOENT);
	assert_int_equal(spoor_code_move(area + 90, area + 200), 0);
	assert_string_equal(name_at(95), "-c");
	assert_string_equal(name_at(219), "c");
	assert_int_equal(spoor_code_move(area + 200, area + 210), 0);
	assert_string_equal(name_at(229), "c");
	assert_null(name_at(205));
	assert_int_equal(spoor_code_remove(area + 210), 0);
}

static char *file_of(const char *folder, const char *before, const char *behind, size_t *ret_size)
{
	char path[256];
	struct stat about;

	snprintf(path, sizeof(path), "%s/%s%d%s", folder, before, (int)getpid(), behind);
	FILE *file = fopen(path, "rb");
	assert_non_null(file);
	assert_int_equal(fstat(fileno(file), &about), 0);
	assert_int_equal(about.st_mode & 0777, 0600);
	char *bytes = calloc(1, (size_t)about.st_size + 1);
	*ret_size = fread(bytes, 1, (size_t)about.st_size, file);
	fclose(file);
	return bytes;
}

static uint32_t u32(const char *at)
{
	uint32_t value;

	memcpy(&value, at, 4);
	return value;
}

static uint64_t u64(const char *at)
{
	uint64_t value;

	memcpy(&value, at, 8);
	return value;
}

static void test_files(void **state)
{
	char folder[] = "/tmp/spoor-code-XXXXXX", command[64], wanted[256];
	const struct spoor_code_line lines[] = { { 0, 10, "rule.x" }, { 4, 11, NULL } };
	struct spoor_code_options options = {
		.size = sizeof(options), .lines = lines, .line_count = 2
	};
	size_t size;

	(void)state;
	assert_non_null(mkdtemp(folder));
	for (size_t i = 0; i < sizeof(area); i++)
		area[i] = (uint8_t)i;
	assert_int_equal(spoor_code_add(area + 1000, 8, "before", NULL), 0);
	assert_int_equal(spoor_code_files(SPOOR_CODE_PERF_MAP | SPOOR_CODE_JITDUMP,
				 "/nonexistent/folder"),
		-ENOENT);
	assert_int_equal(spoor_code_files(SPOOR_CODE_PERF_MAP | SPOOR_CODE_JITDUMP, folder), 0);
	assert_int_equal(spoor_code_add(area + 1016, 16, "two\nlines", &options), 0);
	assert_int_equal(spoor_code_move(area + 1000, area + 1100), 0);
	assert_int_equal(spoor_code_files(0, NULL), 0);
	assert_int_equal(spoor_code_add(area + 1200, 8, "after", NULL), 0);

	char *map = file_of(folder, "perf-", ".map", &size);
	snprintf(wanted, sizeof(wanted), "%lx 8 before\n%lx 10 two lines\n%lx 8 before\n",
		(unsigned long)(area + 1000), (unsigned long)(area + 1016),
		(unsigned long)(area + 1100));
	assert_string_equal(map, wanted);
	free(map);

	char *dump = file_of(folder, "jit-", ".dump", &size);
	assert_int_equal(u32(dump), 0x4a695444);
	assert_int_equal(u32(dump + 4), 1);
	assert_int_equal(u32(dump + 8), 40);
	assert_int_equal(u32(dump + 20), getpid());
	static const uint32_t kinds[] = { 0, 2, 0, 1, 3 };
	size_t at = 40;
	uint64_t time = u64(dump + 24);
	for (size_t i = 0; i < 5; i++) {
		const char *record = dump + at;
		assert_true(at + 16 <= size);
		assert_int_equal(u32(record), kinds[i]);
		assert_true(u64(record + 8) >= time);
		time = u64(record + 8);
		switch (i) {
		case 0:
		case 2: {
			const uint8_t *code = i ? area + 1016 : area + 1000;
			const char *name = i ? "two\nlines" : "before";
			assert_int_equal(u32(record + 16), getpid());
			assert_int_equal(u64(record + 24), (uintptr_t)code);
			assert_int_equal(u64(record + 32), (uintptr_t)code);
			assert_int_equal(u64(record + 40), i ? 16 : 8);
			assert_string_equal(record + 56, name);
			assert_memory_equal(record + 56 + strlen(name) + 1, code, i ? 16 : 8);
			assert_int_equal(u32(record + 4), 56 + strlen(name) + 1 + (i ? 16 : 8));
			break;
		}
		case 1:
			assert_int_equal(u64(record + 16), (uintptr_t)area + 1016);
			assert_int_equal(u64(record + 24), 2);
			assert_int_equal(u64(record + 32), (uintptr_t)area + 1016);
			assert_int_equal(u32(record + 40), 10);
			assert_string_equal(record + 48, "rule.x");
			assert_int_equal(u64(record + 55), (uintptr_t)area + 1020);
			assert_int_equal(u32(record + 63), 11);
			assert_string_equal(record + 71, "rule.x");
			break;
		case 3:
			assert_int_equal(u64(record + 32), (uintptr_t)area + 1000);
			assert_int_equal(u64(record + 40), (uintptr_t)area + 1100);
			assert_int_equal(u64(record + 48), 8);
			break;
		}
		at += u32(record + 4);
	}
	assert_int_equal(at, size);
	free(dump);
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	assert_int_equal(system(command), 0);
}

__attribute__((noinline)) static int named_function(int x)
{
	__asm__ volatile("");
	return x * 3;
}

/* The name of an address, as the rundown finds it. */
static bool name_of(uint64_t address, char text[OBJECT_NAME_MAX])
{
	struct object *objects;
	size_t count;
	bool found = false;

	assert_int_equal(objects_list(&objects, &count), 0);
	for (size_t i = 0; i < count && !found; i++) {
		struct object_symbol symbol;
		int got;
		if (i > 0)
			assert_true(objects[i].begin >= objects[i - 1].begin);
		if (address < objects[i].begin || address >= objects[i].end)
			continue;
		struct object_symbols *symbols = object_symbols_open(&objects[i]);
		if (!symbols)
			continue;
		while (!found && (got = object_symbols_next(symbols, &symbol)) != 0)
			found = got == 1 && address - symbol.begin < symbol.size &&
				object_symbol_name(symbols, symbol.name, text);
		object_symbols_close(symbols);
	}
	objects_free(objects, count);
	return found;
}

static void test_objects(void **state)
{
	char text[OBJECT_NAME_MAX];

	(void)state;
	assert_int_equal(named_function(1), 3);
	assert_true(name_of((uintptr_t)named_function + 1, text));
	assert_string_equal(text, "named_function");
	assert_false(name_of((uintptr_t)area, text));
	/* A shared object, whose name has a version. */
	assert_true(name_of((uintptr_t)qsort + 1, text));
	assert_non_null(strstr(text, "qsort"));
	assert_null(strchr(text, '@'));
}

/*
 * The unwind tables, which stripped files have too, give most functions the same bounds as their
 * symbols. Returns how many.
 */
static size_t compare_bounds(const struct object *object)
{
	struct object_symbols *symbols = object_symbols_open(object);
	struct object_symbols *bounds = object_symbols_open(object);
	struct object_symbol symbol;
	uint64_t begin, end;
	size_t same = 0;
	int got;

	assert_non_null(symbols);
	assert_non_null(bounds);
	while ((got = object_symbols_next(symbols, &symbol)) != 0) {
		if (got != 1 || !object_function_bounds(bounds, symbol.begin, &begin, &end))
			continue;
		/* Parts that a symbol covers may have entries of their own. */
		assert_true(begin == symbol.begin || begin < symbol.begin);
		assert_true(symbol.begin < end);
		same += begin == symbol.begin && end - begin == symbol.size;
		assert_true(object_function_bounds(bounds, end - 1, &begin, &end));
	}
	object_symbols_close(symbols);
	object_symbols_close(bounds);
	return same;
}

static void test_bounds(void **state)
{
	struct object *objects;
	size_t count, compared = 0;
	uint64_t begin, end;

	(void)state;
	assert_int_equal(objects_list(&objects, &count), 0);
	for (size_t i = 0; i < count; i++) {
		uint64_t address = (uintptr_t)named_function + 1;
		if (objects[i].image)
			continue;
		if (address >= objects[i].begin && address < objects[i].end) {
			struct object_symbols *symbols = object_symbols_open(&objects[i]);
			assert_non_null(symbols);
			assert_true(object_function_bounds(symbols, address, &begin, &end));
			assert_int_equal(begin, (uintptr_t)named_function);
			assert_true(end > address && end < begin + 4096);
			assert_false(object_function_bounds(symbols, objects[i].end + 4096, &begin,
				&end));
			assert_false(object_function_bounds(symbols, (uintptr_t)area, &begin,
				&end));
			object_symbols_close(symbols);
		}
		compared += compare_bounds(&objects[i]);
	}
	assert_true(compared > 100);
	objects_free(objects, count);
}

static void test_hits(void **state)
{
	uint64_t frames[100];
	size_t count;

	(void)state;
	frames[0] = 5;
	code_hits_add(frames, 1); /* no session ends with a rundown */
	code_hits_hold();
	for (uint64_t i = 0; i < 50000; i++) {
		for (unsigned k = 0; k < 4; k++)
			frames[k] = 0x7f0000000000 + (i + k) * 8;
		frames[4] = 0;
		code_hits_add(frames, 5);
	}
	uint64_t *sorted = code_hits_sorted(&count);
	assert_int_equal(count, 50003);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(sorted[i], 0x7f0000000000 + i * 8);
	free(sorted);
	code_hits_release();
	assert_null(code_hits_sorted(&count));
	assert_int_equal(count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_objects),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_hits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
