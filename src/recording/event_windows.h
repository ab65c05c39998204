/*
 * When the sampled allocations of a process are observed: all the time, or, above a rate, in short
 * windows, so that their stacks cost it little. The times between are written to the file, and readers
 * scale the observed events.
 *
 *   event_windows_begin(&windows, now_ns)
 *   event_windows_event(&windows, time_ns)            for each event that was observed
 *   open = event_windows_advance(&windows, is_open, now_ns)    each turn: whether the session should be open
 *   event_windows_take(&windows, &gap)                times in which nothing was observed
 *   event_windows_end(&windows, end_ns)               the recording, or the process, has ended
 *
 * Times are CLOCK_MONOTONIC. A gap is between two events, so it does not depend on when a session was
 * opened. A struct with a rate and otherwise all zero is at its begin. Not thread-safe.
 */
#ifndef SPOOR_RECORDING_EVENT_WINDOWS_H
#define SPOOR_RECORDING_EVENT_WINDOWS_H

#include <stdbool.h>
#include <stdint.h>

enum windows_state {
	WINDOWS_ALL,    /* observed all the time */
	WINDOWS_CLOSED, /* not observed */
	WINDOWS_OPEN,   /* for a short time */
};

struct windows_gap {
	uint64_t from_ns;
	uint64_t to_ns; /* 0: no gap */
};

struct event_windows {
	uint32_t rate; /* events a second; 0: no bound */
	enum windows_state state;
	uint32_t seen;     /* since begin_ns */
	uint64_t begin_ns; /* of the present second, or the first event of the window; 0: none */
	uint64_t last_ns;  /* of the last event */
	uint64_t since_ns; /* when the state began */
	uint64_t
		asked_ns; /* when the session was to be opened, until its first event; 0: it has come */
	uint64_t open_ns; /* when it was opened; 0: not yet */
	uint64_t
		start_ns; /* when the process was to be observed; 0: that is written, or not wanted */
	uint64_t first_ns; /* of the first event */
	bool judged;       /* the last events are those of a window */
	struct windows_gap gap;
};

/* The session is about to be opened for the first time: nothing is observed yet. */
void event_windows_begin(struct event_windows *windows, uint64_t now_ns);

void event_windows_event(struct event_windows *windows, uint64_t time_ns);

/* Whether the session should be open. `is_open`: it is. */
bool event_windows_advance(struct event_windows *windows, bool is_open, uint64_t now_ns);

/* When event_windows_advance() must be called at the latest; UINT64_MAX: with the next event. */
uint64_t event_windows_deadline_ns(const struct event_windows *windows);

/* False: there is none now. */
bool event_windows_take(struct event_windows *windows, struct windows_gap *ret_gap);

/* Back to the begin, with a gap up to end_ns if nothing is observed now. */
void event_windows_end(struct event_windows *windows, uint64_t end_ns);

#endif
