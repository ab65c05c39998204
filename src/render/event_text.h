/*
 * One event as one line of text: provider, name, and each field by its name in the schema; the
 * runtime's own events by trace/clr_event.h, a collector's dynamic ones by trace/gc_dynamic.h. The
 * same fields as JSON.
 */
#ifndef SPOOR_RENDER_EVENT_TEXT_H
#define SPOOR_RENDER_EVENT_TEXT_H

#include <stdbool.h>
#include <stdint.h>

struct bytes;
struct event;
struct json;
struct trace;

/*
 * "Provider/Name": as TraceEvent calls it, so that "GC/Start" is what people know; a dynamic event
 * of a collector has its own name. Appended. The bare name is without provider.
 */
void event_text_name(struct bytes *out, const struct trace *trace, const struct event *event);
void event_text_bare_name(struct bytes *out, const struct trace *trace, const struct event *event);

/* Its name is in its payload, not in its schema. */
bool event_text_is_dynamic(const struct trace *trace, const struct event *event);

/*
 * "Count=12 Reason=\"AllocSmall\"" appended; "(12 bytes)" when the payload has no known layout, and
 * a ? after the last field that can be decoded when the schema has more. Texts are made safe and
 * cut at 200 characters, arrays at 16 elements (those of dynamic events are whole).
 */
void event_text_fields(struct bytes *out, const struct trace *trace, const struct event *event);

/*
 * The member "fields", an object: numbers, true and false, texts whole, arrays, objects; addresses
 * and guids are texts; bytes without a description are hexadecimal digits in "payload" or "Data".
 * False: the payload does not fit its description, and the object has the fields before the
 * mismatch.
 */
bool event_text_json(struct json *j, const struct trace *trace, const struct event *event);

/* The text of one field, appended; false when the event has no such field. */
bool event_text_field(struct bytes *out, const struct trace *trace, const struct event *event,
	const char *name);

/* Appends its labels, " {trace_id=4bf9... span_id=00f0... Customer=\"x\"}", if it has some. */
void event_text_labels(struct bytes *out, const struct event *event);

/*
 * Members "trace_id" and "span_id", hexadecimal texts as W3C writes them, and "labels", an object
 * of texts and numbers; each left out when there is none.
 */
void event_text_labels_json(struct json *j, const struct event *event);

#endif
