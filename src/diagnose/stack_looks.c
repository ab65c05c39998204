/* See stack_looks.h. */
#include "diagnose/stack_looks.h"

#include <errno.h>
#include <math.h>

#include "diagnose/facts.h"

#define FRAMES_MAX 64u /* of the stack that a finding shows */
#define CHAIN_MAX  256u

/* Selects threads. A place is the method that most of the selected threads are in. */
typedef bool thread_test(const struct look_thread *thread);

static bool is_busy_worker(const struct look_thread *thread)
{
	return thread->is_worker && !thread->is_idle;
}

static bool is_blocked_worker(const struct look_thread *thread)
{
	return is_busy_worker(thread) && (thread->waits_for || thread->io);
}

static bool is_worker_at_task(const struct look_thread *thread)
{
	return is_busy_worker(thread) && thread->waits_for_task;
}

static bool is_worker_at_io(const struct look_thread *thread)
{
	return is_busy_worker(thread) && thread->io;
}

static bool is_at_work(const struct look_thread *thread)
{
	return !thread->is_idle && thread->frame_count;
}

static bool is_lock_waiter(const struct look_thread *thread)
{
	return thread->waits_for_lock;
}

static uint64_t key_of(uint32_t look, uint32_t tid)
{
	return (uint64_t)look << 32 | tid;
}

bool look_add_thread(struct stack_looks *looks, const struct look_thread *thread)
{
	struct look_thread *added = vec_push(&looks->threads);

	if (!added || !map_put(&looks->by_tid, key_of(looks->count - 1, thread->tid),
			      looks->threads.count))
		return false;
	*added = *thread;
	added->look = looks->count - 1;
	added->frame_at = looks->frames.count;
	added->frame_count = 0;
	return true;
}

bool look_add_frame(struct stack_looks *looks, struct look_frame frame)
{
	if (!vec_add(&looks->frames, frame))
		return false;
	vec_last(&looks->threads)->frame_count++;
	return true;
}

static uint32_t own_method_of(const struct stack_looks *looks, const struct look_thread *thread)
{
	for (uint32_t i = 0; i < thread->frame_count; i++)
		if (looks->frames.items[thread->frame_at + i].own)
			return looks->frames.items[thread->frame_at + i].name;
	return 0;
}

/* Threads of all looks that pass the test. */
static uint32_t count_threads(const struct stack_looks *looks, thread_test *test)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < looks->threads.count; i++)
		count += test(&looks->threads.items[i]);
	return count;
}

static int show_stack(struct facts *facts, const struct stack_looks *looks,
	const struct look_thread *thread, struct place *place)
{
	place->method = own_method_of(looks, thread);
	place->callee = 0;
	place->frame_at = facts->frames.count;
	place->frame_count = 0;
	for (uint32_t i = 0; i < thread->frame_count && i < FRAMES_MAX; i++, place->frame_count++)
		if (!vec_add(&facts->frames, looks->frames.items[thread->frame_at + i].name))
			return -ENOMEM;
	return 0;
}

/* The user's method that most of these threads are in; *ret_thread (may be NULL) is one of them. */
static int set_place(struct facts *facts, const struct stack_looks *looks, thread_test *test,
	struct place *place, const struct look_thread **ret_thread)
{
	struct map counts = { 0 }; /* threads by method */
	const struct look_thread *best = NULL;
	uint32_t most = 0;
	uint32_t all = count_threads(looks, test);
	bool complete = true;

	for (uint32_t i = 0; i < looks->threads.count && complete; i++) {
		const struct look_thread *thread = &looks->threads.items[i];
		uint32_t method = test(thread) ? own_method_of(looks, thread) : 0;
		if (method)
			complete = map_put(&counts, method, map_get(&counts, method) + 1);
	}
	for (uint32_t i = 0; i < looks->threads.count; i++) {
		const struct look_thread *thread = &looks->threads.items[i];
		uint32_t method = test(thread) ? own_method_of(looks, thread) : 0;
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
	return show_stack(facts, looks, best, place);
}

static int set_workers(struct facts *facts, struct process_facts *process,
	const struct stack_looks *looks)
{
	double busy = count_threads(looks, is_busy_worker);
	double blocked = count_threads(looks, is_blocked_worker);
	double at_task = count_threads(looks, is_worker_at_task);
	const struct look_thread *blocker = NULL;

	facts_set(process, FACT_workers, busy / looks->count);
	facts_set(process, FACT_blocked_workers, blocked / looks->count);
	facts_set(process, FACT_task_workers, at_task / looks->count);
	if (busy > 0) {
		facts_set(process, FACT_blocked_share, blocked / busy);
		facts_set(process, FACT_task_share, at_task / busy);
	}
	if (process->known[FACT_cpu_count])
		facts_set(process, FACT_blocked_per_cpu,
			blocked / looks->count / process->numbers[FACT_cpu_count]);
	double at_io = count_threads(looks, is_worker_at_io);
	facts_set(process, FACT_io_workers, at_io / looks->count);
	if (busy > 0)
		facts_set(process, FACT_io_share, at_io / busy);
	const struct look_thread *reader = NULL;
	struct place *io = &process->places[PLACE_io_waiter];
	int error = set_place(facts, looks, is_worker_at_io, io, &reader);
	if (reader)
		io->callee = reader->io;
	if (!error)
		error = set_place(facts, looks, is_blocked_worker, &process->places[PLACE_blocker],
			&blocker);
	if (blocker)
		process->words[WORD_blocked_for] =
			blocker->waits_for ? blocker->waits_for
					   : strtab_add_z(&facts->texts, "for a read or write");
	return error ? error
		     : set_place(facts, looks, is_worker_at_task,
			       &process->places[PLACE_task_waiter], NULL);
}

static const struct look_thread *find_thread(const struct stack_looks *looks, uint32_t look,
	uint32_t tid)
{
	uint32_t at = map_get(&looks->by_tid, key_of(look, tid));

	return at ? &looks->threads.items[at - 1] : NULL;
}

/* The number of threads of a circle of lock owners that begins with this one; 0: none. */
static uint32_t circle_of(const struct stack_looks *looks, const struct look_thread *first)
{
	const struct look_thread *thread = first;

	for (uint32_t length = 1; length < CHAIN_MAX; length++) {
		if (!thread->waits_for_lock || !thread->lock_owner)
			return 0;
		thread = find_thread(looks, first->look, thread->lock_owner);
		if (!thread)
			return 0;
		if (thread == first)
			return length;
	}
	return 0;
}

/* The thread that has the lock, or the last one of a chain of owners; NULL: not known, or a circle. */
static const struct look_thread *keeper_of(const struct stack_looks *looks,
	const struct look_thread *waiter)
{
	const struct look_thread *thread = waiter;

	for (uint32_t length = 0; length < CHAIN_MAX; length++) {
		if (!thread->lock_owner)
			return NULL;
		thread = find_thread(looks, waiter->look, thread->lock_owner);
		if (!thread || !thread->waits_for_lock)
			return thread;
	}
	return NULL;
}

/* Whether the thread has waited for a lock in all looks, and not run in between. */
static bool is_stuck(const struct stack_looks *looks, const struct look_thread *last)
{
	if (!last->waits_for_lock || !last->cpu_ns || looks->count < 2)
		return false;
	for (uint32_t look = 0; look < last->look; look++) {
		const struct look_thread *before = find_thread(looks, look, last->tid);
		if (!before || !before->waits_for_lock || before->cpu_ns != last->cpu_ns)
			return false;
	}
	return true;
}

/* Threads that one lock has held up all the time, because another thread keeps it: where that is. */
static int set_kept(struct facts *facts, struct process_facts *process,
	const struct stack_looks *looks, double working)
{
	const struct look_thread *last = NULL;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < looks->threads.count; i++) {
		const struct look_thread *thread = &looks->threads.items[i];
		const struct look_thread *keeper =
			thread->look == looks->count - 1 && is_stuck(looks, thread)
				? keeper_of(looks, thread)
				: NULL;
		kept += keeper != NULL;
		last = keeper ? keeper : last;
	}
	facts_set(process, FACT_kept_threads, kept);
	facts_set(process, FACT_kept_share, working > 0 ? fmin(1, kept / working) : 0);
	return last ? show_stack(facts, looks, last, &process->places[PLACE_keeper]) : 0;
}

static int set_locks(struct facts *facts, struct process_facts *process,
	const struct stack_looks *looks)
{
	uint32_t stuck = 0;
	uint32_t unowned = 0; /* of these, without an owner that keeps running */
	uint32_t circle = 0;
	uint32_t circles = 0; /* looks with one */
	uint32_t circle_look = UINT32_MAX;
	int error = 0;

	/* The stacks of all waits say more, where they were recorded. */
	if (!process->places[PLACE_lock_waiter].method)
		error = set_place(facts, looks, is_lock_waiter, &process->places[PLACE_lock_waiter],
			NULL);

	for (uint32_t i = 0; i < looks->threads.count && !error; i++) {
		const struct look_thread *thread = &looks->threads.items[i];
		uint32_t length = circle_of(looks, thread);
		circles += length && thread->look != circle_look;
		circle_look = length ? thread->look : circle_look;
		bool is_last_stuck = thread->look == looks->count - 1 && is_stuck(looks, thread);
		stuck += is_last_stuck;
		unowned += is_last_stuck && !keeper_of(looks, thread);
		/* The recording may show a circle as well. */
		if (length <= circle || length <= process->numbers[FACT_circle_threads])
			continue;
		circle = length;
		error = show_stack(facts, looks, thread, &process->places[PLACE_circle]);
		const struct look_thread *owner =
			find_thread(looks, thread->look, thread->lock_owner);
		process->places[PLACE_circle].callee = own_method_of(looks, owner);
	}
	double waiters = (double)count_threads(looks, is_lock_waiter) / looks->count;
	double working = (double)count_threads(looks, is_at_work) / looks->count;
	facts_set(process, FACT_stuck_threads, unowned);
	facts_set(process, FACT_stuck_share, waiters > 0 ? fmin(1, unowned / waiters) : 0);
	facts_set(process, FACT_lock_waiters, fmax(0, waiters - stuck));
	facts_set(process, FACT_lock_waiter_share,
		working > 0 ? fmax(0, waiters - stuck) / working : 0);
	facts_set(process, FACT_circle_threads,
		fmax(circle, process->numbers[FACT_circle_threads]));
	facts_set(process, FACT_circle_share,
		fmax((double)circles / looks->count, process->numbers[FACT_circle_share]));
	return error ? error : set_kept(facts, process, looks, working);
}

static bool is_finalizing(const struct look_thread *thread)
{
	return thread->is_finalizer && thread->frame_count;
}

int stack_looks_gather(struct facts *facts, struct process_facts *process,
	const struct stack_looks *looks)
{
	if (!looks->count)
		return 0;
	int error = set_workers(facts, process, looks);
	if (!error)
		error = set_locks(facts, process, looks);
	if (looks->count >= 2)
		facts_set(process, FACT_finalizer_share,
			(double)count_threads(looks, is_finalizing) / looks->count);
	return error ? error
		     : set_place(facts, looks, is_finalizing, &process->places[PLACE_finalizer],
			       NULL);
}

void stack_looks_done(struct stack_looks *looks)
{
	vec_done(&looks->threads);
	vec_done(&looks->frames);
	map_done(&looks->by_tid);
}
