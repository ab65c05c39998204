/*
 * Reads the CPU clocks of the threads of some processes from /proc, repeatedly, at a limited cost.
 *
 *   thread_clocks_new(&handler, context, &clocks);
 *   thread_clocks_add(clocks, pid, near, now_ns, newborn);     each process
 *   each step, at thread_clocks_wake_ns() at the latest:  thread_clocks_read(clocks, now_ns);
 *   at the end: thread_clocks_read_last(clocks, now_ns);
 *   thread_clocks_free(clocks);
 *
 * In `near` processes, and in newborn ones for two seconds, every thread is read every 20 ms. Other
 * processes are read twice a second, and their threads only if the process has used CPU time. When
 * a round costs more than a fiftieth of its interval, the next one is delayed, by at most 200 ms
 * (near) or 5 s (others). So each kind of round uses at most 2 % of a CPU unless these maximum
 * intervals are reached.
 *
 * A reading is reported when the clock has advanced: first the value of the previous reading,
 * unless it was reported, then the new value (trace/clock_join.h needs both). CPU time of threads
 * that lived only between two readings is reported as the clock of thread 0, so that the clocks of
 * a process add up to the process's own clock. With `children`, thread 0 also gets the CPU time of
 * children that the process has waited for, beyond the CPU time reported for them: many programs
 * live for less than one interval.
 */
#ifndef SPOOR_PIPELINE_THREAD_CLOCKS_H
#define SPOOR_PIPELINE_THREAD_CLOCKS_H

#include <stdbool.h>
#include <stdint.h>

struct thread_clocks;

#define THREAD_CLOCKS_NEAR_NS UINT64_C(20000000)
#define THREAD_CLOCKS_FAR_NS  UINT64_C(500000000)

struct thread_clocks_handler {
	/*
	 * new processes are added, so CPU time of children that exceeds their reported time was
	 * used between readings
	 */
	bool children;
	void (*clock)(void *context, uint32_t pid, uint32_t tid, uint64_t time_ns, uint64_t cpu_ns);
	/* Called for a running process with each reading of its clock, twice a second; or NULL. */
	void (*alive)(void *context, uint32_t pid, const char *comm, bool worked);
	/* Called when a process (tid 0) or thread has ended and is no longer read; may be NULL. */
	void (*ended)(void *context, uint32_t pid, uint32_t tid);
};

/* Returns 0, -ENOMEM, or the error of opening /proc. */
int thread_clocks_new(const struct thread_clocks_handler *handler, void *context,
	struct thread_clocks **ret_clocks);

/*
 * Adds a process. A second call has no effect, except that it can set `near`. `newborn`: the
 * process started during the recording, at `now_ns` or before, and all its CPU time counts. Returns
 * -ESRCH if it does not exist.
 */
int thread_clocks_add(struct thread_clocks *clocks, uint32_t pid, bool near, uint64_t now_ns,
	bool newborn);

/* True while its clocks are read, and after its end until its parent has waited for it. */
bool thread_clocks_has(const struct thread_clocks *clocks, uint32_t pid);

uint64_t thread_clocks_wake_ns(const struct thread_clocks *clocks);

/* Reads the clocks that are due. */
void thread_clocks_read(struct thread_clocks *clocks, uint64_t now_ns);

/* Reads all clocks now. */
void thread_clocks_read_all(struct thread_clocks *clocks, uint64_t now_ns);

/* Reads all clocks for the last time. */
void thread_clocks_read_last(struct thread_clocks *clocks, uint64_t now_ns);

void thread_clocks_free(struct thread_clocks *clocks);

/*
 * The cost limit of a round: thread_clocks_next_ns() returns when the next round is due after one
 * that began at `begin_ns` and cost `cost_ns`. The cost is the CPU time of the calling thread
 * (thread_clocks_spent_ns()), not the time that it waited for a CPU.
 */
uint64_t thread_clocks_spent_ns(void);
uint64_t thread_clocks_next_ns(uint64_t begin_ns, uint64_t cost_ns, uint64_t least_ns,
	uint64_t most_ns);

#endif
