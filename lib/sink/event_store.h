/*
 * Copies of events in chunks, from the loop thread to a reader: a listener (queue) or the flight
 * recorder. One thread writes; a reader takes whole chunks. Chunks are counted, waited for and
 * dropped as a whole.
 *
 * A run of records is copied unchanged from its ring, with what is needed to decode it (struct
 * stored_run); the reader decodes it. Single events, and runs with stacks that the session does not
 * record, are stored one by one.
 *
 * No function locks; the caller makes sure that a chunk is used by one thread at a time.
 */
#ifndef SPOOR_LIB_SINK_EVENT_STORE_H
#define SPOOR_LIB_SINK_EVENT_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/pipe/record_run.h"
#include "lib/pipe/sink.h"

struct store_chunk {
	struct store_chunk *next;
	size_t used;
	size_t room;
	uint64_t events; /* without those of the library itself */
	uint64_t first_ns, last_ns;
	/* followed by `room` bytes */
};

struct store_chunk *store_chunk_new(size_t room);

/* The room that a chunk needs for this event, or for the first event of this run. */
size_t store_size(const struct pipe_event *event);
size_t store_run_size(const struct record_run *run);

/* Appends an event; false: no room. */
bool store_append(struct store_chunk *chunk, const struct pipe_event *event);

/*
 * Appends as many events of the run as there is room for, and removes them from its front. False:
 * no room for the first one.
 */
bool store_append_run(struct store_chunk *chunk, struct record_run *run);

/* The position of a reader in a chunk; all zero: at the begin. */
struct store_cursor {
	size_t offset;
	struct record_run run; /* the run that is being read */
};

/* The next event, borrowed from the chunk; false: no more. */
bool store_next(const struct store_chunk *chunk, struct store_cursor *cursor,
	struct pipe_event *ret_event);

#endif
