/*
 * jitdump.c: load records with times, a method that moves, records of other types, and files that
 * are truncated or changed at every byte.
 */
#include "unit/test.h"

#include <errno.h>

#include "base/bytes.h"
#include "base/diag.h"
#include "base/input.h"
#include "code/codemap.h"
#include "code/jitdump.h"

static void add_header(struct bytes *b)
{
	bytes_u32(b, 0x4a695444);
	bytes_u32(b, 1);
	bytes_u32(b, 40);
	bytes_u32(b, 62);
	bytes_u32(b, 0);
	bytes_u32(b, 4711);
	bytes_u64(b, 5000);
	bytes_u64(b, 0);
}

static void add_load(struct bytes *b, uint64_t time_ns, uint64_t address, uint64_t size,
	const char *name)
{
	size_t len = strlen(name) + 1;

	bytes_u32(b, 0);
	bytes_u32(b, (uint32_t)(56 + len + size));
	bytes_u64(b, time_ns);
	bytes_u32(b, 4711);
	bytes_u32(b, 4712);
	bytes_u64(b, address);
	bytes_u64(b, address);
	bytes_u64(b, size);
	bytes_u64(b, 1);
	bytes_add(b, name, len);
	for (uint64_t i = 0; i < size; i++)
		bytes_u8(b, 0x90);
}

static void add_move(struct bytes *b, uint64_t time_ns, uint64_t from, uint64_t to, uint64_t size)
{
	bytes_u32(b, 1);
	bytes_u32(b, 64);
	bytes_u64(b, time_ns);
	bytes_u32(b, 4711);
	bytes_u32(b, 4712);
	bytes_u64(b, to);
	bytes_u64(b, from);
	bytes_u64(b, to);
	bytes_u64(b, size);
	bytes_u64(b, 1);
}

static void add_other(struct bytes *b, uint32_t type, uint32_t size)
{
	bytes_u32(b, type);
	bytes_u32(b, size);
	bytes_u64(b, 0);
	for (uint32_t i = 16; i < size; i++)
		bytes_u8(b, 1);
}

static int read_bytes(struct codemap *map, const struct bytes *b, size_t len,
	struct jitdump_header *header, struct diag *diag)
{
	struct input in;
	uint8_t *exact = malloc(len ? len : 1);

	memcpy(exact, b->data, len);
	input_from_memory(&in, exact, len);
	int count = jitdump_read(&in, map, header, diag);
	input_close(&in);
	free(exact);
	return count;
}

static void build(struct bytes *b)
{
	add_header(b);
	add_load(b, 100, 0x1000, 0x100, "void [A] T::M()[PreJIT]");
	add_other(b, 2, 16 + 10000); /* debug info */
	add_load(b, 200, 0x2000, 0x80, "plain name");
	add_move(b, 300, 0x2000, 0x3000, 0x80);
	add_load(b, 400, 0x2000, 0x80, "next owner");
	add_other(b, 3, 16);
	add_load(b, 500, 0x9000, 0x80, "behind the end");
}

static void test_records(void **state)
{
	struct bytes b = { 0 };
	struct codemap map = { 0 };
	struct jitdump_header header;

	(void)state;
	build(&b);
	assert_int_equal(read_bytes(&map, &b, b.len, &header, NULL), 3);
	assert_int_equal(header.pid, 4711);
	assert_int_equal(header.time_ns, 5000);
	const struct code *code = codemap_find(&map, 0x10ff, 150);
	assert_non_null(code);
	assert_string_equal(code->name, "M");
	assert_string_equal(code->name_space, "T");
	assert_int_equal(code->from_ns, 100);
	assert_string_equal(codemap_find(&map, 0x2040, 250)->name, "plain name");
	assert_string_equal(codemap_find(&map, 0x3040, 350)->name, "plain name");
	assert_string_equal(codemap_find(&map, 0x2040, 450)->name, "next owner");
	assert_null(codemap_find(&map, 0x9000, 600));
	codemap_done(&map);
	bytes_done(&b);
}

static void test_torn(void **state)
{
	struct bytes b = { 0 };

	(void)state;
	build(&b);
	for (size_t len = 0; len < b.len; len += len < 500 ? 1 : 97) {
		struct codemap map = { 0 };
		struct diag diag = { 0 };
		int count = read_bytes(&map, &b, len, NULL, &diag);
		if (len < 40) {
			assert_int_equal(count, -EBADMSG);
			assert_true(*diag.text);
		} else {
			assert_in_range(count, 0, 3);
		}
		codemap_done(&map);
	}
	bytes_done(&b);
}

static void test_refused(void **state)
{
	struct bytes b = { 0 };
	struct codemap map = { 0 };

	(void)state;
	build(&b);
	bytes_set_u32(&b, 4, 2);
	assert_int_equal(read_bytes(&map, &b, b.len, NULL, NULL), -ENOTSUP);
	bytes_set_u32(&b, 4, 1);
	bytes_set_u32(&b, 44, 8); /* the first record's size, smaller than its own head */
	assert_int_equal(read_bytes(&map, &b, b.len, NULL, NULL), -EBADMSG);
	bytes_set_u32(&b, 44, UINT32_MAX);
	assert_int_equal(read_bytes(&map, &b, b.len, NULL, NULL), -EBADMSG);
	bytes_set_u32(&b, 0, 0x4454694a);
	assert_int_equal(read_bytes(&map, &b, b.len, NULL, NULL), -ENOTSUP);
	codemap_done(&map);
	bytes_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_records),
		cmocka_unit_test(test_torn),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests_name("jitdump", tests, NULL, NULL);
}
