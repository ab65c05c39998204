/* See report_json.h. */
#include "report/report_json.h"

#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "base/json.h"
#include "render/event_text.h"
#include "render/frame_label.h"
#include "trace/call_tree.h"
#include "trace/report.h"
#include "trace/symbolmap.h"
#include "trace/trace.h"

/* Nodes of the tree below this share of everything are left out. */
#define NODE_SHARE_MIN 0.001

static void add_text(struct json *j, const struct trace *trace, const char *name, uint32_t text)
{
	if (text)
		json_text(j, name, trace_text(trace, text), strtab_len(&trace->strings, text));
	else
		json_null(j, name);
}

static void add_machine(struct json *j, const struct report *report)
{
	const struct recording *recording = &report->trace->recording;

	json_object(j, "recording");
	add_text(j, report->trace, "host", recording->host);
	add_text(j, report->trace, "kernel", recording->kernel);
	add_text(j, report->trace, "system", recording->system);
	add_text(j, report->trace, "architecture", recording->architecture);
	add_text(j, report->trace, "cpu_model", recording->cpu_model);
	json_u64(j, "cpu_count", report->cpu_count);
	json_u64(j, "utc_ns", recording->utc_ns);
	json_f64(j, "rate_hz", report->rate_hz);
	add_text(j, report->trace, "tool_version", recording->tool_version);
	add_text(j, report->trace, "command_line", recording->command_line);
	add_text(j, report->trace, "end_reason", recording->end_reason);
	json_bool(j, "complete", !report->killed);
	json_end(j);
}

static void add_losses(struct json *j, const struct report *report)
{
	json_array(j, "losses");
	vec_each(loss, &report->losses) {
		uint64_t begin = report->begin_ns;

		json_object(j, NULL);
		add_text(j, report->trace, "source", loss->source);
		add_text(j, report->trace, "unit", loss->unit);
		json_u64(j, "count", loss->count);
		json_bool(j, "exact", !loss->more_unknown);
		json_bool(j, "moved", loss->moved);
		if (loss->cpu >= 0)
			json_i64(j, "cpu", loss->cpu);
		else
			json_null(j, "cpu");
		json_u64(j, "first_ns", loss->first_ns > begin ? loss->first_ns - begin : 0);
		json_u64(j, "last_ns", loss->last_ns > begin ? loss->last_ns - begin : 0);
		json_end(j);
	}
	json_end(j);
}

static void add_notices(struct json *j, const struct report *report)
{
	const struct trace *trace = report->trace;
	static const char *const severities[] = { "note", "note", "limited", "failed" };

	json_array(j, "notices");
	for (uint32_t i = 1; i < trace->notices.count; i++) {
		const struct notice *notice = &trace->notices.items[i];
		json_object(j, NULL);
		json_z(j, "severity", severities[notice->severity <= 3 ? notice->severity : 3]);
		add_text(j, trace, "code", notice->code);
		add_text(j, trace, "text", notice->text);
		add_text(j, trace, "remedy", notice->remedy);
		if (notice->process && notice->process < trace->processes.count)
			json_u64(j, "pid", trace->processes.items[notice->process].pid);
		else
			json_null(j, "pid");
		json_end(j);
	}
	json_end(j);
}

static void add_sessions(struct json *j, const struct report *report)
{
	const struct trace *trace = report->trace;

	json_array(j, "sessions");
	vec_each(process, &trace->processes) {
		const char *line = trace_text(trace, process->runtime_sessions);
		if (!*line)
			continue;
		json_object(j, NULL);
		json_u64(j, "pid", process->pid);
		add_text(j, trace, "name", process->name);
		json_array(j, "opened");
		while (*line) {
			size_t len = strcspn(line, "\n");
			json_text(j, NULL, line, len);
			line += len + (line[len] == '\n');
		}
		json_end(j);
		json_end(j);
	}
	json_end(j);
}

static void add_clocks(struct json *j, const struct report *report)
{
	const struct trace *trace = report->trace;

	json_array(j, "clocks");
	for (uint32_t i = 1; i < trace->clock_offsets.count; i++) {
		const struct clock_offset *offset = &trace->clock_offsets.items[i];
		json_object(j, NULL);
		add_text(j, trace, "source", offset->source);
		if (offset->process && offset->process < trace->processes.count)
			json_u64(j, "pid", trace->processes.items[offset->process].pid);
		else
			json_null(j, "pid");
		json_i64(j, "offset_ns", offset->offset_ns);
		json_u64(j, "error_ns", offset->error_ns);
		json_end(j);
	}
	json_end(j);
}

static void add_limits(struct json *j, const struct report *report)
{
	const struct trace *trace = report->trace;

	json_array(j, "cpu_limits");
	for (uint32_t i = 1; i < trace->cpu_grants.count; i++) {
		const struct cpu_grant *grant = &trace->cpu_grants.items[i];
		json_object(j, NULL);
		add_text(j, trace, "cgroup", grant->path);
		add_text(j, trace, "container", grant->container);
		json_f64(j, "cpus",
			grant->period_ns ? (double)grant->quota_ns / (double)grant->period_ns : 0);
		json_u64(j, "periods", grant->periods);
		json_u64(j, "throttled_periods", grant->throttled_periods);
		json_u64(j, "throttled_ns", grant->throttled_ns);
		json_end(j);
	}
	json_end(j);
}

static void add_names(struct json *j, const struct report *report)
{
	json_object(j, "names");
	json_u64(j, "frames", report->frames);
	json_u64(j, "named_frames", report->named_frames);
	json_array(j, "unnamed");
	vec_each(unnamed, &report->unnamed) {
		json_object(j, NULL);
		json_z(j, "module", label_unnamed(report->trace, unnamed->module, unnamed->kind));
		json_z(j, "kind", label_kind(unnamed->kind));
		json_u64(j, "frames", unnamed->frames);
		json_end(j);
	}
	json_end(j);
	json_end(j);
}

/* Absent where call chains are those of the kernel. */
static void add_unwinding(struct json *j, const struct report *report)
{
	if (!report->unwound_stacks)
		return;
	json_object(j, "unwinding");
	json_u64(j, "stacks", report->unwound_stacks);
	json_object(j, "ends");
#define UNWIND_END(name, text, word) json_u64(j, text, report->unwound_ends[UNWIND_##name]);
#include "code/unwind_ends.def"
#undef UNWIND_END
	json_end(j);
	json_end(j);
}

/* The tier of most of a method's own time; if it has none, the last, which replaced the others. */
static enum function_tier main_tier(uint32_t tiers, const uint64_t *tier_ns)
{
	enum function_tier best = FUNCTION_TIER_COUNT;

	for (unsigned tier = 0; tier < FUNCTION_TIER_COUNT; tier++)
		if (tiers & 1u << tier &&
			(best == FUNCTION_TIER_COUNT || !tier_ns || tier_ns[tier] >= tier_ns[best]))
			best = (enum function_tier)tier;
	return best;
}

/* `tier_ns` may be NULL: then the tiers have no times. */
static void add_function(struct json *j, const struct report *report, uint32_t index,
	uint32_t tiers, const uint64_t *tier_ns)
{
	const struct function *function = &report->names->functions.items[index];
	enum function_tier tier = main_tier(tiers, tier_ns);
	uint8_t kind = function->kind;

	/*
	 * The function may have been compiled several times: the kind is that of the tier with the
	 * most time in this process.
	 */
	if (tier < FUNCTION_TIER_COUNT)
		kind = tier == FUNCTION_TIER_R2R ? FUNCTION_READYTORUN : FUNCTION_JIT;
	add_text(j, report->trace, "name", function->plain ? function->plain : function->name);
	if (function->plain) {
		add_text(j, report->trace, "file", function->file);
		json_u64(j, "line", function->line);
		json_bool(j, "inlined", function->inlined);
	}
	add_text(j, report->trace, "module", function->module);
	json_z(j, "kind", label_kind(kind));
	json_z(j, "tier", function_tier_words(tier));
	json_array(j, "tiers");
	for (unsigned i = 0; i < FUNCTION_TIER_COUNT; i++) {
		if (!(tiers & 1u << i))
			continue;
		json_object(j, NULL);
		json_z(j, "tier", function_tier_words((enum function_tier)i));
		if (tier_ns)
			json_u64(j, "self_ns", tier_ns[i]);
		json_end(j);
	}
	json_end(j);
	json_bool(j, "named", function->named);
}

static void add_process(struct json *j, const struct report *report,
	const struct report_process *process, uint32_t row_count)
{
	const struct process *p = &report->trace->processes.items[process->process];
	static const char *const runtimes[] = {
		[RUNTIME_NONE] = "",
		[RUNTIME_CORECLR] = "coreclr",
		[RUNTIME_NATIVEAOT] = "nativeaot",
		[RUNTIME_MONO] = "mono",
		[RUNTIME_LIBSPOOR] = "libspoor",
	};

	json_object(j, NULL);
	json_u64(j, "pid", p->pid);
	add_text(j, report->trace, "name", p->name);
	add_text(j, report->trace, "command", p->command);
	json_z(j, "runtime", runtimes[p->runtime_kind <= RUNTIME_LIBSPOOR ? p->runtime_kind : 0]);
	add_text(j, report->trace, "runtime_version", p->runtime_version);
	json_u64(j, "samples", process->samples);
	json_u64(j, "cpu_ns", process->cpu_ns);
	json_u64(j, "without_stack_ns", process->stackless_ns);
	json_u64(j, "function_count", process->row_count);
	json_array(j, "functions");
	for (uint32_t i = 0; i < process->row_count && (!row_count || i < row_count); i++) {
		const struct report_row *row = &report->rows.items[process->row_at + i];
		json_object(j, NULL);
		add_function(j, report, row->function, row->tiers, row->tier_ns);
		json_u64(j, "self_ns", row->self_ns);
		json_u64(j, "total_ns", row->total_ns);
		json_u64(j, "self_samples", row->self_count);
		json_u64(j, "total_samples", row->total_count);
		json_end(j);
	}
	json_end(j);
	json_end(j);
}

static void add_groups(struct json *j, const struct report *report, uint32_t row_count)
{
	json_array(j, "groups");
	for (uint32_t i = 0; i < report->groups.count && (!row_count || i < row_count); i++) {
		const struct report_group *group = &report->groups.items[i];
		const struct function *function = &report->names->functions.items[group->function];
		json_object(j, NULL);
		if (report->group_keys & GROUP_NAME)
			add_text(j, report->trace, "process", group->name);
		if (report->group_keys & GROUP_PID)
			json_u64(j, "pid", group->pid);
		if (report->group_keys & GROUP_MODULE)
			add_text(j, report->trace, "module", group->module);
		if (report->group_keys & GROUP_FUNCTION)
			add_text(j, report->trace, "name", function->name);
		json_u64(j, "self_ns", group->self_ns);
		json_u64(j, "total_ns", group->total_ns);
		json_u64(j, "self_samples", group->self_count);
		json_u64(j, "total_samples", group->total_count);
		json_end(j);
	}
	json_end(j);
}

/* A flat list, since nesting would be as deep as stacks are: each node names its parent. */
static void add_tree(struct json *j, const struct report *report, const struct call_tree *tree)
{
	double least = NODE_SHARE_MIN * (double)tree->nodes.items[CALL_TREE_ROOT].total_ns;

	json_array(j, "tree");
	for (uint32_t i = CALL_TREE_ROOT + 1; i < tree->nodes.count; i++) {
		const struct call_node *node = &tree->nodes.items[i];
		if ((double)node->total_ns < least)
			continue;
		json_object(j, NULL);
		json_u64(j, "id", i);
		json_u64(j, "parent", node->parent);
		if (tree->by_process && node->depth == 1) {
			const struct process *p = &report->trace->processes.items[node->what];
			add_text(j, report->trace, "name", p->name);
			json_u64(j, "pid", p->pid);
			json_z(j, "kind", "process");
		} else {
			add_function(j, report, node->what, node->tiers, NULL);
		}
		json_u64(j, "self_ns", node->self_ns);
		json_u64(j, "total_ns", node->total_ns);
		json_u64(j, "self_samples", node->self_count);
		json_u64(j, "total_samples", node->total_count);
		json_end(j);
	}
	json_end(j);
}

void report_json(const struct report *report, const struct call_tree *tree, uint32_t row_count,
	struct bytes *out)
{
	static const char *const weighings[] = {
		[REPORT_CPU] = "cpu",
		[REPORT_CPU_CLOCKS] = "cpu_clocks",
		[REPORT_THREAD_TIME] = "thread_time",
		[REPORT_WAITING] = "waiting",
		[REPORT_WALL] = "wall",
		[REPORT_ALLOCATIONS] = "allocations",
		[REPORT_EVENTS] = "events",
	};
	struct json json = { .out = out };
	struct json *j = &json;

	json_object(j, NULL);
	json_u64(j, "samples", report->all_samples);
	json_u64(j, "lost", report->lost_samples);
	json_bool(j, "lost_exact", !report->loss_unknown);
	json_u64(j, "duration_ns", report->duration_ns);
	json_u64(j, "cpu_ns", report->all_cpu_ns);
	json_f64(j, "cpu_busy", report->busy >= 0 ? report->busy : (double)NAN);
	json_u64(j, "selected_samples", report->samples);
	json_u64(j, "selected_cpu_ns", report->cpu_ns);
	json_z(j, "weighing", weighings[report->weighing]);
	add_machine(j, report);
	add_losses(j, report);
	add_notices(j, report);
	add_clocks(j, report);
	add_sessions(j, report);
	add_limits(j, report);
	add_names(j, report);
	add_unwinding(j, report);
	json_u64(j, "events_counted", report->events_counted);
	json_array(j, "events");
	for (uint32_t i = 0; i < report->events.count; i++) {
		const struct event event = { .schema_index = report->events.items[i].schema };
		struct bytes name = { 0 };
		event_text_name(&name, report->trace, &event);
		json_object(j, NULL);
		json_text(j, "name", (const char *)name.data, name.len);
		json_u64(j, "count", report->events.items[i].count);
		json_end(j);
		bytes_done(&name);
	}
	json_end(j);
	json_array(j, "processes");
	for (uint32_t i = 0; i < report->processes.count; i++)
		add_process(j, report, &report->processes.items[i], row_count);
	json_end(j);
	if (report->group_keys)
		add_groups(j, report, row_count);
	if (tree)
		add_tree(j, report, tree);
	json_end(j);
	bytes_u8(out, '\n');
}
