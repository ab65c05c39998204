/*
 * Firing in a library that has loggers and no sessions (lib/start/start_direct.c), in place of
 * firing.c: an event's payload is written into memory of the thread, and the loggers get it.
 *
 * A handler that interrupts this fires into the second place, and the event of one that interrupts
 * that is lost. The places are found by the frames of their events: one that was left by longjmp()
 * has a frame that is not above that of the next event.
 */
#include "lib/event/firing.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "lib/event/provider.h"

struct direct_place {
	uint8_t *payload; /* of SPOOR_PAYLOAD_MAX bytes; NULL: not allocated yet */
	uintptr_t frame;  /* of the event that is being written; 0: none */
	uint64_t loggers;
	size_t payload_size;
	uint32_t event;
};

static pipe_log_function *log_function;
static __thread struct direct_place places[2];
static __thread struct pipe_activity activity;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;

struct pipe_activity *pipe_activity(void)
{
	return &activity;
}

void pipe_log_to(pipe_log_function *function)
{
	__atomic_store_n(&log_function, function, __ATOMIC_RELEASE);
}

/* At the end of a thread. An event that is fired later allocates memory that is not freed. */
static void places_free(void *memory)
{
	struct direct_place *all = memory;

	for (int i = 0; i < 2; i++) {
		free(all[i].payload);
		all[i].payload = NULL;
	}
}

static void key_make(void)
{
	(void)pthread_key_create(&key, places_free);
}

static bool has_payload(struct direct_place *place)
{
	if (place->payload)
		return true;
	(void)pthread_once(&once, key_make);
	(void)pthread_setspecific(key, places);
	place->payload = malloc(SPOOR_PAYLOAD_MAX);
	return place->payload != NULL;
}

static bool is_in_use(struct direct_place *place, uintptr_t frame)
{
	if (place->frame && place->frame <= frame)
		place->frame = 0;
	return place->frame != 0;
}

static struct spoor_slot begin(struct spoor_event *event, uint64_t sessions, size_t payload_size,
	uintptr_t frame)
{
	const uint64_t loggers = __atomic_load_n(&event->sessions, __ATOMIC_ACQUIRE) & sessions;
	const struct spoor_slot none = { NULL, NULL };
	struct direct_place *place = &places[0];

	if (is_in_use(place, frame))
		place = &places[1];
	if (!loggers || payload_size > SPOOR_PAYLOAD_MAX || is_in_use(place, frame))
		return none;
	place->frame = frame;
	if (!has_payload(place)) {
		place->frame = 0;
		return none;
	}
	place->loggers = loggers;
	place->payload_size = payload_size;
	place->event = __atomic_load_n(&event->index, __ATOMIC_RELAXED);
	return (struct spoor_slot){ place->payload,
		(struct spoor_ring_front *)((uintptr_t)place | SPOOR_SLOT_LOGGED) };
}

struct spoor_slot spoor_fire_begin(struct spoor_event *event, size_t payload_size)
{
	return begin(event, UINT64_MAX, payload_size, (uintptr_t)__builtin_frame_address(0));
}

void spoor_fire_logged(struct spoor_slot slot)
{
	struct direct_place *place =
		(struct direct_place *)((uintptr_t)slot.front & ~(uintptr_t)SPOOR_SLOT_LOGGED);
	pipe_log_function *function = __atomic_load_n(&log_function, __ATOMIC_ACQUIRE);

	if (function)
		function(registry_entry(place->event), place->loggers, slot.at,
			place->payload_size);
	place->frame = 0;
}

void pipe_fire(struct spoor_event *event, uint64_t sessions, const void *payload,
	uint32_t payload_size, const uint64_t *frames, uint32_t frame_count)
{
	(void)frames, (void)frame_count;
	struct spoor_slot slot =
		begin(event, sessions, payload_size, (uintptr_t)__builtin_frame_address(0));

	if (!slot.at)
		return;
	if (payload_size)
		memcpy(slot.at, payload, payload_size);
	spoor_fire_end(slot);
}

/* ETW's sessions take stacks themselves. */
void spoor_fire_stack_walk(struct spoor_event *walk, const struct spoor_event *after,
	const void *head, size_t head_size)
{
	(void)walk, (void)after, (void)head, (void)head_size;
}

void spoor_fire(struct spoor_event *event, const void *payload, size_t size)
{
	if (!spoor_event_enabled(event))
		return;
	struct spoor_slot slot =
		begin(event, UINT64_MAX, size, (uintptr_t)__builtin_frame_address(0));
	if (!slot.at)
		return;
	if (size)
		memcpy(slot.at, payload, size);
	spoor_fire_end(slot);
}
