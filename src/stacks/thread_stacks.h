/*
 * The stacks of all threads of some .NET processes: managed frames from the runtime, the rest read
 * from /proc.
 *
 * One short EventPipe session a process: the runtime's sampler sends the managed stacks of all
 * threads in one tick, and when the first of them have arrived the session is stopped; its rundown
 * names the methods. Only the runtime stops threads, for the sampler's tick. At the same time the
 * state of each thread, its system call and the kernel function in which it waits are read from
 * /proc. Sessions end by StopTracing whatever happens, under the guard.
 */
#ifndef SPOOR_STACKS_THREAD_STACKS_H
#define SPOOR_STACKS_THREAD_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct diag;
struct guard;
struct pollfd;
struct target;
struct thread_dump;
struct thread_stacks;

struct thread_stacks_options {
	struct guard *guard; /* may be NULL */
	/* for a runtime that does not answer or sends no sample; 0: 5 s */
	uint64_t timeout_ns;
	struct pollfd *watched; /* becomes ready: give up; may be NULL */
	bool managed_only;      /* nothing of native frames */
	/*
	 * Names of methods are kept for the next rounds, in which names are requested again
	 * only for a process that runs code without one. A method made at run time (LCG) whose memory another
	 * one has taken over in between keeps the old name.
	 */
	bool keeps_names;
};

/* Keeps symbol tables for the next rounds. Options are copied, what they point to is borrowed. */
int thread_stacks_new(const struct thread_stacks_options *options,
	struct thread_stacks **ret_stacks, struct diag *diag);

/*
 * Fills `dumps`, one a target, not initialised before; the caller ends them with
 * thread_dump_done(), also after a failure. A process whose runtime cannot be reached has the
 * frames from /proc, and unsampled_reason; one that has exited has no thread and a reason.
 * Negative: no memory, or -EINTR (`watched`): then only the dumps of processes that had been
 * sampled have threads.
 */
int thread_stacks_take(struct thread_stacks *stacks, const struct target *targets, size_t count,
	struct thread_dump *dumps, struct diag *diag);

void thread_stacks_free(struct thread_stacks *stacks);

#endif
