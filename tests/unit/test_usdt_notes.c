/*
 * usdt_notes.c: the notes of a small image: provider, name, offsets; prelinked and damaged ones, and the image cut at
 * every byte.
 */
#include "unit/test.h"

#include <errno.h>

#include "base/bytes.h"
#include "image/elf.h"
#include "image/image_file.h"
#include "image/usdt_notes.h"
#include "unit/usdt_builder.h"

static int read_notes(const struct bytes *image, size_t len, struct usdt_notes *ret_notes)
{
	struct image_file file;
	struct elf elf;

	image_file_from_memory(&file, image->data, len);
	int result = elf_read(&elf, &file, NULL);
	if (result < 0)
		return result;
	result = usdt_notes_read(&elf, &file, ret_notes);
	elf_done(&elf);
	return result;
}

static void test_notes(void **state)
{
	struct bytes image = { 0 };
	struct usdt_notes notes;

	(void)state;
	usdt_build(&image, true);
	assert_int_equal(read_notes(&image, image.len, &notes), 0);
	/* one without a semaphore, one with it, one of a prelinked image; two have no place in the file */
	assert_int_equal(notes.items.count, 3);
	assert_int_equal(notes.skipped, 2);
	assert_string_equal(notes.items.items[0].provider, "shop");
	assert_string_equal(notes.items.items[0].name, "order");
	assert_string_equal(notes.items.items[0].arguments, "-4@%edi 8@%rsi");
	assert_int_equal(notes.items.items[0].vaddr, USDT_BUILD_CODE);
	assert_int_equal(notes.items.items[0].offset, USDT_BUILD_CODE - USDT_BUILD_SHIFT);
	assert_int_equal(notes.items.items[0].semaphore_offset, 0);
	assert_string_equal(notes.items.items[1].name, "refund");
	assert_string_equal(notes.items.items[1].arguments, "");
	assert_int_equal(notes.items.items[1].semaphore_offset,
		USDT_BUILD_SEMAPHORE - USDT_BUILD_SHIFT);
	assert_string_equal(notes.items.items[2].name, "moved");
	assert_int_equal(notes.items.items[2].vaddr, USDT_BUILD_CODE + 8);
	usdt_notes_done(&notes);
	bytes_done(&image);
}

static void test_symbols(void **state)
{
	struct bytes image = { 0 };
	struct image_file file;
	struct elf elf;
	uint64_t vaddr = 0;

	(void)state;
	usdt_build(&image, true);
	image_file_from_memory(&file, image.data, image.len);
	assert_int_equal(elf_read(&elf, &file, NULL), 0);
	assert_int_equal(usdt_symbol_find(&elf, &file, "counter(%rip)", 7, &vaddr), 0);
	assert_int_equal(vaddr, 0x1300);
	assert_int_equal(usdt_symbol_find(&elf, &file, "count", 5, &vaddr), -ENOENT);
	assert_int_equal(usdt_symbol_find(&elf, &file, "imported", 8, &vaddr), -ENOENT);
	elf_done(&elf);
	bytes_done(&image);
}

/* Each prefix: the notes that are whole, or an error; no read goes beyond the end. */
static void test_prefixes(void **state)
{
	struct bytes image = { 0 };

	(void)state;
	usdt_build(&image, true);
	for (size_t len = 0; len <= image.len; len++) {
		struct usdt_notes notes = { .data = NULL };
		struct bytes copy = { .data = malloc(len + 1), .len = len };
		memcpy(copy.data, image.data, len);
		if (read_notes(&copy, len, &notes) == 0)
			vec_each(note, &notes.items)
				assert_in_range(strlen(note->provider), 1, 8);
		usdt_notes_done(&notes);
		free(copy.data);
	}
	bytes_done(&image);
}

static void test_no_notes(void **state)
{
	struct bytes image = { 0 };
	struct usdt_notes notes;

	(void)state;
	usdt_build(&image, false);
	assert_int_equal(read_notes(&image, image.len, &notes), 0);
	assert_int_equal(notes.items.count, 0);
	usdt_notes_done(&notes);
	bytes_done(&image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_notes),
		cmocka_unit_test(test_symbols),
		cmocka_unit_test(test_prefixes),
		cmocka_unit_test(test_no_notes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
