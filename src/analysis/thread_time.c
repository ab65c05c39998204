/* See thread_time.h. */
#include "analysis/thread_time.h"

#include <errno.h>
#include <stdlib.h>

#include "analysis/blocks.h"
#include "analysis/profile.h"
#include "analysis/runtime_event.h"
#include "trace/event.h"
#include "trace/schema.h"
#include "trace/spoor_payload.h"
#include "trace/switch_state.h"
#include "trace/symbolmap.h"
#include "trace/trace.h"

static struct thread_time_row *row_of(struct thread_time *times, const struct runtime_event *event)
{
	uint32_t thread = event->event->thread_index;

	while (times->rows.count <= thread)
		if (!vec_push(&times->rows))
			return NULL;
	struct thread_time_row *row = &times->rows.items[thread];

	row->thread = thread;
	row->process = event->process;
	return row;
}

/* The part of [begin, end), times of the clock, that is in the selected time. */
static uint64_t selected_part(const struct runtime_event *event, uint64_t begin_ns, uint64_t end_ns)
{
	uint64_t zero_ns = event->event->time_ns - event->at_ns;
	uint64_t from_ns = zero_ns + event->from_ns;
	uint64_t to_ns = event->to_ns ? zero_ns + event->to_ns : UINT64_MAX;

	if (begin_ns < from_ns)
		begin_ns = from_ns;
	if (end_ns > to_ns)
		end_ns = to_ns;
	return end_ns > begin_ns ? end_ns - begin_ns : 0;
}

static void take_block(struct thread_time *times, struct thread_time_row *row,
	const struct runtime_event *event)
{
	const struct event *raw = event->event;
	uint64_t end_ns = raw->time_ns;
	struct payload_cswitch block;

	if (payload_read_cswitch(raw->payload, raw->payload_size, &block) < 0 ||
		block.value > end_ns || block.ready_ns > block.value)
		return;
	uint64_t ready_ns = end_ns - block.ready_ns;

	if (!row->is_open)
		row->begin_ns = block.flags & SWITCH_NEW_THREAD ? end_ns - block.value : 0;
	row->is_open = true;
	row->blocked_ns += selected_part(event, end_ns - block.value, ready_ns);
	row->runnable_ns += selected_part(event, ready_ns, end_ns);
	times->runnable_unknown |= (block.flags & SWITCH_READY_UNKNOWN) != 0;
}

static void take_short_blocks(struct thread_time *times, struct thread_time_row *row,
	const struct runtime_event *event)
{
	struct payload_short_blocks sum;

	if (payload_read_short_blocks(event->event->payload, event->event->payload_size, NULL,
		    &sum) < 0 ||
		sum.ready_ns > sum.value)
		return;
	row->is_open = true;
	times->runnable_unknown |= (sum.flags & SWITCH_READY_UNKNOWN) != 0;
	if (!event->is_selected)
		return;
	row->blocked_ns += sum.value - sum.ready_ns;
	row->runnable_ns += sum.ready_ns;
}

/* The end of a life, or of the recording. */
static void take_summary(struct thread_time_row *row, const struct runtime_event *event)
{
	struct payload_thread_time time;

	if (payload_read_thread_time(event->event->payload, event->event->payload_size, NULL,
		    &time) < 0)
		return;
	row->is_open = false;
	row->begin_ns = time.begin_ns;
	row->end_ns = event->event->time_ns;
	row->wall_ns += selected_part(event, row->begin_ns, row->end_ns);
	row->on_cpu_ns += time.run_ns;
	row->switches += time.switches;
	row->ended = time.ended;
}

int thread_time_event(struct thread_time *times, const struct runtime_event *event)
{
	if (!event->is_of_thread || event->event->kind == EVENT_WAKEUP)
		return 0;
	struct thread_time_row *row = row_of(times, event);

	if (!row)
		return -ENOMEM;
	if (event->event->kind != EVENT_SWITCH)
		take_summary(row, event);
	else if (event->schema->provider_kind == PROVIDER_SPOOR)
		take_short_blocks(times, row, event);
	else
		take_block(times, row, event);
	return 0;
}

/* ---- the end ---- */

static uint64_t difference(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/*
 * A thread without a summary lived to the end of the recording, which was cut. For a part of the
 * recording the summaries do not say how much of it was on a CPU: it is what remains.
 */
static void close_row(struct thread_time_row *row, const struct thread_time_selection *selection)
{
	const struct profile_filter *filter = &selection->profile->filter;
	bool is_open = row->is_open;

	if (is_open) {
		uint64_t from_ns = selection->begin_ns + selection->from_ns;
		uint64_t to_ns = selection->begin_ns + selection->to_ns;
		row->begin_ns = row->begin_ns > from_ns ? row->begin_ns : from_ns;
		row->end_ns = to_ns;
		row->wall_ns += difference(to_ns, row->begin_ns);
	}
	if (is_open || filter->from_ns || filter->to_ns)
		row->on_cpu_ns = difference(row->wall_ns, row->runnable_ns + row->blocked_ns);
}

static int compare_numbers(uint64_t a, uint64_t b)
{
	return a > b ? -1 : a < b;
}

static int compare_rows(const void *a, const void *b)
{
	const struct thread_time_row *x = a;
	const struct thread_time_row *y = b;
	int order = x->process < y->process ? -1 : x->process > y->process;

	if (!order)
		order = compare_numbers(x->on_cpu_ns + x->runnable_ns,
			y->on_cpu_ns + y->runnable_ns);
	if (!order)
		order = compare_numbers(x->blocked_ns, y->blocked_ns);
	return order ? order : x->thread < y->thread ? -1 : x->thread > y->thread;
}

static int compare_processes(const void *a, const void *b)
{
	const struct thread_time_process *x = a;
	const struct thread_time_process *y = b;
	int order = compare_numbers(x->on_cpu_ns + x->runnable_ns, y->on_cpu_ns + y->runnable_ns);

	return order ? order : x->process < y->process ? -1 : x->process > y->process;
}

static int compare_functions(const void *a, const void *b)
{
	const struct thread_time_function *x = a;
	const struct thread_time_function *y = b;
	int order = x->process < y->process ? -1 : x->process > y->process;

	if (!order)
		order = compare_numbers(x->on_cpu_ns + x->runnable_ns + x->blocked_ns,
			y->on_cpu_ns + y->runnable_ns + y->blocked_ns);
	return order ? order : x->function < y->function ? -1 : x->function > y->function;
}

static struct thread_time_function *function_of(struct thread_time *times, struct map *index,
	uint32_t process, uint32_t function)
{
	uint64_t key = (uint64_t)process << 32 | function;
	uint32_t known = map_get(index, key);

	if (!known) {
		if (!vec_add(&times->functions, ((struct thread_time_function){ .process = process,
							.function = function })) ||
			!map_put(index, key, times->functions.count))
			return NULL;
		known = times->functions.count;
	}
	return &times->functions.items[known - 1];
}

static int add_samples(struct thread_time *times, struct map *index,
	const struct thread_time_selection *selection)
{
	const struct profile *profile = selection->profile;

	for (uint32_t i = 0; i < profile->stacks.count; i++) {
		const struct profile_stack *stack = &profile->stacks.items[i];
		const uint32_t *functions = profile->functions.items + stack->at;
		uint32_t own = wait_place_own(selection->names, functions, stack->frame_count);
		if (!own && stack->frame_count)
			own = functions[0];
		struct thread_time_function *sum = function_of(times, index, stack->process, own);
		if (!sum)
			return -ENOMEM;
		sum->on_cpu_ns += stack->weight_ns;
	}
	return 0;
}

static int add_blocks(struct thread_time *times, struct map *index, const struct tally *tally,
	bool runnable)
{
	for (uint32_t i = 0; i < tally->rows.list.count; i++) {
		const struct tally_row *row = &tally->rows.list.items[i];
		struct thread_time_function *sum = function_of(times, index, row->key.process,
			row->key.place ? row->key.place : row->key.text);
		if (!sum)
			return -ENOMEM;
		if (runnable)
			sum->runnable_ns += row->amount;
		else
			sum->blocked_ns += row->amount;
	}
	return 0;
}

static int sum_functions(struct thread_time *times, const struct thread_time_selection *selection)
{
	struct map index = { 0 };
	int error = add_samples(times, &index, selection);

	if (!error)
		error = add_blocks(times, &index, &selection->blocks->blocked, false);
	if (!error)
		error = add_blocks(times, &index, &selection->blocks->runnable, true);
	map_done(&index);
	if (times->functions.count > 1)
		qsort(times->functions.items, times->functions.count,
			sizeof(times->functions.items[0]), compare_functions);
	return error;
}

/* Rows are sorted by process. */
static int sum_processes(struct thread_time *times)
{
	uint32_t function = 0;

	for (uint32_t i = 0; i < times->rows.count; i++) {
		const struct thread_time_row *row = &times->rows.items[i];
		struct thread_time_process *process =
			times->processes.count ? vec_last(&times->processes) : NULL;
		if (!process || process->process != row->process) {
			process = vec_push(&times->processes);
			if (!process)
				return -ENOMEM;
			*process = (struct thread_time_process){ .process = row->process,
				.row_at = i };
			while (function < times->functions.count &&
				times->functions.items[function].process < row->process)
				function++;
			process->function_at = function;
			while (function < times->functions.count &&
				times->functions.items[function].process == row->process)
				function++;
			process->function_count = function - process->function_at;
		}
		process->row_count++;
		process->wall_ns += row->wall_ns;
		process->on_cpu_ns += row->on_cpu_ns;
		process->runnable_ns += row->runnable_ns;
		process->blocked_ns += row->blocked_ns;
	}
	if (times->processes.count > 1)
		qsort(times->processes.items, times->processes.count,
			sizeof(times->processes.items[0]), compare_processes);
	return 0;
}

int thread_time_finish(struct thread_time *times, const struct thread_time_selection *selection)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < times->rows.count; i++) {
		struct thread_time_row row = times->rows.items[i];
		if (!row.thread || !profile_wants_process(selection->profile, row.process))
			continue;
		close_row(&row, selection);
		if (row.wall_ns)
			times->rows.items[kept++] = row;
	}
	times->rows.count = kept;
	if (kept > 1)
		qsort(times->rows.items, kept, sizeof(times->rows.items[0]), compare_rows);
	int error = sum_functions(times, selection);

	return error ? error : sum_processes(times);
}

void thread_time_done(struct thread_time *times)
{
	vec_done(&times->rows);
	vec_done(&times->processes);
	vec_done(&times->functions);
}
