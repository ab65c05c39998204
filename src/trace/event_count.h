/*
 * Counts of events that a recorder saw but did not write (EventCount, recording/event_bound.h):
 * readers that count events add them, so that their totals are exact.
 */
#ifndef SPOOR_TRACE_EVENT_COUNT_H
#define SPOOR_TRACE_EVENT_COUNT_H

#include <stdbool.h>
#include <stdint.h>

struct event;
struct trace;

struct event_counted {
	uint64_t count;
	uint64_t first_ns; /* the first and the last of them */
	uint64_t last_ns;
};

/*
 * True for an EventCount whose kind of event is in the file. *ret_event is then an event of that
 * kind with the process, the stack and the last time of those that were counted; its payload has
 * their first field only, a type in UTF-16 with a NUL. It borrows from `event`.
 */
bool event_count_read(const struct trace *trace, const struct event *event, struct event *ret_event,
	struct event_counted *ret_counted);

#endif
