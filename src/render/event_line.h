/*
 * One event with its time, process and thread as one line: for people, or as a JSON object. And the
 * line in the place of events that were lost.
 */
#ifndef SPOOR_RENDER_EVENT_LINE_H
#define SPOOR_RENDER_EVENT_LINE_H

#include <stdint.h>

struct bytes;
struct event;
struct symbolmap;
struct trace;

/*
 * Appends "17:56:35.123456  4711/4712  Provider/Name  Count=12" and a line's end; `utc_offset_ns`
 * is UTC less the events' clock.
 */
void event_line(struct bytes *out, const struct trace *trace, const struct event *event,
	int64_t utc_offset_ns);

/*
 * Names of a stack's frames; `code_epoch` is the one that the event's process had. A frame's
 * function is 0 where no name is known.
 */
struct event_frames {
	struct symbolmap *names;
	uint32_t code_epoch;
};

/*
 * Appends the frames of the event's stack, the innermost first: a line for each with its function
 * and module, or its address. Nothing for an event without a stack.
 */
void event_line_stack(struct bytes *out, const struct trace *trace, const struct event *event,
	const struct event_frames *frames);

/*
 * As a JSON object: {"time":...,"pid":...,"fields":{...}}, as spoor-events(1) describes it. Of an
 * event with a stack the frames are in it, by name with `frames`, else by address.
 */
void event_line_json(struct bytes *out, const struct trace *trace, const struct event *event,
	int64_t utc_offset_ns, const struct event_frames *frames);

/*
 * The number of events lost right before this one, by the sequence numbers: event->lost_before,
 * which is not 0.
 */
void event_line_lost(struct bytes *out, const struct trace *trace, const struct event *event,
	int64_t utc_offset_ns);
void event_line_lost_json(struct bytes *out, const struct trace *trace, const struct event *event,
	int64_t utc_offset_ns);

#endif
