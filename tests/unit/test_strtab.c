/* strtab.c, arena.c and vec.c: growing tables that keep their content. */
#include "unit/test.h"

#include "base/strtab.h"

static void test_interning(void **state)
{
	struct strtab table = { 0 };
	char name[32];

	(void)state;
	assert_int_equal(strtab_add_z(&table, ""), 0);
	uint32_t first = strtab_add_z(&table, "first");
	for (int i = 0; i < 3000; i++) {
		snprintf(name, sizeof(name), "name %d", i);
		assert_int_equal(strtab_add_z(&table, name), i + 2);
	}
	assert_int_equal(strtab_add_z(&table, "first"), first);
	assert_int_equal(strtab_add_z(&table, "name 1234"), 1236);
	assert_string_equal(strtab_get(&table, 1236), "name 1234");
	assert_string_equal(strtab_get(&table, 99999), "");
	assert_int_equal(strtab_len(&table, first), 5);
	strtab_done(&table);
}

static void test_long_text_is_cut(void **state)
{
	struct strtab table = { 0 };
	char *text = malloc(STRTAB_TEXT_MAX + 10);

	(void)state;
	memset(text, 'x', STRTAB_TEXT_MAX + 10);
	uint32_t index = strtab_add(&table, text, STRTAB_TEXT_MAX + 10);
	assert_int_equal(strtab_len(&table, index), STRTAB_TEXT_MAX);
	assert_int_equal(strtab_add(&table, text, STRTAB_TEXT_MAX + 5), index);
	free(text);
	strtab_done(&table);
}

static void test_arena(void **state)
{
	struct arena arena = { 0 };
	char *pieces[500];

	(void)state;
	for (size_t i = 0; i < 500; i++) {
		pieces[i] = arena_alloc(&arena, i * 7 + 1);
		assert_int_equal((uintptr_t)pieces[i] % 8, 0);
		memset(pieces[i], (int)i, i * 7 + 1);
	}
	for (size_t i = 0; i < 500; i++)
		for (size_t j = 0; j < i * 7 + 1; j++)
			assert_int_equal((unsigned char)pieces[i][j], i & 0xff);
	assert_null(arena_alloc(&arena, SIZE_MAX));
	arena_done(&arena);
	assert_int_equal(arena.total_bytes, 0);
}

static void test_vec(void **state)
{
	VEC(uint64_t) v = { 0 };

	(void)state;
	for (uint64_t i = 0; i < 10000; i++)
		assert_true(vec_add(&v, i));
	for (uint64_t i = 0; i < 10000; i++)
		assert_true(v.items[i] == i);
	assert_false(vec_reserve(&v, SIZE_MAX));
	assert_int_equal(*vec_push(&v), 0);
	vec_done(&v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_interning),
		cmocka_unit_test(test_long_text_is_cut),
		cmocka_unit_test(test_arena),
		cmocka_unit_test(test_vec),
	};

	return cmocka_run_group_tests_name("strtab", tests, NULL, NULL);
}
