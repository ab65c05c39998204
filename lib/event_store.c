/* See event_store.h. */
#include "lib/event_store.h"

#include <stdlib.h>
#include <string.h>

struct store_chunk *store_chunk_new(size_t room)
{
	struct store_chunk *chunk = malloc(sizeof(*chunk) + room);

	if (chunk)
		*chunk = (struct store_chunk){ .room = room };
	return chunk;
}

size_t stored_size(const struct pipe_event *event)
{
	size_t size = sizeof(struct stored_event) + 8u * (event->stack ? event->stack_count : 0u) + (event->activity_id ? 32u : 0u) + event->payload_size;

	return (size + 7) & ~(size_t)7;
}

void store_append(struct store_chunk *chunk, const struct pipe_event *event)
{
	uint8_t *at = (uint8_t *)(chunk + 1) + chunk->used;
	size_t size = stored_size(event);
	struct stored_event stored = {
		.size = (uint32_t)size,
		.payload_size = event->payload_size,
		.entry = event->entry,
		.time_ns = event->time_ns,
		.thread_id = event->thread_id,
		.capture_thread_id = event->capture_thread_id,
		.lost_before = event->lost_before,
		.sequence = event->sequence,
		.stack_count = (uint16_t)(event->stack ? event->stack_count : 0),
		.flags = (uint8_t)((event->stack ? STORED_STACK : 0) | (event->activity_id ? STORED_ACTIVITY : 0) |
			(event->run_start ? STORED_RUN_START : 0) | (event->sorted ? STORED_SORTED : 0)),
	};

	memcpy(at, &stored, sizeof(stored));
	at += sizeof(stored);
	if (event->stack && event->stack_count) {
		memcpy(at, event->stack, 8u * event->stack_count);
		at += 8u * event->stack_count;
	}
	if (event->activity_id) {
		memcpy(at, event->activity_id, 16);
		memcpy(at + 16, event->related_activity_id, 16);
		at += 32;
	}
	if (event->payload_size)
		memcpy(at, event->payload, event->payload_size);
	if (!chunk->used)
		chunk->first_ns = event->time_ns;
	chunk->last_ns = event->time_ns;
	chunk->used += size;
	if (!(event->entry->flags & ENTRY_OWN))
		chunk->events++;
}

bool store_next(const struct store_chunk *chunk, size_t *offset, struct pipe_event *ret_event)
{
	const uint8_t *at = (const uint8_t *)(chunk + 1) + *offset;
	struct stored_event stored;

	if (*offset >= chunk->used)
		return false;
	memcpy(&stored, at, sizeof(stored));
	*offset += stored.size;
	at += sizeof(stored);
	*ret_event = (struct pipe_event){
		.entry = stored.entry,
		.time_ns = stored.time_ns,
		.thread_id = stored.thread_id,
		.capture_thread_id = stored.capture_thread_id,
		.sequence = stored.sequence,
		.stack_count = stored.stack_count,
		.lost_before = stored.lost_before,
		.payload_size = stored.payload_size,
		.run_start = (stored.flags & STORED_RUN_START) != 0,
		.sorted = (stored.flags & STORED_SORTED) != 0,
	};
	if (stored.flags & STORED_STACK)
		ret_event->stack = (const uint64_t *)(const void *)at;
	at += 8u * stored.stack_count;
	if (stored.flags & STORED_ACTIVITY) {
		ret_event->activity_id = at;
		ret_event->related_activity_id = at + 16;
		at += 32;
	}
	ret_event->payload = at;
	return true;
}
