/* Rules of spoor diagnose: thresholds, unknown facts, order, what one finding leaves out of another, and the page. */
#include "unit/test.h"

#include "base/bytes.h"
#include "base/nearest.h"
#include "diagnose/competition.h"
#include "diagnose/diagnosis.h"
#include "diagnose/facts.h"
#include "diagnose/findings.h"
#include "unit/json_check.h"

struct fixture {
	struct facts facts;
	struct findings findings;
	struct bytes out;
};

static struct process_facts *set_up(struct fixture *f)
{
	*f = (struct fixture){ 0 };
	struct process_facts *process = facts_process(&f->facts, 4711);

	assert_non_null(process);
	process->name = strtab_add_z(&f->facts.texts, "shop");
	facts_set(process, FACT_span, 10);
	facts_set(process, FACT_cpu_count, 2);
	facts_set(process, FACT_cpus, 0.682);
	facts_set(process, FACT_cpu_share, 0.341);
	facts_set(process, FACT_demand_cpus, 0.682);
	return process;
}

static void tear_down(struct fixture *f)
{
	findings_done(&f->findings);
	facts_done(&f->facts);
	bytes_done(&f->out);
}

static void find(struct fixture *f)
{
	findings_done(&f->findings);
	assert_int_equal(findings_make(&f->findings, &f->facts), 0);
}

static const char *kind_at(const struct fixture *f, uint32_t i)
{
	return i < f->findings.items.count ? f->findings.items.items[i].rule->kind : "none";
}

static void set_method(struct fixture *f, struct process_facts *process, enum place_kind place,
	const char *method)
{
	process->places[place].method = strtab_add_z(&f->facts.texts, method);
}

static void test_thresholds(void **state)
{
	struct fixture f;
	struct process_facts *process = set_up(&f);

	(void)state;
	find(&f);
	assert_string_equal(kind_at(&f, 0), "none");
	/* One of two conditions is not enough; an unknown fact meets none. */
	facts_set(process, FACT_pressure_pause_share, 0.06);
	find(&f);
	assert_string_equal(kind_at(&f, 0), "none");
	facts_set(process, FACT_pressure_rate, 0.99);
	find(&f);
	assert_string_equal(kind_at(&f, 0), "none");
	facts_set(process, FACT_pressure_rate, 1);
	find(&f);
	assert_string_equal(kind_at(&f, 0), "gc-pressure");
	double at_threshold = f.findings.items.items[0].confidence;
	facts_set(process, FACT_pressure_rate, 20);
	facts_set(process, FACT_pressure_pause_share, 0.5);
	find(&f);
	assert_true(f.findings.items.items[0].confidence > at_threshold);
	assert_true(f.findings.items.items[0].confidence <= 1);
	tear_down(&f);
}

static void test_order(void **state)
{
	struct fixture f;
	struct process_facts *process = set_up(&f);

	(void)state;
	facts_set(process, FACT_hot_share, 0.5);
	set_method(&f, process, PLACE_hot, "Shop.Burn");
	facts_set(process, FACT_exception_rate, 500);
	facts_set(process, FACT_exception_share, 0.2);
	set_method(&f, process, PLACE_thrower, "Shop.Parse");
	find(&f);
	assert_string_equal(kind_at(&f, 0), "cpu-hotspot");
	assert_string_equal(kind_at(&f, 1), "exception-storm");
	/* A finding that says more about the same method replaces the hotspot. */
	set_method(&f, process, PLACE_thrower, "Shop.Burn");
	find(&f);
	assert_string_equal(kind_at(&f, 0), "exception-storm");
	assert_string_equal(kind_at(&f, 1), "none");
	tear_down(&f);
}

/* On a machine where the program waits for CPUs, only routes and targets without a fast request count. */
static void test_competition(void **state)
{
	struct fixture f;
	struct process_facts *process = set_up(&f);

	(void)state;
	facts_set(process, FACT_slow_share, 0.33);
	facts_set(process, FACT_slow_pending, 1.5);
	facts_set(process, FACT_slow_always_share, 0);
	facts_set(process, FACT_slow_always_pending, 0);
	facts_set(process, FACT_dependency_mean, 0.9);
	facts_set(process, FACT_dependency_fastest, 0.01);
	facts_set(process, FACT_dependency_pending, 1);
	facts_set(process, FACT_starved_share, 0.5);
	facts_set(process, FACT_wait_share, 0.98);
	facts_set(process, FACT_blocked_share, 0);
	competition_settle(&f.facts);
	find(&f);
	assert_string_equal(kind_at(&f, 0), "cpu-competition");
	assert_string_equal(kind_at(&f, 1), "none");
	/* The same times while CPUs are idle. */
	facts_set(process, FACT_wait_share, 0.05);
	competition_settle(&f.facts);
	find(&f);
	assert_int_equal(f.findings.items.count, 3);
	/* Slow at their fastest, and workers that are blocked: whatever the machine does. */
	facts_set(process, FACT_wait_share, 0.98);
	facts_set(process, FACT_slow_always_share, 0.3);
	facts_set(process, FACT_slow_always_pending, 1.4);
	facts_set(process, FACT_dependency_fastest, 0.7);
	facts_set(process, FACT_blocked_share, 0.8);
	competition_settle(&f.facts);
	find(&f);
	assert_int_equal(f.findings.items.count, 4);
	/* A start that the machine draws out is still a start. */
	facts_set(process, FACT_age, 60);
	facts_set(process, FACT_cpu_used, 1);
	facts_set(process, FACT_jit_share, 0.6);
	competition_settle(&f.facts);
	find(&f);
	assert_int_equal(f.findings.items.count, 4);
	facts_set(process, FACT_age, 60);
	facts_set(process, FACT_cpu_used, 9);
	competition_settle(&f.facts);
	find(&f);
	assert_string_equal(kind_at(&f, 0), "jit-load");
	tear_down(&f);
}

/* Processes that start are known without CPU samples: the cost is not, the finding is. */
static void test_without_samples(void **state)
{
	struct fixture f = { 0 };
	struct process_facts *process = facts_process(&f.facts, 4711);

	(void)state;
	assert_non_null(process);
	facts_set(process, FACT_span, 10);
	facts_set(process, FACT_children, 30);
	facts_set(process, FACT_child_rate, 3);
	find(&f);
	assert_string_equal(kind_at(&f, 0), "process-churn");
	const char *at = f.findings.items.items[0].rule->evidence;
	assert_true(rule_line(&f.facts, process, &at, &f.out));
	assert_string_equal(bytes_z(&f.out), "It started 30 processes, 3.00 a second.");
	facts_set(process, FACT_child_rate, 0.5);
	find(&f);
	assert_string_equal(kind_at(&f, 0), "none");
	tear_down(&f);
}

static void test_expand(void **state)
{
	struct fixture f;
	struct process_facts *process = set_up(&f);

	(void)state;
	assert_true(facts_expand(&f.facts, process, "CPU {cpu_share} of {cpu_count}.", &f.out));
	assert_string_equal(bytes_z(&f.out), "CPU 34 % of 2.");
	assert_false(facts_expand(&f.facts, process, "{span}, {heap}", &f.out));
	assert_false(facts_expand(&f.facts, process, "{span}, {hot}", &f.out));
	assert_string_equal(bytes_z(&f.out), "CPU 34 % of 2.");
	set_method(&f, process, PLACE_hot, "Evil\x1b[31m");
	bytes_reset(&f.out);
	assert_true(facts_expand(&f.facts, process, "{hot}", &f.out));
	assert_string_equal(bytes_z(&f.out), "Evil\\x1b[31m");
	tear_down(&f);
}

/* With all facts known each rule has evidence, advice and reasons, and no name in its texts is wrong. */
static void test_texts(void **state)
{
	struct fixture f;
	struct process_facts *process = set_up(&f);

	(void)state;
	for (unsigned i = 0; i < FACT_KINDS; i++)
		facts_set(process, (enum fact)i, 1);
	for (unsigned i = 0; i < PLACE_KINDS; i++)
		set_method(&f, process, (enum place_kind)i, "Shop.Do");
	for (unsigned i = 0; i < WORD_KINDS; i++)
		process->words[i] = strtab_add_z(&f.facts.texts, "word");
	for (const struct rule *rule = diagnose_rules; rule->kind; rule++) {
		const char *evidence = rule->evidence;
		const char *advice = rule->advice;
		assert_true(rule_line(&f.facts, process, &evidence, &f.out));
		assert_true(rule_line(&f.facts, process, &advice, &f.out));
		assert_non_null(rule->when[0].reason);
		assert_true(rule->confidence > 0 && rule->confidence <= 1);
		assert_true(rule_kind_exists(rule->kind,
			&(struct nearest){ .wanted = rule->kind }));
	}
	assert_false(rule_kind_exists("cpu", &(struct nearest){ .wanted = "cpu" }));
	tear_down(&f);
}

/* The facts of a look at a running process, which found nothing. */
static void judge_all(struct process_facts *process)
{
	for (const struct rule *rule = diagnose_rules; rule->kind; rule++)
		if (rule->live)
			facts_set(process, rule->when[0].fact, 0);
}

static void test_judged(void **state)
{
	struct fixture f;
	struct process_facts *process = set_up(&f);

	(void)state;
	assert_true(kind_is_judged(process, "cpu-hotspot"));
	assert_true(kind_is_judged(process, "lock-contention"));
	assert_false(kind_is_judged(process, "deadlock"));
	assert_false(kind_is_judged(process, "sync-over-async"));
	judge_all(process);
	assert_true(kind_is_judged(process, "deadlock"));
	assert_true(kind_is_judged(process, "sync-over-async"));
	facts_set(process, FACT_span, 0.1);
	assert_false(kind_is_judged(process, "cpu-hotspot"));
	tear_down(&f);
}

static void test_page(void **state)
{
	struct fixture f;
	struct process_facts *process = set_up(&f);
	const struct diagnosis diagnosis = {
		.facts = &f.facts, .findings = &f.findings, .file = "a b.nettrace"
	};

	(void)state;
	find(&f);
	diagnosis_text(&diagnosis, 80, &f.out);
	assert_string_equal(bytes_z(&f.out),
		"shop (4711)  no finding: CPU 34 % of 2 CPUs, over 10.0 s\n"
		"         not judged from a recording: sync-over-async, sync-io-on-pool,\n"
		"         small-writes, deadlock, finalizer-backlog, native-memory-growth,\n"
		"         handle-leak, slow-dependency, dns, tls, async-delay, slow-requests:\n"
		"         spoor diagnose -p 4711 looks at the stacks, memory and requests\n");
	bytes_reset(&f.out);
	judge_all(process);
	diagnosis_text(&diagnosis, 80, &f.out);
	assert_string_equal(bytes_z(&f.out),
		"shop (4711)  healthy: CPU 34 % of 2 CPUs, over 10.0 s\n");
	bytes_reset(&f.out);
	facts_set(process, FACT_induced_rate, 5);
	facts_set(process, FACT_induced_pause_share, 0.031);
	set_method(&f, process, PLACE_collector, "Shop.Trim");
	find(&f);
	diagnosis_text(&diagnosis, 60, &f.out);
	assert_string_equal(bytes_z(&f.out),
		"shop (4711)  1 finding: CPU 34 % of 2 CPUs, over 10.0 s\n"
		"\n"
		"1  induced-gc: collections that the program induces\n"
		"   3.1 % of the time, confidence 0.91\n"
		"         5.00 collections a second are induced; they stop\n"
		"         all threads for 3.1 % of the time.\n"
		"         Shop.Trim calls GC.Collect.\n"
		"   do    remove the calls of GC.Collect from Shop.Trim\n"
		"   see   spoor report 'a b.nettrace' -p 4711 --gc\n");
	bytes_reset(&f.out);
	diagnosis_json(&diagnosis, &f.out);
	assert_true(json_is_valid((const char *)f.out.data, f.out.len - 1));
	tear_down(&f);
}

/* The CPU time of collections counts as well as their pauses. */
static void test_gc_cpu(void **state)
{
	struct fixture f;
	struct process_facts *process = set_up(&f);

	(void)state;
	facts_set(process, FACT_pressure_pause_share, 0.002);
	facts_set(process, FACT_pressure_rate, 3);
	facts_set(process, FACT_pressure_cpu_share, 0.19);
	find(&f);
	assert_string_equal(kind_at(&f, 0), "none");
	facts_set(process, FACT_pressure_cpu_share, 0.4);
	find(&f);
	assert_int_equal(f.findings.items.count, 1);
	assert_string_equal(kind_at(&f, 0), "gc-pressure");
	assert_true(f.findings.items.items[0].cost == 0.4);
	/* Of an almost idle process it is no problem. */
	facts_set(process, FACT_demand_cpus, 0.2);
	find(&f);
	assert_string_equal(kind_at(&f, 0), "none");
	/* Pauses say more, and one finding of a kind is enough. */
	facts_set(process, FACT_demand_cpus, 1);
	facts_set(process, FACT_pressure_pause_share, 0.2);
	find(&f);
	assert_int_equal(f.findings.items.count, 1);
	assert_true(f.findings.items.items[0].cost == 0.2);
	tear_down(&f);
}

/* Native code of unknown callers: the advice is how to record them. */
static void test_callers(void **state)
{
	struct fixture f;
	struct process_facts *process = set_up(&f);
	const struct diagnosis diagnosis = {
		.facts = &f.facts, .findings = &f.findings, .file = "x.nettrace"
	};

	(void)state;
	facts_set(process, FACT_native_share, 0.6);
	set_method(&f, process, PLACE_native, "BZ2_compress");
	find(&f);
	assert_string_equal(kind_at(&f, 0), "native-cpu");
	diagnosis_text(&diagnosis, 200, &f.out);
	assert_null(strstr(bytes_z(&f.out), "--call-graph"));
	process->words[WORD_callers] = strtab_add_z(&f.facts.texts, "--call-graph auto");
	bytes_reset(&f.out);
	diagnosis_text(&diagnosis, 200, &f.out);
	assert_non_null(strstr(bytes_z(&f.out), "spoor record -p 4711 --call-graph auto\n"));
	tear_down(&f);
}

/* No row is longer than the screen, unless a single word is; below 20 columns no line is broken. */
static void test_columns(void **state)
{
	struct fixture f;
	struct process_facts *process = set_up(&f);
	const struct diagnosis diagnosis = {
		.facts = &f.facts, .findings = &f.findings, .file = "shop_20261121_083012.nettrace"
	};

	(void)state;
	facts_set(process, FACT_pause_share, 0.021);
	facts_set(process, FACT_private, 14100000);
	facts_set(process, FACT_blocked_per_cpu, 4);
	facts_set(process, FACT_blocked_share, 1);
	facts_set(process, FACT_workers, 14);
	facts_set(process, FACT_blocked_workers, 14);
	facts_set(process, FACT_induced_rate, 5);
	facts_set(process, FACT_induced_pause_share, 0.031);
	find(&f);
	assert_int_equal(f.findings.items.count, 2);
	for (unsigned columns = 0; columns <= 100; columns++) {
		bytes_reset(&f.out);
		diagnosis_text(&diagnosis, columns, &f.out);
		assert_false(f.out.failed);
		const char *line = bytes_z(&f.out);
		for (const char *end; (end = strchr(line, '\n')); line = end + 1)
			assert_true((size_t)(end - line) <= columns || columns < 54);
	}
	bytes_reset(&f.out);
	diagnosis_text(&diagnosis, 80, &f.out);
	assert_non_null(strstr(bytes_z(&f.out),
		"memory 14.1 MB without\n         files, over 10.0 s\n"));
	bytes_reset(&f.out);
	diagnosis_text(&diagnosis, 50, &f.out);
	assert_non_null(strstr(bytes_z(&f.out),
		"   see   spoor report shop_20261121_083012.nettrace \\\n"
		"           -p 4711 --gc\n"));
	bytes_reset(&f.out);
	diagnosis_text(&diagnosis, 1, &f.out);
	assert_non_null(strstr(bytes_z(&f.out), "memory 14.1 MB without files, over 10.0 s\n"));
	tear_down(&f);
}

/* Figures are not cut off, and commands can be used as they are printed. */
static void test_printed(void **state)
{
	struct fixture f;
	struct process_facts *process = set_up(&f);
	const struct diagnosis diagnosis = {
		.facts = &f.facts, .findings = &f.findings, .file = "x.nettrace"
	};

	(void)state;
	facts_set(process, FACT_descriptors, 621);
	facts_set(process, FACT_descriptor_growth, 469);
	facts_set(process, FACT_descriptor_growth_share, 469.0 / 152);
	facts_set(process, FACT_descriptor_rate, 47);
	facts_set(process, FACT_heap, 27e6);
	facts_set(process, FACT_heap_growth, 13e6);
	facts_set(process, FACT_heap_growth_rate, 2.6e6);
	facts_set(process, FACT_heap_growth_share, 2);
	facts_set(process, FACT_heap_growth_sure, 10e6);
	facts_set(process, FACT_heap_growth_sure_share, 1.5);
	facts_set(process, FACT_native_share, 0.9);
	set_method(&f, process, PLACE_native, "n (no symbols)");
	process->words[WORD_unnamed] = strtab_add_z(&f.facts.texts, "n");
	process->words[WORD_recording] = strtab_add_z(&f.facts.texts, "x.nettrace");
	find(&f);
	diagnosis_text(&diagnosis, 400, &f.out);
	const char *out = bytes_z(&f.out);
	assert_non_null(strstr(out, "growth of 309 %, "));
	assert_non_null(strstr(out, "growth of 200 %, "));
	assert_non_null(strstr(out, "ls -l /proc/4711/fd shows"));
	assert_non_null(strstr(out, "spoor heap -p 4711 -o before.gcdump; later"));
	assert_non_null(strstr(out, "spoor heap -p 4711 -o after.gcdump; spoor heap diff"));
	assert_non_null(strstr(out, "native-cpu: "));
	assert_non_null(strstr(out,
		"   do    fetch the names of its functions: spoor symbols fetch x.nettrace\n"));
	tear_down(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_thresholds),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_competition),
		cmocka_unit_test(test_without_samples),
		cmocka_unit_test(test_expand),
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_judged),
		cmocka_unit_test(test_page),
		cmocka_unit_test(test_columns),
		cmocka_unit_test(test_gc_cpu),
		cmocka_unit_test(test_callers),
		cmocka_unit_test(test_printed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
