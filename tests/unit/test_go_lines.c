/* code/go_lines.c: lines and inlined calls of a table of Go 1.18 and 1.20; damaged and truncated ones. */
#include "unit/test.h"

#include <errno.h>

#include "base/strtab.h"
#include "code/go_lines.h"
#include "code/source_lines.h"
#include "image/elf.h"
#include "image/image_file.h"
#include "unit/go_program.h"

struct seen {
	char text[256];
	bool whole; /* the last function has no name */
};

static bool see(void *context, const char *function, const char *file, uint32_t line)
{
	struct seen *seen = context;
	size_t len = strlen(seen->text);

	snprintf(seen->text + len, sizeof(seen->text) - len, "%s %s:%u;", function ? function : "-",
		file, line);
	seen->whole = !function;
	return true;
}

static const struct {
	uint32_t code;
	const char *expected;
} places[] = {
	{ 0x00, "- /src/a.go:20;" },
	{ 0x0f, "- /src/a.go:20;" },
	{ 0x10, "main.inner /src/b.go:5;main.middle /src/a.go:12;- /src/a.go:22;" },
	{ 0x20, "main.middle /src/a.go:12;- /src/a.go:22;" },
	{ 0x30, "- /src/a.go:22;" },
	{ 0x40, "- /src/a.go:30;" },
	{ 0x50, "" },
	{ 0xffffff, "" },
};

static void check(bool newer)
{
	struct bytes program = { 0 };
	struct image_file file;
	struct go_lines *lines;
	struct elf elf;

	go_program_build(&program, newer);
	image_file_from_memory(&file, program.data, program.len);
	assert_int_equal(elf_read(&elf, &file, NULL), 0);
	assert_int_equal(go_lines_open(&file, &elf, &lines), 0);
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		struct seen seen = { 0 };
		bool found = go_lines_find(lines, GO_CODE + places[i].code, see, &seen);
		assert_string_equal(seen.text, places[i].expected);
		assert_int_equal(found, *places[i].expected != 0);
	}
	struct seen seen = { 0 };
	assert_false(go_lines_find(lines, GO_CODE - 1, see, &seen));
	go_lines_close(lines);
	elf_done(&elf);
	bytes_done(&program);
}

static void test_versions(void **state)
{
	(void)state;
	check(false);
	check(true);
}

/* Names of inlined functions are taken only where a name begins: another version of Go may have the tree elsewhere. */
static void test_wrong_tree(void **state)
{
	struct bytes program = { 0 };
	struct image_file file;
	struct go_lines *lines;
	struct elf elf;

	(void)state;
	go_program_build(&program, true);
	/* the name of the second call, the last but two of its words */
	uint8_t *name = memmem(program.data, program.len, "\x17\0\0\0\x28\0\0\0", 8);
	assert_non_null(name);
	*name += 1;
	image_file_from_memory(&file, program.data, program.len);
	assert_int_equal(elf_read(&elf, &file, NULL), 0);
	assert_int_equal(go_lines_open(&file, &elf, &lines), 0);
	struct seen seen = { 0 };
	assert_true(go_lines_find(lines, GO_CODE + 0x10, see, &seen));
	assert_string_equal(seen.text, "- /src/b.go:5;");
	go_lines_close(lines);
	elf_done(&elf);
	bytes_done(&program);
}

/* As report --lines asks. */
static void test_source_lines(void **state)
{
	struct source_query query = { .vaddr = GO_CODE + 0x10 };
	struct strtab strings = { 0 };
	struct bytes program = { 0 };
	struct source_lines *lines;
	struct image_file file;
	struct elf elf;

	(void)state;
	go_program_build(&program, true);
	image_file_from_memory(&file, program.data, program.len);
	assert_int_equal(elf_read(&elf, &file, NULL), 0);
	assert_int_equal(source_lines_open(&file, &elf, &strings, &lines), 0);
	assert_int_equal(source_lines_find(lines, &query, 1), 0);
	assert_int_equal(query.frame_count, 3);
	const struct source_frame *frame = source_lines_frame(lines, query.frame_at + 1);
	assert_string_equal(strtab_get(&strings, frame->function), "main.middle");
	assert_string_equal(strtab_get(&strings, frame->file), "/src/a.go");
	assert_int_equal(frame->line, 12);
	assert_int_equal(source_lines_frame(lines, query.frame_at + 2)->function, 0);
	source_lines_close(lines);
	elf_done(&elf);
	strtab_done(&strings);
	bytes_done(&program);
}

static void read_all(const uint8_t *data, size_t size)
{
	struct image_file file;
	struct go_lines *lines;
	struct elf elf;

	image_file_from_memory(&file, data, size);
	if (elf_read(&elf, &file, NULL) == 0 && go_lines_open(&file, &elf, &lines) == 0) {
		for (uint32_t code = 0; code < 0x60; code += 8) {
			struct seen seen = { 0 };
			if (go_lines_find(lines, GO_CODE + code, see, &seen))
				assert_true(seen.whole);
		}
		go_lines_close(lines);
	}
	elf_done(&elf);
}

static void test_damage(void **state)
{
	struct bytes program = { 0 };
	uint32_t random = 1;

	(void)state;
	go_program_build(&program, true);
	uint8_t *copy = malloc(program.len);
	for (unsigned round = 0; round < 4000; round++) {
		memcpy(copy, program.data, program.len);
		for (unsigned i = 0; i < 4; i++) {
			random = random * 1664525u + 1013904223u;
			copy[GO_TABLE + (random >> 8) % (program.len - GO_TABLE)] =
				(uint8_t)(random >> 3);
		}
		read_all(copy, program.len);
	}
	free(copy);
	for (size_t len = 0; len < program.len; len++) {
		copy = malloc(len + 1); /* so that sanitizers see its end */
		memcpy(copy, program.data, len);
		read_all(copy, len);
		free(copy);
	}
	bytes_done(&program);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_versions),
		cmocka_unit_test(test_wrong_tree),
		cmocka_unit_test(test_source_lines),
		cmocka_unit_test(test_damage),
	};

	return cmocka_run_group_tests_name("go_lines", tests, NULL, NULL);
}
