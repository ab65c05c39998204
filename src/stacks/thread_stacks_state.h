/* The state of one process while the stacks of its threads are taken; for thread_stacks.c and its parts. */
#ifndef SPOOR_STACKS_THREAD_STACKS_STATE_H
#define SPOOR_STACKS_THREAD_STACKS_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/map.h"
#include "base/vec.h"
#include "code/codemap.h"
#include "dotnet/ipc.h"
#include "dotnet/port.h"
#include "machine/thread_state.h"
#include "pipeline/event_session.h"

struct name_tables;
struct target;
struct thread_dump;
struct thread_stacks;

/* that are looked at; of a process with more, the rest is left out */
#define THREADS_MAX 65536u

/* For as long as stacks are taken: symbol tables, and a number for each file. */
struct frame_naming {
	struct name_tables *tables;
	struct map image_index; /* hash of device and inode -> image number */
	uint32_t image_count;
};

/* A thread's managed frames at one moment. */
struct moment {
	uint64_t time_ns;
	uint64_t lock;
	uint64_t lock_owner; /* as the process numbers it */
	uint32_t stack;      /* in the stream's trace */
	uint8_t mode;        /* 0: nothing is known */
	/* the wait for the lock that it shows has ended: the next sample counts */
	bool over;
};

/* What the stream said of a thread. */
struct seen {
	uint64_t inner_tid;
	uint64_t looked_ns;   /* when /proc was read for it; 0: it was not yet */
	struct moment before; /* the last one before that */
	struct moment after;  /* the first one since */
	uint32_t tick;        /* of the sampler, when it was last seen */
};

/* Whether a thread ran while it was looked at: its context switches, beside its thread_state. */
struct steps {
	uint64_t first; /* before the session was opened; 0 not known */
	/* SETTLE_NS after /proc was read; 0 not known, or not read */
	uint64_t last;
	uint64_t last_ns;   /* just before `last` was read */
	uint64_t looked_ns; /* just after the thread's state was read */
};

struct stack_code_mapping {
	uint64_t begin;
	uint64_t end;
	uint64_t file_offset;
	uint64_t inode;
	uint64_t device;
	uint32_t path; /* strtab of the dump */
};

/* Frames that were found in a thread's stack: return addresses. */
struct walked {
	uint32_t first;
	uint32_t count;
	uint32_t skipped;     /* managed frames nearer to the leaf than these */
	struct moment moment; /* of the managed frames that were found in the stack */
};

/* A thread's context switches before the session. */
struct first_steps {
	uint32_t tid;
	uint64_t switches;
};

struct stacks_taking {
	struct thread_stacks *stacks;
	struct frame_naming *naming;
	const struct target *target;
	struct thread_dump *dump;
	struct dotnet_target port;
	struct ipc_provider providers[2];
	struct runtime_client client;
	struct event_session session;
	struct event_session rundown; /* another one, if kept names are not enough */
	struct codemap codemap;
	struct map
		nameless; /* addresses of managed frames that a whole rundown had no method for */
	VEC(struct seen) seen;
	struct map seen_index; /* inner tid -> seen, plus one */
	VEC(struct first_steps) first;
	struct map first_index; /* tid -> first, plus one */
	VEC(struct proc_thread_state) states;
	VEC(struct steps) steps;  /* parallel to states */
	VEC(struct walked) walks; /* parallel to states */
	VEC(uint64_t) walked_frames;
	VEC(struct stack_code_mapping) mappings;
	struct bytes text; /* scratch */
	uint64_t *stack;   /* scratch: STACK_BYTES_MAX */
	/* of the sampler: a new one begins when a thread is sampled again */
	uint32_t tick;
	uint32_t looked_tick;
	int memory_fd; /* while it is looked at */
	bool sampled;
	bool looked;  /* at /proc */
	bool settled; /* the context switches were read again */
	/* its events have another clock than we: it is in a time namespace */
	bool own_clock;
	bool stopping;
	bool has_kept_names; /* the codemap is that of an earlier round */
	bool asked_names;    /* `rundown` was begun */
	uint64_t begin_ns;
	uint64_t settle_ns; /* when they are to be */
};

#endif
