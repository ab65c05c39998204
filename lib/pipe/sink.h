/*
 * A sink: where a session's events go. One ops table a kind; all of it is called on the loop thread, so a sink needs no lock of its own against the
 * pipe, and must not block (a file is written, a socket takes what it can, a dispatch thread of a listener is handed a queue).
 */
#ifndef SPOOR_LIB_PIPE_SINK_H
#define SPOOR_LIB_PIPE_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/event/provider.h"

struct record_run;
struct session;
struct sink;

/* One event on its way from a ring to a sink. Borrowed during the call. */
struct pipe_event {
	const struct event_entry *entry;
	uint64_t time_ns;
	uint64_t thread_id;
	uint64_t capture_thread_id; /* who wrote it: the same, but for samples of other threads */
	uint32_t sequence;          /* of this session and capture thread: counts what was lost too */
	uint32_t stack_count;
	const uint64_t *stack;      /* NULL unless this session wants stacks */
	const uint8_t *activity_id; /* NULL, or 16 bytes; the related one too */
	const uint8_t *related_activity_id;
	const uint8_t *payload;     /* as enum spoor_type lays it out */
	uint32_t payload_size;
	uint64_t lost_before;       /* directly before it, in this thread */
	bool run_start;             /* first of a run: the event before it, if any, was of another thread or pass */
	bool sorted;                /* of a run's first: every event still to come is at least as late */
};

enum sink_turn_flag {
	SINK_IDLE = 1 << 0,
	SINK_FLUSH = 1 << 1,
};

struct sink_ops {
	const char *name;
	/* Before the first event. A failure fails the session's start. */
	int (*begin)(struct sink *sink, struct session *session);
	/* 0 taken; -ENOBUFS no room now (the session counts it as lost; not for sessions that block); -EMSGSIZE too big for this sink (lost); other: the sink has failed. */
	int (*event)(struct sink *sink, const struct pipe_event *event);
	/*
	 * The same for a run of records (record_run.h): takes events off its front, those that stay there are lost. NULL: they come one by one.
	 */
	int (*records)(struct sink *sink, struct record_run *run);
	/*
	 * After each pass over the rings: all events up to cutoff_ns have been handed over. Flushes what is due, or, with SINK_FLUSH, all. SINK_IDLE: nothing came in
	 * this pass. Negative: the sink has failed.
	 */
	int (*turn)(struct sink *sink, uint64_t now_ns, uint64_t cutoff_ns, unsigned flags);
	/* For sessions that block: beyond what may wait, so that firing threads shall wait. Asked each turn. NULL: never. */
	bool (*full)(struct sink *sink);
	/* Writes what it holds into another file (flight recorder). NULL: it holds nothing. */
	int (*snapshot)(struct sink *sink, const char *path);
	/* Takes the event a sink of bytes carries beside the wanted ones (losses). False: it has other ways to tell. */
	bool takes_own;
	/* The end: writes the last bytes. 1: not yet done, ask again next turn; 0 done; negative: failed. `aborted`: give up waiting for anybody. */
	int (*end)(struct sink *sink, bool aborted);
	void (*free)(struct sink *sink);
	/* In the child of a fork(): closes fds. Its memory stays: threads that are not there may have held its locks. NULL: it has no fds. */
	void (*child)(struct sink *sink);
	/* Any thread: does the calling thread belong to this sink (it calls a listener)? Such a thread must not wait for the session's end. NULL: no thread does. */
	bool (*is_own_thread)(const struct sink *sink);
};

struct sink {
	const struct sink_ops *ops;
};

#endif
