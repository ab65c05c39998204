/*
 * The stacks of all threads at some moments of the observed time, as the caller read them, and the
 * facts that they show: blocked pool workers, waits for locks, deadlocks, a finalizer at work.
 *
 *   struct stack_observations observations = { 0 };
 *   observations.count++                                     for each moment
 *   observed_thread_add(&observations, &thread)                  each of its threads, then
 *   observed_frame_add(&observations, &frame)                    each frame of it, leaf first
 *   stack_observations_gather(&facts, process, &observations)       once
 *   stack_observations_done(&observations)
 *
 * Texts are of the facts' table. One struct for each process.
 */
#ifndef SPOOR_DIAGNOSE_STACK_OBSERVATIONS_H
#define SPOOR_DIAGNOSE_STACK_OBSERVATIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"

struct facts;
struct process_facts;

struct observed_frame {
	uint32_t name;
	bool own; /* own_method() */
};

struct observed_thread {
	uint32_t look; /* 0 is the first one; set by observed_thread_add() */
	uint32_t tid;
	uint32_t waits_for;  /* "for a task"; 0: it does not wait, or not known for what */
	uint32_t lock_owner; /* tid; 0 not known */
	uint64_t cpu_ns;     /* used so far; 0 not known */
	uint32_t frame_at;   /* set by observed_thread_add() */
	uint32_t frame_count;
	bool is_worker; /* of the thread pool */
	bool is_finalizer;
	bool is_idle;
	bool waits_for_lock;
	bool waits_for_task;
	uint32_t io; /* the framework's method of files or sockets that it waits in; 0: none */
};

struct stack_observations {
	uint32_t count;
	VEC(struct observed_thread) threads;
	VEC(struct observed_frame) frames;
	struct map by_tid; /* look and tid to the position in `threads` + 1 */
};

/* False: no memory. */
bool observed_thread_add(struct stack_observations *observations,
	const struct observed_thread *thread);
bool observed_frame_add(struct stack_observations *observations, struct observed_frame frame);

/* 0 or -ENOMEM. */
int stack_observations_gather(struct facts *facts, struct process_facts *process,
	const struct stack_observations *observations);

void stack_observations_done(struct stack_observations *observations);

#endif
