/*
 * The threads of one process at one moment: filled by stacks/thread_stacks, printed by
 * stacks/threads_text.
 *
 * A frame is kept once, and a stack is a list of frames in `stacks`, so that threads with the same
 * stack have the same stack number.
 */
#ifndef SPOOR_STACKS_THREAD_DUMP_H
#define SPOOR_STACKS_THREAD_DUMP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/strtab.h"
#include "base/vec.h"
#include "trace/trace.h"

/* What the runtime said of a thread at its sample. */
enum thread_mode {
	THREAD_UNSAMPLED, /* no managed frames, or no session was opened in the runtime */
	/* outside of managed code: waiting, or in the runtime; its managed callers are known */
	THREAD_NATIVE,
	THREAD_MANAGED, /* in managed code */
};

struct dump_frame {
	uint32_t name; /* strtab: readable; "0x7f..." when there is none */
	/* strtab: a method's, without all but the last part of its namespace; 0: as `name` */
	uint32_t short_name;
	uint32_t module; /* strtab: "Shop", "libc.so.6", "kernel"; 0 unknown */
	uint8_t kind;    /* enum function_kind */
	bool gap;        /* in place of frames that are not known */
};

struct dump_thread {
	uint32_t tid;
	uint32_t inner_tid;
	uint32_t name;          /* strtab */
	uint32_t syscall;       /* strtab: it waits in; 0 in none, or not known */
	uint32_t function;      /* strtab: of the kernel, where it waits; 0 not known */
	uint32_t object;        /* strtab: what it waits at: "socket:[1234]"; 0 not known */
	uint32_t waits_for;     /* strtab: "for a lock"; 0 not known: stacks/thread_waits */
	uint32_t stack;         /* in `stacks`: indexes of `frames`, leaf first */
	uint32_t managed_count; /* frames of that which are managed */
	uint32_t lock_owner;    /* tid here; 0: it waits for no lock, or no owner is known */
	uint64_t lock;          /* object address of the lock it waits for; 0 none seen */
	uint64_t cpu_ns;        /* used so far */
	uint8_t mode;           /* enum thread_mode */
	/* a thread of the runtime that waits for something to do: stacks/thread_waits */
	bool idle;
	bool waits_for_lock; /* `waits_for` is a lock */
	bool serves_session; /* the runtime's thread that sends the events of sessions */
	/* it waits, but may have run between its frames and its state: they are of two moments */
	bool moved;
	char state; /* R S D T t X Z of /proc; '?' */
};

/* Threads with the same stack that wait in the same way. */
struct dump_group {
	uint32_t first; /* in `members` */
	uint32_t count;
};

struct thread_dump {
	struct strtab texts;
	VEC(struct dump_frame) frames; /* item 0 unused */
	struct map frame_index;        /* hash of a frame -> frames */
	struct stack_table stacks;
	VEC(struct dump_thread) threads;
	VEC(uint32_t) members; /* threads, group after group: stacks/thread_groups */
	VEC(struct dump_group) groups;
	uint32_t pid;
	uint32_t name;            /* strtab */
	uint32_t runtime_version; /* strtab; 0 not known */
	/* strtab: why there are no managed frames at all; 0 there are */
	uint32_t unsampled_reason;
	uint32_t unnamed; /* distinct managed frames without a name */
	uint64_t utc_ns;
	uint64_t took_ns;
	uint64_t lost_events;
	bool native;  /* what it waits for could be read */
	bool refused; /* the rights to connect to its runtime are missing */
	/* the caller has no rights over it: no locks, and no files that it waits at */
	bool values_withheld;
};

int thread_dump_init(struct thread_dump *dump);
void thread_dump_done(struct thread_dump *dump);

/* The number of a frame; 0 when there is no memory. */
uint32_t thread_dump_frame(struct thread_dump *dump, const struct dump_frame *frame);

/* A method's, compiled at run time or before, or code that the runtime gave no name to. */
bool dump_frame_is_managed(const struct dump_frame *frame);

/* By the tid as the process sees it; NULL none. Valid until one is added. */
struct dump_thread *thread_dump_find(struct thread_dump *dump, uint64_t inner_tid);

#endif
