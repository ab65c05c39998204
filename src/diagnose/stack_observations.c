/* See stack_observations.h. */
#include "diagnose/stack_observations.h"

#include <errno.h>
#include <math.h>

#include "diagnose/facts.h"

#define FRAMES_MAX 64u /* of the stack that a finding shows */
#define CHAIN_MAX  256u

/* Selects threads. A place is the method that most of the selected threads are in. */
typedef bool thread_test(const struct observed_thread *thread);

static bool is_busy_worker(const struct observed_thread *thread)
{
	return thread->is_worker && !thread->is_idle;
}

static bool is_blocked_worker(const struct observed_thread *thread)
{
	return is_busy_worker(thread) && (thread->waits_for || thread->io);
}

static bool is_worker_at_task(const struct observed_thread *thread)
{
	return is_busy_worker(thread) && thread->waits_for_task;
}

static bool is_worker_at_io(const struct observed_thread *thread)
{
	return is_busy_worker(thread) && thread->io;
}

static bool is_at_work(const struct observed_thread *thread)
{
	return !thread->is_idle && thread->frame_count;
}

static bool is_lock_waiter(const struct observed_thread *thread)
{
	return thread->waits_for_lock;
}

static uint64_t key_of(uint32_t look, uint32_t tid)
{
	return (uint64_t)look << 32 | tid;
}

bool observed_thread_add(struct stack_observations *observations,
	const struct observed_thread *thread)
{
	struct observed_thread *added = vec_push(&observations->threads);

	if (!added || !map_put(&observations->by_tid, key_of(observations->count - 1, thread->tid),
			      observations->threads.count))
		return false;
	*added = *thread;
	added->look = observations->count - 1;
	added->frame_at = observations->frames.count;
	added->frame_count = 0;
	return true;
}

bool observed_frame_add(struct stack_observations *observations, struct observed_frame frame)
{
	if (!vec_add(&observations->frames, frame))
		return false;
	vec_last(&observations->threads)->frame_count++;
	return true;
}

static uint32_t own_method_of(const struct stack_observations *observations,
	const struct observed_thread *thread)
{
	for (uint32_t i = 0; i < thread->frame_count; i++)
		if (observations->frames.items[thread->frame_at + i].own)
			return observations->frames.items[thread->frame_at + i].name;
	return 0;
}

/* Threads of all observations that pass the test. */
static uint32_t count_threads(const struct stack_observations *observations, thread_test *test)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < observations->threads.count; i++)
		count += test(&observations->threads.items[i]);
	return count;
}

static int show_stack(struct facts *facts, const struct stack_observations *observations,
	const struct observed_thread *thread, struct place *place)
{
	place->method = own_method_of(observations, thread);
	place->callee = 0;
	place->frame_at = facts->frames.count;
	place->frame_count = 0;
	for (uint32_t i = 0; i < thread->frame_count && i < FRAMES_MAX; i++, place->frame_count++)
		if (!vec_add(&facts->frames, observations->frames.items[thread->frame_at + i].name))
			return -ENOMEM;
	return 0;
}

/* The user's method that most of these threads are in; *ret_thread (may be NULL) is one of them. */
static int set_place(struct facts *facts, const struct stack_observations *observations,
	thread_test *test, struct place *place, const struct observed_thread **ret_thread)
{
	struct map counts = { 0 }; /* threads by method */
	const struct observed_thread *best = NULL;
	uint32_t most = 0;
	uint32_t all = count_threads(observations, test);
	bool complete = true;

	for (uint32_t i = 0; i < observations->threads.count && complete; i++) {
		const struct observed_thread *thread = &observations->threads.items[i];
		uint32_t method = test(thread) ? own_method_of(observations, thread) : 0;
		if (method)
			complete = map_put(&counts, method, map_get(&counts, method) + 1);
	}
	for (uint32_t i = 0; i < observations->threads.count; i++) {
		const struct observed_thread *thread = &observations->threads.items[i];
		uint32_t method = test(thread) ? own_method_of(observations, thread) : 0;
		uint32_t count = method ? map_get(&counts, method) : 0;
		if (count > most) {
			most = count;
			best = thread;
		}
	}
	map_done(&counts);
	if (ret_thread)
		*ret_thread = best;
	if (!complete)
		return -ENOMEM;
	if (!best)
		return 0;
	place->share = (double)most / (double)all;
	return show_stack(facts, observations, best, place);
}

static int set_workers(struct facts *facts, struct process_facts *process,
	const struct stack_observations *observations)
{
	double busy = count_threads(observations, is_busy_worker);
	double blocked = count_threads(observations, is_blocked_worker);
	double at_task = count_threads(observations, is_worker_at_task);
	const struct observed_thread *blocker = NULL;

	facts_set(process, FACT_workers, busy / observations->count);
	facts_set(process, FACT_blocked_workers, blocked / observations->count);
	facts_set(process, FACT_task_workers, at_task / observations->count);
	if (busy > 0) {
		facts_set(process, FACT_blocked_share, blocked / busy);
		facts_set(process, FACT_task_share, at_task / busy);
	}
	if (process->known[FACT_cpu_count])
		facts_set(process, FACT_blocked_per_cpu,
			blocked / observations->count / process->numbers[FACT_cpu_count]);
	double at_io = count_threads(observations, is_worker_at_io);
	facts_set(process, FACT_io_workers, at_io / observations->count);
	if (busy > 0)
		facts_set(process, FACT_io_share, at_io / busy);
	const struct observed_thread *reader = NULL;
	struct place *io = &process->places[PLACE_io_waiter];
	int error = set_place(facts, observations, is_worker_at_io, io, &reader);
	if (reader)
		io->callee = reader->io;
	if (!error)
		error = set_place(facts, observations, is_blocked_worker,
			&process->places[PLACE_blocker], &blocker);
	if (blocker)
		process->words[WORD_blocked_for] =
			blocker->waits_for ? blocker->waits_for
					   : strtab_add_z(&facts->texts, "for a read or write");
	return error ? error
		     : set_place(facts, observations, is_worker_at_task,
			       &process->places[PLACE_task_waiter], NULL);
}

static const struct observed_thread *find_thread(const struct stack_observations *observations,
	uint32_t look, uint32_t tid)
{
	uint32_t at = map_get(&observations->by_tid, key_of(look, tid));

	return at ? &observations->threads.items[at - 1] : NULL;
}

/* The number of threads of a circle of lock owners that begins with this one; 0: none. */
static uint32_t circle_of(const struct stack_observations *observations,
	const struct observed_thread *first)
{
	const struct observed_thread *thread = first;

	for (uint32_t length = 1; length < CHAIN_MAX; length++) {
		if (!thread->waits_for_lock || !thread->lock_owner)
			return 0;
		thread = find_thread(observations, first->look, thread->lock_owner);
		if (!thread)
			return 0;
		if (thread == first)
			return length;
	}
	return 0;
}

/* The thread that has the lock, or the last one of a chain of owners; NULL: not known, or a circle. */
static const struct observed_thread *keeper_of(const struct stack_observations *observations,
	const struct observed_thread *waiter)
{
	const struct observed_thread *thread = waiter;

	for (uint32_t length = 0; length < CHAIN_MAX; length++) {
		if (!thread->lock_owner)
			return NULL;
		thread = find_thread(observations, waiter->look, thread->lock_owner);
		if (!thread || !thread->waits_for_lock)
			return thread;
	}
	return NULL;
}

/* Whether the thread has waited for a lock in all observations, and not run in between. */
static bool is_stuck(const struct stack_observations *observations,
	const struct observed_thread *last)
{
	if (!last->waits_for_lock || !last->cpu_ns || observations->count < 2)
		return false;
	for (uint32_t look = 0; look < last->look; look++) {
		const struct observed_thread *before = find_thread(observations, look, last->tid);
		if (!before || !before->waits_for_lock || before->cpu_ns != last->cpu_ns)
			return false;
	}
	return true;
}

/* Threads that one lock has held up all the time, because another thread keeps it: where that is. */
static int set_kept(struct facts *facts, struct process_facts *process,
	const struct stack_observations *observations, double working)
{
	const struct observed_thread *last = NULL;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < observations->threads.count; i++) {
		const struct observed_thread *thread = &observations->threads.items[i];
		const struct observed_thread *keeper =
			thread->look == observations->count - 1 && is_stuck(observations, thread)
				? keeper_of(observations, thread)
				: NULL;
		kept += keeper != NULL;
		last = keeper ? keeper : last;
	}
	facts_set(process, FACT_kept_threads, kept);
	facts_set(process, FACT_kept_share, working > 0 ? fmin(1, kept / working) : 0);
	return last ? show_stack(facts, observations, last, &process->places[PLACE_keeper]) : 0;
}

static int set_locks(struct facts *facts, struct process_facts *process,
	const struct stack_observations *observations)
{
	uint32_t stuck = 0;
	uint32_t unowned = 0; /* of these, without an owner that keeps running */
	uint32_t circle = 0;
	uint32_t circles = 0; /* observations with one */
	uint32_t circle_observation = UINT32_MAX;
	int error = 0;

	/* The stacks of all waits say more, where they were recorded. */
	if (!process->places[PLACE_lock_waiter].method)
		error = set_place(facts, observations, is_lock_waiter,
			&process->places[PLACE_lock_waiter], NULL);

	for (uint32_t i = 0; i < observations->threads.count && !error; i++) {
		const struct observed_thread *thread = &observations->threads.items[i];
		uint32_t length = circle_of(observations, thread);
		circles += length && thread->look != circle_observation;
		circle_observation = length ? thread->look : circle_observation;
		bool is_last_stuck =
			thread->look == observations->count - 1 && is_stuck(observations, thread);
		stuck += is_last_stuck;
		unowned += is_last_stuck && !keeper_of(observations, thread);
		/* The recording may show a circle as well. */
		if (length <= circle || length <= process->numbers[FACT_circle_threads])
			continue;
		circle = length;
		error = show_stack(facts, observations, thread, &process->places[PLACE_circle]);
		const struct observed_thread *owner =
			find_thread(observations, thread->look, thread->lock_owner);
		process->places[PLACE_circle].callee = own_method_of(observations, owner);
	}
	double waiters = (double)count_threads(observations, is_lock_waiter) / observations->count;
	double working = (double)count_threads(observations, is_at_work) / observations->count;
	facts_set(process, FACT_stuck_threads, unowned);
	facts_set(process, FACT_stuck_share, waiters > 0 ? fmin(1, unowned / waiters) : 0);
	facts_set(process, FACT_lock_waiters, fmax(0, waiters - stuck));
	facts_set(process, FACT_lock_waiter_share,
		working > 0 ? fmax(0, waiters - stuck) / working : 0);
	facts_set(process, FACT_circle_threads,
		fmax(circle, process->numbers[FACT_circle_threads]));
	facts_set(process, FACT_circle_share,
		fmax((double)circles / observations->count, process->numbers[FACT_circle_share]));
	return error ? error : set_kept(facts, process, observations, working);
}

static bool is_finalizing(const struct observed_thread *thread)
{
	return thread->is_finalizer && thread->frame_count;
}

int stack_observations_gather(struct facts *facts, struct process_facts *process,
	const struct stack_observations *observations)
{
	if (!observations->count)
		return 0;
	int error = set_workers(facts, process, observations);
	if (!error)
		error = set_locks(facts, process, observations);
	if (observations->count >= 2)
		facts_set(process, FACT_finalizer_share,
			(double)count_threads(observations, is_finalizing) / observations->count);
	return error ? error
		     : set_place(facts, observations, is_finalizing,
			       &process->places[PLACE_finalizer], NULL);
}

void stack_observations_done(struct stack_observations *observations)
{
	vec_done(&observations->threads);
	vec_done(&observations->frames);
	map_done(&observations->by_tid);
}
