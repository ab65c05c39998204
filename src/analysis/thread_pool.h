/*
 * The thread pools of .NET processes: threads over time, why their number changed, when the pool
 * starved, and what its workers did.
 *
 *   thread_pool_event(&pool, &event)                     for each event, in any order of threads
 *   thread_pool_settle(&pool)                            once, when all have arrived
 *   thread_pool_finish(&pool, &selection, to_ns)         once, after event_stacks_place()
 *   thread_pool_done(&pool)
 *
 * The pool's gate adds a thread when no work item was taken for half a second although some are
 * queued; its reason is then starvation. Such additions at most POOL_GAP_NS apart are one
 * starvation, which began POOL_DELAY_NS before the first of them.
 *
 * What workers did comes from the runtime's own samples of its threads (Thread/Sample): a sample
 * counts for the time to the next one of its thread.
 */
#ifndef SPOOR_ANALYSIS_THREAD_POOL_H
#define SPOOR_ANALYSIS_THREAD_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/tally.h"
#include "analysis/timeline.h"

struct runtime_event;

#define POOL_GAP_NS   UINT64_C(2500000000)
#define POOL_DELAY_NS UINT64_C(500000000)

/* The runtime's numbers; other ones are POOL_OTHER. */
enum pool_reason {
	POOL_WARMUP,
	POOL_INITIALIZING,
	POOL_RANDOM_MOVE,
	POOL_CLIMBING_MOVE,
	POOL_CHANGE_POINT,
	POOL_STABILIZING,
	POOL_STARVATION,
	POOL_THREAD_TIMED_OUT,
	POOL_COOPERATIVE_BLOCKING,
	POOL_OTHER,
	POOL_REASONS,
};

/* What a worker did in a work item: key.kind of `work`. */
enum pool_activity {
	POOL_RUNS,   /* in managed code */
	POOL_NATIVE, /* in native code, running or not */
	POOL_SYNC_OVER_ASYNC,
	POOL_SLEEPS,
	POOL_LOCK,
	POOL_WAITS, /* for a handle, a semaphore, a pulse */
	POOL_IO,
	POOL_ACTIVITIES,
};

/* The goal of the number of worker threads was set. */
struct pool_change {
	uint64_t at_ns;
	uint32_t threads;
	uint8_t reason; /* enum pool_reason */
};

struct pool_starvation {
	uint64_t begin_ns;
	uint64_t end_ns;
	uint32_t threads_before; /* 0: not known */
	uint32_t threads_after;
	uint32_t added; /* changes by starvation */
};

/* A process with at least one event of its pool. Times: since the recording's begin. */
struct pool_process {
	uint32_t process;
	uint32_t change_at;
	uint32_t change_count;
	uint32_t starvation_at;
	uint32_t starvation_count;
	uint64_t starved_ns;
	uint32_t blocking_added; /* threads added because others were blocked in tasks */
	uint32_t by_reason[POOL_REASONS];
	uint32_t min_threads; /* the pool's limits; 0: not known */
	uint32_t max_threads;
	uint32_t least_threads; /* seen; 0: not known */
	uint32_t most_threads;
	uint32_t last_threads;
	uint64_t enqueued; /* work items; 0 without their events */
	uint64_t dequeued;
	struct timeline items;   /* dequeued */
	struct timeline threads; /* the most threads in each interval */
};

struct pool_event {
	uint64_t at_ns;
	uint64_t from_ns; /* of the selected time */
	uint32_t order;
	uint32_t process;
	uint32_t threads;
	uint32_t max_threads;
	uint8_t reason;
	uint8_t what;
};

struct pool_sample {
	struct tally_key key;
	uint64_t at_ns;
	uint64_t from_ns;
	bool is_open;
};

struct thread_pool {
	VEC(struct pool_process) processes; /* longest starvation first, then most threads */
	VEC(struct pool_change) changes;
	VEC(struct pool_starvation) starvations;
	struct tally work; /* key: kind, stack; amounts are ns of worker threads in work items */
	VEC(struct pool_event) raw;        /* until thread_pool_finish(), as the next ones */
	VEC(struct pool_sample) by_thread; /* last samples */
	VEC(struct pool_process) items;    /* by process: only its work items are set */
};

/* 0, or -ENOMEM. Payloads that are too short are ignored. */
int thread_pool_event(struct thread_pool *pool, const struct runtime_event *event);
int thread_pool_settle(struct thread_pool *pool);
int thread_pool_finish(struct thread_pool *pool, const struct tally_selection *selection,
	uint64_t to_ns);

/* The sums of one process in `work`; NULL: there are no samples. */
const struct tally_process *thread_pool_work(const struct thread_pool *pool, uint32_t process);

/* The worker time of a process that was spent in anything but POOL_RUNS and POOL_NATIVE. */
uint64_t thread_pool_blocked_ns(const struct thread_pool *pool, const struct tally_process *work);

/* "starvation", "sync over async": constant texts. */
const char *pool_reason(uint32_t reason);
const char *pool_activity(uint32_t activity);

void thread_pool_done(struct thread_pool *pool);

#endif
