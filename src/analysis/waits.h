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

#include "analysis/tally.h"

struct runtime_event;

/* Of key.kind, beside a wait_source in the lowest bits. */
enum wait_flag {
	WAIT_SOURCE = 3,     /* the mask */
	WAIT_UNFINISHED = 4, /* it had not ended at the end of the recording */
	WAIT_UNKNOWN = 8,    /* its begin or its end was lost */
};

enum wait_source {
	WAIT_LOCK,        /* Monitor.Enter or System.Threading.Lock */
	WAIT_NATIVE_LOCK, /* of the runtime */
	WAIT_HANDLE,
	WAIT_MONITOR, /* Monitor.Wait */
};

struct wait_begun {
	struct tally_key key;
	uint64_t at_ns;
	uint64_t from_ns; /* see tally_amount */
	/* events of the thread that a thread that waits does not write; 0 none */
	uint64_t ran_first_ns;
	uint64_t ran_last_ns;
	bool is_open;
	bool is_selected;
};

struct waits {
	/* key: id = the lock's address or 0, text = owner's thread id or 0, kind, stack; in ns */
	struct tally tally;
	VEC(struct wait_begun) by_thread; /* until waits_settle() */
};

/* 0, or -ENOMEM. Payloads that are too short are ignored. */
int waits_event(struct waits *waits, const struct runtime_event *event);

/* The thread wrote an event that a thread that waits does not write. */
void waits_ran(struct waits *waits, uint32_t thread, uint64_t at_ns);

/*
 * Once, before tally_finish(): waits that have not ended last until `end_ns`, or until the thread
 * ran, if the event of the end is missing. 0, or -ENOMEM.
 */
int waits_settle(struct waits *waits, uint64_t end_ns);

/* The number of a process's waits that have this flag. */
uint64_t waits_with(const struct waits *waits, const struct tally_process *process,
	enum wait_flag flag);

/* "lock", "native lock", "handle", "Monitor.Wait". */
const char *wait_source(uint32_t kind);

void waits_done(struct waits *waits);

#endif
