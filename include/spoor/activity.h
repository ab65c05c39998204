/*
 * Activities: what a thread is at, so that all events of one request are found again, in whatever thread and process they were fired.
 *
 *     struct spoor_activity a;
 *     spoor_activity_start(&a, "checkout", request_header("traceparent"));   NULL: child of what this thread is at, or a new trace
 *     ...                                                   every event fired here carries the activity's id
 *     spoor_activity_stop(&a);                              what the thread was at before is current again
 *
 * An activity is a span in the words of the W3C trace context: 16 bytes trace id, 8 bytes span id. Events carry the 16 bytes of its `id`: the first half of
 * the trace id and the span id. Beginning and end are events of the provider "Spoor-Activity" (ActivityStart with the whole trace id, the span's and its parent's id; ActivityStop
 * with how long it took); the first names the parent as related activity.
 *
 * The struct is the caller's and has to live from start to stop. Starting and stopping nest on one thread; to go on with an activity on another thread use
 * enter and leave there. None of it allocates or takes a lock; a fork's child goes on with what its thread was at.
 */
#ifndef SPOOR_ACTIVITY_H
#define SPOOR_ACTIVITY_H

#include <spoor/spoor.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SPOOR_TRACEPARENT_SIZE 56 /* 55 characters and the NUL */

struct spoor_activity {
	struct spoor_guid id;
	uint8_t trace_id[16];
	uint8_t span_id[8];
	uint8_t parent_span_id[8]; /* zeroes: none */
	uint8_t trace_flags;       /* bit 0: sampled */
	const char *name;
	const char *tracestate;    /* what came with the traceparent, to be handed on as it is; NULL, or the caller's */
	uint64_t started_ns;
	/* The library's. */
	const struct spoor_activity *before;
};

/*
 * Begins an activity and makes it this thread's current one. `traceparent` is the header of the same name as it came in; NULL, "" or one that is malformed: child of the
 * current activity, without one the first of a new trace. -EINVAL when it was malformed (the activity has begun all the same). `name` is borrowed until the stop.
 */
SPOOR_API int spoor_activity_start(struct spoor_activity *activity, const char *name, const char *traceparent);

/* Ends it. When it is this thread's current one, the one before is current again. */
SPOOR_API void spoor_activity_stop(struct spoor_activity *activity);

/* Makes it the current one of this thread, without events, until leave; `scope` is the caller's and keeps what was before. NULL activity: none. */
struct spoor_activity_scope {
	const struct spoor_activity *before;
};
SPOOR_API void spoor_activity_enter(const struct spoor_activity *activity, struct spoor_activity_scope *scope);
SPOOR_API void spoor_activity_leave(struct spoor_activity_scope *scope);

/* NULL: the thread is at nothing. */
SPOOR_API const struct spoor_activity *spoor_activity_current(void);

/* The header to send on: "00-TRACE-SPAN-FLAGS". */
SPOOR_API void spoor_activity_traceparent(const struct spoor_activity *activity, char ret_text[SPOOR_TRACEPARENT_SIZE]);

#ifdef __cplusplus
}
#endif

#endif
