/* Offsets of members from a description of types: of one made here, of the running kernel's, and of damaged ones. */
#include "machine/kernel_types.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "unit/test.h"

static const char names[] = "\0other\0task\0pid\0tgid\0bits";
enum { OTHER = 1, TASK = 7, PID = 12, TGID = 16, BITS = 21 };
static const char *const both[] = { "pid", "tgid" };

static void add_type(struct bytes *out, uint32_t name, uint32_t kind, uint32_t count, bool flag)
{
	bytes_u32(out, name);
	bytes_u32(out, (uint32_t)flag << 31 | kind << 24 | count);
	bytes_u32(out, 8);
}

static void add_member(struct bytes *out, uint32_t name, uint32_t bits)
{
	bytes_u32(out, name);
	bytes_u32(out, 1);
	bytes_u32(out, bits);
}

static void make(struct bytes *out)
{
	struct bytes types = { 0 };

	add_type(&types, OTHER, 1, 0, false); /* an integer */
	bytes_u32(&types, 0);
	add_type(&types, OTHER, 3, 0, false); /* an array */
	add_member(&types, 1, 1);
	add_type(&types, OTHER, 6, 2, false); /* an enum of two */
	for (unsigned i = 0; i < 4; i++)
		bytes_u32(&types, i);
	add_type(&types, TASK, 7, 0, false); /* a declaration of the same name */
	add_type(&types, OTHER, 4, 1, false);
	add_member(&types, PID, 800);
	add_type(&types, TASK, 4, 3, true);
	add_member(&types, PID, 64);
	add_member(&types, BITS, 3u << 24 | 96);
	add_member(&types, TGID, 128);
	bytes_u16(out, 0xeb9f);
	bytes_u16(out, 1);
	bytes_u32(out, 24);
	bytes_u32(out, 0);
	bytes_u32(out, (uint32_t)types.len);
	bytes_u32(out, (uint32_t)types.len);
	bytes_u32(out, sizeof(names));
	bytes_add(out, types.data, types.len);
	bytes_add(out, names, sizeof(names));
	bytes_done(&types);
}

static void test_members(void **state)
{
	static const char *const bits[] = { "bits" };
	static const char *const missing[] = { "pid", "none" };
	struct bytes data = { 0 };
	uint32_t offsets[2] = { 0 };

	(void)state;
	make(&data);
	assert_int_equal(kernel_types_find(data.data, data.len, "task", both, 2, offsets), 0);
	assert_int_equal(offsets[0], 8);
	assert_int_equal(offsets[1], 16);
	assert_int_equal(kernel_types_find(data.data, data.len, "task", bits, 1, offsets),
		-EBADMSG);
	assert_int_equal(kernel_types_find(data.data, data.len, "task", missing, 2, offsets),
		-ENOENT);
	assert_int_equal(kernel_types_find(data.data, data.len, "tas", both, 1, offsets), -ENOENT);
	bytes_done(&data);
}

/* Any end, and any byte that is another one: an error or an answer, and no access beyond the memory. */
static void test_damage(void **state)
{
	struct bytes data = { 0 };
	uint32_t offsets[2];

	(void)state;
	make(&data);
	for (size_t size = 0; size < data.len; size++) {
		uint8_t *copy = malloc(size + 1);
		assert_non_null(copy);
		memcpy(copy, data.data, size);
		assert_true(kernel_types_find(copy, size, "task", both, 2, offsets) < 0);
		free(copy);
	}
	for (size_t i = 0; i < data.len; i++)
		for (unsigned bit = 0; bit < 8; bit++) {
			data.data[i] ^= (uint8_t)(1u << bit);
			(void)kernel_types_find(data.data, data.len, "task", both, 2, offsets);
			data.data[i] ^= (uint8_t)(1u << bit);
		}
	bytes_done(&data);
}

static void test_this_kernel(void **state)
{
	uint32_t offsets[2];
	int result = kernel_types_read("task_struct", both, 2, offsets);

	(void)state;
	if (result < 0) {
		print_message("skipped: this kernel does not describe its types\n");
		skip();
	}
	assert_int_equal(offsets[1], offsets[0] + 4);
	assert_int_equal(kernel_types_read("no such struct", both, 2, offsets), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_members),
		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_this_kernel),
	};

	return cmocka_run_group_tests_name("kernel_types", tests, NULL, NULL);
}
