/*
 * Source lines as SourceLines events, for a copy of the recording:
 *
 *   struct line_events events = { .trace = &trace, .at = lines.first };
 *   while (line_events_next(&events, &payload)) ...
 *
 * Each event has lines of one mapping or method body, and the texts that they need.
 */
#ifndef SPOOR_SYMBOLS_LINE_EVENTS_H
#define SPOOR_SYMBOLS_LINE_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

struct bytes;
struct trace;

struct line_events {
	const struct trace *trace;
	uint32_t at; /* next item of trace.lines.entries */
};

/* Appends the next payload to `payload`, which fails without memory. False: there are no more. */
bool line_events_next(struct line_events *events, struct bytes *payload);

#endif
