/*
 * The states of a counted process, and how they follow each other. counting.c owns the processes and
 * changes their states in one function, which asserts counted_may_enter().
 *
 *   NEW -> OPENING -> RUNNING -> STOPPING -> ENDED
 *   NEW -> HELD -> DELAYED -> OPENING             the session must wait for the runtime's start
 *   RUNNING -> REOPENING -> OPENING               another tool's metrics session sets the limits
 *
 * ENDED and FAILED are final, and entered from each state that can end a session.
 */
#ifndef SPOOR_COUNTERS_COUNTED_STATE_H
#define SPOOR_COUNTERS_COUNTED_STATE_H

#include <stdbool.h>

enum counted_state {
	COUNTED_NEW,       /* being added */
	COUNTED_HELD,      /* no session yet: its runtime waits to be resumed */
	COUNTED_DELAYED,   /* its runtime was resumed; the session is to be opened at open_ns */
	COUNTED_OPENING,   /* its session was requested */
	COUNTED_RUNNING,   /* its session is open */
	COUNTED_REOPENING, /* its session is being stopped, and a new one follows */
	COUNTED_STOPPING,  /* its session is being stopped by counting_stop() */
	COUNTED_ENDED,     /* its session has ended, or none was opened before counting_stop() */
	COUNTED_FAILED,    /* no session, or it broke off */
};

/* True if a process in state `from` may enter state `to`. */
bool counted_may_enter(enum counted_state from, enum counted_state to);

/* True in HELD and DELAYED: its session waits for the start of its runtime. */
bool counted_awaits_start(enum counted_state state);

/* True in RUNNING and REOPENING: values arrive. */
bool counted_is_running(enum counted_state state);

#endif
