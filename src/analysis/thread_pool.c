/* See thread_pool.h. */
#include "analysis/thread_pool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/event_stacks.h"
#include "analysis/profile.h"
#include "analysis/runtime_event.h"
#include "trace/clr.h"
#include "trace/event.h"
#include "trace/schema.h"
#include "trace/symbolmap.h"
#include "trace/trace.h"

/* A thread that was not sampled for longer was not there. */
#define SAMPLE_NS_MAX UINT64_C(1000000000)

enum pool_what { POOL_THREADS, POOL_CHANGE, POOL_LIMITS };

/* ---- events ---- */

static int count_item(struct thread_pool *pool, const struct runtime_event *event)
{
	while (pool->items.count <= event->process)
		if (!vec_push(&pool->items))
			return -ENOMEM;
	struct pool_process *items = &pool->items.items[event->process];

	if (event->schema->event_id == CLR_ID_ThreadPoolEnqueue) {
		items->enqueued++;
		return 0;
	}
	items->dequeued++;
	timeline_add(&items->items,
		event->at_ns > event->from_ns ? event->at_ns - event->from_ns : 0, 1);
	return 0;
}

static int close_sample(struct thread_pool *pool, struct pool_sample *sample, uint64_t at_ns)
{
	uint64_t lasts_ns = at_ns > sample->at_ns ? at_ns - sample->at_ns : 0;
	const struct tally_amount amount = { .amount = lasts_ns < SAMPLE_NS_MAX ? lasts_ns
										: SAMPLE_NS_MAX,
		.at_ns = sample->at_ns,
		.from_ns = sample->from_ns,
		.lasts = true };

	if (!sample->is_open)
		return 0;
	sample->is_open = false;
	return tally_add(&pool->work, &sample->key, &amount);
}

/* Thread/Sample: u32, CLR_SAMPLE_MANAGED if the thread was in managed code. */
static int take_sample(struct thread_pool *pool, const struct runtime_event *event)
{
	struct cursor c = event->payload;
	uint32_t thread = event->event->thread_index;
	struct pool_sample sample = { .key = { .process = event->process },
		.at_ns = event->at_ns,
		.from_ns = event->from_ns,
		.is_open = event->is_selected && event->event->stack_index };

	sample.key.kind = cursor_u32(&c) == CLR_SAMPLE_MANAGED ? POOL_RUNS : POOL_NATIVE;
	if (c.short_read)
		return 0;
	while (pool->by_thread.count <= thread)
		if (!vec_push(&pool->by_thread))
			return -ENOMEM;
	int error = close_sample(pool, &pool->by_thread.items[thread], event->at_ns);
	if (!error)
		error = event_stacks_add(event->stacks, event->process, event->event,
			&sample.key.stack);
	pool->by_thread.items[thread] = sample;
	return error;
}

/*
 * ThreadPoolWorkerThreadStart, Stop, Wait: u32 threads. Adjustment: f64 throughput, u32 threads,
 * u32 reason. ThreadPoolMinMaxThreads: u16 least and most workers.
 */
int thread_pool_event(struct thread_pool *pool, const struct runtime_event *event)
{
	struct cursor c = event->payload;
	struct pool_event raw = { .at_ns = event->at_ns,
		.from_ns = event->from_ns,
		.order = pool->raw.count,
		.process = event->process };
	uint32_t reason = 0;

	if (event->schema->provider_kind == PROVIDER_SAMPLE)
		return take_sample(pool, event);
	if (!event->is_selected)
		return 0;
	switch (event->schema->event_id) {
	case CLR_ID_ThreadPoolEnqueue:
	case CLR_ID_ThreadPoolDequeue:
		return count_item(pool, event);
	case CLR_ID_ThreadPoolWorkerThreadAdjustmentAdjustment:
		raw.what = POOL_CHANGE;
		cursor_skip(&c, 8);
		raw.threads = cursor_u32(&c);
		reason = cursor_u32(&c);
		break;
	case CLR_ID_ThreadPoolMinMaxThreads:
		raw.what = POOL_LIMITS;
		raw.threads = cursor_u16(&c);
		raw.max_threads = cursor_u16(&c);
		break;
	default:
		raw.what = POOL_THREADS;
		raw.threads = cursor_u32(&c);
	}
	raw.reason = (uint8_t)(reason < POOL_OTHER ? reason : POOL_OTHER);
	return c.short_read || vec_add(&pool->raw, raw) ? 0 : -ENOMEM;
}

int thread_pool_settle(struct thread_pool *pool)
{
	int error = 0;

	/* Of the last sample of a thread nothing says how long it was true. */
	for (uint32_t i = 0; i < pool->by_thread.count && !error; i++)
		error = close_sample(pool, &pool->by_thread.items[i],
			pool->by_thread.items[i].at_ns);
	vec_done(&pool->by_thread);
	return error;
}

/* ---- what workers did ---- */

struct activity_mark {
	const char *start; /* of a function's full name */
	enum pool_activity activity;
};

/* Whether one of the functions on the stack above `until` begins with this text. */
static bool has_function(const struct tally_selection *selection, const struct event_stack *stack,
	uint32_t until, const char *start)
{
	const struct symbolmap *names = selection->names;

	for (uint32_t i = 0; i < until; i++) {
		uint32_t function = selection->stacks->functions.items[stack->at + i];
		const char *name = trace_text(selection->stacks->trace,
			names->functions.items[function].full_name);
		if (strncmp(name, start, strlen(start)) == 0)
			return true;
	}
	return false;
}

/* The frame that takes work items from the queue; frame_count: the stack is none of a worker. */
static uint32_t dispatch_frame(const struct tally_selection *selection,
	const struct event_stack *stack)
{
	uint32_t i = 0;

	while (i < stack->frame_count &&
		!strstr(trace_text(selection->stacks->trace,
				selection->names->functions
					.items[selection->stacks->functions.items[stack->at + i]]
					.full_name),
			"ThreadPoolWorkQueue.Dispatch("))
		i++;
	return i;
}

/* Of a thread in native code: the outermost reason counts, as tasks wait by events and these by locks. */
static enum pool_activity activity_of(const struct tally_selection *selection,
	const struct event_stack *stack, uint32_t dispatch)
{
	static const struct activity_mark marks[] = {
		{ "System.Threading.Tasks.Task.InternalWait", POOL_SYNC_OVER_ASYNC },
		{ "System.Threading.Tasks.Task.Wait", POOL_SYNC_OVER_ASYNC },
		{ "System.Runtime.CompilerServices.TaskAwaiter", POOL_SYNC_OVER_ASYNC },
		{ "System.Net.", POOL_IO },
		{ "System.IO.", POOL_IO },
		{ "Microsoft.Win32.SafeHandles.SafeFileHandle", POOL_IO },
		{ "System.Threading.Monitor.Wait", POOL_WAITS },
		{ "System.Threading.WaitHandle.", POOL_WAITS },
		{ "System.Threading.ManualResetEventSlim.", POOL_WAITS },
		{ "System.Threading.SemaphoreSlim.", POOL_WAITS },
		{ "System.Threading.Monitor.", POOL_LOCK },
		{ "System.Threading.Lock.", POOL_LOCK },
		{ "System.Threading.Thread.Sleep", POOL_SLEEPS },
	};

	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
		if (has_function(selection, stack, dispatch, marks[i].start))
			return marks[i].activity;
	return POOL_NATIVE;
}

/* Keeps the rows of stacks with a work item, and sets what they did. */
static void sort_out_work(struct thread_pool *pool, const struct tally_selection *selection)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < pool->work.rows.list.count; i++) {
		struct tally_row row = pool->work.rows.list.items[i];
		const struct event_stack *stack = &selection->stacks->items.items[row.key.stack];
		uint32_t dispatch = row.key.stack ? dispatch_frame(selection, stack) : 0;
		if (!dispatch || dispatch == stack->frame_count)
			continue;
		if (row.key.kind == POOL_NATIVE)
			row.key.kind = activity_of(selection, stack, dispatch);
		pool->work.rows.list.items[kept++] = row;
	}
	pool->work.rows.list.count = kept;
}

/* ---- threads over time ---- */

static int compare_events(const void *a, const void *b)
{
	const struct pool_event *x = a;
	const struct pool_event *y = b;

	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	if (x->at_ns != y->at_ns)
		return x->at_ns < y->at_ns ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static void note_threads(struct pool_process *process, const struct pool_event *event)
{
	if (!process->least_threads || event->threads < process->least_threads)
		process->least_threads = event->threads;
	if (event->threads > process->most_threads)
		process->most_threads = event->threads;
	process->last_threads = event->threads;
}

static int add_change(struct thread_pool *pool, struct pool_process *process,
	const struct pool_event *event, uint32_t threads_before)
{
	const struct pool_change change = {
		.at_ns = event->at_ns, .threads = event->threads, .reason = event->reason
	};

	process->by_reason[event->reason]++;
	if (event->reason == POOL_COOPERATIVE_BLOCKING && event->threads > threads_before)
		process->blocking_added += threads_before ? event->threads - threads_before : 1;
	process->change_count++;
	if (!vec_add(&pool->changes, change))
		return -ENOMEM;
	if (event->reason != POOL_STARVATION)
		return 0;
	struct pool_starvation *last =
		process->starvation_count ? vec_last(&pool->starvations) : NULL;
	if (!last || event->at_ns - last->end_ns > POOL_GAP_NS) {
		last = vec_push(&pool->starvations);
		if (!last)
			return -ENOMEM;
		last->begin_ns = event->at_ns > event->from_ns + POOL_DELAY_NS
					 ? event->at_ns - POOL_DELAY_NS
					 : event->from_ns;
		last->threads_before = threads_before;
		process->starvation_count++;
	}
	last->end_ns = event->at_ns;
	last->threads_after = event->threads;
	last->added++;
	return 0;
}

/* The most threads in each interval; an interval without an event has those of the one before. */
static void draw_threads(struct pool_process *process, const struct pool_event *events,
	uint32_t count, uint64_t to_ns)
{
	struct timeline *line = &process->threads;
	uint64_t from_ns = events[0].from_ns;
	uint64_t threads = 0;
	uint32_t at = 0;

	timeline_add(line, to_ns > from_ns ? to_ns - from_ns : 0, 0);
	for (uint32_t i = 0; i < TIMELINE_PLACES; i++) {
		uint64_t until_ns = from_ns + (i + 1) * timeline_width_ns(line);
		uint64_t most = threads;
		for (; at < count && events[at].at_ns < until_ns; at++) {
			if (events[at].what == POOL_LIMITS)
				continue;
			threads = events[at].threads;
			most = threads > most ? threads : most;
		}
		line->amounts[i] = most;
	}
}

static int sum_process(struct thread_pool *pool, const struct pool_event *events, uint32_t count,
	uint64_t to_ns)
{
	struct pool_process process = { .process = events[0].process,
		.change_at = pool->changes.count,
		.starvation_at = pool->starvations.count };
	uint32_t threads = 0;
	int error = 0;

	if (process.process < pool->items.count) {
		const struct pool_process *items = &pool->items.items[process.process];
		process.enqueued = items->enqueued;
		process.dequeued = items->dequeued;
		process.items = items->items;
	}
	for (uint32_t i = 0; i < count && !error; i++) {
		if (events[i].what == POOL_LIMITS) {
			process.min_threads = events[i].threads;
			process.max_threads = events[i].max_threads;
			continue;
		}
		if (events[i].what == POOL_CHANGE)
			error = add_change(pool, &process, &events[i], threads);
		note_threads(&process, &events[i]);
		threads = events[i].threads;
	}
	for (uint32_t i = 0; i < process.starvation_count && !error; i++) {
		const struct pool_starvation *starvation =
			&pool->starvations.items[process.starvation_at + i];
		process.starved_ns += starvation->end_ns - starvation->begin_ns;
	}
	draw_threads(&process, events, count, to_ns);
	return error || vec_add(&pool->processes, process) ? error : -ENOMEM;
}

static int compare_processes(const void *a, const void *b)
{
	const struct pool_process *x = a;
	const struct pool_process *y = b;

	if (x->starved_ns != y->starved_ns)
		return x->starved_ns > y->starved_ns ? -1 : 1;
	if (x->most_threads != y->most_threads)
		return x->most_threads > y->most_threads ? -1 : 1;
	return x->process < y->process ? -1 : x->process > y->process;
}

int thread_pool_finish(struct thread_pool *pool, const struct tally_selection *selection,
	uint64_t to_ns)
{
	const struct pool_event *raw = pool->raw.items;
	uint32_t count = pool->raw.count;
	int error;

	sort_out_work(pool, selection);
	error = tally_finish(&pool->work, selection);
	if (count)
		qsort(pool->raw.items, count, sizeof(*raw), compare_events);
	for (uint32_t at = 0, until; at < count && !error; at = until) {
		for (until = at; until < count && raw[until].process == raw[at].process;)
			until++;
		if (profile_wants_process(selection->profile, raw[at].process))
			error = sum_process(pool, raw + at, until - at, to_ns);
	}
	vec_done(&pool->raw);
	vec_done(&pool->items);
	if (pool->processes.count > 1)
		qsort(pool->processes.items, pool->processes.count,
			sizeof(pool->processes.items[0]), compare_processes);
	return error;
}

const struct tally_process *thread_pool_work(const struct thread_pool *pool, uint32_t process)
{
	for (uint32_t i = 0; i < pool->work.processes.count; i++)
		if (pool->work.processes.items[i].process == process)
			return &pool->work.processes.items[i];
	return NULL;
}

uint64_t thread_pool_blocked_ns(const struct thread_pool *pool, const struct tally_process *work)
{
	uint64_t sum_ns = 0;

	for (uint32_t i = 0; i < work->row_count; i++) {
		const struct tally_row *row = &pool->work.rows.list.items[work->row_at + i];
		if (row->key.kind != POOL_RUNS && row->key.kind != POOL_NATIVE)
			sum_ns += row->amount;
	}
	return sum_ns;
}

const char *pool_reason(uint32_t reason)
{
	static const char *const words[POOL_REASONS] = { "warm-up", "initialization", "random move",
		"climbing move", "change point", "stabilization", "starvation", "thread timed out",
		"cooperative blocking", "other" };

	return words[reason < POOL_REASONS ? reason : POOL_OTHER];
}

const char *pool_activity(uint32_t activity)
{
	static const char *const words[POOL_ACTIVITIES] = { "running", "native code",
		"sync over async", "sleep", "lock", "wait", "I/O" };

	return words[activity < POOL_ACTIVITIES ? activity : POOL_NATIVE];
}

void thread_pool_done(struct thread_pool *pool)
{
	vec_done(&pool->processes);
	vec_done(&pool->changes);
	vec_done(&pool->starvations);
	vec_done(&pool->raw);
	vec_done(&pool->by_thread);
	vec_done(&pool->items);
	tally_done(&pool->work);
}
