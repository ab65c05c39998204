/*
 * One event as one line of text: provider, name, and each field by its name, as its schema says; the runtime's own events by model/clr_event.h.
 */
#ifndef SPOOR_EXPORT_EVENT_TEXT_H
#define SPOOR_EXPORT_EVENT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bytes;
struct event;
struct trace;

/* "Provider/Name": as TraceEvent calls it, so that "GC/Start" is what people know. Appended. */
void event_text_name(struct bytes *out, const struct trace *trace, const struct event *event);

/* "Count=12 Reason=\"AllocSmall\"" appended; nothing when the payload has no known layout. Texts are made safe and cut at 200 characters, arrays at 16 elements. */
void event_text_fields(struct bytes *out, const struct trace *trace, const struct event *event);

/* The text of one field, appended; false when the event has no such field. */
bool event_text_field(struct bytes *out, const struct trace *trace, const struct event *event,
	const char *name);

#endif
