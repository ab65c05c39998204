/*
 * Counts of events that a recorder did not write (EventCount): of those that it saw
 * (recording/event_bound.h), and those that it did not (recording/exception_watch.h):
 * readers that count events add them, so that their totals are exact.
 */
#ifndef SPOOR_TRACE_EVENT_COUNT_H
#define SPOOR_TRACE_EVENT_COUNT_H

#include <stdbool.h>
#include <stdint.h>

struct event;
struct trace;

/* Source of those that nobody observed: the runtime's counter, and what its rate lets expect. */
#define EVENT_COUNT_COUNTER  "exception-count"
#define EVENT_COUNT_ESTIMATE "estimate"

struct event_counted {
	bool unseen; /* not observed: their type is not known, and the payload is an empty text */
	bool estimated; /* not observed, and their number is an estimate */
	uint64_t count;
	uint64_t first_ns; /* time of the first event */
	uint64_t last_ns;  /* time of the last event */
};

/*
 * True for an EventCount whose kind of event is in the file. *ret_event is then an event of that
 * kind with the process, the stack and the last time of those that were counted; its payload has
 * their first field only, a type in UTF-16 with a NUL. It borrows from `event`.
 */
bool event_count_read(const struct trace *trace, const struct event *event, struct event *ret_event,
	struct event_counted *ret_counted);

#endif
