/*
 * symbolmap.c: an address gets the name of its owner at that time, or none, but never the nearest
 * name.
 */
#include "unit/test.h"

#include "trace/symbolmap.h"
#include "unit/sample_trace.h"

struct expected {
	const char *name;
	const char *module;
	enum function_kind kind;
	enum code_tier tier;
	bool named;
};

static void expect(struct symbolmap *map, uint32_t process, uint64_t address, uint32_t epoch,
	struct expected e)
{
	uint32_t index = symbolmap_find(map, process, address, epoch);

	assert_int_not_equal(index, 0);
	const struct function *f = &map->functions.items[index];
	assert_string_equal(trace_text(map->trace, f->name), e.name);
	assert_string_equal(trace_text(map->trace, f->module), e.module);
	assert_int_equal(f->kind, e.kind);
	assert_int_equal(f->tier, e.tier);
	assert_int_equal(f->named, e.named);
	assert_int_equal(symbolmap_find(map, process, address, epoch), index);
}

static void test_owners(void **state)
{
	struct trace trace;
	struct symbolmap map;

	(void)state;
	sample_trace(&trace);
	uint32_t shop = trace_find_process(&trace, 4711);
	uint32_t other = trace_find_process(&trace, 4802);
	assert_int_equal(symbolmap_init(&map, &trace, METHOD_NAME_LONG), 0);
	expect(&map, shop, KERNEL + 8, 0,
		(struct expected){ "clear_page_erms", "kernel", FUNCTION_KERNEL, 0, true });
	expect(&map, other, KERNEL + 8, 0,
		(struct expected){ "clear_page_erms", "kernel", FUNCTION_KERNEL, 0, true });
	expect(&map, shop, KERNEL + 0x200, 0,
		(struct expected){ "vmlinux+0x1200", "kernel", FUNCTION_KERNEL, 0, false });
	expect(&map, shop, LIBC + 0x1ff, 0,
		(struct expected){ "memmove", "libc.so.6", FUNCTION_NATIVE, 0, true });
	expect(&map, shop, LIBC + 0x200, 0,
		(struct expected){ "libc.so.6+0x1200", "libc.so.6", FUNCTION_NATIVE, 0, false });
	expect(&map, shop, CLR + 0x2a8, 0,
		(struct expected){
			"libcoreclr.so+0x12a8", "libcoreclr.so", FUNCTION_NATIVE, 0, false });
	expect(&map, shop, IMAGE + 8, 0,
		(struct expected){ "System.Text.Json.JsonSerializer.Serialize()",
			"System.Text.Json.dll", FUNCTION_READYTORUN, 0, true });
	expect(&map, shop, JIT + 0x408, 0,
		(struct expected){ "(interface dispatch stub)", "JIT", FUNCTION_STUB, 0, true });
	expect(&map, shop, JIT + 0x800, 0,
		(struct expected){ "(JIT code)", "JIT", FUNCTION_JIT, 0, false });
	expect(&map, shop, 0x1234, 0,
		(struct expected){ "[unknown]", "", FUNCTION_UNKNOWN, 0, false });
	symbolmap_done(&map);
	trace_done(&trace);
}

/*
 * The same address: Burn at first, Comer from the first removal on. A removed method names no later
 * sample.
 */
static void test_reuse(void **state)
{
	struct trace trace;
	struct symbolmap map;

	(void)state;
	sample_trace(&trace);
	uint32_t shop = trace_find_process(&trace, 4711);
	assert_int_equal(symbolmap_init(&map, &trace, METHOD_NAME_LONG), 0);
	for (unsigned twice = 0; twice < 2; twice++) {
		expect(&map, shop, JIT + 8, 0,
			(struct expected){
				"Shop.Pricing.Burn()", "Shop.dll", FUNCTION_JIT, TIER_1, true });
		expect(&map, shop, JIT + 8, 1,
			(struct expected){
				"Shop.Late.Comer()", "Shop.dll", FUNCTION_JIT, TIER_1, true });
		expect(&map, shop, JIT + 0x608, 0,
			(struct expected){
				"Shop.Gone.Now()", "Shop.dll", FUNCTION_JIT, TIER_1, true });
		expect(&map, shop, JIT + 0x608, 1,
			(struct expected){ "(JIT code)", "JIT", FUNCTION_JIT, 0, false });
	}
	symbolmap_done(&map);
	trace_done(&trace);
}

static void test_overlaps(void **state)
{
	struct trace trace;
	struct symbolmap map;

	(void)state;
	sample_trace(&trace);
	uint32_t shop = trace_find_process(&trace, 4711);
	/* A newer mapping inside an older one, and a symbol inside a larger one. */
	sample_mapping(&trace, shop, 7, LIBC + 0x1000, "/lib/inner.so");
	sample_symbol(&trace, 3, CLR, 0x10000, "outer");
	sample_symbol(&trace, 3, CLR + 0x100, 0x100, "inner");
	assert_int_equal(symbolmap_init(&map, &trace, METHOD_NAME_LONG), 0);
	expect(&map, shop, LIBC + 0x1001, 0,
		(struct expected){ "inner.so+0x1001", "inner.so", FUNCTION_NATIVE, 0, false });
	expect(&map, shop, LIBC + 8, 0,
		(struct expected){ "start_thread", "libc.so.6", FUNCTION_NATIVE, 0, true });
	expect(&map, shop, CLR + 0x180, 0,
		(struct expected){ "inner", "libcoreclr.so", FUNCTION_NATIVE, 0, true });
	expect(&map, shop, CLR + 0x200, 0,
		(struct expected){ "outer", "libcoreclr.so", FUNCTION_NATIVE, 0, true });
	symbolmap_done(&map);
	trace_done(&trace);
}

static void test_one_index(void **state)
{
	struct trace trace;
	struct symbolmap map;

	(void)state;
	sample_trace(&trace);
	uint32_t shop = trace_find_process(&trace, 4711);
	assert_int_equal(symbolmap_init(&map, &trace, METHOD_NAME_RAW), 0);
	assert_int_equal(symbolmap_find(&map, shop, LIBC, 0),
		symbolmap_find(&map, shop, LIBC + 9, 0));
	assert_int_not_equal(symbolmap_find(&map, shop, 0x1234, 0),
		symbolmap_find(&map, shop, 0x1235, 0)); /* raw names distinguish them */
	assert_int_not_equal(symbolmap_find(&map, 999999, KERNEL, 0), 0);
	symbolmap_done(&map);
	trace_done(&trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_owners),
		cmocka_unit_test(test_reuse),
		cmocka_unit_test(test_overlaps),
		cmocka_unit_test(test_one_index),
	};

	return cmocka_run_group_tests_name("symbolmap", tests, NULL, NULL);
}
