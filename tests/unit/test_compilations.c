/* Compiled methods: pairs by thread and method, tiers, sizes, rejected code, and the time of the steady state. */
#include "unit/answers_fixture.h"

static void begin(struct fixture *f, uint64_t at_ms, uint64_t method, uint32_t il_bytes)
{
	struct bytes payload = { 0 };

	bytes_u64(&payload, method);
	bytes_u64(&payload, 1);
	bytes_u32(&payload, 0x6000001);
	bytes_u32(&payload, il_bytes);
	fixture_utf16(&payload, "Shop");
	fixture_pass(f, at_ms, CLR_ID_MethodJittingStarted, 1, &payload);
}

static void load(struct fixture *f, uint64_t at_ms, uint64_t method, uint64_t address,
	uint32_t flags)
{
	struct bytes payload = { 0 };

	bytes_u64(&payload, method);
	bytes_u64(&payload, 1);
	bytes_u64(&payload, address);
	bytes_u32(&payload, 256);
	bytes_u32(&payload, 0x6000001);
	bytes_u32(&payload, flags);
	fixture_utf16(&payload, "Shop.Parser");
	fixture_utf16(&payload, "Parse");
	fixture_utf16(&payload, "instance int32  (class System.String)");
	fixture_pass(f, at_ms, CLR_ID_MethodLoadVerbose, 2, &payload);
}

#define JITTED           8u
#define TIER(tier)       ((uint32_t)(tier) << 7)
#define R2R_WAS_REJECTED 0x40u

/* Without a symbol the event's own name is shown, else that of the symbol. */
static void test_names(void **state)
{
	struct fixture f;

	(void)state;
	fixture_begin(&f, ANSWER_JIT);
	load(&f, 10, 1, JIT + 0x9000, JITTED | TIER(TIER_0));
	load(&f, 20, 2, JIT + 0x208, JITTED | TIER(TIER_0));
	fixture_finish(&f);
	const struct compilations *c = &f.answers.compilations;
	assert_int_equal(c->rows.count, 2);
	assert_string_equal(strtab_get(&c->names, c->rows.items[0].name),
		"Shop.Parser.Parse(string)");
	assert_int_equal(c->rows.items[1].name, 0);
	fixture_end(&f);
}

static void test_pairs(void **state)
{
	struct fixture f;

	(void)state;
	fixture_begin(&f, ANSWER_JIT);
	uint32_t one = f.thread;
	uint32_t two = trace_thread(&f.trace, 4711, 4712);
	begin(&f, 10, 1, 100);
	f.thread = two;
	begin(&f, 12, 1, 50); /* the same method on another thread */
	begin(&f, 14, 2, 30); /* within it */
	load(&f, 15, 2, JIT + 0x208, JITTED | TIER(TIER_0) | R2R_WAS_REJECTED);
	load(&f, 20, 1, JIT + 0x208, JITTED | TIER(TIER_1));
	f.thread = one;
	load(&f, 40, 1, JIT + 0x208, JITTED | TIER(TIER_0));
	load(&f, 50, 3, IMAGE + 8, TIER(TIER_OPTIMIZED)); /* precompiled */
	load(&f, 60, 4, JIT + 0x208, JITTED);             /* its begin is not in the recording */
	fixture_finish(&f);
	const struct compilations *c = &f.answers.compilations;
	assert_int_equal(c->processes.count, 1);
	const struct compilations_process *process = &c->processes.items[0];
	assert_int_equal(process->all.count, 4);
	assert_int_equal(process->all.lasts_ns, (30 + 8 + 1) * MS);
	assert_int_equal(process->all.il_bytes, 180);
	assert_int_equal(process->all.code_bytes, 4 * 256);
	assert_int_equal(process->untimed_count, 1);
	assert_int_equal(process->rejected_count, 1);
	assert_int_equal(process->by_tier[TIER_0].count, 2);
	assert_int_equal(process->by_tier[TIER_0].lasts_ns, 31 * MS);
	assert_int_equal(process->by_tier[TIER_1].lasts_ns, 8 * MS);
	const struct compilation *slowest = &c->rows.items[0];
	assert_int_equal(slowest->lasts_ns, 30 * MS);
	assert_int_equal(slowest->at_ns, 10 * MS);
	assert_int_equal(slowest->il_bytes, 100);
	assert_non_null(strstr(fixture_function(&f, slowest->function), "Main"));
	assert_false(c->rows.items[3].is_timed);
	fixture_end(&f);
}

static void test_steady(void **state)
{
	struct fixture f;

	(void)state;
	fixture_begin(&f, ANSWER_JIT);
	for (uint64_t i = 0; i < 50; i++) {
		begin(&f, i * 10, i + 1, 10);
		load(&f, i * 10 + 5, i + 1, JIT + 0x208, JITTED);
	}
	fixture_pass(&f, 900, CLR_ID_MethodLoadVerbose, 2, &(struct bytes){ 0 }); /* cut */
	fixture_finish(&f);
	const struct compilations_process *process = &f.answers.compilations.processes.items[0];
	assert_int_equal(process->all.lasts_ns, 50 * 5 * MS);
	assert_int_equal(timeline_width_ns(&process->line), 8 * MS);
	assert_int_equal(process->steady_ns, 496 * MS); /* the last one ends at 495 */
	fixture_end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_pairs),
		cmocka_unit_test(test_steady),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
