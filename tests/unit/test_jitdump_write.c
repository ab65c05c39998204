/* formats/jitdump_write.c: what it writes is what code/jitdump.c reads, and the debug info is laid out as perf reads it. */
#include "unit/test.h"

#include "base/bytes.h"
#include "base/cursor.h"
#include "base/diag.h"
#include "base/input.h"
#include "code/codemap.h"
#include "code/jitdump.h"
#include "formats/jitdump_write.h"

static const uint8_t code[] = { 0x55, 0x48, 0x89, 0xe5, 0x5d, 0xc3 };
static const struct jitdump_line lines[] = { { 0, 12, "/src/Shop.cs" }, { 4, 13, "/src/Shop.cs" } };
static const struct jitdump_owner owner = { .pid = 4711, .time_ns = 5000 };

static void test_read_back(void **state)
{
	struct jitdump_body body = { .begin = 0x7f0000001000,
		.code = code,
		.size = sizeof(code),
		.name = "Shop.Cart.Total(int)[Tier1]",
		.lines = lines,
		.line_count = 2,
		.number = 3 };
	struct jitdump_header header;
	struct codemap map = { 0 };
	struct bytes out = { 0 };
	struct diag diag = { 0 };
	struct input in;

	(void)state;
	jitdump_write_head(&out, "x86_64", &owner);
	jitdump_write_body(&out, &body, &owner);
	body.begin += 0x100;
	body.line_count = 0;
	body.name = "Other";
	jitdump_write_body(&out, &body, &owner);
	input_from_memory(&in, out.data, out.len);
	assert_int_equal(jitdump_read(&in, &map, &header, &diag), 2);
	assert_int_equal(header.elf_machine, 62);
	assert_int_equal(header.pid, 4711);
	assert_int_equal(header.flags, 0);
	const struct code *found = codemap_find(&map, 0x7f0000001002, 6000);
	assert_non_null(found);
	assert_int_equal(found->end - found->begin, sizeof(code));
	found = codemap_find(&map, 0x7f0000001102, 6000);
	assert_non_null(found);
	assert_string_equal(found->name, "Other");
	input_close(&in);
	codemap_done(&map);
	bytes_done(&out);
}

static void test_lines(void **state)
{
	static const uint64_t addresses[] = { 0x1000, 0x1004,
		0x1006 }; /* the last: the end of the code */
	static const uint32_t numbers[] = { 12, 13, 13 };
	const struct jitdump_body body = { .begin = 0x1000,
		.code = code,
		.size = sizeof(code),
		.name = "F",
		.lines = lines,
		.line_count = 2 };
	struct bytes out = { 0 };

	(void)state;
	jitdump_write_body(&out, &body, &owner);
	struct cursor c = cursor_of(out.data, out.len);
	assert_int_equal(cursor_u32(&c), 2);
	uint32_t size = cursor_u32(&c);
	assert_int_equal(size % 8, 0);
	assert_int_equal(cursor_u64(&c), 5000);
	assert_int_equal(cursor_u64(&c), 0x1000);
	assert_int_equal(cursor_u64(&c), 3);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(cursor_u64(&c), addresses[i]);
		assert_int_equal(cursor_u32(&c), numbers[i]);
		assert_int_equal(cursor_u32(&c), 0);
		assert_string_equal((const char *)cursor_take(&c, 13), "/src/Shop.cs");
	}
	c = cursor_of(out.data + size, out.len - size); /* the code follows */
	assert_int_equal(cursor_u32(&c), 0);
	assert_int_equal(cursor_u32(&c), out.len - size);
	assert_false(c.short_read);
	bytes_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read_back),
		cmocka_unit_test(test_lines),
	};

	return cmocka_run_group_tests_name("jitdump_write", tests, NULL, NULL);
}
