/*
 * A sink: the destination of a session's events. Each kind has one ops table (lib/sink/sinks.h
 * lists the kinds). Unless noted, the operations are called on the loop thread, so a sink needs no
 * lock against the pipe. They must not block: a socket takes the bytes it has room for; a file and a
 * listener have a queue and a thread.
 */
#ifndef SPOOR_LIB_PIPE_SINK_H
#define SPOOR_LIB_PIPE_SINK_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/event/provider.h"

struct record_run;
struct session;
struct sink;

/* One event between a ring and a sink. Borrowed during the call. */
struct pipe_event {
	const struct event_entry *entry;
	uint64_t time_ns;
	uint64_t thread_id;
	/* the thread that wrote it; differs from thread_id for samples of other threads */
	uint64_t capture_thread_id;
	/* counts the events of this session and capture thread, lost ones included */
	uint32_t sequence;
	uint32_t stack_count;
	const uint64_t *stack;      /* NULL unless this session records stacks */
	const uint8_t *activity_id; /* NULL, or 16 bytes; so is the related one */
	const uint8_t *related_activity_id;
	const uint8_t *payload; /* in the layout of enum spoor_type */
	uint32_t payload_size;
	/* events of this thread that were lost directly before this one */
	uint64_t lost_before;
	/* first of a run: the previous event, if any, was of another thread or pass */
	bool run_start;
	bool sorted; /* of a run's first event: no later event has an earlier time */
};

enum sink_turn_flag {
	SINK_IDLE = 1 << 0,
	SINK_FLUSH = 1 << 1,
};

/* A result of sink_ops.turn(). */
#define SINK_FLUSHING INT_MAX

struct session_sink_ops {
	const char *name;
	/*
	 * Called first, on the thread that starts the session: may wait for a disk. An error makes
	 * the session's start fail.
	 */
	int (*open)(struct sink *sink, struct session *session);
	/* Called before the first event. An error makes the session's start fail. */
	int (*begin)(struct sink *sink, struct session *session);
	/*
	 * Writes one event. 0: taken; -ENOBUFS: no room now (the session counts it as lost; not
	 * with SPOOR_BLOCK); -EMSGSIZE: too large for this sink (lost); other errors: the sink has
	 * failed.
	 */
	int (*event)(struct sink *sink, const struct pipe_event *event);
	/*
	 * Writes a run of records (record_run.h): removes events from its front; those that remain
	 * are lost. NULL: each event is written by event().
	 */
	int (*records)(struct sink *sink, struct record_run *run);
	/*
	 * Called after each pass over the rings, when all events up to watermark_ns were written to
	 * the sink. Flushes what is due; with SINK_FLUSH, everything. SINK_IDLE: the pass found no
	 * event. 0; positive: it holds data, which the next call shall flush that is due after so
	 * many microseconds, unless events come before (SINK_FLUSHING: so call
	 * again with SINK_FLUSH, for the events before the first such call); negative: the sink has
	 * failed.
	 */
	int (*turn)(struct sink *sink, uint64_t now_ns, uint64_t watermark_ns, unsigned flags);
	/*
	 * For sessions with SPOOR_BLOCK: is the buffer so full that firing threads have to wait?
	 * Called after each pass. NULL: never.
	 */
	bool (*full)(struct sink *sink);
	/*
	 * Writes the events it holds into another file (flight recorder), on the calling thread.
	 * NULL: it holds none.
	 */
	int (*snapshot)(struct sink *sink, const char *path);
	/*
	 * Takes events of the library (losses) besides those of the session. False: it reports
	 * losses in another way.
	 */
	bool takes_own;
	/*
	 * Ends the stream. 1: not done, call again after the next pass; 0: done; negative: failed.
	 * `aborted`: do not wait for the peer.
	 */
	int (*end)(struct sink *sink, bool aborted);
	/* Any thread: changes as long as its end gets on. NULL: its end does not take long. */
	uint64_t (*progress)(const struct sink *sink);
	void (*free)(struct sink *sink);
	/*
	 * In the child of fork(): closes fds. Its memory is not freed, because threads that the
	 * child does not have may have held its locks. NULL: it has no fds.
	 */
	void (*child)(struct sink *sink);
	/*
	 * Any thread: is the calling thread one of this sink, which calls a listener? Such a thread
	 * must not wait for the session's end. NULL: the sink has no thread.
	 */
	bool (*is_own_thread)(const struct sink *sink);
};

struct sink {
	const struct session_sink_ops *ops;
};

#endif
