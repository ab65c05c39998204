/* code/go_functions.c: tables of Go 1.16, 1.18 and 1.20, of 32 and 64 bits, truncated and damaged. */
#include "unit/test.h"

#include <errno.h>

#include "base/bytes.h"
#include "code/go_functions.h"

#define CODE_BEGIN 0x401000u

static const char *const names[] = { "main.main", "main.(*Counter).Spin", "runtime.goexit" };
static const uint32_t begins[] = { 0, 0x20, 0x80, 0x90 }; /* the last: the end */

static void put_word(struct bytes *b, unsigned pointer_size, uint64_t value)
{
	if (pointer_size == 8)
		bytes_u64(b, value);
	else
		bytes_u32(b, (uint32_t)value);
}

static struct bytes make(uint32_t magic, unsigned p, uint64_t code_begin)
{
	bool relative = magic != 0xfffffffa;
	unsigned width = relative ? 4 : p;
	uint64_t base = relative ? 0 : CODE_BEGIN;
	uint32_t header = 8 + p * (relative ? 8 : 7);
	struct bytes texts = { 0 };
	struct bytes b = { 0 };
	uint32_t name_at[3];

	for (unsigned i = 0; i < 3; i++) {
		name_at[i] = (uint32_t)texts.len;
		bytes_add(&texts, names[i], strlen(names[i]) + 1);
	}
	bytes_u32(&b, magic);
	bytes_u16(&b, 0);
	bytes_u8(&b, 1);
	bytes_u8(&b, (uint8_t)p);
	put_word(&b, p, 3);
	put_word(&b, p, 0);
	if (relative)
		put_word(&b, p, code_begin);
	put_word(&b, p, header);
	for (unsigned i = 0; i < 3; i++)
		put_word(&b, p, header);
	put_word(&b, p, header + texts.len);
	bytes_add(&b, texts.data, texts.len);
	for (unsigned i = 0; i < 4; i++) {
		put_word(&b, width, begins[i] + base);
		if (i < 3)
			put_word(&b, width, 7 * width + i * (width + 4));
	}
	for (unsigned i = 0; i < 3; i++) {
		put_word(&b, width, begins[i] + base);
		bytes_u32(&b, name_at[i]);
	}
	bytes_done(&texts);
	return b;
}

struct found {
	const struct bytes *table;
	const uint64_t *names;
	unsigned count;
};

static bool each(void *context, uint64_t begin, uint64_t end, uint32_t name)
{
	struct found *found = context;
	unsigned i = found->count++;

	assert_true(i < 3);
	assert_int_equal(begin, CODE_BEGIN + begins[i]);
	assert_int_equal(end, CODE_BEGIN + begins[i + 1]);
	assert_string_equal((const char *)found->table->data + *found->names + name, names[i]);
	return true;
}

static bool stop(void *context, uint64_t begin, uint64_t end, uint32_t name)
{
	(void)begin;
	(void)end;
	(void)name;
	return ++*(unsigned *)context < 2;
}

static void check(uint32_t magic, unsigned pointer_size)
{
	struct bytes table = make(magic, pointer_size, CODE_BEGIN);
	uint64_t names_at;
	struct found found = { .table = &table, .names = &names_at };
	unsigned count = 0;

	assert_int_equal(go_functions_read(table.data, table.len, &names_at, each, &found), 0);
	assert_int_equal(found.count, 3);
	assert_int_equal(go_functions_read(table.data, table.len, &names_at, stop, &count),
		-ECANCELED);
	assert_int_equal(count, 2);
	for (size_t len = 0; len < table.len; len++) {
		count = 0;
		assert_true(go_functions_read(table.data, len, &names_at, stop, &count) < 0);
	}
	bytes_done(&table);
}

static void test_versions(void **state)
{
	(void)state;
	check(0xfffffffa, 8);
	check(0xfffffffa, 4);
	check(0xfffffff0, 8);
	check(0xfffffff1, 8);
	check(0xfffffff1, 4);
}

static void test_refused(void **state)
{
	struct bytes table = make(0xfffffff1, 8, 0); /* the addresses come with the loading */
	uint64_t names_at;
	unsigned count = 0;

	(void)state;
	assert_int_equal(go_functions_read(table.data, table.len, &names_at, stop, &count),
		-ENOTSUP);
	bytes_done(&table);
	table = make(0xfffffffb, 8, CODE_BEGIN); /* Go 1.2 */
	assert_int_equal(go_functions_read(table.data, table.len, &names_at, stop, &count),
		-ENOTSUP);
	bytes_done(&table);
	/* A record of another function. */
	table = make(0xfffffff1, 8, CODE_BEGIN);
	table.data[table.len - 8] ^= 1;
	assert_int_equal(go_functions_read(table.data, table.len, &names_at, stop, &count),
		-ECANCELED);
	count = 0;
	table.data[table.len - 16] ^= 1;
	assert_int_equal(go_functions_read(table.data, table.len, &names_at, stop, &count),
		-EBADMSG);
	bytes_done(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_versions),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests_name("go_functions", tests, NULL, NULL);
}
