/* See recording.h. */
#include "analysis/recording.h"

#include <errno.h>
#include <stdlib.h>

#include "analysis/profile.h"
#include "base/map.h"
#include "trace/loss_words.h"
#include "trace/report.h"
#include "trace/symbolmap.h"
#include "trace/trace.h"

static struct report_loss *loss_row(struct report *report, const struct loss *loss)
{
	vec_each(row, &report->losses)
		if (row->source == loss->source && row->unit == loss->unit)
			return row;
	struct report_loss *row = vec_push(&report->losses);
	if (row)
		*row = (struct report_loss){ .source = loss->source,
			.unit = loss->unit,
			.cpu = loss->cpu,
			.first_ns = loss->first_ns,
			.last_ns = loss->last_ns };
	return row;
}

static int sum_losses(struct report *report, const struct trace *trace)
{
	vec_each(loss, &trace->losses) {
		if (!loss->source)
			continue; /* item 0 of the table */
		struct report_loss *row = loss_row(report, loss);
		if (!row)
			return -ENOMEM;
		row->count += loss->count;
		row->more_unknown |= !loss->count;
		if (row->cpu != loss->cpu) {
			row->several_cpus = true;
			row->cpu = -1;
		}
		if (loss->first_ns && (!row->first_ns || loss->first_ns < row->first_ns))
			row->first_ns = loss->first_ns;
		if (loss->last_ns > row->last_ns)
			row->last_ns = loss->last_ns;
		row->moved = loss_source_of(trace_text(trace, loss->source)) == LOSS_LATE;
		if (row->moved)
			continue;
		if (loss_unit_of(trace_text(trace, loss->unit)) == LOSS_SAMPLES)
			report->lost_samples += loss->count;
		report->loss_unknown |= !loss->count;
	}
	return 0;
}

static int compare_unnamed(const void *left, const void *right)
{
	const struct report_unnamed *a = left;
	const struct report_unnamed *b = right;

	if (a->frames != b->frames)
		return a->frames > b->frames ? -1 : 1;
	return a->module < b->module ? -1 : a->module > b->module;
}

static int count_unnamed(struct report *report, const struct symbolmap *names,
	const struct profile *profile)
{
	uint64_t *by_function = calloc((size_t)names->functions.count + 1, sizeof(*by_function));
	struct map index = { 0 };
	int error = 0;

	if (!by_function)
		return -ENOMEM;
	vec_each(stack, &profile->stacks) {
		for (uint32_t f = 0; f < stack->frame_count; f++)
			by_function[profile->functions.items[stack->at + f]] += stack->count;
	}
	for (uint32_t i = 1; i < names->functions.count && !error; i++) {
		const struct function *function = &names->functions.items[i];
		if (function->named || !by_function[i])
			continue;
		uint64_t key = (uint64_t)function->kind << 32 | function->module;
		uint32_t row = map_get(&index, key);
		if (!row) {
			struct report_unnamed *fresh = vec_push(&report->unnamed);
			row = report->unnamed.count;
			if (!fresh || !map_add(&index, key, row)) {
				error = -ENOMEM;
				break;
			}
			fresh->module = function->module;
			fresh->kind = function->kind;
		}
		report->unnamed.items[row - 1].frames += by_function[i];
	}
	if (report->unnamed.count)
		qsort(report->unnamed.items, report->unnamed.count,
			sizeof(report->unnamed.items[0]), compare_unnamed);
	map_done(&index);
	free(by_function);
	return error;
}

static int compare_events(const void *left, const void *right)
{
	const struct report_event *a = left;
	const struct report_event *b = right;

	if (a->count != b->count)
		return a->count > b->count ? -1 : 1;
	return a->schema < b->schema ? -1 : a->schema > b->schema;
}

/*
 * The row of this kind of event, which a file may describe several times: each process does, in
 * each of its versions. NULL: no memory.
 */
static struct report_event *event_row(struct report *report, const struct trace *trace,
	uint32_t schema_index, struct map *rows)
{
	const struct schema *schema = &trace->schemas.items[schema_index];
	uint64_t key = hash_u64((uint64_t)schema->provider << 32 | schema->name) + schema->event_id;

	for (struct map_walk w = map_find(rows, key); w.value; map_next(&w)) {
		struct report_event *event = &report->events.items[w.value - 1];
		const struct schema *other = &trace->schemas.items[event->schema];
		if (other->provider == schema->provider && other->event_id == schema->event_id &&
			other->name == schema->name)
			return event;
	}
	if (!vec_add(&report->events, (struct report_event){ .schema = schema_index }) ||
		!map_add(rows, key, report->events.count))
		return NULL;
	return &report->events.items[report->events.count - 1];
}

static int count_events(struct report *report, const struct trace *trace,
	const struct profile *profile)
{
	struct map rows = { 0 };
	int result = 0;

	for (uint32_t i = 0;
		result == 0 && i < profile->by_schema.count && i < trace->schemas.count; i++) {
		enum provider_kind kind = (enum provider_kind)trace->schemas.items[i].provider_kind;
		uint64_t count = profile->by_schema.items[i];
		if (!count || kind == PROVIDER_UNIVERSAL_SYSTEM || kind == PROVIDER_SPOOR ||
			kind == PROVIDER_EVENTPIPE)
			continue;
		struct report_event *event = event_row(report, trace, i, &rows);
		if (event)
			event->count += count;
		else
			result = -ENOMEM;
	}
	map_done(&rows);
	if (result < 0)
		return result;
	if (report->events.count)
		qsort(report->events.items, report->events.count, sizeof(report->events.items[0]),
			compare_events);
	return 0;
}

bool recording_sampled(const struct trace *trace, uint64_t *ret_from_ns, uint64_t *ret_to_ns)
{
	*ret_from_ns = trace->recording.counts[SESSION_COUNT_SAMPLED_FROM_NS];
	*ret_to_ns = trace->recording.counts[SESSION_COUNT_SAMPLED_TO_NS];
	return *ret_from_ns && *ret_to_ns > *ret_from_ns;
}

/*
 * The time that was sampled. A file continues after it: a runtime announces its methods at the end,
 * for seconds where there are many. Files that do not say when sampling ended are taken to end with
 * their last sample, those of a killed recorder with their last event.
 */
static uint64_t sampled_ns(const struct trace *trace, const struct profile *profile,
	uint64_t begin_ns)
{
	uint64_t end_ns = trace->recording.end_ns;
	uint64_t from_ns;
	uint64_t to_ns;

	if (recording_sampled(trace, &from_ns, &to_ns))
		return to_ns - from_ns;
	if (profile->all_count && (trace->recording.end_reason || !trace->recording.tool_version ||
					  end_ns < profile->last_ns))
		end_ns = profile->last_ns;
	return end_ns > begin_ns ? end_ns - begin_ns : 0;
}

/* The part of the machine that was recorded, from the options of the session. */
static enum report_scope scope_of(const struct trace *trace)
{
	switch (trace->recording.session.scope) {
	case SESSION_THREADS:
		return REPORT_THREADS;
	case SESSION_PROCESSES:
		return REPORT_PROCESSES;
	case SESSION_COMMAND:
		return REPORT_COMMAND;
	default:
		return REPORT_MACHINE;
	}
}

static void sum_kinds(struct report *report, const struct symbolmap *names,
	const struct profile *profile)
{
	vec_each(stack, &profile->stacks) {
		if (!stack->frame_count)
			continue;
		const struct function *leaf =
			&names->functions.items[profile->bodies.items[stack->at]];
		report->kind_ns[leaf->named ? leaf->kind : FUNCTION_UNKNOWN] += stack->weight_ns;
	}
}

static void read_unwinding(struct report *report, const struct trace *trace)
{
	const uint64_t *counts = trace->recording.counts;

	report->unwound_stacks = counts[SESSION_COUNT_UNWOUND];
#define UNWIND_END(name, text, word) \
	report->unwound_ends[UNWIND_##name] = counts[SESSION_COUNT_UNWOUND_##name];
#include "code/unwind_ends.def"
#undef UNWIND_END
}

int recording_describe(struct report *report, const struct trace *trace,
	const struct symbolmap *names, const struct profile *profile)
{
	const struct recording *recording = &trace->recording;

	report->trace = trace;
	report->names = names;
	bool clocks_only = recording->session.sampling == SESSION_THREAD_CLOCKS;

	report->no_stacks = clocks_only && (recording->session.dotnet == SESSION_NO ||
						   recording->session.names == SESSION_NO);
	report->weighing = clocks_only || profile->samples == PROFILE_BY_CLOCKS ? REPORT_CPU_CLOCKS
			   : profile->samples == PROFILE_THREAD_TIME            ? REPORT_THREAD_TIME
										: REPORT_CPU;
	report->begin_ns = recording->sync_ns ? recording->sync_ns : profile->first_ns;
	report->duration_ns = sampled_ns(trace, profile, report->begin_ns);
	report->scope = scope_of(trace);
	report->cpu_count =
		recording->cpu_recorded ? recording->cpu_recorded : recording->cpu_online;
	report->rate_hz = recording->period_ns ? 1e9 / (double)recording->period_ns : 0;
	report->all_samples = profile->all_count;
	report->all_cpu_ns = profile->all_weight_ns;
	/*
	 * Without a sample nothing is known of the CPUs: a trace does not sample, and a recorder's
	 * own work would show on an idle machine.
	 */
	report->busy = profile->all_count && !profile->ignores_samples && report->cpu_count &&
				       report->duration_ns && report->weighing != REPORT_THREAD_TIME
			       ? (double)report->all_cpu_ns / (double)report->cpu_count /
					 (double)report->duration_ns
			       : -1;
	if (report->busy > 1)
		report->busy = 1; /* the last sample may represent time beyond the end */
	report->samples = profile->count;
	report->cpu_ns = profile->weight_ns;
	sum_kinds(report, names, profile);
	read_unwinding(report, trace);
	report->frames = profile->frame_count;
	report->has_blocks = recording->counts[SESSION_COUNT_BLOCKS] > 0;
	report->named_frames = profile->named_frame_count;
	/* Other writers say nothing about an end. */
	report->events_counted = profile->counted;
	report->killed = recording->tool_version && !recording->end_reason;

	int error = sum_losses(report, trace);
	if (!error)
		error = count_events(report, trace, profile);
	return error ? error : count_unnamed(report, names, profile);
}
