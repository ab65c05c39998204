/*
 * The CPU time of each sample: stacks sampled at intervals of wall-clock time, joined with the CPU
 * clocks of their threads.
 *
 * A sampler that walks all threads every millisecond shows their stacks, not whether they run. A
 * thread's CPU clock shows how long it ran, not with which stack. What a thread has used between
 * two readings of its clock is divided among its samples in between; samples of an interval without
 * CPU time get 0, so a waiting thread is never shown as a running one.
 *
 *   clock_join_clock(&join, thread, time_ns, cpu_ns);       readings of a thread's clock, in order of time; time before the first one does not count
 *   clock_join_sample(&join, thread, time_ns, stack, runs); its samples, in order of time, earlier
 *   or later than the readings around them
 *   clock_join_settle(&join, until_ns, each, context);      once all readings and samples from before until_ns are added: CPU times go to `each`
 *   clock_join_done(&join);
 *
 * A sample of a running thread is taken to have run for all of its share of the interval, as far as
 * there is time for it; the others get the rest. A few samples an interval are a coarse measure. So
 * what the running ones could not take is held for CLOCK_JOIN_HELD_NS of CPU time at most, and what
 * they could have taken is remembered for as much, as long as the thread was seen running within
 * CLOCK_JOIN_PATIENCE_NS. What a thread used in intervals without a sample is kept until the next
 * one, for CLOCK_JOIN_KEEP_NS; then it is reported without a stack. So the shares of a thread add
 * up exactly to the advance of its clock between its first reading and the last one that was
 * settled.
 *
 * A clock that has not advanced needs no reading: samples from before until_ns are dropped if their
 * thread has no later reading. So when a clock advances again, the caller must add two readings:
 * the last time at which the clock still had its old value, and the new one.
 */
#ifndef SPOOR_TRACE_CLOCK_JOIN_H
#define SPOOR_TRACE_CLOCK_JOIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"

struct stack_table;

#define CLOCK_JOIN_KEEP_NS     UINT64_C(100000000)
#define CLOCK_JOIN_HELD_NS     UINT64_C(100000000)
#define CLOCK_JOIN_PATIENCE_NS UINT64_C(1000000000)
/* that wait; more are left out, and their threads' time goes to the others */
#define CLOCK_JOIN_SAMPLES_MAX (4u << 20)

/* The CPU time of one or several samples of one stack in one interval. */
struct clock_share {
	uint64_t thread;
	uint64_t time_ns; /* of the first of them; of the interval's end without a stack */
	uint64_t cpu_ns;  /* never 0 */
	uint32_t stack;   /* 0: used in an interval without samples */
	uint32_t count;   /* samples; 0: of time that was kept or held */
};

typedef void clock_join_fn(void *context, const struct clock_share *share);

struct join_reading {
	uint64_t time_ns;
	uint64_t cpu_ns;
};

struct join_sample {
	uint64_t time_ns;
	uint32_t stack;
	bool runs;
};

/* One thread; the first reading is the end of the time that is settled. */
struct clock_thread {
	uint64_t thread;
	uint64_t kept_ns;      /* CPU time of intervals without a sample */
	uint64_t kept_from_ns; /* when the first of them began */
	/* ... of intervals with samples, for those that say that they ran */
	uint64_t held_ns;
	uint64_t credit_ns; /* what such samples could have taken beyond what there was */
	uint64_t ran_ns;    /* time of the last one; 0 none */
	/* the stack that gets the held time when no running sample follows */
	uint32_t held_stack;
	VEC(struct join_reading) readings;
	VEC(struct join_sample) samples;
};

struct clock_join {
	VEC(struct clock_thread) threads;
	struct map by_thread; /* -> threads + 1 */
	uint64_t settled_ns;  /* up to where */
	uint64_t waiting;     /* samples */
	uint64_t left_out;
	VEC(struct clock_share) shares; /* scratch */
};

/* -ENOMEM. A reading that is earlier than the one before, or less, is taken to be the same. */
int clock_join_clock(struct clock_join *join, uint64_t thread, uint64_t time_ns, uint64_t cpu_ns);

/* `stack` is the caller's number, not 0. -ENOMEM. */
int clock_join_sample(struct clock_join *join, uint64_t thread, uint64_t time_ns, uint32_t stack,
	bool runs);

/* UINT64_MAX: settles everything, including the time that was kept. */
void clock_join_settle(struct clock_join *join, uint64_t until_ns, clock_join_fn *each,
	void *context);

/* Forgets settled threads for which `ended` returns true. */
void clock_join_forget(struct clock_join *join, bool (*ended)(void *context, uint64_t thread),
	void *context);

/* The stacks are numbers in `from`, which is given up: they are numbers in `fresh` from now on. */
void clock_join_move_stacks(struct clock_join *join, const struct stack_table *from,
	struct stack_table *fresh);

size_t clock_join_size_bytes(const struct clock_join *join);
void clock_join_done(struct clock_join *join);

#endif
