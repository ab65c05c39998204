/*
 * A run: records that stand one behind the other in one thread's ring and go to the same sessions. The loop thread hands a run over whole: a sink that only
 * keeps events copies its bytes and reads them later, if ever; others take it apart with record_run_next().
 *
 * Facts of a run: no loss records in it; its stamps do not fall, and one segment of the clock's line holds for all of them; its events are known.
 */
#ifndef SPOOR_LIB_PIPE_RECORD_RUN_H
#define SPOOR_LIB_PIPE_RECORD_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/platform/clock.h"
#include "lib/pipe/sink.h"

struct record_run {
	const uint8_t *records; /* borrowed */
	uint32_t bytes;
	uint32_t count;
	uint64_t thread_id;
	uint64_t last_stamp; /* of its last record */
	uint64_t next_stamp; /* what other threads still have is not stamped before this */
	uint64_t floor_ns;   /* no event of it is earlier: a thread's time never steps back */
	struct clock_segment clock;
	const struct event_entry *entry; /* of the event with this index; the newest that was looked up */
	uint32_t entry_index;
	uint32_t sequence;    /* of the first */
	uint64_t lost_before; /* the first */
	bool run_start;       /* the first is (struct pipe_event) */
	bool any_stack;
	bool stacks;          /* this session wants them */
};

/* The first event, taken off the run's front; false when there is none. What it points to is where the records are. */
bool record_run_next(struct record_run *run, struct pipe_event *ret_event);

/* As many records as `room` bytes hold, taken off the front. False: not even one. */
bool record_run_take(struct record_run *run, size_t room, struct record_run *ret_head);

/* Time of its first event, of its last. There is one. */
uint64_t record_run_first_ns(const struct record_run *run);
uint64_t record_run_last_ns(const struct record_run *run);

#endif
