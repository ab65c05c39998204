/*
 * Copies of events, in chunks, from the loop thread to whoever reads them: listeners (queue) and the flight recorder. One writer; a reader takes whole
 * chunks. Chunks are what is counted, waited for, and dropped.
 *
 * A run of records is kept as it came from its ring, with what it takes to read it (struct stored_run): one copy, whoever reads it decodes it. Single events, and
 * runs with stacks that this session does not want, are kept one by one.
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
	uint64_t events; /* but for the library's own */
	uint64_t first_ns, last_ns;
	/* then the bytes */
};

struct store_chunk *store_chunk_new(size_t room);

/* How much room a chunk needs to take this event; the first of this run. */
size_t store_size(const struct pipe_event *event);
size_t store_run_size(const struct record_run *run);

/* Appends; false: no room in it. */
bool store_append(struct store_chunk *chunk, const struct pipe_event *event);

/* Appends as many events of the run as there is room for, and takes them off its front. False: there is no room for the first one. */
bool store_append_run(struct store_chunk *chunk, struct record_run *run);

/* Where in a chunk a reader is; all zero: at the begin. */
struct store_cursor {
	size_t offset;
	struct record_run run; /* being read */
};

/* The next event; false at the end. It is borrowed from the chunk. */
bool store_next(const struct store_chunk *chunk, struct store_cursor *cursor, struct pipe_event *ret_event);

#endif
