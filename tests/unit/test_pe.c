/*
 * pe.c: a real assembly: complete, truncated, and with every byte changed; and the identity of its
 * symbol file from a debug directory that is built here.
 */
#include "unit/test.h"

#include <errno.h>

#include "base/bytes.h"
#include "base/diag.h"
#include "image/image_file.h"
#include "image/pe.h"

static uint8_t *load(const char *name, size_t *ret_size)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/pe/%s", TEST_DATA, name);
	FILE *file = fopen(path, "rb");
	assert_non_null(file);
	uint8_t *data = malloc(1 << 20);
	*ret_size = fread(data, 1, 1 << 20, file);
	fclose(file);
	return data;
}

static void test_assembly(void **state)
{
	size_t size;
	uint8_t *data = load("tiny_r2r.dll", &size);
	struct image_file image;
	struct pe pe;
	uint64_t offset;
	uint32_t rva;

	(void)state;
	image_file_from_memory(&image, data, size);
	assert_int_equal(pe_read(&pe, &image, NULL), 0);
	assert_true(pe.is_64);
	assert_true(pe.r2r_rva && pe.metadata_rva && pe.metadata_size);
	assert_false(pe.has_pdb);
	assert_int_equal(pe.sections.count, 3);
	assert_true(pe_offset_of_rva(&pe, pe_text_rva(&pe), &offset));
	assert_true(pe_rva_of_offset(&pe, offset, &rva));
	assert_int_equal(rva, pe_text_rva(&pe));
	assert_false(pe_offset_of_rva(&pe, UINT32_MAX, &offset));
	assert_false(pe_rva_of_offset(&pe, UINT64_MAX, &rva));
	pe_done(&pe);
	free(data);
}

static void test_broken(void **state)
{
	size_t size;
	uint8_t *data = load("tiny_r2r.dll", &size);
	struct image_file image;
	struct pe pe;

	(void)state;
	for (size_t len = 0; len < size; len += len < 1024 ? 1 : 61) {
		uint8_t *copy = malloc(len ? len : 1);
		struct diag diag = { 0 };
		memcpy(copy, data, len);
		image_file_from_memory(&image, copy, len);
		if (pe_read(&pe, &image, &diag) < 0)
			assert_true(*diag.text);
		else
			pe_done(&pe);
		free(copy);
	}
	image_file_from_memory(&image, data, size);
	for (size_t i = 0; i < 1024; i++) {
		data[i] ^= 0xff;
		if (pe_read(&pe, &image, NULL) == 0)
			pe_done(&pe);
		data[i] ^= 0xff;
	}
	free(data);
}

/* A PE32+ with one section and a debug directory of two entries. */
static void build(struct bytes *b)
{
	bytes_text(b, "MZ");
	while (b->len < 0x3c)
		bytes_u8(b, 0);
	bytes_u32(b, 0x40);
	bytes_add(b, "PE\0\0", 4);
	bytes_u16(b, 0x8664);
	bytes_u16(b, 1);
	bytes_u32(b, 1700000000);
	bytes_u64(b, 0);
	bytes_u16(b, 240);
	bytes_u16(b, 0x2022);
	size_t optional = b->len;
	bytes_u16(b, 0x20b);
	while (b->len < optional + 24)
		bytes_u8(b, 0);
	bytes_u64(b, 0x180000000);
	while (b->len < optional + 56)
		bytes_u8(b, 0);
	bytes_u32(b, 0x2000);
	while (b->len < optional + 108)
		bytes_u8(b, 0);
	bytes_u32(b, 16);
	while (b->len < optional + 112 + 6 * 8)
		bytes_u8(b, 0);
	bytes_u32(b, 0x1000);
	bytes_u32(b, 56);
	while (b->len < optional + 240)
		bytes_u8(b, 0);
	bytes_add(b, ".text\0\0\0", 8);
	bytes_u32(b, 0x200);
	bytes_u32(b, 0x1000);
	bytes_u32(b, 0x200);
	bytes_u32(b, 0x200);
	while (b->len < optional + 240 + 36)
		bytes_u8(b, 0);
	bytes_u32(b, 0x60000020);
	while (b->len < 0x200)
		bytes_u8(b, 0);
	for (unsigned i = 0; i < 2; i++) { /* CodeView, perf map */
		bytes_u64(b, 0);
		bytes_u32(b, 0);
		bytes_u32(b, i ? 21 : 2);
		bytes_u32(b, 0x60);
		bytes_u32(b, 0);
		bytes_u32(b, 0x240 + i * 0x60);
	}
	while (b->len < 0x240)
		bytes_u8(b, 0);
	bytes_text(b, "RSDS");
	for (unsigned i = 0; i < 16; i++)
		bytes_u8(b, (uint8_t)i);
	bytes_u32(b, 7);
	bytes_text(b, "/src/\"odd\".pdb");
	while (b->len < 0x2a0)
		bytes_u8(b, 0);
	bytes_text(b, "R2RM");
	for (unsigned i = 0; i < 16; i++)
		bytes_u8(b, (uint8_t)(0xf0 + i));
	bytes_u32(b, 1);
	bytes_text(b, "odd.ni.r2rmap");
	while (b->len < 0x400)
		bytes_u8(b, 0);
}

static void test_symbols(void **state)
{
	struct bytes b = { 0 };
	struct image_file image;
	struct pe pe;

	(void)state;
	build(&b);
	image_file_from_memory(&image, b.data, b.len);
	assert_int_equal(pe_read(&pe, &image, NULL), 0);
	assert_int_equal(pe.time_stamp, 1700000000);
	assert_true(pe.has_pdb && pe.has_perfmap);
	assert_string_equal(pe.pdb_name, "/src/\"odd\".pdb");
	for (unsigned i = 0; i < 16; i++) {
		assert_int_equal(pe.pdb_guid[i], i);
		assert_int_equal(pe.perfmap_signature[i], 0xf0 + i);
	}
	assert_int_equal(pe.pdb_age, 7);
	assert_string_equal(pe.perfmap_name, "odd.ni.r2rmap");
	assert_int_equal(pe.perfmap_version, 1);
	assert_int_equal(pe_text_rva(&pe), 4096);
	pe_done(&pe);
	bytes_done(&b);
}

static void test_refused(void **state)
{
	struct image_file image;
	struct pe pe;

	(void)state;
	image_file_from_memory(&image,
		"\x7f"
		"ELF",
		4);
	assert_int_equal(pe_read(&pe, &image, NULL), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_assembly),
		cmocka_unit_test(test_broken),
		cmocka_unit_test(test_symbols),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests_name("pe", tests, NULL, NULL);
}
