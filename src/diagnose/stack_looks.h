/*
 * The stacks of all threads at some moments of the observed time, as the caller read them, and the
 * facts that they show: blocked pool workers, waits for locks, deadlocks, a finalizer at work.
 *
 *   struct stack_looks looks = { 0 };
 *   looks.count++                                     for each moment
 *   look_add_thread(&looks, &thread)                  each of its threads, then
 *   look_add_frame(&looks, &frame)                    each frame of it, leaf first
 *   stack_looks_gather(&facts, process, &looks)       once
 *   stack_looks_done(&looks)
 *
 * Texts are of the facts' table. One struct for each process.
 */
#ifndef SPOOR_DIAGNOSE_STACK_LOOKS_H
#define SPOOR_DIAGNOSE_STACK_LOOKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"

struct facts;
struct process_facts;

struct look_frame {
	uint32_t name;
	bool own; /* own_method() */
};

struct look_thread {
	uint32_t look; /* 0 is the first one; set by look_add_thread() */
	uint32_t tid;
	uint32_t waits_for;  /* "for a task"; 0: it does not wait, or not known for what */
	uint32_t lock_owner; /* tid; 0 not known */
	uint64_t cpu_ns;     /* used so far; 0 not known */
	uint32_t frame_at;   /* set by look_add_thread() */
	uint32_t frame_count;
	bool is_worker; /* of the thread pool */
	bool is_finalizer;
	bool is_idle;
	bool waits_for_lock;
	bool waits_for_task;
	uint32_t io; /* the framework's method of files or sockets that it waits in; 0: none */
};

struct stack_looks {
	uint32_t count;
	VEC(struct look_thread) threads;
	VEC(struct look_frame) frames;
	struct map by_tid; /* look and tid to the position in `threads` + 1 */
};

/* False: no memory. */
bool look_add_thread(struct stack_looks *looks, const struct look_thread *thread);
bool look_add_frame(struct stack_looks *looks, struct look_frame frame);

/* 0 or -ENOMEM. */
int stack_looks_gather(struct facts *facts, struct process_facts *process,
	const struct stack_looks *looks);

void stack_looks_done(struct stack_looks *looks);

#endif
