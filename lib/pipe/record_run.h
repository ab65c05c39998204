/*
 * A run: consecutive records in one thread's ring that are for the same sessions. The loop thread
 * passes a run to a sink as a whole: a sink that only stores events copies the bytes, and decodes
 * them when they are read; other sinks decode each event with record_run_next().
 *
 * Invariants: a run has no loss records; its stamps do not decrease and lie in one segment of the
 * clock; the entries of its events exist.
 */
#ifndef SPOOR_LIB_PIPE_RECORD_RUN_H
#define SPOOR_LIB_PIPE_RECORD_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/pipe/sink.h"
#include "lib/platform/clock.h"

struct record_run {
	const uint8_t *records; /* borrowed */
	uint32_t bytes;
	uint32_t count;
	uint64_t thread_id;
	uint64_t last_stamp; /* of the last record */
	uint64_t next_stamp; /* no pending record of another thread has an earlier stamp */
	/* no event of the run has an earlier time: the time of a thread never decreases */
	uint64_t floor_ns;
	struct clock_segment clock;
	const struct event_entry *entry; /* entry of entry_index; the last one that was looked up */
	uint32_t entry_index;
	uint32_t sequence;    /* of the first record */
	uint64_t lost_before; /* events lost before the first record */
	bool run_start;       /* of the first record (struct pipe_event) */
	bool any_stack;
	bool stacks; /* this session records stacks */
};

/*
 * Removes the first event from the run. False: the run is empty. Pointers of the event point into
 * the records.
 */
bool record_run_next(struct record_run *run, struct pipe_event *ret_event);

/* A record without a stack and without activity ids. */
struct run_record {
	const struct event_entry *entry;
	uint64_t time_ns;
	const uint8_t *payload; /* borrowed */
	uint32_t payload_size;
	uint32_t size; /* of the record */
};

/*
 * The first record of the run, which stays there. False: the run is empty, or that record has a
 * stack or activity ids.
 */
bool record_run_plain(struct record_run *run, struct run_record *ret_record);
/* Removes it. */
void record_run_skip(struct record_run *run, const struct run_record *record);

/* Removes as many records as `room` bytes hold, from the front. False: not even one. */
bool record_run_take(struct record_run *run, size_t room, struct record_run *ret_head);

/* Times of the first and of the last event. The run is not empty. */
uint64_t record_run_first_ns(const struct record_run *run);
uint64_t record_run_last_ns(const struct record_run *run);

#endif
