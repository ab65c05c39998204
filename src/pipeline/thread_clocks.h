/*
 * The CPU clocks of some processes' threads, read again and again from /proc, at a cost that is bounded.
 *
 *   thread_clocks_new(&told, context, &clocks);
 *   thread_clocks_add(clocks, pid, near, now_ns, newborn);     each process
 *   each turn, at thread_clocks_wake_ns() at the latest:  thread_clocks_read(clocks, now_ns);
 *   at the end: thread_clocks_read_last(clocks, now_ns);
 *   thread_clocks_free(clocks);
 *
 * Of near processes, and of newborn ones for two seconds, every thread is read every 20 ms, of the others twice a second, and only of those that used anything. When a round takes longer than a fiftieth
 * of that the next one comes later, so that reading never takes more than 2 % of a CPU of either kind.
 *
 * A reading is told when the clock has gone on: first as it stood when it was read last, unless that was told, then as it is (trace/clock_join.h wants it so). What a
 * process has used in threads that came and went between two readings is told as the clock of its thread 0, so that the clocks of a process add up to its own; with `children` so is
 * what its children used beyond what was seen of them, when it has waited for them: many a program lives for less than a reading takes.
 */
#ifndef SPOOR_PIPELINE_THREAD_CLOCKS_H
#define SPOOR_PIPELINE_THREAD_CLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct thread_clocks;

#define THREAD_CLOCKS_NEAR_NS UINT64_C(20000000)
#define THREAD_CLOCKS_FAR_NS  UINT64_C(500000000)

struct thread_clocks_told {
	bool children;           /* processes that come are added, so what children used unseen can be told from what was not asked for */
	void (*clock)(void *context, uint32_t pid, uint32_t tid, uint64_t time_ns, uint64_t cpu_ns);
	/* With each reading of a process twice a second: it is there. May be NULL. */
	void (*alive)(void *context, uint32_t pid, const char *comm, bool worked);
	/* It has ended, or (tid not 0) one of its threads has, and is read no more. May be NULL. */
	void (*ended)(void *context, uint32_t pid, uint32_t tid);
};

/* -ENOMEM, or what opening /proc came to. */
int thread_clocks_new(const struct thread_clocks_told *told, void *context, struct thread_clocks **ret_clocks);

/*
 * Told again, it does no harm, and a far process becomes a near one. `newborn`: it began after the recording, at `now_ns` or before, and all it has used counts. -ESRCH: it is not there.
 */
int thread_clocks_add(struct thread_clocks *clocks, uint32_t pid, bool near, uint64_t now_ns, bool newborn);

/* Whether its clocks are being read, or it has ended and its parent has not waited for it yet. */
bool thread_clocks_has(const struct thread_clocks *clocks, uint32_t pid);

uint64_t thread_clocks_wake_ns(const struct thread_clocks *clocks);

/* What is due. */
void thread_clocks_read(struct thread_clocks *clocks, uint64_t now_ns);

/* All, now. */
void thread_clocks_read_all(struct thread_clocks *clocks, uint64_t now_ns);

/* The last time. */
void thread_clocks_read_last(struct thread_clocks *clocks, uint64_t now_ns);

void thread_clocks_free(struct thread_clocks *clocks);

/*
 * How reading of this kind is bounded: when the round after one that began at `begin_ns` is due, if that one cost so much. What a round costs is what this thread took of a CPU
 * for it, not how long it waited for one.
 */
uint64_t thread_clocks_spent_ns(void);
uint64_t thread_clocks_next_ns(uint64_t begin_ns, uint64_t cost_ns, uint64_t least_ns, uint64_t most_ns);

#endif
