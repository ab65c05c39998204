/* profile.c, top.c, tree.c, recording.c: the sums of a small trace, calculated by hand. */
#include "unit/test.h"

#include "analysis/recording.h"
#include "analysis/top.h"
#include "analysis/tree.h"
#include "base/bytes.h"
#include "trace/report.h"
#include "trace/spoor_payload.h"
#include "trace/symbolmap.h"
#include "unit/sample_trace.h"

struct fixture {
	struct trace trace;
	struct profile profile;
	struct symbolmap names;
	struct report report;
};

static void begin(struct fixture *f)
{
	*f = (struct fixture){ 0 };
	sample_trace(&f->trace);
	f->profile.trace = &f->trace;
}

/* The events that the profile received. */
static void analyse(struct fixture *f, enum top_sort sort)
{
	assert_int_equal(symbolmap_init(&f->names, &f->trace, METHOD_NAME_LONG), 0);
	assert_int_equal(profile_name(&f->profile, &f->names), 0);
	assert_int_equal(recording_describe(&f->report, &f->trace, &f->names, &f->profile), 0);
	assert_int_equal(top_count(&f->report, &f->profile, &f->names, sort), 0);
}

static void count(struct fixture *f, enum top_sort sort)
{
	sample_fill(&f->profile);
	analyse(f, sort);
}

static void end(struct fixture *f)
{
	report_done(&f->report);
	symbolmap_done(&f->names);
	profile_done(&f->profile);
	trace_done(&f->trace);
}

static const char *row_name(const struct fixture *f, uint32_t row)
{
	return trace_text(&f->trace,
		f->names.functions.items[f->report.rows.items[row].function].name);
}

static void test_sums(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f);
	count(&f, TOP_SELF);
	assert_int_equal(f.report.all_samples, 20);
	assert_int_equal(f.report.samples, 20);
	assert_int_equal(f.report.cpu_ns, 20u * PERIOD_NS);
	assert_int_equal(f.report.frames, 8 * 3 + 4 * 4 + 3 + 2 * 2 + 2 * 4 + 6 + 2);
	assert_int_equal(f.report.frames - f.report.named_frames, 2);
	assert_int_equal(f.report.unnamed.count, 1);
	assert_int_equal(f.report.duration_ns, 1000000000u);
	assert_true(f.report.busy > 0.0999 && f.report.busy < 0.1001);
	assert_int_equal(f.report.processes.count, 2);
	const struct report_process *shop = &f.report.processes.items[0];
	assert_int_equal(shop->samples, 18);
	const struct report_row *rows = f.report.rows.items + shop->row_at;
	assert_string_equal(row_name(&f, shop->row_at), "Shop.Pricing.Burn()");
	assert_int_equal(rows[0].self_count, 8);
	assert_int_equal(rows[0].total_ns, 8u * PERIOD_NS);
	/* Main occurs three times in one stack and counts once. */
	for (uint32_t i = 0; i < shop->row_count; i++) {
		if (strcmp(row_name(&f, shop->row_at + i), "Shop.Program.Main()") != 0)
			continue;
		assert_int_equal(rows[i].total_count, 8 + 4 + 1 + 1);
		assert_int_equal(rows[i].self_count, 1);
	}
	end(&f);
}

/* A sample by the runtime, or the CPU time of a thread's clock. */
static void runtime_sample(struct fixture *f, uint32_t thread, uint64_t ms, uint32_t stack,
	bool managed)
{
	const uint8_t payload[4] = { managed ? 2 : 1 };
	const struct event event = { .time_ns = BEGIN_NS + ms * 1000000,
		.thread_index = thread,
		.stack_index = stack,
		.payload = payload,
		.payload_size = sizeof(payload),
		.schema_index = f->trace.schemas.count - 1 };

	assert_int_equal(profile_event(&f->profile, &event), 0);
}

static void runtime_clock(struct fixture *f, uint32_t thread, uint64_t ms, uint64_t cpu_ms,
	bool rest)
{
	struct bytes payload = { 0 };

	payload_thread_clock(&payload,
		&(struct payload_thread_clock){ .run_ns = cpu_ms * 1000000, .rest = rest });
	const struct event event = { .time_ns = BEGIN_NS + ms * 1000000,
		.thread_index = thread,
		.payload = payload.data,
		.payload_size = (uint32_t)payload.len,
		.schema_index = trace_known_schema(&f->trace, SPOOR_THREAD_CLOCK),
		.kind = EVENT_COUNTER };

	assert_int_equal(profile_event(&f->profile, &event), 0);
	bytes_done(&payload);
}

/* Two threads of shop for two seconds: one computes half of the time, the other one sleeps. */
static void runtime_samples(struct fixture *f, const char *options, bool clocks)
{
	const uint64_t busy[] = { JIT + 0x10, JIT + 0x210 };
	const uint64_t asleep[] = { LIBC + 0x10 };
	uint32_t process = trace_find_process(&f->trace, 4711);
	uint32_t worker = f->trace.processes.items[process].main_thread;
	uint32_t sleeper = trace_thread(&f->trace, 4711, 4799);
	uint32_t busy_stack = stack_table_intern(&f->trace.stacks, busy, 2);
	uint32_t asleep_stack = stack_table_intern(&f->trace.stacks, asleep, 1);

	f->trace.recording.period_ns = 0;
	trace_set_options(&f->trace, options);
	if (clocks)
		(void)trace_known_schema(&f->trace, SPOOR_THREAD_CLOCK);
	struct schema *schema = vec_push(&f->trace.schemas);

	schema->provider_kind = PROVIDER_SAMPLE;
	for (uint64_t ms = 0; ms <= 2000; ms += 2) {
		if (clocks && ms % 20 == 0)
			runtime_clock(f, worker, ms, ms / 2, false);
		if (clocks && ms == 0)
			runtime_clock(f, sleeper, ms, 7, false);
		runtime_sample(f, worker, ms, busy_stack, true);
		runtime_sample(f, sleeper, ms, asleep_stack, false);
	}
	if (clocks) {
		runtime_clock(f, worker, 500, 0, true);
		runtime_clock(f, worker, 2000, 30, true);
	}
	assert_int_equal(symbolmap_init(&f->names, &f->trace, METHOD_NAME_LONG), 0);
	assert_int_equal(profile_name(&f->profile, &f->names), 0);
	assert_int_equal(recording_describe(&f->report, &f->trace, &f->names, &f->profile), 0);
	assert_int_equal(top_count(&f->report, &f->profile, &f->names, TOP_SELF), 0);
}

static void test_runtime_samples_with_clocks(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f);
	runtime_samples(&f, "{\"thread_clocks\":true}", true);
	assert_int_equal(f.report.weighing, REPORT_CPU_CLOCKS);
	assert_int_equal(f.report.cpu_ns, 1030000000u);
	assert_int_equal(f.report.processes.count, 1);
	assert_int_equal(f.report.processes.items[0].stackless_ns, 30000000u);
	for (uint32_t i = 0; i < f.report.rows.count; i++)
		assert_string_not_equal(row_name(&f, i), "libc.so.6+0x10");
	assert_int_equal(f.report.rows.items[0].self_ns, 1000000000u);
	end(&f);
}

static void test_runtime_samples_alone(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f);
	runtime_samples(&f, "", false);
	assert_int_equal(f.report.weighing, REPORT_THREAD_TIME);
	assert_true(f.report.busy < 0);
	/* Two threads, two seconds, and 2 ms for the last sample of each, as between all others. */
	assert_int_equal(f.report.cpu_ns, 4004000000u);
	assert_int_equal(f.report.samples, 2002);
	end(&f);
}

/* If the kernel's samples exist, the runtime's samples are not counted. */
static void test_runtime_samples_of_a_recording(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f);
	runtime_samples(&f, "{\"event\":\"cpu-clock\"}", false);
	assert_int_equal(f.report.weighing, REPORT_CPU);
	assert_int_equal(f.report.samples, 0);
	end(&f);
}

/*
 * Files without an end time of the last sample: the last sample counts, or the last event if the
 * recorder was killed.
 */
static void test_sampled_time(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f);
	f.trace.recording.counts[SESSION_COUNT_SAMPLED_TO_NS] = 0;
	count(&f, TOP_SELF);
	assert_int_equal(f.report.duration_ns, 600000000u);
	end(&f);

	begin(&f);
	f.trace.recording.counts[SESSION_COUNT_SAMPLED_TO_NS] = 0;
	f.trace.recording.end_reason = 0;
	f.trace.recording.tool_version = trace_add_text(&f.trace, "1");
	count(&f, TOP_SELF);
	assert_int_equal(f.report.duration_ns, 1500000000u);
	end(&f);
}

/* Without samples the usage of the CPUs is not shown. */
static void test_no_samples(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f);
	analyse(&f, TOP_SELF);
	assert_int_equal(f.report.duration_ns, 1000000000u);
	assert_true(f.report.busy < 0);
	end(&f);
}

/* The share is that of all CPUs, so the report has to name the processes. */
static void test_scopes(void **state)
{
	static const struct {
		const char *options;
		enum report_scope scope;
	} cases[] = {
		{ "{\"scope\":\"machine\",\"pids\":[]}", REPORT_MACHINE },
		{ "{\"scope\":\"processes\",\"pids\":[1]}", REPORT_PROCESSES },
		{ "{\"scope\":\"threads\",\"pids\":[]}", REPORT_THREADS },
		{ "{\"scope\":\"command\",\"pids\":[]}", REPORT_COMMAND },
		{ "", REPORT_MACHINE },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture f;
		begin(&f);
		trace_set_options(&f.trace, cases[i].options);
		count(&f, TOP_SELF);
		assert_int_equal(f.report.scope, cases[i].scope);
		end(&f);
	}
}

static uint32_t child_named(const struct fixture *f, const struct call_tree *tree, uint32_t node,
	const char *name)
{
	for (uint32_t c = tree->nodes.items[node].child; c; c = tree->nodes.items[c].sibling) {
		uint32_t text = f->names.functions.items[tree->nodes.items[c].what].name;
		if (strcmp(trace_text(&f->trace, text), name) == 0)
			return c;
	}
	return 0;
}

/*
 * A method that was compiled three times, once without a module (as older recorders wrote it), has
 * one row with three tiers. A method of the same name in another module has its own row.
 */
static void test_one_row_a_method(void **state)
{
	const uint64_t root = LIBC + 8;
	struct fixture f;
	struct call_tree tree;

	(void)state;
	begin(&f);
	uint32_t shop = trace_find_process(&f.trace, 4711);
	static const struct {
		const char *text;
		const char *module;
		enum code_tier tier;
	} bodies[] = {
		{ "void [unknown] Shop.Pricing::Price()[OptimizedTier1OSR]", "", TIER_1_OSR },
		{ "void [Shop] Shop.Pricing::Price()[QuickJitted]", "Shop", TIER_0 },
		{ "void [Shop] Shop.Pricing::Price()[OptimizedTier1]", "Shop", TIER_1 },
		{ "void [Other] Shop.Pricing::Price()[OptimizedTier1]", "Other", TIER_1 },
	};
	for (unsigned i = 0; i < 4; i++) {
		sample_code(&f.trace, shop, JIT + 0x1000 + 0x100 * i, bodies[i].text, UINT32_MAX,
			CODE_JIT, bodies[i].tier);
		vec_last(&f.trace.processes.items[shop].codes)->module =
			trace_add_text(&f.trace, bodies[i].module);
		sample_add(&f.profile, 4711, 4711, 10 * i, 5 - i,
			STACK(JIT + 0x1008 + 0x100 * i, root));
	}
	analyse(&f, TOP_SELF);
	const struct report_process *process = &f.report.processes.items[0];
	const struct report_row *row = &f.report.rows.items[process->row_at];

	assert_int_equal(process->row_count, 3);
	assert_string_equal(row_name(&f, process->row_at), "Shop.Pricing.Price()");
	assert_string_equal(trace_text(&f.trace, f.names.functions.items[row->function].module),
		"Shop.dll");
	assert_int_equal(row->self_count, 12);
	assert_int_equal(row->tiers,
		1u << FUNCTION_TIER_0 | 1u << FUNCTION_TIER_1_OSR | 1u << FUNCTION_TIER_1);
	assert_int_equal(row->tier_ns[FUNCTION_TIER_1_OSR], 5 * PERIOD_NS);
	assert_int_equal(row->tier_ns[FUNCTION_TIER_0], 4 * PERIOD_NS);
	assert_int_equal(row->tier_ns[FUNCTION_TIER_1], 3 * PERIOD_NS);
	assert_string_equal(trace_text(&f.trace, f.names.functions.items[row[1].function].module),
		"Other.dll");
	assert_int_equal(row[1].self_count, 2);

	assert_int_equal(tree_build(&tree, &f.profile, &f.names, TREE_REVERSED, NULL), 0);
	uint32_t leaf = child_named(&f, &tree, CALL_TREE_ROOT, "Shop.Pricing.Price()");
	uint64_t counts = tree.nodes.items[leaf].self_count + tree.nodes.items[leaf].total_count;
	assert_true(counts == 12 || counts == 2);
	assert_int_equal(tree.nodes.items[leaf].tiers,
		counts == 12 ? row->tiers : 1u << FUNCTION_TIER_1);
	call_tree_done(&tree);
	end(&f);
}

/*
 * A walk by frame pointers skips the caller of a method that was replaced while it ran. Stacks that
 * the runtime walked are complete.
 */
static void test_replaced_on_the_stack(void **state)
{
	static const char *const options[] = { "{\"event\":\"cpu-clock\"}",
		"{\"event\":\"thread-clocks\"}" };

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct fixture f;
		begin(&f);
		uint32_t shop = trace_find_process(&f.trace, 4711);
		trace_set_options(&f.trace, options[i]);
		sample_code(&f.trace, shop, JIT + 0x1000,
			"void [Shop] Shop.Loop::Run()[OptimizedTier1OSR]", UINT32_MAX, CODE_JIT,
			TIER_1_OSR);
		sample_code(&f.trace, shop, JIT + 0x1100,
			"void [Shop] Shop.Loop::Run()[QuickJitted]", UINT32_MAX, CODE_JIT, TIER_0);
		sample_add(&f.profile, 4711, 4711, 10, 5,
			STACK(JIT + 0x1008, JIT + 0x1108, LIBC + 8));
		analyse(&f, TOP_SELF);
		const struct profile_stack *stack = &f.profile.stacks.items[0];
		for (uint32_t s = 1; stack->weight_ns != 5 * PERIOD_NS || stack->frame_count != 3;
			s++) {
			assert_true(s < f.profile.stacks.count);
			stack = &f.profile.stacks.items[s];
		}
		const uint32_t *functions = f.profile.functions.items + stack->at;
		assert_string_equal(trace_text(&f.trace,
					    f.names.functions.items[functions[0]].name),
			"Shop.Loop.Run()");
		assert_string_equal(trace_text(&f.trace,
					    f.names.functions.items[functions[1]].name),
			i ? "Shop.Loop.Run()" : "[caller unknown: on-stack replacement]");
		end(&f);
	}
}

static void test_filters(void **state)
{
	static const struct {
		uint32_t pid;
		uint32_t tid;
		const char *name;
		const char *module;
		uint64_t from_ms;
		uint64_t to_ms;
		unsigned samples;
	} cases[] = {
		{ .samples = 20 },
		{ .pid = 4802, .samples = 2 },
		{ .pid = 1, .samples = 0 },
		{ .tid = 4711, .samples = 8 },
		{ .name = "sh?p", .samples = 18 },
		{ .name = "sho", .samples = 0 },
		{ .module = "Shop.dll", .samples = 14 },
		{ .module = "System.*", .samples = 5 },
		{ .module = "Shop", .samples = 14 },
		{ .from_ms = 100, .samples = 12 },
		{ .to_ms = 100, .samples = 8 },
		{ .from_ms = 300, .to_ms = 500, .samples = 4 },
		{ .pid = 4711, .module = "kernel", .from_ms = 1, .samples = 2 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture f;
		begin(&f);
		struct profile_filter *filter = &f.profile.filter;
		if (cases[i].pid)
			assert_true(vec_add(&filter->pids, cases[i].pid));
		if (cases[i].tid)
			assert_true(vec_add(&filter->tids, cases[i].tid));
		if (cases[i].name)
			assert_true(vec_add(&filter->process_names, cases[i].name));
		if (cases[i].module)
			assert_true(vec_add(&filter->modules, cases[i].module));
		filter->from_ns = cases[i].from_ms * 1000000u;
		filter->to_ns = cases[i].to_ms * 1000000u;
		assert_int_equal(profile_filter_is_empty(filter), i == 0);
		count(&f, TOP_SELF);
		assert_int_equal(f.report.samples, cases[i].samples);
		assert_int_equal(f.report.all_samples, 20);
		end(&f);
	}
}

static void test_sorts(void **state)
{
	static const struct {
		enum top_sort sort;
		const char *first;
	} cases[] = {
		{ TOP_SELF, "Shop.Pricing.Burn()" },
		{ TOP_TOTAL, "start_thread" },
		{ TOP_NAME, "(interface dispatch stub)" },
		{ TOP_MODULE, "(interface dispatch stub)" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture f;
		begin(&f);
		count(&f, cases[i].sort);
		assert_string_equal(row_name(&f, f.report.processes.items[0].row_at),
			cases[i].first);
		end(&f);
	}
}

static void test_trees(void **state)
{
	struct fixture f;
	struct call_tree tree;

	(void)state;
	begin(&f);
	count(&f, TOP_SELF);
	assert_int_equal(tree_build(&tree, &f.profile, &f.names, TREE_BY_PROCESS, NULL), 0);
	const struct call_node *root = &tree.nodes.items[CALL_TREE_ROOT];
	assert_int_equal(root->total_count, 20);
	assert_int_equal(root->self_count, 0);
	uint32_t process = tree.nodes.items[CALL_TREE_ROOT].child;
	if (tree.nodes.items[process].what != trace_find_process(&f.trace, 4711))
		process = tree.nodes.items[process].sibling;
	uint32_t thread = child_named(&f, &tree, process, "start_thread");
	uint32_t main_node = child_named(&f, &tree, thread, "Shop.Program.Main()");
	assert_int_equal(tree.nodes.items[main_node].total_count, 14);
	assert_int_equal(tree.nodes.items[main_node].depth, 3);
	assert_int_equal(tree.depth_max, 7);
	call_tree_done(&tree);

	assert_int_equal(tree_build(&tree, &f.profile, &f.names, TREE_REVERSED, NULL), 0);
	uint32_t leaf = child_named(&f, &tree, CALL_TREE_ROOT, "Shop.Pricing.Burn()");
	assert_int_equal(tree.nodes.items[leaf].total_count, 8);
	assert_int_not_equal(child_named(&f, &tree, leaf, "Shop.Program.Main()"), 0);
	call_tree_done(&tree);

	/*
	 * A recursive stack counts from its innermost Main: two callers then, and no more samples
	 * than exist.
	 */
	assert_int_equal(tree_build(&tree, &f.profile, &f.names, TREE_CALLERS, "Main"), 0);
	assert_int_equal(tree.nodes.items[CALL_TREE_ROOT].total_count, 14);
	uint32_t callee = child_named(&f, &tree, CALL_TREE_ROOT, "Shop.Program.Main()");
	assert_int_equal(
		tree.nodes.items[child_named(&f, &tree, callee, "start_thread")].total_count, 13);
	call_tree_done(&tree);

	assert_int_equal(tree_build(&tree, &f.profile, &f.names, TREE_CALLERS, "nobody"), 0);
	assert_int_equal(tree.nodes.items[CALL_TREE_ROOT].total_count, 0);
	call_tree_done(&tree);
	end(&f);
}

static void test_name_matches(void **state)
{
	(void)state;
	assert_true(tree_name_matches("Burn", "Shop.Pricing.Burn(int)"));
	assert_true(tree_name_matches("Pricing.Burn", "Shop.Pricing.Burn(int)"));
	assert_true(tree_name_matches("Shop.Pricing.Burn(int)", "Shop.Pricing.Burn(int)"));
	assert_true(tree_name_matches("*Burn", "Shop.Pricing.Burn(int)"));
	assert_true(tree_name_matches("gc_heap::mark", "WKS::gc_heap::mark(void*)"));
	assert_true(tree_name_matches("memmove", "memmove"));
	assert_false(tree_name_matches("urn", "Shop.Pricing.Burn(int)"));
	assert_false(tree_name_matches("Burn", "Shop.Burn.Pricing(int)"));
	assert_false(tree_name_matches("", "memmove"));
}

static void test_losses(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f);
	const struct loss losses[] = {
		{ .count = 10, .cpu = 0, .first_ns = BEGIN_NS + 200, .last_ns = BEGIN_NS + 300 },
		{ .count = 5, .cpu = 1, .first_ns = BEGIN_NS + 100, .last_ns = BEGIN_NS + 250 },
	};
	for (unsigned i = 0; i < 3; i++) {
		struct loss *loss = vec_push(&f.trace.losses);
		*loss = losses[i % 2];
		loss->source = trace_add_text(&f.trace, i == 2 ? "late" : "ring");
		loss->unit = trace_add_text(&f.trace, "samples");
	}
	count(&f, TOP_SELF);
	assert_int_equal(f.report.losses.count, 2);
	assert_int_equal(f.report.losses.items[0].count, 15);
	assert_int_equal(f.report.losses.items[0].first_ns, BEGIN_NS + 100);
	assert_int_equal(f.report.losses.items[0].last_ns, BEGIN_NS + 300);
	assert_true(f.report.losses.items[0].several_cpus);
	assert_true(f.report.losses.items[1].moved);
	assert_int_equal(f.report.lost_samples, 15); /* late ones are not lost */
	end(&f);
}

/*
 * Each process describes its kinds of events, and a runtime may have two versions of one. A kind
 * has one row.
 */
static void test_kinds_of_events(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f);
	uint32_t provider = trace_add_text(&f.trace, "Shop");
	uint32_t name = trace_add_text(&f.trace, "Sold");
	for (uint32_t i = 0; i < 4; i++) {
		struct schema *schema = vec_push(&f.trace.schemas);
		schema->provider_kind = PROVIDER_OTHER;
		schema->provider = provider;
		schema->event_id = i == 3 ? 8 : 7;
		schema->version = (uint8_t)i;
		schema->name = i == 2 ? 0 : name;
		const struct event event = { .time_ns = BEGIN_NS + i,
			.schema_index = f.trace.schemas.count - 1 };
		assert_false(profile_only_counts(&f.profile, event.schema_index));
		assert_int_equal(profile_event(&f.profile, &event), 0);
		assert_true(profile_only_counts(&f.profile, event.schema_index));
		for (uint32_t n = 1; n <= i; n++)
			profile_count_event(&f.profile, event.schema_index);
	}
	count(&f, TOP_SELF);
	assert_int_equal(f.report.events.count, 3);
	assert_int_equal(f.report.events.items[0].count, 4);
	assert_int_equal(f.report.events.items[1].count + f.report.events.items[2].count, 3 + 3);

	/* Events that are used, not only counted: samples, and Spoor's own. */
	for (uint32_t i = 0; i < 3; i++) {
		static const uint8_t kinds[] = { PROVIDER_SPOOR, PROVIDER_SAMPLE, PROVIDER_OTHER };
		struct schema *schema = vec_push(&f.trace.schemas);
		schema->provider_kind = kinds[i];
		schema->event_id = 999;
		schema->kind = i == 2 ? EVENT_SAMPLE : EVENT_OTHER;
		const struct event event = { .time_ns = BEGIN_NS + i,
			.schema_index = f.trace.schemas.count - 1 };
		assert_int_equal(profile_event(&f.profile, &event), 0);
		assert_false(profile_only_counts(&f.profile, event.schema_index));
	}
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kinds_of_events),
		cmocka_unit_test(test_sums),
		cmocka_unit_test(test_runtime_samples_with_clocks),
		cmocka_unit_test(test_runtime_samples_alone),
		cmocka_unit_test(test_runtime_samples_of_a_recording),
		cmocka_unit_test(test_sampled_time),
		cmocka_unit_test(test_no_samples),
		cmocka_unit_test(test_scopes),
		cmocka_unit_test(test_one_row_a_method),
		cmocka_unit_test(test_replaced_on_the_stack),
		cmocka_unit_test(test_filters),
		cmocka_unit_test(test_sorts),
		cmocka_unit_test(test_trees),
		cmocka_unit_test(test_name_matches),
		cmocka_unit_test(test_losses),
	};

	return cmocka_run_group_tests_name("profile", tests, NULL, NULL);
}
