/*
 * elf.c, image_file.c: a small file built here, in both classes: whole, cut at every byte, and with
 * wrong table sizes.
 */
#include "unit/test.h"

#include <errno.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/diag.h"
#include "image/elf.h"
#include "image/image_file.h"
#include "unit/elf_builder.h"

static void check(bool is_64)
{
	struct bytes file = { 0 };
	struct image_file image;
	struct elf elf;
	char id[2 * ELF_BUILD_ID_MAX + 1];
	uint64_t value;

	elf_build(&file, is_64);
	image_file_from_memory(&image, file.data, file.len);
	assert_int_equal(elf_read(&elf, &image, NULL), 0);
	assert_int_equal(elf.is_64, is_64);
	elf_build_id_text(&elf, id);
	assert_string_equal(id, "00112233445566778899aabbccddeeff01234567");
	assert_string_equal(elf.debug_link, "x.debug");
	assert_int_equal(elf.debug_link_crc, 0x12345678);
	assert_int_equal(elf.text_vaddr, ELF_BUILD_VADDR);
	assert_non_null(elf_find_section(&elf, ".symtab"));
	assert_null(elf_find_section(&elf, ".nothing"));
	assert_true(elf_vaddr_of_offset(&elf, ELF_BUILD_OFFSET + 5, &value));
	assert_int_equal(value, ELF_BUILD_VADDR + 5);
	assert_true(elf_offset_of_vaddr(&elf, ELF_BUILD_VADDR + 5, &value));
	assert_int_equal(value, ELF_BUILD_OFFSET + 5);
	assert_false(elf_vaddr_of_offset(&elf, ELF_BUILD_OFFSET + ELF_BUILD_TEXT_SIZE, &value));
	assert_int_equal(elf.text_offset, ELF_BUILD_OFFSET);
	elf_done(&elf);

	/* A truncated file is refused, or its present part is read. No read goes beyond its end. */
	for (size_t len = 0; len < file.len; len++) {
		uint8_t *copy = malloc(len ? len : 1);
		memcpy(copy, file.data, len);
		image_file_from_memory(&image, copy, len);
		struct diag diag = { 0 };
		int error = elf_read(&elf, &image, &diag);
		if (error)
			assert_true(*diag.text);
		else
			elf_done(&elf);
		free(copy);
	}
	bytes_done(&file);
}

static void test_both_classes(void **state)
{
	(void)state;
	check(true);
	check(false);
}

/* Of two build ids the first in the file counts, and every reader of the file sees the same one. */
static void test_two_build_ids(void **state)
{
	static const uint8_t second[] = { 4, 0, 0, 0, 20, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0 };
	struct bytes file = { 0 };
	struct image_file image;
	struct elf elf;
	char id[2 * ELF_BUILD_ID_MAX + 1];

	(void)state;
	elf_build(&file, true);
	/* The text becomes a section of notes before the one with the file's build id. */
	memcpy(file.data + ELF_BUILD_OFFSET, second, sizeof(second));
	memset(file.data + ELF_BUILD_OFFSET + sizeof(second), 0xee, 20);
	size_t text = file.len - (BUILD_COUNT - BUILD_TEXT) * (size_t)64;
	bytes_set_u32(&file, text + 4, ELF_SECTION_NOTE);
	image_file_from_memory(&image, file.data, file.len);
	assert_int_equal(elf_read(&elf, &image, NULL), 0);
	elf_build_id_text(&elf, id);
	assert_string_equal(id, "eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee");
	elf_done(&elf);
	bytes_done(&file);
}

static void test_refused(void **state)
{
	uint8_t big_endian[64] = { 0x7f, 'E', 'L', 'F', 2, 2, 1 };
	struct image_file image;
	struct elf elf;
	struct diag diag = { 0 };

	(void)state;
	image_file_from_memory(&image, "#!/bin/sh\n", 10);
	assert_int_equal(elf_read(&elf, &image, &diag), -EBADMSG);
	image_file_from_memory(&image, big_endian, sizeof(big_endian));
	assert_int_equal(elf_read(&elf, &image, &diag), -ENOTSUP);
}

static void test_from_fd(void **state)
{
	struct image_file image;
	int pipes[2];
	uint8_t byte;

	(void)state;
	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(image_file_from_fd(&image, pipes[0], NULL), -EINVAL);
	close(pipes[0]);
	close(pipes[1]);

	FILE *file = tmpfile();
	assert_non_null(file);
	assert_int_equal(fwrite("abcdef", 1, 6, file), 6);
	fflush(file);
	assert_int_equal(image_file_from_fd(&image, fileno(file), NULL), 0);
	assert_int_equal(image_file_read(&image, 5, &byte, 1), 0);
	assert_int_equal(byte, 'f');
	assert_int_equal(image_file_read(&image, 6, &byte, 1), -EBADMSG);
	assert_int_equal(image_file_read(&image, UINT64_MAX, &byte, 1), -EBADMSG);
	/* The file shrinks while it is open: an error, no SIGBUS. */
	assert_int_equal(ftruncate(fileno(file), 2), 0);
	assert_int_equal(image_file_read(&image, 5, &byte, 1), -EBADMSG);
	fclose(file);
}

/* This test program: a real file with segments, sections and a build id. */
static void test_real(void **state)
{
	FILE *file = fopen("/proc/self/exe", "rb");
	struct image_file image;
	struct elf elf;

	(void)state;
	assert_non_null(file);
	assert_int_equal(image_file_from_fd(&image, fileno(file), NULL), 0);
	assert_int_equal(elf_read(&elf, &image, NULL), 0);
	assert_true(elf.segments.count >= 2);
	assert_non_null(elf_find_section(&elf, ".text"));
	char needed[32];

	assert_true(elf_find_needed(&elf, &image, "libc.so.", needed, sizeof(needed)));
	assert_memory_equal(needed, "libc.so.", 8);
	assert_false(elf_find_needed(&elf, &image, "libc.so.", needed, 8));
	assert_false(elf_find_needed(&elf, &image, "libnothing.so.", needed, sizeof(needed)));
	elf_done(&elf);
	fclose(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_both_classes),
		cmocka_unit_test(test_two_build_ids),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_from_fd),
		cmocka_unit_test(test_real),
	};

	return cmocka_run_group_tests_name("elf", tests, NULL, NULL);
}
