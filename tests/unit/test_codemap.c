/*
 * codemap.c: finds the method at an address at a given time, with events in any order, and splits
 * the text of a symbol.
 */
#include "unit/test.h"

#include <errno.h>

#include "base/bytes.h"
#include "code/codemap.h"
#include "trace/trace.h"

#define S UINT64_C(1000000000)

static struct code body(uint64_t begin, uint64_t end, uint64_t from_ns, const char *name)
{
	return (struct code){
		.begin = begin,
		.end = end,
		.method_id = begin ^ end,
		.module_id = 7,
		.from_ns = from_ns,
		.until_ns = UINT64_MAX,
		.name_space = "Shop.Pricing",
		.name = name,
		.signature = "instance void  (int32)",
		.kind = CODE_JIT,
		.tier = TIER_1,
	};
}

static void add(struct codemap *map, uint64_t begin, uint64_t end, uint64_t from_ns,
	const char *name)
{
	struct code code = body(begin, end, from_ns, name);

	assert_int_equal(codemap_add(map, &code), 0);
}

static const char *owner(struct codemap *map, uint64_t address, uint64_t time_ns)
{
	const struct code *code = codemap_find(map, address, time_ns);

	return code ? code->name : "-";
}

static void test_ranges(void **state)
{
	struct codemap map = { 0 };
	struct code empty = body(5, 5, 0, "Empty");

	(void)state;
	assert_null(codemap_find(&map, 1, 1));
	add(&map, 0x2000, 0x2100, 0, "B");
	add(&map, 0x1000, 0x1080, 0, "A");
	assert_string_equal(owner(&map, 0x1000, S), "A");
	assert_string_equal(owner(&map, 0x107f, S), "A");
	assert_string_equal(owner(&map, 0x1080, S), "-");
	assert_string_equal(owner(&map, 0xfff, S), "-");
	assert_string_equal(owner(&map, 0x20ff, S), "B");
	/* A lookup between two insertions does not prevent later ones. */
	add(&map, 0x1080, 0x1090, 0, "C");
	assert_string_equal(owner(&map, 0x1080, S), "C");
	assert_string_equal(owner(&map, 0x107f, S), "A");
	assert_int_equal(codemap_add(&map, &empty), -EINVAL);
	codemap_done(&map);
}

/*
 * A second rundown after a gap between sessions: known methods keep their times, new methods begin
 * in the gap.
 */
static void test_second_rundown(void **state)
{
	struct codemap map = { 0 };
	struct code precompiled = body(0x5000, 0x5100, 0, "Precompiled");

	(void)state;
	precompiled.kind = CODE_READYTORUN;
	add(&map, 0x1000, 0x1100, 0, "Known");
	add(&map, 0x2000, 0x2100, 5 * S, "Freed");
	map.since_ns = 20 * S;
	add(&map, 0x1000, 0x1100, 0, "Known");
	add(&map, 0x2000, 0x2080, 0, "Another");
	add(&map, 0x3000, 0x3100, 0, "Fresh");
	assert_int_equal(codemap_add(&map, &precompiled), 0);
	assert_string_equal(owner(&map, 0x1010, S), "Known");
	assert_string_equal(owner(&map, 0x2010, 10 * S), "Freed");
	assert_string_equal(owner(&map, 0x2010, 21 * S), "Another");
	assert_string_equal(owner(&map, 0x3010, 10 * S), "-");
	assert_string_equal(owner(&map, 0x3010, 20 * S), "Fresh");
	assert_string_equal(owner(&map, 0x5010, S), "Precompiled");
	codemap_done(&map);
}

/* Several maps share one string table: their names are equal, and a map has no copies of them. */
static void test_shared(void **state)
{
	struct strtab texts = { 0 };
	struct codemap maps[2] = { { .shared = &texts }, { .shared = &texts } };
	struct codemap alone = { 0 };

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		add(&maps[i], 0x1000, 0x1100, 0, "A");
		add(&maps[i], 0x2000 + i, 0x2100, 0, "B");
	}
	add(&alone, 0x1000, 0x1100, 0, "A");
	size_t one = strtab_size_bytes(&texts);
	assert_true(one > 0);
	assert_ptr_equal(codemap_find(&maps[0], 0x1000, S)->name,
		codemap_find(&maps[1], 0x1000, S)->name);
	codemap_trim(&maps[0]);
	assert_string_equal(owner(&maps[0], 0x2000, S), "B");
	codemap_remove(&maps[0], 0x1000, 5 * S); /* dropped entries are found again */
	assert_string_equal(owner(&maps[0], 0x1000, 6 * S), "-");
	assert_string_equal(owner(&maps[0], 0x1000, 4 * S), "A");
	codemap_trim(&maps[0]);
	add(&maps[0], 0x3000, 0x3100, 0, "A"); /* grows again after that */
	add(&maps[0], 0x2000, 0x2100, 0, "B");
	assert_int_equal(maps[0].codes.count, 3); /* known, not added */
	assert_string_equal(owner(&maps[0], 0x3000, S), "A");
	assert_int_equal(strtab_size_bytes(&texts), one);
	codemap_done(&maps[0]);
	assert_string_equal(owner(&maps[1], 0x2001, S), "B");
	codemap_done(&maps[1]);
	codemap_trim(&alone);
	assert_string_equal(owner(&alone, 0x1000, S), "A");
	codemap_done(&alone);
	codemap_trim(&alone);
	strtab_done(&texts);
}

static void test_time(void **state)
{
	struct codemap map = { 0 };

	(void)state;
	add(&map, 0x1000, 0x1100, 0, "Old");
	add(&map, 0x1080, 0x1180, 10 * S, "New"); /* overlaps Old, which ends */
	assert_string_equal(owner(&map, 0x1090, 5 * S), "Old");
	assert_string_equal(owner(&map, 0x1090, 10 * S), "New");
	assert_string_equal(owner(&map, 0x1010, 11 * S), "-");
	codemap_remove(&map, 0x1080, 20 * S);
	assert_string_equal(owner(&map, 0x1090, 20 * S - 1), "New");
	assert_string_equal(owner(&map, 0x1090, 20 * S), "-");
	/* Its time stamp may be slightly, but not much, later than its first sample. */
	add(&map, 0x1080, 0x1180, 30 * S, "Third");
	assert_string_equal(owner(&map, 0x1090, 30 * S - 200000000), "Third");
	assert_string_equal(owner(&map, 0x1090, 30 * S - 300000000), "-");
	codemap_done(&map);
}

/* Every order of the same three events gives the same methods. */
static void test_any_order(void **state)
{
	static const unsigned orders[6][3] = {
		{ 0, 1, 2 },
		{ 0, 2, 1 },
		{ 1, 0, 2 },
		{ 1, 2, 0 },
		{ 2, 0, 1 },
		{ 2, 1, 0 },
	};

	(void)state;
	for (unsigned o = 0; o < 6; o++) {
		for (unsigned ask = 0; ask < 2; ask++) {
			struct codemap map = { 0 };
			for (unsigned i = 0; i < 3; i++) {
				unsigned which = orders[o][i];
				add(&map, 0x1000 + 0x10 * which, 0x1100, which * 10 * S,
					which == 0   ? "A"
					: which == 1 ? "B"
						     : "C");
				if (ask)
					(void)codemap_find(&map, 0x1050, S);
			}
			assert_string_equal(owner(&map, 0x1050, 5 * S), "A");
			assert_string_equal(owner(&map, 0x1050, 15 * S), "B");
			assert_string_equal(owner(&map, 0x1050, 25 * S), "C");
			codemap_done(&map);
		}
	}
}

/*
 * The rundown is read before the live stream, which has earlier load and unload events of the same
 * address.
 */
static void test_stood(void **state)
{
	struct codemap map = { 0 };
	struct code stood = body(0x1000, 0x1100, 0, "Stood");
	struct code unloaded = body(0x1000, 0x1100, 0, "Unloaded");

	(void)state;
	stood.stood_ns = 40 * S;
	assert_int_equal(codemap_add(&map, &stood), 0);
	add(&map, 0x1000, 0x1100, 10 * S, "First");
	assert_string_equal(owner(&map, 0x1050, 15 * S), "First");
	assert_string_equal(owner(&map, 0x1050, 40 * S), "Stood");
	codemap_remove(&map, 0x1000, 20 * S);
	assert_string_equal(owner(&map, 0x1050, 5 * S), "-");
	assert_string_equal(owner(&map, 0x1050, 40 * S), "Stood");
	/* One range with a begin; before it another range of which only the end was reported. */
	add(&map, 0x1000, 0x1100, 35 * S, "Stood");
	unloaded.stood_ns = unloaded.until_ns = 30 * S;
	assert_int_equal(codemap_add(&map, &unloaded), 0);
	assert_string_equal(owner(&map, 0x1050, 5 * S), "-");
	assert_string_equal(owner(&map, 0x1050, 29 * S), "Unloaded");
	assert_string_equal(owner(&map, 0x1050, 31 * S), "-");
	assert_string_equal(owner(&map, 0x1050, 35 * S), "Stood");
	add(&map, 0x1000, 0x1100, 50 * S, "Last");
	assert_string_equal(owner(&map, 0x1050, 49 * S), "Stood");
	assert_string_equal(owner(&map, 0x1050, 51 * S), "Last");
	assert_int_equal(map.codes.count, 4);

	assert_string_equal(codemap_find_next(&map, 0x1050, 0)->name, "First");
	assert_string_equal(codemap_find_next(&map, 0x1050, 35 * S)->name, "Last");
	assert_null(codemap_find_next(&map, 0x1050, 50 * S));
	assert_null(codemap_find_next(&map, 0x1100, 0));
	assert_null(codemap_find_next(&map, 0xfff, 0));
	codemap_done(&map);
}

static void test_again(void **state)
{
	struct codemap map = { 0 };

	(void)state;
	add(&map, 0x1000, 0x1100, 5 * S, "A"); /* live */
	add(&map, 0x1000, 0x1100, 0, "A");     /* rundown */
	assert_int_equal(map.codes.count, 1);
	assert_int_equal(map.codes.items[0].from_ns, 5 * S);
	codemap_remove(&map, 0x1000, 6 * S);
	/* a rundown that is read late still ends the method */
	add(&map, 0x1000, 0x1100, 0, "A");
	assert_int_equal(map.codes.count, 1);
	assert_string_equal(owner(&map, 0x1000, 7 * S), "-");
	add(&map, 0x1000, 0x1100, 8 * S, "A"); /* compiled again */
	assert_int_equal(map.codes.count, 2);
	assert_string_equal(owner(&map, 0x1000, 7 * S), "-");
	assert_string_equal(owner(&map, 0x1000, 9 * S), "A");
	codemap_done(&map);
}

static void test_many(void **state)
{
	struct codemap map = { 0 };
	enum { N = 100000 };

	(void)state;
	for (uint32_t i = 0; i < N; i++) {
		uint32_t place = (uint32_t)((uint64_t)i * 7919 % N);
		char name[32];
		snprintf(name, sizeof(name), "M%u", place % 1000);
		add(&map, 0x7f0000000000 + place * 256ull, 0x7f0000000000 + place * 256ull + 200, 0,
			name);
		if (i % 10000 == 0)
			(void)codemap_find(&map, 0, 0);
	}
	for (uint32_t place = 0; place < N; place += 37) {
		char name[32];
		snprintf(name, sizeof(name), "M%u", place % 1000);
		assert_string_equal(owner(&map, 0x7f0000000000 + place * 256ull + 199, S), name);
		assert_string_equal(owner(&map, 0x7f0000000000 + place * 256ull + 200, S), "-");
	}
	assert_true(codemap_size_bytes(&map) < 24u << 20);
	codemap_done(&map);
}

static void test_limit(void **state)
{
	struct codemap map = { .max_size_bytes = 64 << 10 };
	uint32_t refused = 0;

	(void)state;
	for (uint32_t i = 0; i < 10000; i++) {
		struct code code = body(0x1000 + i * 16ull, 0x1010 + i * 16ull, 0, "M");
		int r = codemap_add(&map, &code);
		assert_true(r == 0 || r == -ENOSPC);
		refused += r == -ENOSPC;
	}
	assert_true(refused > 0);
	assert_int_equal(refused, map.refused_count);
	assert_string_equal(owner(&map, 0x1000, S), "M");
	codemap_done(&map);
}

/* 30,000 ranges around one address do not make the search slow; the newest range is found. */
static void test_nested(void **state)
{
	struct codemap map = { 0 };

	(void)state;
	for (uint32_t i = 0; i < 30000; i++)
		add(&map, 0x100000 + i, 0x200000, (i + 1) * S, "Nested");
	assert_non_null(codemap_find(&map, 0x180000, 30001 * S));
	codemap_done(&map);
}

static void check_text(const char *name_space, const char *name, const char *signature,
	bool in_image, const char *expected)
{
	struct codemap map = { 0 };
	struct bytes text = { 0 };
	struct code code = body(1, 2, 0, name);

	code.name_space = name_space;
	code.signature = signature;
	assert_int_equal(codemap_add_module(&map, 7, "/app/My.Shop.dll", 0), 0);
	assert_int_equal(codemap_add(&map, &code), 0);
	codemap_symbol_text(&map, codemap_find(&map, 1, S), in_image, &text);
	assert_string_equal(bytes_z(&text), expected);
	bytes_done(&text);
	codemap_done(&map);
}

static void test_text(void **state)
{
	(void)state;
	check_text("Shop.Pricing", "Burn", "instance void  (int32,class System.String)", false,
		"void [My.Shop] Shop.Pricing::Burn(int32,class System.String)[OptimizedTier1]");
	check_text("Shop.Pricing", "Burn", "instance void  (int32,class System.String)", true,
		"Shop.Pricing::Burn(int32,class System.String)");
	check_text("A", "F",
		"class System.Collections.Generic.List`1<!!0>  (method void *(int32),int32[])",
		false,
		"class System.Collections.Generic.List`1<!!0> [My.Shop] A::F(method void *(int32),int32[])[OptimizedTier1]");
	check_text("A", "F", "method void *(int32)  ()", false,
		"method void *(int32) [My.Shop] A::F()[OptimizedTier1]");
	check_text("A", "F", "int32[]  ()", false, "int32[] [My.Shop] A::F()[OptimizedTier1]");
	/* Texts in which brackets and line ends are not separators. */
	check_text("A", "F", "class [Evil] X  ()", false, "? [My.Shop] A::F()[OptimizedTier1]");
	check_text("A\nB", "F\x1b[2J", "void  (int32\n)", false,
		"void [My.Shop] A?B::F?[2J(int32?)[OptimizedTier1]");
	check_text("", "", "", false, "? [My.Shop] <Module>::?()[OptimizedTier1]");
	check_text("A", "F", "no parentheses", true, "A::F()");
	check_text("A", "F", ")))", true, "A::F()");
	check_text("A", "F", "((((", true, "A::F()");
	check_text("A", "F", ")(", true, "A::F()");
	check_text("A", "F", "()", false, "? [My.Shop] A::F()[OptimizedTier1]");
	check_text("A", "F", "instance ()", false, "? [My.Shop] A::F()[OptimizedTier1]");
}

static void test_assembly(void **state)
{
	struct codemap map = { 0 };
	size_t len;

	(void)state;
	assert_int_equal(codemap_add_module(&map, 1, "/usr/share/System.Private.CoreLib.dll", 0),
		0);
	assert_int_equal(codemap_add_module(&map, 2, "C:\\x\\App.EXE", 0), 0);
	assert_int_equal(codemap_add_module(&map, 3, "", 0), 0);
	assert_memory_equal(codemap_assembly(&map, 1, &len), "System.Private.CoreLib", 22);
	assert_int_equal(len, 22);
	assert_memory_equal(codemap_assembly(&map, 2, &len), "App", 3);
	assert_int_equal(len, 3);
	(void)codemap_assembly(&map, 3, &len);
	assert_int_equal(len, 0);
	(void)codemap_assembly(&map, 99, &len);
	assert_int_equal(len, 0);
	/* The id is an address: another module may get the same id later. */
	assert_int_equal(codemap_add_module(&map, 1, "/b/Other.dll", S), 0);
	assert_memory_equal(codemap_assembly(&map, 1, &len), "Other", 5);
	assert_int_equal(map.modules.items[0].until_ns, S);
	codemap_done(&map);
}

static void test_tiers(void **state)
{
	(void)state;
	assert_string_equal(code_tier_tag(TIER_0), "QuickJitted");
	assert_string_equal(code_tier_tag(TIER_1_OSR), "OptimizedTier1OSR");
	assert_string_equal(code_tier_tag((enum code_tier)200), "Unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_second_rundown),
		cmocka_unit_test(test_shared),
		cmocka_unit_test(test_time),
		cmocka_unit_test(test_any_order),
		cmocka_unit_test(test_stood),
		cmocka_unit_test(test_again),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_nested),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_assembly),
		cmocka_unit_test(test_tiers),
	};

	return cmocka_run_group_tests_name("codemap", tests, NULL, NULL);
}
