/* See startup_report.h. */
#include "report/startup_report.h"

#include "analysis/answers.h"
#include "base/bytes.h"
#include "base/json.h"
#include "base/text.h"
#include "trace/report.h"
#include "trace/trace.h"

/* Rows of each list, as the phases are what the user wants to see. */
#define ROWS_DEFAULT 5u

/* What happens from a step to the next one. */
static const char *const phase_words[STARTUP_STEPS] = { "dotnet finds hostfxr",
	"hostfxr: the framework", "hostpolicy: assemblies", "the runtime loads", "to Main", "Main",
	"no request yet", "the first request" };

static uint64_t time_to(const struct startup_process *process, enum startup_step step)
{
	return process->at_ns[step] - process->phases[0].from_ns;
}

void startup_add_words(struct bytes *out, const struct startup_process *process)
{
	static const char *const words[STARTUP_STEPS] = { [STARTUP_EXEC] = "executed",
		[STARTUP_HOSTFXR] = "in its host",
		[STARTUP_HOSTPOLICY] = "in its host",
		[STARTUP_CORECLR] = "loads the runtime",
		[STARTUP_RUNTIME] = "runs managed code",
		[STARTUP_MAIN] = "in Main",
		[STARTUP_READY] = "ready" };
	enum startup_step last = startup_last_step(process);

	bytes_printf(out, "%s after ", words[last]);
	text_add_duration(out, (double)time_to(process, last) / 1e9);
	if (!process->reached[STARTUP_ANSWER])
		return;
	bytes_text(out, ", its first request took ");
	text_add_duration(out,
		(double)(process->at_ns[STARTUP_ANSWER] - process->at_ns[STARTUP_REQUEST]) / 1e9);
}

static void add_cell(struct bytes *out, size_t width, uint64_t time_ns, bool is_known)
{
	if (is_known)
		answer_duration_cell(out, width, time_ns);
	else
		bytes_printf(out, "%*s-", (int)width + 1, "");
}

static void add_count(struct bytes *out, size_t width, uint64_t count, bool is_known)
{
	if (is_known)
		answer_count_cell(out, width, count);
	else
		bytes_printf(out, "%*s-", (int)width + 1, "");
}

static void add_phase(struct bytes *out, const struct startup_process *process,
	const struct startup_phase *phase)
{
	bool events = process->has_compiled;

	answer_duration_cell(out, 7, phase->from_ns - process->phases[0].from_ns);
	answer_duration_cell(out, 7, phase->to_ns - phase->from_ns);
	add_cell(out, 7, phase->total_ns[STARTUP_SAMPLE], process->sampled);
	add_cell(out, 7, phase->total_ns[STARTUP_JIT], events);
	add_count(out, 5, phase->count[STARTUP_JIT], events);
	add_count(out, 5, phase->count[STARTUP_R2R], events);
	add_count(out, 4, phase->count[STARTUP_ASSEMBLY], events);
	bytes_printf(out, "  %s\n", phase_words[phase->step]);
}

static void add_missing(struct bytes *out, const struct startup_process *process)
{
	if (!process->reached[STARTUP_EXEC])
		bytes_text(out,
			"  host         its steps are not in the recording: spoor record takes them\n");
	if (!process->has_compiled)
		bytes_text(out,
			"  events       methods and assemblies are not in the recording: spoor record --profile startup -- COMMAND\n");
	if (!process->reached[STARTUP_MAIN] && process->has_compiled)
		bytes_text(out,
			"  Main         was not seen: spoor record --profile startup also takes precompiled methods\n");
	if (process->runs_managed) {
		bytes_text(out, "  managed      the first sample in managed code is at ");
		text_add_duration(out,
			(double)(process->managed_ns > process->phases[0].from_ns
					 ? process->managed_ns - process->phases[0].from_ns
					 : 0) /
				1e9);
		bytes_text(out, "\n");
	}
}

/* The marks of one kind, longest first. */
static void add_marks(struct bytes *out, const struct startup *startup,
	const struct startup_process *process, enum startup_mark_kind kind, const char *title,
	uint32_t row_count)
{
	uint32_t shown = 0;
	uint32_t count = 0;

	for (uint32_t i = 0; i < process->mark_count; i++) {
		const struct startup_mark *mark = &startup->marks.items[process->mark_at + i];
		if (mark->kind != kind || !mark->lasts_ns || mark->at_ns >= process->end_ns ||
			mark->at_ns < process->phases[0].from_ns || count++ >= row_count)
			continue;
		if (!shown++)
			bytes_printf(out, "\n     time       at  %s\n", title);
		answer_duration_cell(out, 7, mark->lasts_ns);
		answer_duration_cell(out, 7, mark->at_ns - process->phases[0].from_ns);
		bytes_text(out, "  ");
		text_add_safe_z(out, strtab_get(&startup->texts, mark->text));
		bytes_text(out, "\n");
	}
	answer_more(out, 7, count - shown, "more", "more");
}

static void add_functions(struct bytes *out, const struct startup *startup,
	const struct report *report, const struct startup_process *process, uint32_t row_count)
{
	uint32_t shown = process->function_count < row_count ? process->function_count : row_count;

	if (shown)
		bytes_text(out, "\n      CPU  function\n");
	for (uint32_t i = 0; i < shown; i++) {
		const struct startup_function *row =
			&startup->functions.items[process->function_at + i];
		answer_duration_cell(out, 7, row->cpu_ns);
		bytes_text(out, "  ");
		answer_function(out, report, row->function);
		bytes_text(out, "\n");
	}
	answer_more(out, 7, process->function_count - shown, "more function", "more functions");
}

static int add_process(struct bytes *out, const struct answers *answers,
	const struct report *report, uint32_t at, uint32_t row_count)
{
	const struct startup *startup = &answers->startup;
	const struct startup_process *process = &startup->processes.items[at];

	answer_head(out, report, process->process);
	startup_add_words(out, process);
	bytes_text(out, "\n");
	add_missing(out, process);
	bytes_text(out, "\n       at     wall      CPU      JIT  count    R2R  load  phase\n");
	for (uint32_t i = 0; i < process->phase_count; i++)
		add_phase(out, process, &process->phases[i]);
	add_marks(out, startup, process, STARTUP_ASSEMBLY, "assembly", row_count);
	add_marks(out, startup, process, STARTUP_JIT, "compiled method", row_count);
	add_functions(out, startup, report, process, row_count);
	return 0;
}

static void add_json_marks(struct json *j, const char *name, const struct startup *startup,
	const struct startup_process *process, enum startup_mark_kind kind)
{
	json_array(j, name);
	for (uint32_t i = 0; i < process->mark_count; i++) {
		const struct startup_mark *mark = &startup->marks.items[process->mark_at + i];
		if (mark->kind != kind || mark->at_ns >= process->end_ns)
			continue;
		json_object(j, NULL);
		json_z(j, "name", strtab_get(&startup->texts, mark->text));
		json_u64(j, "begin_ns", mark->at_ns);
		json_u64(j, "duration_ns", mark->lasts_ns);
		json_end(j);
	}
	json_end(j);
}

static void add_json_phases(struct json *j, const struct startup_process *process)
{
	json_array(j, "phases");
	for (uint32_t i = 0; i < process->phase_count; i++) {
		const struct startup_phase *phase = &process->phases[i];
		json_object(j, NULL);
		json_z(j, "from", startup_step_name(phase->step));
		json_z(j, "to", startup_step_name(phase->until));
		json_u64(j, "begin_ns", phase->from_ns);
		json_u64(j, "wall_ns", phase->to_ns - phase->from_ns);
		json_u64(j, "cpu_ns", phase->total_ns[STARTUP_SAMPLE]);
		json_u64(j, "jit_ns", phase->total_ns[STARTUP_JIT]);
		json_u64(j, "jit_count", phase->count[STARTUP_JIT]);
		json_u64(j, "r2r_count", phase->count[STARTUP_R2R]);
		json_u64(j, "assembly_count", phase->count[STARTUP_ASSEMBLY]);
		json_u64(j, "assembly_ns", phase->total_ns[STARTUP_ASSEMBLY]);
		json_end(j);
	}
	json_end(j);
}

static int add_json(struct json *j, const struct answers *answers, const struct report *report,
	uint32_t at)
{
	const struct startup *startup = &answers->startup;
	const struct startup_process *process = &startup->processes.items[at];

	answer_json_process(j, report, process->process);
	json_object(j, "steps");
	for (unsigned i = 0; i < STARTUP_STEPS; i++)
		if (process->reached[i])
			json_u64(j, startup_step_name((enum startup_step)i), process->at_ns[i]);
	json_end(j);
	if (process->runs_managed)
		json_u64(j, "first_managed_sample_ns", process->managed_ns);
	else
		json_null(j, "first_managed_sample_ns");
	json_bool(j, "has_runtime_events", process->has_compiled);
	add_json_phases(j, process);
	add_json_marks(j, "assemblies", startup, process, STARTUP_ASSEMBLY);
	add_json_marks(j, "methods", startup, process, STARTUP_JIT);
	json_array(j, "functions");
	for (uint32_t i = 0; i < process->function_count; i++) {
		const struct startup_function *row =
			&startup->functions.items[process->function_at + i];
		const struct function *function = &report->names->functions.items[row->function];
		json_object(j, NULL);
		json_z(j, "name", trace_text(report->trace, function->name));
		json_z(j, "module", trace_text(report->trace, function->module));
		json_u64(j, "cpu_ns", row->cpu_ns);
		json_end(j);
	}
	json_end(j);
	json_end(j);
	return 0;
}

static uint32_t process_count(const struct answers *answers)
{
	return answers->startup.processes.count;
}

const struct answer_report startup_report = {
	.option = "startup",
	.row_count = ROWS_DEFAULT,
	.process_max = ANSWER_PROCESSES_MAX,
	.process_count = process_count,
	.add_process = add_process,
	.none = "no start of a .NET process is in this selection; spoor record --profile startup -- COMMAND records one\n",
	.add_json = add_json,
};
