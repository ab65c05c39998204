/*
 * Text, JSON and folded lines of the sample trace are compared with tests/data/report/; the SVG is
 * checked by its structure. With SPOOR_GOLDEN in the environment the files are written instead.
 */
#include "unit/test.h"

#include <errno.h>

#include "analysis/group.h"
#include "analysis/recording.h"
#include "analysis/top.h"
#include "analysis/tree.h"
#include "base/bytes.h"
#include "base/text.h"
#include "render/flame_svg.h"
#include "render/folded.h"
#include "report/report_json.h"
#include "report/report_page.h"
#include "report/report_text.h"
#include "trace/report.h"
#include "trace/symbolmap.h"
#include "unit/sample_trace.h"

struct fixture {
	struct trace trace;
	struct profile profile;
	struct symbolmap names;
	struct report report;
	struct call_tree tree;
	struct bytes out;
};

static void begin(struct fixture *f, bool full)
{
	*f = (struct fixture){ 0 };
	sample_trace(&f->trace);
	f->profile.trace = &f->trace;
	if (full) {
		sample_fill(&f->profile);
		struct loss *loss = vec_push(&f->trace.losses);
		*loss = (struct loss){ .count = 5,
			.cpu = 1,
			.first_ns = BEGIN_NS + 200000000u,
			.last_ns = BEGIN_NS + 900000000u };
		loss->source = trace_add_text(&f->trace, "ring");
		loss->unit = trace_add_text(&f->trace, "samples");
		struct notice *notice = vec_push(&f->trace.notices);
		notice->severity = 2;
		notice->text = trace_add_text(&f->trace, "\x1b[2Jnot asked");
		notice->process = trace_find_process(&f->trace, 4802);
		for (uint32_t i = 0; i < 2; i++) {
			struct cpu_grant *grant = vec_push(&f->trace.cpu_grants);
			*grant = (struct cpu_grant){
				.quota_ns = 150000000, .period_ns = 100000000, .periods = 1000
			};
			grant->path =
				trace_add_text(&f->trace, i ? "/kubepods/" HOSTILE : "/docker/0");
			grant->container =
				i ? 0
				  : trace_add_text(&f->trace,
					    "9f3c2b1a9f3c2b1a9f3c2b1a9f3c2b1a9f3c2b1a9f3c2b1a9f3c2b1a9f3c2b1a");
			grant->throttled_periods = i ? 0 : 412;
			grant->throttled_ns = i ? 0 : UINT64_C(2500000000);
		}
		for (int64_t offset = -2000; offset <= 2000; offset += 2000) {
			struct clock_offset *clock = vec_push(&f->trace.clock_offsets);
			clock->source =
				trace_add_text(&f->trace, offset < 0 ? "eventpipe" : "perf");
			clock->process = offset < 0 ? notice->process : 0;
			clock->offset_ns = offset;
			clock->error_ns = 500;
		}
	}
	assert_int_equal(symbolmap_init(&f->names, &f->trace, METHOD_NAME_LONG), 0);
	assert_int_equal(profile_name(&f->profile, &f->names), 0);
	assert_int_equal(recording_describe(&f->report, &f->trace, &f->names, &f->profile), 0);
	assert_int_equal(top_count(&f->report, &f->profile, &f->names, TOP_SELF), 0);
	f->report.file = "it's.nettrace";
}

static void end(struct fixture *f)
{
	call_tree_done(&f->tree);
	report_done(&f->report);
	symbolmap_done(&f->names);
	profile_done(&f->profile);
	trace_done(&f->trace);
	bytes_done(&f->out);
}

/*
 * No output contains a control character except the newline, or invalid UTF-8 (the hostile name has
 * the byte 0xff).
 */
static void assert_clean(const struct bytes *out)
{
	assert_false(out->failed);
	for (size_t i = 0; i < out->len; i++) {
		assert_true(out->data[i] >= 0x20 || out->data[i] == '\n');
		assert_true(out->data[i] != 0xff && out->data[i] != 0x7f);
	}
}

static void compare(struct bytes *out, const char *name)
{
	char path[512];
	char *expected = calloc(1, out->len + 4096);

	assert_clean(out);
	snprintf(path, sizeof(path), TEST_DATA "/report/%s", name);
	FILE *file = fopen(path, getenv("SPOOR_GOLDEN") ? "w" : "r");
	assert_non_null(file);
	if (getenv("SPOOR_GOLDEN"))
		assert_int_equal(fwrite(out->data, 1, out->len, file), out->len);
	else
		(void)!fread(expected, 1, out->len + 4095, file);
	fclose(file);
	if (!getenv("SPOOR_GOLDEN"))
		assert_string_equal(bytes_z(out), expected);
	free(expected);
}

static void test_text(void **state)
{
	struct report_text_options options = { 0 };
	struct fixture f;

	(void)state;
	begin(&f, true);
	report_text(&f.report, NULL, &options, &f.out);
	compare(&f.out, "table.txt");
	bytes_reset(&f.out);
	options.columns = 60;
	options.row_count = 3;
	report_text(&f.report, NULL, &options, &f.out);
	compare(&f.out, "table-narrow.txt");
	bytes_reset(&f.out);
	options.columns = 0;
	f.report.scope = REPORT_PROCESSES;
	f.report.selection = "-p 4711";
	report_text(&f.report, NULL, &options, &f.out);
	assert_non_null(strstr(bytes_z(&f.out),
		": 10 % of 2 CPUs used by the recorded processes (0.20 of 2.00 CPU s)\n"));
	assert_non_null(strstr(bytes_z(&f.out),
		"shown: 20 samples, 0.20 CPU s (100.0 % of the recording's 0.20), of -p 4711\n"));
	f.report.scope = REPORT_MACHINE;
	f.report.selection = NULL;
	bytes_reset(&f.out);
	options.verbose = true;
	report_text(&f.report, NULL, &options, &f.out);
	compare(&f.out, "table-verbose.txt");
	end(&f);
}

/* Returns the column of a byte in a text. */
static size_t columns_to(const char *line, const char *at)
{
	return text_columns(line, (size_t)(at - line));
}

/*
 * The entries below a heading begin in its column, with any width of the table. On a terminal each
 * line fits.
 */
static void check_columns(struct bytes *out, size_t columns)
{
	size_t module_at = 0;
	unsigned rows = 0;
	char *text = strdup(bytes_z(out));

	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		const char *heading = strstr(line, "  module");
		if (strstr(line, "self    total  function") && heading) {
			module_at = columns_to(line, heading) + 2;
			continue;
		}
		if (strncmp(line, "next", 4) == 0)
			break;
		if (!module_at || !strstr(line, " %  ") || strstr(line, "more function"))
			continue;
		size_t at = 0;
		size_t len = strlen(line);
		for (size_t c = 0; c < module_at; c++)
			(void)text_next_char(line, len, &at);
		assert_true(at >= 2 && line[at - 1] == ' ' && line[at - 2] == ' ' &&
			    line[at] != ' ');
		assert_true(!columns || text_columns(line, len) <= columns);
		rows++;
	}
	assert_true(rows > 8);
	free(text);
}

static void test_columns(void **state)
{
	static const size_t widths[] = { 0, 80, 120 };
	struct report_text_options options = { 0 };
	struct fixture f = { 0 };
	struct bytes name = { 0 };

	(void)state;
	sample_trace(&f.trace);
	f.profile.trace = &f.trace;
	uint32_t shop = trace_find_process(&f.trace, 4711);
	for (unsigned i = 0; i < 4; i++) {
		static const enum code_tier tiers[] = { TIER_0, TIER_0_INSTRUMENTED, TIER_1_OSR,
			TIER_1 };
		bytes_reset(&name);
		bytes_text(&name,
			"void [Shop.A.Rather.Long.Name.Of.An.Assembly] Shop.Pricing.Something::");
		for (unsigned n = 0; n < 20; n++)
			bytes_text(&name, "WithLongName");
		bytes_printf(&name, "(int32)[%s]", code_tier_tag(tiers[i]));
		sample_code(&f.trace, shop, JIT + 0x1000 + 0x100 * i, bytes_z(&name), UINT32_MAX,
			CODE_JIT, tiers[i]);
		vec_last(&f.trace.processes.items[shop].codes)->module =
			trace_add_text(&f.trace, "Shop.A.Rather.Long.Name.Of.An.Assembly");
		sample_add(&f.profile, 4711, 4711, 10, 3, STACK(JIT + 0x1008 + 0x100 * i));
	}
	bytes_done(&name);
	sample_fill(&f.profile);
	assert_int_equal(symbolmap_init(&f.names, &f.trace, METHOD_NAME_SHORT), 0);
	assert_int_equal(profile_name(&f.profile, &f.names), 0);
	assert_int_equal(recording_describe(&f.report, &f.trace, &f.names, &f.profile), 0);
	assert_int_equal(top_count(&f.report, &f.profile, &f.names, TOP_SELF), 0);
	for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
		options.columns = (unsigned)widths[i];
		bytes_reset(&f.out);
		report_text(&f.report, NULL, &options, &f.out);
		check_columns(&f.out, widths[i]);
		assert_non_null(strstr(bytes_z(&f.out),
			widths[i] ? "tier 1 +3"
				  : "  tier 0, tier 0 instrumented, tier 1 OSR, tier 1\n"));
	}
	end(&f);
}

static uint32_t count_of(struct bytes *out, const char *text)
{
	uint32_t count = 0;

	for (const char *at = strstr(bytes_z(out), text); at; at = strstr(at + 1, text))
		count++;
	return count;
}

/*
 * The same fact about many processes is one line with a count, as for children that ended between
 * fork and exec. -v lists them all.
 */
static void test_repeated_notices(void **state)
{
	struct report_text_options options = { 0 };
	struct fixture f;

	(void)state;
	begin(&f, true);
	for (uint32_t i = 0; i < 41; i++) {
		struct notice *notice = vec_push(&f.trace.notices);
		assert_non_null(notice);
		notice->severity = 2;
		notice->text = trace_add_text(&f.trace,
			i < 40 ? "it ended before it could be asked" : "something else");
		notice->process = trace_find_process(&f.trace, i % 2 ? 4711 : 4802);
	}
	report_text(&f.report, NULL, &options, &f.out);
	assert_int_equal(count_of(&f.out, "it ended before it could be asked"), 1);
	assert_int_equal(
		count_of(&f.out,
			"(4802) and 39 more processes: it ended before it could be asked\n"),
		1);
	assert_int_equal(count_of(&f.out, "(4802): something else\n"), 1);
	bytes_reset(&f.out);
	options.verbose = true;
	report_text(&f.report, NULL, &options, &f.out);
	assert_int_equal(count_of(&f.out, ": it ended before it could be asked\n"), 40);
	end(&f);
}

/*
 * On a narrow terminal a method loses its arguments first, then its namespace; only then is its
 * name cut.
 */
static void test_narrow_names(void **state)
{
	struct report_text_options options = { .columns = 60 };
	struct fixture f = { 0 };

	(void)state;
	sample_trace(&f.trace);
	f.profile.trace = &f.trace;
	sample_code(&f.trace, trace_find_process(&f.trace, 4711), JIT + 0x1000,
		"void [Shop] Shop.Orders.Pricing.Calculation.PriceList::Recompute(int32,int32)[OptimizedTier1]",
		UINT32_MAX, CODE_JIT, TIER_1);
	sample_add(&f.profile, 4711, 4711, 0, 2, STACK(JIT + 0x1008, LIBC + 8));
	assert_int_equal(symbolmap_init(&f.names, &f.trace, METHOD_NAME_SHORT), 0);
	assert_int_equal(profile_name(&f.profile, &f.names), 0);
	assert_int_equal(recording_describe(&f.report, &f.trace, &f.names, &f.profile), 0);
	assert_int_equal(top_count(&f.report, &f.profile, &f.names, TOP_SELF), 0);
	report_text(&f.report, NULL, &options, &f.out);
	assert_non_null(strstr(bytes_z(&f.out), "  PriceList.Recompute  "));
	bytes_reset(&f.out);
	options.columns = 120;
	report_text(&f.report, NULL, &options, &f.out);
	assert_non_null(strstr(bytes_z(&f.out), "  Calculation.PriceList.Recompute(int, int)  "));
	end(&f);
}

/* The keys of perf's option --sort: one table over all processes. */
static void test_groups(void **state)
{
	struct report_text_options options = { 0 };
	struct fixture f;

	(void)state;
	begin(&f, true);
	f.report.group_keys = GROUP_NAME | GROUP_MODULE | GROUP_FUNCTION;
	assert_int_equal(group_count(&f.report, &f.profile, &f.names, GROUP_BY_SELF), 0);
	report_text(&f.report, NULL, &options, &f.out);
	compare(&f.out, "groups.txt");
	report_json(&f.report, NULL, 0, &f.out);
	end(&f);

	/*
	 * With any keys, the self times add up to the total time, and the total of a group is no
	 * less than its self time.
	 */
	for (unsigned keys = 1; keys < 16; keys++) {
		for (int form = GROUP_BY_SELF; form <= GROUP_SELF_ONLY; form++) {
			uint64_t sum = 0;
			begin(&f, true);
			f.report.group_keys = keys;
			assert_int_equal(group_count(&f.report, &f.profile, &f.names,
						 (enum group_form)form),
				0);
			for (uint32_t i = 0; i < f.report.groups.count; i++) {
				const struct report_group *group = &f.report.groups.items[i];
				sum += group->self_ns;
				assert_true(group->total_ns >= group->self_ns);
				assert_true(group->total_ns <= f.report.cpu_ns);
				if (form == GROUP_SELF_ONLY)
					assert_int_equal(group->total_ns, group->self_ns);
			}
			assert_int_equal(sum, f.report.cpu_ns);
			end(&f);
		}
	}
	begin(&f, true);
	f.report.group_keys = GROUP_MODULE;
	assert_int_equal(group_count(&f.report, &f.profile, &f.names, GROUP_SELF_ONLY), 0);
	options.without_total = true;
	options.least_share = 0.05;
	report_text(&f.report, NULL, &options, &f.out);
	compare(&f.out, "modules.txt");
	end(&f);
}

static void test_tree(void **state)
{
	struct report_text_options options = { 0 };
	struct fixture f;

	(void)state;
	begin(&f, true);
	assert_int_equal(tree_build(&f.tree, &f.profile, &f.names, TREE_BY_PROCESS, NULL), 0);
	report_text(&f.report, &f.tree, &options, &f.out);
	compare(&f.out, "tree.txt");
	call_tree_done(&f.tree);
	bytes_reset(&f.out);
	options.callers = "Main";
	assert_int_equal(tree_build(&f.tree, &f.profile, &f.names, TREE_CALLERS, "Main"), 0);
	report_text(&f.report, &f.tree, &options, &f.out);
	compare(&f.out, "callers.txt");
	call_tree_done(&f.tree);
	bytes_reset(&f.out);
	options.callers = "Brun";
	assert_int_equal(tree_build(&f.tree, &f.profile, &f.names, TREE_CALLERS, "Brun"), 0);
	report_text(&f.report, &f.tree, &options, &f.out);
	assert_non_null(strstr(bytes_z(&f.out),
		"\nBrun is on no stack; did you mean 'Shop.Pricing.Burn()'?\n"));
	assert_clean(&f.out);
	end(&f);
}

static void test_empty(void **state)
{
	struct report_text_options options = { 0 };
	struct fixture f;

	(void)state;
	begin(&f, false);
	report_text(&f.report, NULL, &options, &f.out);
	compare(&f.out, "empty.txt");
	bytes_reset(&f.out);
	report_json(&f.report, NULL, 0, &f.out);
	assert_clean(&f.out);
	assert_int_equal(tree_build(&f.tree, &f.profile, &f.names, TREE_BY_PROCESS, NULL), 0);
	bytes_reset(&f.out);
	folded_write(&f.tree, &f.trace, &f.names, false, &f.out);
	assert_int_equal(f.out.len, 0);
	flame_svg(&f.tree, &f.report, &(struct flame_options){ 0 }, &f.out);
	assert_clean(&f.out);
	assert_non_null(strstr(bytes_z(&f.out), "There is no sample to draw."));
	end(&f);
}

static void test_json(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, true);
	assert_int_equal(tree_build(&f.tree, &f.profile, &f.names, TREE_BY_PROCESS, NULL), 0);
	report_json(&f.report, &f.tree, 0, &f.out);
	compare(&f.out, "report.json");
	assert_memory_equal(f.out.data,
		"{\"samples\":20,\"lost\":5,\"lost_exact\":true,\"duration_ns\":", 55);
	end(&f);
}

static void test_folded(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, true);
	assert_int_equal(tree_build(&f.tree, &f.profile, &f.names, TREE_BY_PROCESS_NAME, NULL), 0);
	folded_write(&f.tree, &f.trace, &f.names, false, &f.out);
	compare(&f.out, "stacks.folded");
	end(&f);
}

static unsigned count_text(const char *text, const char *what)
{
	unsigned count = 0;

	for (; (text = strstr(text, what)); text += strlen(what))
		count++;
	return count;
}

static void test_svg(void **state)
{
	struct fixture f;

	(void)state;
	for (unsigned reversed = 0; reversed < 2; reversed++) {
		begin(&f, true);
		assert_int_equal(tree_build(&f.tree, &f.profile, &f.names,
					 reversed ? TREE_REVERSED : TREE_BY_PROCESS, NULL),
			0);
		flame_svg(&f.tree, &f.report,
			&(struct flame_options){ .title = "a <b> & " HOSTILE }, &f.out);
		assert_clean(&f.out);
		const char *text = bytes_z(&f.out);
		assert_non_null(strstr(text, "<title>a &lt;b&gt; &amp; ev;il\\n"));
		assert_int_equal(count_text(text, "<svg"), count_text(text, "</svg>"));
		assert_int_equal(count_text(text, "<g"), count_text(text, "</g>"));
		/*
		 * Every node is wide enough here, so each is drawn once and has one row of numbers.
		 */
		const char *frames = strstr(text, "<g id=\"frames\"");
		const char *frames_end = strstr(frames, "</g>\n");
		unsigned rects = 0;
		for (const char *p = frames; (p = strstr(p, "<rect")) && p < frames_end; p++)
			rects++;
		assert_int_equal(rects, f.tree.nodes.count - CALL_TREE_ROOT);
		/* The script is one CDATA section, which no name can end. */
		assert_int_equal(count_text(text, "]]>"), 1);
		assert_null(strstr(text, "http://www.w3.org/1999/xlink"));
		assert_null(strstr(text, "src="));
		end(&f);
	}
}

/*
 * The SVG follows the colour scheme of the page. Its legend adds up to the time of all samples with
 * a stack.
 */
static void test_svg_legend(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, true);
	assert_int_equal(f.report.kind_ns[FUNCTION_JIT], 9 * PERIOD_NS);
	assert_int_equal(f.report.kind_ns[FUNCTION_NATIVE], 6 * PERIOD_NS);
	assert_int_equal(f.report.kind_ns[FUNCTION_KERNEL], 2 * PERIOD_NS);
	assert_int_equal(f.report.kind_ns[FUNCTION_STUB], PERIOD_NS);
	assert_int_equal(f.report.kind_ns[FUNCTION_UNKNOWN], 2 * PERIOD_NS);
	assert_int_equal(tree_build(&f.tree, &f.profile, &f.names, TREE_BY_PROCESS, NULL), 0);
	flame_svg(&f.tree, &f.report, &(struct flame_options){ .width = 480 }, &f.out);
	const char *text = bytes_z(&f.out);

	assert_non_null(strstr(text, ">kernel 10.0 %</text>"));
	assert_non_null(strstr(text, ">JIT 45.0 %</text>"));
	assert_non_null(strstr(text, ">ReadyToRun 0.0 %</text>"));
	assert_non_null(strstr(text, ">no name 10.0 %</text>"));
	assert_non_null(strstr(text, "@media screen and (prefers-color-scheme:dark)"));
	/* A narrow SVG has a legend of two lines, and the frames below it. */
	assert_non_null(strstr(text, "translate(10,79)\">"));
	assert_null(strstr(text, "translate(10,98)\">"));
	end(&f);
}

/* Frames without a symbol: one row for a module, for any number of addresses and frames. */
static void test_fold_unnamed(void **state)
{
	const uint64_t root = LIBC + 8;
	struct fixture f = { 0 };

	(void)state;
	sample_trace(&f.trace);
	f.profile.trace = &f.trace;
	sample_add(&f.profile, 4711, 4711, 0, 2,
		STACK(JIT + 0x208, CLR + 0x2a8, CLR + 0x5000, root));
	sample_add(&f.profile, 4711, 4711, 0, 3, STACK(JIT + 0x208, CLR + 0x6000, root));
	sample_add(&f.profile, 4711, 4711, 0, 1,
		STACK(CLR + 0x7000, LIBC + 0x900, LIBC + 0x904, root));
	assert_int_equal(symbolmap_init(&f.names, &f.trace, METHOD_NAME_LONG), 0);
	assert_int_equal(profile_name(&f.profile, &f.names), 0);
	assert_int_equal(profile_fold_unnamed(&f.profile, &f.names), 0);
	assert_int_equal(tree_build(&f.tree, &f.profile, &f.names, TREE_BY_PROCESS_NAME, NULL), 0);
	folded_write(&f.tree, &f.trace, &f.names, false, &f.out);
	assert_string_equal(bytes_z(&f.out),
		"shop;start_thread;libc.so.6 (no symbols);libcoreclr.so (no symbols) 1\n"
		"shop;start_thread;libcoreclr.so (no symbols);Shop.Program.Main() 5\n");
	end(&f);
}

/*
 * A method that was replaced while it ran was called once; its caller is missing in the walked
 * stack. A method that calls itself was called twice.
 */
static void test_on_stack_replacement(void **state)
{
	const uint64_t root = LIBC + 8;
	struct fixture f = { 0 };

	(void)state;
	sample_trace(&f.trace);
	f.profile.trace = &f.trace;
	sample_code(&f.trace, trace_find_process(&f.trace, 4711), JIT + 0x1000,
		"void [Shop] Shop.Program::Main()[OptimizedTier1OSR]", UINT32_MAX, CODE_OSR,
		TIER_1_OSR);
	sample_add(&f.profile, 4711, 4711, 0, 2, STACK(JIT + 0x1008, JIT + 0x208, root));
	sample_add(&f.profile, 4711, 4711, 0, 3, STACK(JIT + 0x208, JIT + 0x208, root));
	assert_int_equal(symbolmap_init(&f.names, &f.trace, METHOD_NAME_LONG), 0);
	assert_int_equal(profile_name(&f.profile, &f.names), 0);
	assert_int_equal(tree_build(&f.tree, &f.profile, &f.names, TREE_BY_PROCESS_NAME, NULL), 0);
	folded_write(&f.tree, &f.trace, &f.names, false, &f.out);
	assert_string_equal(bytes_z(&f.out),
		"shop;start_thread;Shop.Program.Main();Shop.Program.Main() 3\n"
		"shop;start_thread;[caller unknown: on-stack replacement];Shop.Program.Main() 2\n");
	end(&f);
}

int main(void)
{
	program_invocation_name = (char[]){ "spoor" }; /* the pages name it */
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_columns),
		cmocka_unit_test(test_repeated_notices),
		cmocka_unit_test(test_narrow_names),
		cmocka_unit_test(test_groups),
		cmocka_unit_test(test_tree),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_folded),
		cmocka_unit_test(test_svg),
		cmocka_unit_test(test_svg_legend),
		cmocka_unit_test(test_fold_unnamed),
		cmocka_unit_test(test_on_stack_replacement),
	};

	return cmocka_run_group_tests_name("report_text", tests, NULL, NULL);
}
