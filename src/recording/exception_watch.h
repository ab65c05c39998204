/*
 * Bounds what the observation of exceptions costs a process: above a rate they are observed in short
 * windows only, and the runtime's own counter (exception-count of System.Runtime) has their number.
 *
 *   exception_watch_event(&watch, time_ns)                   for each exception that was observed
 *   exception_watch_value(&watch, time_ns, interval_ns, ...) for each value of the counter
 *   exception_watch_advance(&watch, &sessions, now_ns)       each turn; says which sessions should be open
 *   exception_watch_take(&watch, sorted_ns, now_ns, &gap)    the exceptions that were not observed
 *   exception_watch_limit(&watch, end_ns)                    the recording ends: what follows does not count
 *   exception_watch_end(&watch, end_ns)                      all streams have ended
 *   exception_watch_begin(&watch)                            they are opened again
 *   exception_watch_done(&watch)
 *
 * The counter's first value comes before the observation ends, and it is read until all are observed
 * again, so each exception is in an observed interval, or between two values. Of the latter, those that
 * were observed are subtracted. Times of events are those of the process's stream, all others are CLOCK_MONOTONIC. A
 * watch with a rate and otherwise all zero is at its begin. Not thread-safe.
 */
#ifndef SPOOR_RECORDING_EXCEPTION_WATCH_H
#define SPOOR_RECORDING_EXCEPTION_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

/* How the exceptions of a process are observed. */
enum exception_state {
	EXCEPTIONS_ALL,     /* all of them */
	EXCEPTIONS_FLOOD,   /* all, and the counter is to be opened */
	EXCEPTIONS_COUNTED, /* none; the counter has their number */
	EXCEPTIONS_WINDOW,  /* for a short time, beside the counter */
	EXCEPTIONS_RETURN,  /* all again, beside the counter until its intervals are complete */
};

/* The exceptions between two values of the counter. */
struct exception_interval {
	uint64_t from_ns;
	uint64_t to_ns;
	uint64_t count;
	uint64_t received_ns;
};

/* Exceptions that were not observed. */
struct exception_gap {
	uint64_t count;
	uint64_t from_ns;
	uint64_t to_ns;
	bool estimated; /* not counted: of the time after the counter's last value */
};

/* The sessions that are open, and those that should be. */
struct exception_sessions {
	bool observes; /* in: is open */
	bool counts;
	bool observe; /* out: should be open */
	bool count;
};

struct exception_watch {
	uint32_t rate; /* exceptions a second; 0: all are observed, always */
	enum exception_state state;
	bool hopeless;       /* the counter has no values */
	uint32_t seen;       /* in the present second */
	uint64_t begin_ns;   /* of the present second */
	uint64_t since_ns;   /* when the state began, or the window was opened; 0: not yet */
	uint64_t value_ns;   /* when the last value was received */
	uint64_t last_ns;    /* time of the last value; 0: none since the flood began */
	uint64_t end_ns;     /* nothing after this time is wanted; 0: not set */
	uint32_t quiet;      /* values below the rate since the last one above it */
	uint32_t whole;      /* values since all are observed again */
	double per_ns;       /* the last known rate */
	VEC(uint64_t) times; /* of observed exceptions that may be in an interval to come */
	VEC(struct exception_interval) intervals; /* not settled */
	struct exception_gap tail;                /* count 0: none */
};

void exception_watch_event(struct exception_watch *watch, uint64_t time_ns);

/* `count` exceptions in the `interval_ns` before time_ns. */
void exception_watch_value(struct exception_watch *watch, uint64_t time_ns, uint64_t interval_ns,
	uint64_t count, uint64_t now_ns);

/* Moves to the next state if it is time, and fills sessions->observe and ->count. */
void exception_watch_advance(struct exception_watch *watch, struct exception_sessions *sessions,
	uint64_t now_ns);

/* When exception_watch_advance() must be called at the latest; UINT64_MAX: with the next event. */
uint64_t exception_watch_deadline_ns(const struct exception_watch *watch);

/*
 * The next gap, of an interval whose observed exceptions have all been reported: up to sorted_ns the
 * stream is complete. False: none for now.
 */
bool exception_watch_take(struct exception_watch *watch, uint64_t sorted_ns, uint64_t now_ns,
	struct exception_gap *ret_gap);

/* After the limit: a value of the counter that is about to come makes the numbers exact. */
bool exception_watch_waits(const struct exception_watch *watch, uint64_t now_ns);

/* A gap may still come, or be taken. */
bool exception_watch_has_gaps(const struct exception_watch *watch);

/* Nothing after end_ns counts, and the sessions stay as they are. */
void exception_watch_limit(struct exception_watch *watch, uint64_t end_ns);

/* The streams have ended; end_ns is the limit if there is none yet. The rest is estimated. */
void exception_watch_end(struct exception_watch *watch, uint64_t end_ns);

/* After an end: sessions are opened again. */
void exception_watch_begin(struct exception_watch *watch);

void exception_watch_done(struct exception_watch *watch);

#endif
