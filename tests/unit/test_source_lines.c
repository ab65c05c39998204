/*
 * source_lines.c, dwarf.c, dwarf_lines.c, dwarf_inlines.c, elf_section.c: every version of DWARF that
 * GCC and Clang write gives the same lines and inlined calls; damaged copies give no crash.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/strtab.h"
#include "code/source_lines.h"
#include "image/elf.h"
#include "image/image_file.h"

#define SIZE_MAX_   (64u << 10)
#define QUERY_COUNT 256u

/* Lines of tests/data/lines/inlined.c. */
enum { LINE_INNER = 8, LINE_OUTER = 13, LINE_BOTH = 21, LINE_FIRST = 6, LINE_LAST = 23 };

static const char *const files[] = { "gcc2", "gcc3", "gcc4", "gcc5", "gcc5_64", "gccz", "gcczstd",
	"clang4", "clang5" };

static size_t read_file(const char *name, uint8_t *data)
{
	char path[512];
	snprintf(path, sizeof(path), TEST_DATA "/../fuzz/corpus/source_lines/%s.so", name);
	int fd = open(path, O_RDONLY);
	assert_true(fd >= 0);
	ssize_t size = read(fd, data, SIZE_MAX_);
	assert_true(size > 0 && size < SIZE_MAX_);
	close(fd);
	return (size_t)size;
}

struct answer {
	struct strtab strings;
	struct source_lines *lines;
	struct source_query queries[QUERY_COUNT];
};

/* Looks up each of the first bytes of the file's code. False: it has no lines. */
static bool ask(struct answer *answer, const uint8_t *data, size_t size)
{
	struct image_file file;
	struct elf elf;

	memset(answer, 0, sizeof(*answer));
	image_file_from_memory(&file, data, size);
	bool done = elf_read(&elf, &file, NULL) == 0 &&
		    source_lines_open(&file, &elf, &answer->strings, &answer->lines) == 0;
	/* In reverse: the order of queries does not matter. */
	const struct elf_section *text = done ? elf_find_section(&elf, ".text") : NULL;
	for (uint32_t i = 0; done && i < QUERY_COUNT; i++)
		answer->queries[i].vaddr = (text ? text->vaddr : 0) + QUERY_COUNT - 1 - i;
	if (done)
		assert_int_equal(source_lines_find(answer->lines, answer->queries, QUERY_COUNT), 0);
	elf_done(&elf);
	return done;
}

static void answer_done(struct answer *answer)
{
	source_lines_close(answer->lines);
	strtab_done(&answer->strings);
}

static bool is_frame(const struct answer *answer, uint32_t at, const char *function, uint32_t line)
{
	const struct source_frame *frame = source_lines_frame(answer->lines, at);

	return strcmp(strtab_get(&answer->strings, frame->function), function) == 0 &&
	       frame->line == line;
}

static void test_lines_and_inlined_calls(void **state)
{
	static uint8_t data[SIZE_MAX_];
	struct answer answer;

	(void)state;
	for (size_t f = 0; f < sizeof(files) / sizeof(files[0]); f++) {
		unsigned nested = 0;
		unsigned known = 0;
		assert_true(ask(&answer, data, read_file(files[f], data)));
		for (uint32_t i = 0; i < QUERY_COUNT; i++) {
			const struct source_query *query = &answer.queries[i];
			for (uint32_t n = 0; n < query->frame_count; n++) {
				const struct source_frame *frame =
					source_lines_frame(answer.lines, query->frame_at + n);
				if (!frame->line)
					continue; /* code that the compiler made */
				assert_in_range(frame->line, LINE_FIRST, LINE_LAST);
				assert_string_equal(strtab_get(&answer.strings, frame->file),
					"/src/inlined.c");
			}
			known += query->frame_count > 0;
			nested += query->frame_count == 3 &&
				  is_frame(&answer, query->frame_at, "inner", LINE_INNER) &&
				  is_frame(&answer, query->frame_at + 1, "outer", LINE_OUTER) &&
				  is_frame(&answer, query->frame_at + 2, "", LINE_BOTH);
		}
		if (!nested || !known)
			fail_msg("%s: %u addresses with a line, %u in both inlined calls", files[f],
				known, nested);
		answer_done(&answer);
	}
}

static void test_prefixes(void **state)
{
	static uint8_t data[SIZE_MAX_];
	struct answer answer;

	(void)state;
	for (size_t f = 0; f < sizeof(files) / sizeof(files[0]); f++) {
		size_t size = read_file(files[f], data);
		for (size_t len = 0; len < size; len += 97) {
			uint8_t *copy = malloc(len + 1); /* so that sanitizers see its end */
			memcpy(copy, data, len);
			(void)ask(&answer, copy, len); /* must only not crash */
			answer_done(&answer);
			free(copy);
		}
	}
}

static void test_damage(void **state)
{
	static uint8_t data[SIZE_MAX_];
	static uint8_t copy[SIZE_MAX_];
	uint32_t random = 1;
	struct answer answer;

	(void)state;
	for (size_t f = 0; f < sizeof(files) / sizeof(files[0]); f++) {
		size_t size = read_file(files[f], data);
		for (unsigned round = 0; round < 300; round++) {
			memcpy(copy, data, size);
			for (unsigned i = 0; i < 8; i++) {
				random = random * 1664525u + 1013904223u;
				copy[(random >> 8) % size] = (uint8_t)(random >> 3);
			}
			(void)ask(&answer, copy, size); /* must only not crash */
			answer_done(&answer);
		}
	}
}

static void test_no_debug_information(void **state)
{
	static const uint8_t nothing[64];
	struct answer answer;

	(void)state;
	assert_false(ask(&answer, nothing, sizeof(nothing)));
	answer_done(&answer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines_and_inlined_calls),
		cmocka_unit_test(test_prefixes),
		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_no_debug_information),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
