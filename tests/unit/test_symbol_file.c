/*
 * symbol_file.c: an address gets a name only from a symbol that covers it, the choice among aliases
 * is fixed, separate debug files are used only if they match, and real libraries of this machine
 * can be read.
 */
#include "unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/diag.h"
#include "code/debug_file.h"
#include "code/symbol_file.h"
#include "image/elf.h"
#include "unit/elf_builder.h"

static const char *name_at(struct symbol_file *file, uint64_t vaddr)
{
	struct symbol_hit hit;

	if (!symbol_file_find_vaddr(file, vaddr, &hit))
		return "";
	assert_true(hit.begin_vaddr <= vaddr && vaddr < hit.end_vaddr);
	assert_int_equal(strlen(hit.name), hit.name_len);
	assert_int_equal(hit.begin_offset, hit.begin_vaddr - ELF_BUILD_VADDR + ELF_BUILD_OFFSET);
	return hit.name;
}

static void check(bool is_64)
{
	struct bytes bytes = { 0 };
	struct symbol_file *file;
	struct symbol_hit hit;

	elf_build(&bytes, is_64);
	assert_int_equal(symbol_file_open_memory(bytes.data, bytes.len, &file, NULL), 0);
	bytes_done(&bytes);
	/* Exported before local, then without leading underscores. */
	assert_string_equal(name_at(file, 0x2000), "first");
	assert_string_equal(name_at(file, 0x203f), "first");
	assert_string_equal(name_at(file, 0x2040), "");
	/* A function of Swift, and a mark of ARM. */
	assert_string_equal(name_at(file, 0x2445), "$s4shop4burnyyF");
	assert_string_equal(name_at(file, 0x2465), "");
	/* A nested symbol, and after it the outer one again. */
	assert_string_equal(name_at(file, 0x213f), "outer");
	assert_string_equal(name_at(file, 0x2140), "inner");
	assert_string_equal(name_at(file, 0x2160), "outer");
	assert_string_equal(name_at(file, 0x2200), "");
	/* A symbol without a size reaches to the next one; local labels do not count. */
	assert_string_equal(name_at(file, 0x233f), "assembly");
	assert_string_equal(name_at(file, 0x2340), "after_assembly");
	assert_string_equal(name_at(file, 0x2350), "");
	assert_string_equal(name_at(file, 0x2700), "");
	/* Data, objects, imports and symbols outside of any segment are not code. */
	assert_string_equal(name_at(file, 0x2400), "");
	assert_string_equal(name_at(file, 0x2500), "");
	assert_string_equal(name_at(file, 0x2600), "");
	assert_string_equal(name_at(file, 0x900000), "");
	assert_string_equal(name_at(file, 0), "");
	assert_string_equal(name_at(file, UINT64_MAX), "");

	assert_true(symbol_file_find_offset(file, ELF_BUILD_OFFSET + 0x681, &hit));
	assert_string_equal(hit.name, "_ZN3FooD2Ev");
	assert_int_equal(symbol_file_origin(file), SYMBOL_ORIGIN_SYMTAB);
	symbol_file_close(file);
}

static void test_covering(void **state)
{
	(void)state;
	check(true);
	check(false);
}

/*
 * Separate files
 * -------------------------------------------------------------------------------------------------------
 */

struct folder {
	char path[64];
	unsigned asked;
	const char *have; /* the only path that exists, and the file that is returned for it */
	const char *file;
};

static int open_in_folder(void *context, const char *path)
{
	struct folder *folder = context;

	folder->asked++;
	return folder->have && !strcmp(path, folder->have)
		       ? open(folder->file, O_RDONLY | O_CLOEXEC)
		       : -ENOENT;
}

static void run(const char *folder, const char *commands)
{
	char command[1024];

	snprintf(command, sizeof(command), "cd %s && %s", folder, commands);
	assert_int_equal(system(command), 0);
}

/*
 * A program with two functions: complete, stripped with a debug link, its debug file, and one with
 * a compressed table.
 */
static bool make_files(struct folder *folder)
{
	char source[128];

	snprintf(folder->path, sizeof(folder->path), "/tmp/test_symbol_file.XXXXXX");
	if (!mkdtemp(folder->path) ||
		system("for tool in cc objcopy strip xz nm; do command -v $tool || exit 1; done >/dev/null") !=
			0)
		return false;
	snprintf(source, sizeof(source), "%s/x.c", folder->path);
	FILE *file = fopen(source, "w");
	assert_non_null(file);
	fputs("__attribute__((noinline)) static int hidden(int a) { return a * 3 + 1; }\n"
	      "int shown(int a);\n"
	      "int shown(int a) { return hidden(a) + hidden(a + 1); }\n",
		file);
	fclose(file);
	run(folder->path,
		"cc -O1 -shared -fPIC -Wl,--build-id -o whole.so x.c && "
		"objcopy --only-keep-debug whole.so x.debug && cp whole.so bare.so && strip bare.so && "
		"cp bare.so linked.so && objcopy --add-gnu-debuglink=x.debug linked.so && "
		"nm whole.so | grep ' [tT] ' >names && "
		"objcopy --strip-debug --keep-symbol=hidden whole.so mini && xz -kf mini && "
		"cp bare.so packed.so && objcopy --add-section .gnu_debugdata=mini.xz packed.so");
	return true;
}

static uint64_t address_of(const struct folder *folder, const char *function)
{
	char path[128];
	unsigned long long address;
	char type;
	char name[128];
	uint64_t found = 0;

	snprintf(path, sizeof(path), "%s/names", folder->path);
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	while (fscanf(file, "%llx %c %127s", &address, &type, name) == 3) {
		if (!strcmp(name, function))
			found = address;
	}
	fclose(file);
	assert_true(found);
	return found;
}

static int open_plain(void *context, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	(void)context;
	return fd < 0 ? -errno : fd;
}

static struct symbol_file *open_so(const struct folder *folder, const char *name,
	const struct symbol_search *search)
{
	char path[128];
	struct symbol_file *file;

	snprintf(path, sizeof(path), "%s/%s", folder->path, name);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(symbol_file_open(fd, "/app/lib.so", search, &file, NULL), 0);
	return file;
}

static void assert_names(struct symbol_file *file, const struct folder *folder, const char *hidden,
	enum symbol_origin origin)
{
	struct symbol_hit hit;

	assert_true(symbol_file_find_vaddr(file, address_of(folder, "shown"), &hit));
	assert_string_equal(hit.name, "shown");
	if (symbol_file_find_vaddr(file, address_of(folder, "hidden"), &hit))
		assert_string_equal(hit.name, hidden);
	else
		assert_string_equal("", hidden);
	assert_int_equal(symbol_file_origin(file), origin);
	symbol_file_close(file);
}

static void test_separate(void **state)
{
	struct folder folder = { .asked = 0 };
	struct symbol_root root = { open_in_folder, &folder };
	const char *dirs[] = { folder.path };
	struct symbol_search search = { .roots = &root, .root_count = 1 };
	char debug[128];
	char id[2 * ELF_BUILD_ID_MAX + 1];
	char by_id[256];

	(void)state;
	if (!make_files(&folder)) {
		print_message("skipped: no compiler or binutils here\n");
		skip();
	}
	assert_names(open_so(&folder, "whole.so", NULL), &folder, "hidden", SYMBOL_ORIGIN_SYMTAB);
	/* Only exports: addresses between them have no name. */
	assert_names(open_so(&folder, "bare.so", &search), &folder, "", SYMBOL_ORIGIN_DYNSYM);
	assert_names(open_so(&folder, "packed.so", NULL), &folder, "hidden", SYMBOL_ORIGIN_MINI);

	/* By build id, inside a root. */
	snprintf(debug, sizeof(debug), "%s/x.debug", folder.path);
	folder.file = debug;
	struct symbol_file *file = open_so(&folder, "bare.so", &search);
	elf_build_id_text(symbol_file_elf(file), id);
	snprintf(by_id, sizeof(by_id), "/usr/lib/debug/.build-id/%.2s/%s.debug", id, id + 2);
	folder.have = by_id;
	folder.asked = 0;
	struct symbol_hit hit;
	assert_int_equal(folder.asked, 0); /* nothing is read before the first lookup */
	assert_true(symbol_file_find_vaddr(file, address_of(&folder, "hidden"), &hit));
	assert_int_equal(folder.asked, 1);
	assert_names(file, &folder, "hidden", SYMBOL_ORIGIN_DEBUG_FILE);

	/* By debug link: next to the file, in .debug, and below /usr/lib/debug. */
	static const char *const places[] = { "/app/x.debug", "/app/.debug/x.debug",
		"/usr/lib/debug/app/x.debug" };
	for (unsigned i = 0; i < 3; i++) {
		folder.have = places[i];
		assert_names(open_so(&folder, "linked.so", &search), &folder, "hidden",
			SYMBOL_ORIGIN_DEBUG_FILE);
	}

	/* A file of that name with another build id is not used. */
	run(folder.path, "cc -O1 -g -shared -fPIC -Wl,--build-id=0x1234 -o other.so x.c");
	snprintf(debug, sizeof(debug), "%s/other.so", folder.path);
	folder.have = places[0];
	assert_names(open_so(&folder, "linked.so", &search), &folder, "", SYMBOL_ORIGIN_DYNSYM);

	/* --symbol-path */
	struct symbol_search by_dir = {
		.dirs = dirs, .dir_count = 1, .dir_root = { .open_file = open_plain }
	};
	assert_names(open_so(&folder, "linked.so", &by_dir), &folder, "hidden",
		SYMBOL_ORIGIN_DEBUG_FILE);
	run(folder.path, "rm -r \"$PWD\"");
}

/*
 * The machine itself
 * -----------------------------------------------------------------------------------------------------
 */

static void test_vdso(void **state)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	unsigned long begin = 0;
	unsigned long end = 0;
	struct symbol_file *file;
	struct symbol_hit hit;
	bool found = false;

	(void)state;
	while (maps && fgets(line, sizeof(line), maps) && !strstr(line, "[vdso]"))
		;
	if (!maps || !strstr(line, "[vdso]") || sscanf(line, "%lx-%lx", &begin, &end) != 2) {
		print_message("skipped: no vdso here\n");
		if (maps)
			fclose(maps);
		skip();
	}
	fclose(maps);
	assert_int_equal(symbol_file_open_memory((const void *)begin, end - begin, &file, NULL), 0);
	for (uint64_t offset = 0; offset < end - begin && !found; offset++)
		found = symbol_file_find_offset(file, offset, &hit) && strstr(hit.name, "gettime");
	assert_true(found);
	symbol_file_close(file);
}

/* Every exported function of this process's libc is found at its first byte. */
static void test_libc(void **state)
{
	static const char *const paths[] = { "/lib/x86_64-linux-gnu/libc.so.6",
		"/lib/aarch64-linux-gnu/libc.so.6", "/lib64/libc.so.6" };
	struct symbol_file *file = NULL;
	unsigned named = 0;

	(void)state;
	for (unsigned i = 0; i < 3 && !file; i++) {
		int fd = open(paths[i], O_RDONLY | O_CLOEXEC);
		if (fd >= 0)
			assert_int_equal(symbol_file_open(fd, paths[i], NULL, &file, NULL), 0);
	}
	if (!file) {
		print_message("skipped: no glibc at the usual places\n");
		skip();
	}
	const struct elf *elf = symbol_file_elf(file);
	for (uint64_t at = 0; at < 0x100000; at += 64) {
		struct symbol_hit hit;
		named += symbol_file_find_offset(file, elf->text_offset + at, &hit);
	}
	assert_true(named > 1000);
	symbol_file_close(file);
}

/* A table whose symbols are in no order: each of 1,200 functions has its name. */
static void test_many(void **state)
{
	struct folder folder = { .asked = 0 };
	struct symbol_file *file;
	unsigned long long address;
	char path[128];
	char name[64];
	unsigned count = 0;
	uint64_t last = 0;
	bool sorted = true;

	(void)state;
	snprintf(folder.path, sizeof(folder.path), "/tmp/test_symbol_file.XXXXXX");
	if (!mkdtemp(folder.path) ||
		system("for tool in cc nm awk; do command -v $tool || exit 1; done >/dev/null") !=
			0)
		skip();
	run(folder.path,
		"awk 'BEGIN { for (i = 0; i < 1200; i++) printf \"int f%d(int x) { return x + %d; }\\n\", i, i; "
		"print \"int main(void) { return f7(1); }\" }' >many.c && cc -O0 -o many many.c && "
		"nm -p many | awk '$2 == \"T\" && $3 ~ /^f[0-9]+$/ { print $1, $3 }' >names");
	snprintf(path, sizeof(path), "%s/many", folder.path);
	assert_int_equal(
		symbol_file_open(open(path, O_RDONLY | O_CLOEXEC), path, NULL, &file, NULL), 0);
	snprintf(path, sizeof(path), "%s/names", folder.path);
	FILE *names = fopen(path, "r");
	assert_non_null(names);
	for (; fscanf(names, "%llx %63s", &address, name) == 2; count++) {
		struct symbol_hit hit;
		assert_true(symbol_file_find_vaddr(file, address, &hit));
		assert_string_equal(hit.name, name);
		assert_int_equal(hit.begin_vaddr, address);
		sorted &= last < address;
		last = address;
	}
	fclose(names);
	assert_int_equal(count, 1200);
	assert_false(sorted); /* as the linker writes them, in the order of its hash table */
	symbol_file_close(file);
	run(folder.path, "rm many many.c names && rmdir \"$PWD\"");
}

/* The owner truncates its file while it is read: names are missing, and no other harm is done. */
static void test_cut_under_us(void **state)
{
	char path[] = "/tmp/spoor-cut-XXXXXX";
	struct symbol_file *file;
	struct symbol_hit hit;
	int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct stat st;

	(void)state;
	assert_true(self >= 0);
	assert_int_equal(fstat(self, &st), 0);
	for (int part = 0; part < 8; part++) {
		int fd = mkstemp(path);
		assert_true(fd >= 0);
		off_t from = 0;
		while (from < st.st_size)
			assert_true(sendfile(fd, self, &from, (size_t)(st.st_size - from)) > 0);
		assert_int_equal(symbol_file_open(dup(fd), NULL, NULL, &file, NULL), 0);
		assert_int_equal(ftruncate(fd, st.st_size * part / 8), 0);
		for (uint64_t offset = 0; offset < (uint64_t)st.st_size; offset += 4096)
			(void)symbol_file_find_offset(file, offset, &hit); /* any result */
		symbol_file_close(file);
		close(fd);
		unlink(path);
		strcpy(path, "/tmp/spoor-cut-XXXXXX");
	}
	close(self);
}

static void test_refused(void **state)
{
	struct symbol_file *file = NULL;
	struct diag diag = { 0 };
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_int_equal(symbol_file_open(fd, NULL, NULL, &file, &diag), -EINVAL);
	assert_true(*diag.text);
	/* the descriptor is owned also after an error, so that it is closed */
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	assert_int_equal(symbol_file_open_memory("", 0, &file, NULL), -EBADMSG);
	symbol_file_close(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_covering),
		cmocka_unit_test(test_separate),
		cmocka_unit_test(test_vdso),
		cmocka_unit_test(test_libc),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_cut_under_us),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests_name("symbol_file", tests, NULL, NULL);
}
