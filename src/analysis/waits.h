/*
 * Blocked time of managed threads, from pairs of events: waits for locks (ContentionStart and
 * ContentionStop), and waits for handles (WaitHandleWaitStart and WaitHandleWaitStop, .NET 9).
 *
 * The events of a pair are of one thread. A pair counts by the time of its begin, with the stack of
 * its begin, or of its end if the begin is not in the recording. A wait without an end lasts until
 * the end of the recording; if its thread waits again, its end was lost, and it counts with 0 ns.
 */
#ifndef SPOOR_ANALYSIS_WAITS_H
#define SPOOR_ANALYSIS_WAITS_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/deadlocks.h"
#include "analysis/tally.h"

struct blocks;
struct runtime_event;

/* Of key.kind, beside a wait_source in the lowest bits. */
enum wait_flag {
	WAIT_SOURCE = 3,     /* the mask */
	WAIT_UNFINISHED = 4, /* it had not ended at the end of the recording */
	WAIT_UNKNOWN = 8,    /* its begin or its end was lost */
	/* known by context switches: the other bits are enum block_cause << WAIT_CAUSE_SHIFT */
	WAIT_SWITCHED = 16,
};

#define WAIT_CAUSE_SHIFT 8u

enum wait_source {
	WAIT_LOCK,        /* Monitor.Enter or System.Threading.Lock */
	WAIT_NATIVE_LOCK, /* of the runtime */
	WAIT_HANDLE,
	WAIT_MONITOR, /* Monitor.Wait */
};

struct wait_begun {
	struct tally_key key;
	uint32_t tid;
	uint64_t at_ns;
	uint64_t from_ns; /* see tally_amount */
	/* events of the thread that a thread that waits does not write; 0 none */
	uint64_t ran_first_ns;
	uint64_t ran_last_ns;
	uint64_t blocked_ns;  /* of the wait, by context switches */
	uint64_t runnable_ns; /* part of the wait after the wake-up: waiting for a CPU */
	bool is_open;
	bool is_selected;
};

/* What context switches say of all waits of a process. */
struct wait_off_cpu {
	uint64_t blocked_ns;
	uint64_t runnable_ns;
};

struct waits {
	/*
	 * key: id = the lock's address or 0, text = owner's thread id or 0, kind, stack; in ns. With
	 * WAIT_SWITCHED: text = the function that waits, the rest is that of blocks.blocked
	 */
	struct tally tally;
	VEC(struct wait_off_cpu) off_cpu; /* by process; none: no switches were recorded */
	VEC(struct wait_begun) by_thread; /* until waits_settle() */
	struct deadlocks deadlocks;       /* of the locks; after waits_settle() */
};

/* 0, or -ENOMEM. Payloads that are too short are ignored. */
int waits_event(struct waits *waits, const struct runtime_event *event);

/* A context switch of a thread. 0, or -ENOMEM. */
int waits_switch(struct waits *waits, const struct runtime_event *event);

/* The thread wrote an event that a thread that waits does not write. */
void waits_ran(struct waits *waits, uint32_t thread, uint64_t at_ns);

/*
 * Once, before tally_finish(): waits that have not ended last until `end_ns`, or until the thread
 * ran, if the event of the end is missing. 0, or -ENOMEM.
 */
int waits_settle(struct waits *waits, uint64_t end_ns);

/*
 * After tally_finish() and blocks_finish(): adds the waits of processes that have none, for locks, or for
 * anything else that another thread or a timer ends. 0, or -ENOMEM.
 */
enum wait_choice { WAITS_FOR_LOCKS, WAITS_FOR_OTHERS };
int waits_add_blocks(struct waits *waits, const struct blocks *blocks, enum wait_choice choice);

/* NULL: no context switches were recorded. */
const struct wait_off_cpu *waits_off_cpu(const struct waits *waits, uint32_t process);

/* Whether the process's waits are known by context switches only. */
bool waits_are_switched(const struct waits *waits, const struct tally_process *process);

/* The number of a process's waits that have this flag. */
uint64_t waits_with(const struct waits *waits, const struct tally_process *process,
	enum wait_flag flag);

/* "lock", "native lock", "handle", "Monitor.Wait". */
const char *wait_source(uint32_t kind);

void waits_done(struct waits *waits);

#endif
