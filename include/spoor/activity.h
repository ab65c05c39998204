/*
 * Activities. An activity identifies the unit of work (for example, one request) that a thread is
 * processing. Every event that the thread fires carries the activity's id, so that all events of
 * one request can be found, whichever thread or process fired them.
 *
 *     struct spoor_activity a;
 *     spoor_activity_start(&a, "checkout", request_header("traceparent"));   NULL: child of the thread's current activity, or a new trace
 *     ...                                                   every event fired here carries the activity's id
 *     spoor_activity_stop(&a);                              the thread's previous activity is current again
 *
 * An activity is a span of the W3C trace context: a trace id of 16 bytes and a span id of 8 bytes.
 * Events carry the 16 bytes of its `id`: the first half of the trace id and the span id. Start and
 * stop are events of the provider "Spoor-Activity": ActivityStart has the whole trace id, the span
 * id and the parent's span id, and names the parent as the related activity; ActivityStop has the
 * duration.
 *
 * Rules. The struct is owned by the caller and must exist from start to stop. Activities nest on
 * one thread; another thread continues an activity with enter and leave. All functions may be
 * called from any thread, before spoor_start(), and on both sides of a fork: the child continues
 * the current activity of the thread that called fork(). None allocates or takes a lock. Start,
 * stop, enter and leave are not for signal handlers. Only spoor_activity_start() can fail.
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
	/*
	 * the tracestate header of the request, for the program to send on; NULL or memory of the
	 * caller
	 */
	const char *tracestate;
	uint64_t started_ns;
	/* Used by the library. */
	const struct spoor_activity *before;
};

/*
 * Starts an activity and makes it the current one of the calling thread. `traceparent` is the
 * header of that name from the incoming request. If it is NULL, "" or malformed, the new activity
 * is a child of the current one, or the first of a new trace. Returns 0, or -EINVAL for a malformed
 * header; the activity is started in both cases. `name` is borrowed until spoor_activity_stop().
 */
SPOOR_API int spoor_activity_start(struct spoor_activity *activity, const char *name,
	const char *traceparent);

/*
 * Stops an activity. If it is the current one of the calling thread, the previous activity becomes
 * current.
 */
SPOOR_API void spoor_activity_stop(struct spoor_activity *activity);

/*
 * Makes an activity (NULL: none) the current one of the calling thread until
 * spoor_activity_leave(), without events. `scope` is owned by the caller and stores the previous
 * activity.
 */
struct spoor_activity_scope {
	const struct spoor_activity *before;
};
SPOOR_API void spoor_activity_enter(const struct spoor_activity *activity,
	struct spoor_activity_scope *scope);
SPOOR_API void spoor_activity_leave(struct spoor_activity_scope *scope);

/* The current activity of the calling thread; NULL: none. Safe in signal handlers. */
SPOOR_API const struct spoor_activity *spoor_activity_current(void);

/*
 * Writes the traceparent header for outgoing requests: "00-TRACE-SPAN-FLAGS". Safe in signal
 * handlers.
 */
SPOOR_API void spoor_activity_traceparent(const struct spoor_activity *activity,
	char ret_text[SPOOR_TRACEPARENT_SIZE]);

#ifdef __cplusplus
}
#endif

#endif
