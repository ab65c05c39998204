/* See event_store.h. */
#include "lib/sink/event_store.h"

#include <stdlib.h>
#include <string.h>

#include "lib/event/thread_ring.h"

#define RUN_LEAST 4u /* fewer records take less room as single events */

/*
 * The head of an entry in a chunk: a single event or a run. `size` includes the data that follows;
 * a multiple of 8.
 */
struct stored_head {
	uint32_t size;
	uint32_t run_count; /* 0: a single event */
};

/* Followed by the stack (8 bytes each), activity ids (32 bytes, if any), and the payload. */
struct stored_event {
	struct stored_head head;
	const struct event_entry *entry;
	uint64_t time_ns;
	uint64_t thread_id;
	uint64_t capture_thread_id;
	uint64_t lost_before;
	uint32_t sequence;
	uint16_t stack_count;
	uint8_t flags;   /* enum stored_flag */
	uint8_t padding; /* bytes after the payload */
};

enum stored_flag {
	STORED_STACK = 1 << 0,
	STORED_ACTIVITY = 1 << 1,
	STORED_RUN_START = 1 << 2,
	STORED_SORTED = 1 << 3,
};

/* Followed by the records. */
struct stored_run {
	struct stored_head head;
	struct record_run run; /* without the address of its records: a chunk may be moved */
};
_Static_assert(sizeof(struct stored_run) % 8 == 0 && sizeof(struct stored_event) % 8 == 0,
	"what follows holds numbers of eight bytes");

struct store_chunk *store_chunk_new(size_t room)
{
	struct store_chunk *chunk = malloc(sizeof(*chunk) + room);

	if (chunk)
		*chunk = (struct store_chunk){ .room = room };
	return chunk;
}

static uint8_t *end_of(struct store_chunk *chunk)
{
	return (uint8_t *)(chunk + 1) + chunk->used;
}

static size_t plain_size(const struct pipe_event *event)
{
	return sizeof(struct stored_event) + 8u * (event->stack ? event->stack_count : 0u) +
	       (event->activity_id ? 32u : 0u) + event->payload_size;
}

size_t store_size(const struct pipe_event *event)
{
	return (plain_size(event) + 7) & ~(size_t)7;
}

size_t store_run_size(const struct record_run *run)
{
	struct record_run rest = *run;
	struct pipe_event event;

	return record_run_next(&rest, &event) ? store_size(&event) : 0;
}

static void chunk_filled(struct store_chunk *chunk, size_t size, uint64_t events, uint64_t first_ns,
	uint64_t last_ns)
{
	if (!chunk->used)
		chunk->first_ns = first_ns;
	chunk->last_ns = last_ns;
	chunk->used += size;
	chunk->events += events;
}

bool store_append(struct store_chunk *chunk, const struct pipe_event *event)
{
	uint8_t *at = end_of(chunk);
	size_t size = store_size(event);

	if (chunk->room - chunk->used < size)
		return false;
	struct stored_event stored = {
		.head = { (uint32_t)size, 0 },
		.entry = event->entry,
		.time_ns = event->time_ns,
		.thread_id = event->thread_id,
		.capture_thread_id = event->capture_thread_id,
		.lost_before = event->lost_before,
		.sequence = event->sequence,
		.stack_count = (uint16_t)(event->stack ? event->stack_count : 0),
		.flags = (uint8_t)((event->stack ? STORED_STACK : 0) |
				   (event->activity_id ? STORED_ACTIVITY : 0) |
				   (event->run_start ? STORED_RUN_START : 0) |
				   (event->sorted ? STORED_SORTED : 0)),
		.padding = (uint8_t)(size - plain_size(event)),
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
	chunk_filled(chunk, size, event->entry->flags & ENTRY_OWN ? 0 : 1, event->time_ns,
		event->time_ns);
	return true;
}

static bool append_whole(struct store_chunk *chunk, struct record_run *run)
{
	size_t left = chunk->room - chunk->used;
	struct stored_run stored;

	if (left <= sizeof(stored) || !record_run_take(run, left - sizeof(stored), &stored.run))
		return false;
	stored.head = (struct stored_head){ (uint32_t)sizeof(stored) + stored.run.bytes,
		stored.run.count };
	memcpy(end_of(chunk), &stored, sizeof(stored));
	memcpy(end_of(chunk) + sizeof(stored), stored.run.records, stored.run.bytes);
	chunk_filled(chunk, stored.head.size, stored.run.count, record_run_first_ns(&stored.run),
		record_run_last_ns(&stored.run));
	return true;
}

bool store_append_run(struct store_chunk *chunk, struct record_run *run)
{
	struct pipe_event event;
	bool any = false;

	if (run->count >= RUN_LEAST && (run->stacks || !run->any_stack))
		return append_whole(chunk, run);
	for (;; any = true) {
		struct record_run rest = *run;
		if (!record_run_next(&rest, &event) || !store_append(chunk, &event))
			return any;
		*run = rest;
	}
}

static void event_of(const struct stored_event *stored, const uint8_t *at,
	struct pipe_event *ret_event)
{
	const uint8_t *end = at + stored->head.size - sizeof(*stored) - stored->padding;

	*ret_event = (struct pipe_event){
		.entry = stored->entry,
		.time_ns = stored->time_ns,
		.thread_id = stored->thread_id,
		.capture_thread_id = stored->capture_thread_id,
		.sequence = stored->sequence,
		.stack_count = stored->stack_count,
		.lost_before = stored->lost_before,
		.run_start = (stored->flags & STORED_RUN_START) != 0,
		.sorted = (stored->flags & STORED_SORTED) != 0,
	};
	if (stored->flags & STORED_STACK)
		ret_event->stack = (const uint64_t *)(const void *)at;
	at += 8u * stored->stack_count;
	if (stored->flags & STORED_ACTIVITY) {
		ret_event->activity_id = at;
		ret_event->related_activity_id = at + 16;
		at += 32;
	}
	ret_event->payload = at;
	ret_event->payload_size = (uint32_t)(end - at);
}

bool store_next(const struct store_chunk *chunk, struct store_cursor *cursor,
	struct pipe_event *ret_event)
{
	const uint8_t *at = (const uint8_t *)(chunk + 1) + cursor->offset;
	struct stored_head head;
	struct stored_event stored;

	if (record_run_next(&cursor->run, ret_event))
		return true;
	if (cursor->offset >= chunk->used)
		return false;
	memcpy(&head, at, sizeof(head));
	cursor->offset += head.size;
	if (head.run_count) {
		memcpy(&cursor->run, at + offsetof(struct stored_run, run), sizeof(cursor->run));
		cursor->run.records = at + sizeof(struct stored_run);
		return record_run_next(&cursor->run, ret_event);
	}
	memcpy(&stored, at, sizeof(stored));
	event_of(&stored, at + sizeof(stored), ret_event);
	return true;
}
