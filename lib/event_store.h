/*
 * Copies of events, in chunks, from the loop thread to whoever reads them: listeners (queue) and the flight recorder. One writer; a reader takes whole
 * chunks. Chunks are what is counted, waited for, and dropped.
 */
#ifndef SPOOR_LIB_EVENT_STORE_H
#define SPOOR_LIB_EVENT_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/sink.h"

/* Followed by stack (8 bytes each), activity ids (32 bytes, if any), payload; padded to 8. */
struct stored_event {
	uint32_t size; /* with all that follows */
	uint32_t payload_size;
	const struct event_entry *entry;
	uint64_t time_ns;
	uint64_t thread_id;
	uint64_t capture_thread_id;
	uint64_t lost_before;
	uint32_t sequence;
	uint16_t stack_count;
	uint8_t flags; /* enum stored_flag */
	uint8_t reserved;
};

enum stored_flag {
	STORED_STACK = 1 << 0,
	STORED_ACTIVITY = 1 << 1,
	STORED_RUN_START = 1 << 2,
	STORED_SORTED = 1 << 3,
};

struct store_chunk {
	struct store_chunk *next;
	size_t used;
	size_t room;
	uint64_t events; /* but for the library's own */
	uint64_t first_ns, last_ns;
	/* then the bytes */
};

/* Appends; the chunk must have been made for at least this event. */
struct store_chunk *store_chunk_new(size_t room);
size_t stored_size(const struct pipe_event *event);
void store_append(struct store_chunk *chunk, const struct pipe_event *event);

/* The next event at *offset (0 first), which is moved behind it; false at the end. */
bool store_next(const struct store_chunk *chunk, size_t *offset, struct pipe_event *ret_event);

#endif
