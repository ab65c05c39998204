/*
 * Every kind of output: no name, unit, path or payload reaches a terminal as a control character.
 */
#include "unit/test.h"

#include "analysis/group.h"
#include "analysis/recording.h"
#include "analysis/top.h"
#include "analysis/tree.h"
#include "base/bytes.h"
#include "counters/counter_feed.h"
#include "counters/counters.h"
#include "counters/counters_list.h"
#include "counters/counters_metrics.h"
#include "counters/counters_rows.h"
#include "counters/counters_table.h"
#include "render/event_line.h"
#include "render/flame_svg.h"
#include "render/folded.h"
#include "report/report_json.h"
#include "report/report_page.h"
#include "report/report_text.h"
#include "stacks/thread_dump.h"
#include "stacks/thread_groups.h"
#include "stacks/threads_text.h"
#include "trace/event.h"
#include "trace/report.h"
#include "trace/schema.h"
#include "trace/symbolmap.h"
#include "unit/escapes.h"
#include "unit/sample_trace.h"

/* ---- a trace ---- */

struct fixture {
	struct trace trace;
	struct profile profile;
	struct symbolmap names;
	struct report report;
	struct bytes out;
};

static void begin(struct fixture *f)
{
	*f = (struct fixture){ 0 };
	sample_trace(&f->trace);
	f->profile.trace = &f->trace;
	sample_fill(&f->profile);
	struct loss *loss = vec_push(&f->trace.losses);
	*loss = (struct loss){
		.count = 5, .cpu = 1, .first_ns = BEGIN_NS, .last_ns = BEGIN_NS + 900000000u
	};
	loss->source = trace_add_text(&f->trace, "a source");
	loss->unit = trace_add_text(&f->trace, "things");
	for (uint32_t severity = 0; severity <= 3; severity++) {
		struct notice *notice = vec_push(&f->trace.notices);
		notice->severity = (uint8_t)severity;
		notice->text = trace_add_text(&f->trace, "a notice of several words");
		notice->process = trace_find_process(&f->trace, 4711);
	}
	struct cpu_grant *grant = vec_push(&f->trace.cpu_grants);
	*grant = (struct cpu_grant){ .quota_ns = 150000000,
		.period_ns = 100000000,
		.periods = 1000,
		.throttled_periods = 412,
		.throttled_ns = 2500000000u };
	grant->path = trace_add_text(&f->trace, "/docker/0123456789ab");
	grant->container = trace_add_text(&f->trace, "0123456789abcdef0123456789abcdef");
	struct clock_offset *clock = vec_push(&f->trace.clock_offsets);
	clock->source = trace_add_text(&f->trace, "eventpipe");
	clock->process = trace_find_process(&f->trace, 4711);
	clock->offset_ns = 2000;
	poison_table(&f->trace.strings);
	assert_int_equal(symbolmap_init(&f->names, &f->trace, false), 0);
	assert_int_equal(profile_name(&f->profile, &f->names), 0);
	assert_int_equal(recording_describe(&f->report, &f->trace, &f->names, &f->profile), 0);
	assert_int_equal(top_count(&f->report, &f->profile, &f->names, TOP_SELF), 0);
	f->report.file = "a\x1b[2Jb.nettrace";
	f->report.selection = "-n sh\x1b[2Jop";
}

static void end(struct fixture *f)
{
	report_done(&f->report);
	symbolmap_done(&f->names);
	profile_done(&f->profile);
	trace_done(&f->trace);
	bytes_done(&f->out);
}

static void test_report(void **state)
{
	static const enum tree_form kinds[] = { TREE_BY_PROCESS, TREE_BY_PROCESS_NAME,
		TREE_CALLERS };
	struct fixture f;

	(void)state;
	begin(&f);
	for (unsigned columns = 0; columns <= 120; columns += 40) {
		const struct report_text_options options = { .columns = columns,
			.verbose = true,
			.row_count = 100,
			.callers = "Ma\x1b[2Jin" };
		report_text(&f.report, NULL, &options, &f.out);
		assert_harmless(&f.out, "report");
		for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
			struct call_tree tree = { 0 };
			assert_int_equal(tree_build(&tree, &f.profile, &f.names, kinds[i], "M"), 0);
			report_text(&f.report, &tree, &options, &f.out);
			assert_harmless(&f.out, "report of a tree");
			report_json(&f.report, &tree, 0, &f.out);
			assert_harmless(&f.out, "report --json");
			call_tree_done(&tree);
		}
	}
	end(&f);
}

static void test_flame(void **state)
{
	struct fixture f;
	struct call_tree tree = { 0 };

	(void)state;
	begin(&f);
	assert_int_equal(tree_build(&tree, &f.profile, &f.names, TREE_BY_PROCESS, NULL), 0);
	folded_write(&tree, &f.trace, &f.names, false, &f.out);
	assert_harmless(&f.out, "folded stacks");
	flame_svg(&tree, &f.report, &(struct flame_options){ 0 }, &f.out);
	assert_harmless(&f.out, "a flame graph");
	flame_svg(&tree, &f.report, &(struct flame_options){ .title = "a\x1b[2Jtitle" }, &f.out);
	assert_harmless(&f.out, "a flame graph with a title");
	call_tree_done(&tree);
	end(&f);
}

static void add_field(struct trace *trace, struct schema *schema, const char *name, unsigned type,
	unsigned element)
{
	struct field *field = vec_push(&schema->fields);

	field->name = trace_add_text(trace, name);
	field->type = (uint8_t)type;
	field->element = (uint8_t)element;
}

static void test_events(void **state)
{
	struct fixture f;
	struct bytes payload = { 0 };
	char text[] = "a payload of some length";

	(void)state;
	begin(&f);
	struct schema *schema = vec_push(&f.trace.schemas);
	schema->provider = trace_add_text(&f.trace, "My-Provider\x1b[2J\n");
	schema->name = trace_add_text(&f.trace, "An\xc2\x9b"
						"Event");
	schema->event_id = 1;
	add_field(&f.trace, schema, "A\x1b[2JName", FIELD_TEXT16, 0);
	add_field(&f.trace, schema, "Let\xc2\x9bter", FIELD_CHAR16, 0);
	add_field(&f.trace, schema, "Li\nst", FIELD_ARRAY, FIELD_TEXT16);
	poison_text(text, strlen(text));
	bytes_utf16z(&payload, text, strlen(text), SIZE_MAX);
	bytes_u16(&payload, 0x9b);
	bytes_u16(&payload, 2);
	bytes_utf16z(&payload, text, strlen(text), SIZE_MAX);
	bytes_utf16z(&payload, "\x1b]0;title\x07", 10, SIZE_MAX);
	const struct event event = { .schema_index = f.trace.schemas.count - 1,
		.payload = payload.data,
		.payload_size = (uint32_t)payload.len,
		.thread_index = trace_thread(&f.trace, 4711, 4711) };

	event_line(&f.out, &f.trace, &event, 0);
	assert_harmless(&f.out, "an event");
	event_line_json(&f.out, &f.trace, &event, 0, NULL);
	assert_harmless(&f.out, "an event as JSON");
	bytes_done(&payload);
	end(&f);
}

/* ---- counters ---- */

static uint32_t text_of(struct counters *counters, const char *text)
{
	return counters_text(counters, text, strlen(text));
}

static void test_counters(void **state)
{
	const struct counter_quantile quantiles[] = { { 0.5, 0.001 }, { 0.99, 0.184 } };
	struct counters counters;
	struct counters nothing = { 0 };
	struct bytes out = { 0 };
	bool first = true;

	(void)state;
	assert_int_equal(counters_init(&counters), 0);
	for (unsigned kind = COUNTER_GAUGE; kind <= COUNTER_HISTOGRAM; kind++) {
		const struct counter_id id = {
			.source = kind == COUNTER_UPDOWN ? COUNTER_EVENT_SOURCE : COUNTER_METER,
			.provider = text_of(&counters, "Shop.Of.Orders"),
			.version = text_of(&counters, "version"),
			.name = text_of(&counters, "shop.orders.of.all"),
			.tags = text_of(&counters, "colour=red and green"),
			.instrument_id = (int32_t)kind + 1,
		};
		uint32_t index = counters_series(&counters, &id, (enum counter_kind)kind);
		assert_true(index);
		counters.series.items[index].unit = text_of(&counters, "parcels each");
		counters.series.items[index].title =
			kind == COUNTER_UPDOWN ? text_of(&counters, "all orders there are") : 0;
		counters.series.items[index].description = text_of(&counters, "orders that came");
		counters_take_value(&counters, index, 1234.5);
		counters_take_delta(&counters, index, 5, 1);
		if (kind == COUNTER_HISTOGRAM) {
			counters_take_quantiles(&counters, index, quantiles, 2);
			counters_take_count(&counters, index, 5, 1);
		}
	}
	counters_take_interval(&counters, 1);
	assert_int_equal(counters_close(&counters), 4);
	const struct counter_instrument instrument = { .id = 1,
		.meter = text_of(&counters, "Shop.Meter"),
		.version = text_of(&counters, "version two"),
		.name = text_of(&counters, "instrument"),
		.type = text_of(&counters, "Histogram"),
		.unit = text_of(&counters, "crates each"),
		.description = text_of(&counters, "what there is"),
		.tags = text_of(&counters, "a=b of c") };
	poison_table(&counters.strings);
	const struct counters_view view = { .process = "sh\x1b[2Jop\n",
		.pid = 7,
		.runtime = "10\x1b[2J",
		.trouble = "it\x1b[2J broke",
		.counters = &counters,
		.utc_ns = 1795250400000000000u,
		.interval_s = 1 };
	const struct counters_view troubled = { .process = "shop",
		.pid = 7,
		.runtime = "",
		.trouble = "it\x1b[2J broke",
		.counters = &nothing,
		.interval_s = 1 };
	const struct counters_csv_options csv = { .several = true, .terminal = true };
	const struct counters_offer offer = { .process = view.process,
		.pid = 7,
		.runtime = view.runtime,
		.counters = &counters,
		.instruments = &instrument,
		.instrument_count = 1 };

	counters_csv(&view, &csv, &out);
	assert_harmless(&out, "counters --csv on a terminal");
	counters_csv(&view, &(struct counters_csv_options){ .several = true }, &out);
	/* a file contains the text unescaped */
	assert_true(out.len && memchr(out.data, '\x1b', out.len));
	bytes_reset(&out);
	counters_lines(&view, &out);
	assert_harmless(&out, "counters in lines");
	counters_json_head(view.process, 0, &out);
	counters_json(&view, "\n", &first, &out);
	assert_harmless(&out, "counters --json");
	counters_prometheus(&view, 1, &out);
	assert_harmless(&out, "counters --prometheus");
	counters_graphite(&view, "ho\x1b[2Jst", true, &out);
	assert_harmless(&out, "counters --graphite");
	counters_statsd(&view, "ho\x1b[2Jst", true, &out);
	assert_harmless(&out, "counters --statsd");
	counters_list_text(&offer, &out);
	assert_harmless(&out, "counters --list");
	counters_list_json(&offer, &out);
	assert_harmless(&out, "counters --list --json");
	/* The table writes escapes that move the cursor to the next line, and no others. */
	for (size_t count = 0; count <= 2; count++) {
		const struct counters_view views[] = { count ? view : troubled, view };
		struct counters_table table = {
			.columns = 120, .lines = 50, .notice = "no\x1b[2Jtice"
		};
		struct bytes screen = { 0 };
		counters_table_draw(&table, views, count ? count : 1, &screen);
		for (const char *at = bytes_z(&screen); *at;) {
			const char *next = strstr(at, "\x1b[K");
			bytes_add(&out, at, next ? (size_t)(next - at) : strlen(at));
			bytes_text(&out, "\n");
			at = next ? next + 3 + 2 * (size_t)(strncmp(next + 3, "\r\n", 2) == 0)
				  : at + strlen(at);
		}
		assert_harmless(&out, "the table of counters");
		bytes_done(&screen);
	}
	bytes_done(&out);
	counters_done(&counters);
}

/* ---- threads ---- */

static void test_threads(void **state)
{
	struct thread_dump dump;
	struct bytes out = { 0 };

	(void)state;
	assert_int_equal(thread_dump_init(&dump), 0);
	dump.pid = 7;
	dump.name = strtab_add_z(&dump.texts, "a process");
	dump.runtime_version = strtab_add_z(&dump.texts, "10.0.12");
	dump.unsampled_reason = strtab_add_z(&dump.texts, "for a reason");
	const struct dump_frame frame = { .name = strtab_add_z(&dump.texts,
						  "Shop.Park(System.Object)"),
		.module = strtab_add_z(&dump.texts, "Shop.Orders"),
		.kind = FUNCTION_JIT };
	const struct dump_frame nameless = { .name = strtab_add_z(&dump.texts, "libshop.so+0x1234"),
		.module = strtab_add_z(&dump.texts, "libshop.so"),
		.kind = FUNCTION_NATIVE };
	const uint64_t frames[] = { thread_dump_frame(&dump, &frame),
		thread_dump_frame(&dump, &nameless) };
	for (uint32_t tid = 10; tid < 14; tid++) {
		struct dump_thread *thread = vec_push(&dump.threads);
		*thread = (struct dump_thread){ .tid = tid,
			.inner_tid = tid,
			.name = strtab_add_z(&dump.texts, "a thread's name"),
			.syscall = strtab_add_z(&dump.texts, "recvmsg"),
			.object = strtab_add_z(&dump.texts, "/tmp/a file"),
			.function = strtab_add_z(&dump.texts, "futex_do_wait"),
			.lock = tid == 13,
			.lock_owner = tid == 13 ? 10 : 0,
			.stack = stack_table_intern(&dump.stacks, frames, tid < 12 ? 2 : 1),
			.mode = THREAD_NATIVE,
			.managed_count = 1,
			.state = 'S' };
	}
	poison_table(&dump.texts);
	assert_int_equal(thread_groups_make(&dump), 0);
	threads_text(&dump, &(struct threads_text_options){ .whole = true, .long_names = true },
		&out);
	assert_harmless(&out, "stacks");
	threads_text(&dump, &(struct threads_text_options){ .columns = 40 }, &out);
	assert_harmless(&out, "stacks in a narrow terminal");
	threads_json(&dump, &out);
	assert_harmless(&out, "stacks --json");
	threads_dotnet_stack(&dump, &out);
	assert_harmless(&out, "stacks as dotnet-stack");
	bytes_done(&out);
	thread_dump_done(&dump);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_report),
		cmocka_unit_test(test_flame),
		cmocka_unit_test(test_events),
		cmocka_unit_test(test_counters),
		cmocka_unit_test(test_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
