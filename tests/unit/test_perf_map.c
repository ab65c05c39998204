/*
 * perf_map.c: real lines of .NET and of other runtimes. Later lines replace earlier ones, invalid
 * lines are skipped, and long or truncated lines are bounded.
 */
#include "unit/test.h"

#include <errno.h>

#include "base/bytes.h"
#include "base/input.h"
#include "code/codemap.h"
#include "code/perf_map.h"
#include "trace/trace.h"

static int read_text(struct codemap *map, const char *text)
{
	struct input in;

	input_from_memory(&in, text, strlen(text));
	int count = perf_map_read(&in, map, NULL);
	input_close(&in);
	return count;
}

static void assert_text(struct codemap *map, uint64_t address, const char *expected)
{
	const struct code *code = codemap_find(map, address, 1000);
	struct bytes out = { 0 };

	assert_non_null(code);
	codemap_symbol_text(map, code, false, &out);
	assert_string_equal(bytes_z(&out), expected);
	bytes_done(&out);
}

static void test_dotnet(void **state)
{
	struct codemap map = { 0 };

	(void)state;
	assert_int_equal(
		read_text(&map,
			"0x00007f3a10002000 1a0 int32 [Shop] Shop.Cart::Sum(int32[])[OptimizedTier1]\n"
			"7F3A10003000 20 instance void [Shop] Shop.Cart::Add(class System.String)[QuickJitted]\r\n"
			"7f3a10004000 20 stub Link<DelegateShuffleThunk>\n"
			"7f3a10005000 20 int32 [Shop] Shop.Cart::Long(int32)[OptimizedTier1OSR]"),
		4);
	assert_text(&map, 0x7f3a1000219f, "int32 [Shop] Shop.Cart::Sum(int32[])[OptimizedTier1]");
	assert_text(&map, 0x7f3a10003000,
		"void [Shop] Shop.Cart::Add(class System.String)[QuickJitted]");
	assert_null(codemap_find(&map, 0x7f3a100021a0, 1000));
	const struct code *code = codemap_find(&map, 0x7f3a10005010, 1000);
	assert_non_null(code);
	assert_int_equal(code->kind, CODE_OSR);
	assert_int_equal(code->tier, TIER_1_OSR);
	code = codemap_find(&map, 0x7f3a10004000, 1000);
	assert_non_null(code);
	assert_int_equal(code->kind, CODE_STUB);
	assert_string_equal(code->name, "stub Link<DelegateShuffleThunk>");
	codemap_done(&map);
}

static void test_others(void **state)
{
	struct codemap map = { 0 };

	(void)state;
	assert_int_equal(read_text(&map, "1000 10 LazyCompile:~main /srv/app.js:1\n"
					 "2000 10 Lcom/example/Main;::run(int)\n"
					 "3000 10 \x01 odd \xff name\n"
					 "3000 8 later wins\n"),
		4);
	const struct code *code = codemap_find(&map, 0x1008, 1);
	assert_non_null(code);
	assert_string_equal(code->name, "LazyCompile:~main /srv/app.js:1");
	assert_string_equal(code->name_space, "");
	assert_int_equal(code->kind, CODE_UNKNOWN);
	assert_string_equal(codemap_find(&map, 0x2000, 1)->name, "Lcom/example/Main;::run(int)");
	assert_string_equal(codemap_find(&map, 0x3004, 1)->name, "later wins");
	codemap_done(&map);
}

static void test_skipped(void **state)
{
	struct codemap map = { 0 };

	(void)state;
	assert_int_equal(read_text(&map,
				 "\n \nhello\n1000\n1000 20\n1000 20 \n1000 0 empty\nxyz 10 a\n"
				 "ffffffffffffffff 10 wraps\n1000 fffffffffffff too large\n"
				 "11112222333344445 10 too many digits\n1000  20   good\n"),
		1);
	assert_string_equal(codemap_find(&map, 0x1000, 1)->name, "good");
	codemap_done(&map);
}

/* A line longer than the limit of names is cut; the next one is read as usual. */
static void test_long(void **state)
{
	struct codemap map = { 0 };
	struct bytes text = { 0 };

	(void)state;
	bytes_text(&text, "1000 10 ");
	for (unsigned i = 0; i < 5 * PERF_MAP_LINE_MAX; i++)
		bytes_u8(&text, 'a');
	bytes_text(&text, "\n2000 10 next\n");
	assert_int_equal(read_text(&map, bytes_z(&text)), 2);
	assert_true(strlen(codemap_find(&map, 0x1000, 1)->name) < 2 * PERF_MAP_LINE_MAX);
	assert_string_equal(codemap_find(&map, 0x2000, 1)->name, "next");
	bytes_done(&text);
	codemap_done(&map);
}

static void test_full(void **state)
{
	struct codemap map = { .max_size_bytes = 1 };

	(void)state;
	(void)read_text(&map, "1000 10 a\n");
	assert_int_equal(read_text(&map, "2000 10 b\n"), -ENOSPC);
	codemap_done(&map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_dotnet),
		cmocka_unit_test(test_others),
		cmocka_unit_test(test_skipped),
		cmocka_unit_test(test_long),
		cmocka_unit_test(test_full),
	};

	return cmocka_run_group_tests_name("perf_map", tests, NULL, NULL);
}
