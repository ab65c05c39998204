/*
 * See thread_ring.h: the begin and end of a thread, and the memory of its rings.
 */
#include "lib/event/thread_ring.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "lib/platform/platform.h"

/*
 * glibc reserves memory for this many keys in each thread; for later ones pthread_setspecific()
 * allocates.
 */
#define KEYS_WITHOUT_ALLOCATION 32u
#define SPARE_MAX               8u /* ended threads whose rings stay mapped */

static struct {
	struct thread_state *first;     /* atomic */
	uint64_t ring_total;            /* bytes of all rings; atomic */
	uint32_t spare_count;           /* free states with rings; atomic */
	uint64_t refused[SESSIONS_MAX]; /* events of threads without a ring; atomic */
	struct ring_settings settings;
	pthread_key_t key;
	bool key_made;
} rings;

__thread struct thread_state *current_thread;

struct thread_state *thread_state_first(void)
{
	return __atomic_load_n(&rings.first, __ATOMIC_ACQUIRE);
}

static void thread_ends(void *value)
{
	struct thread_state *state = value;

	/*
	 * Events that later destructors fire go into a new ring of this thread. This destructor
	 * then runs again for that ring.
	 */
	current_thread = NULL;
	__atomic_store_n(&state->status, THREAD_DEAD, __ATOMIC_RELEASE);
}

/*
 * The size of a new ring when `total` bytes are in use. The first half of the memory is for rings of
 * full size, the next quarter for rings of a sixteenth, the last for the smallest. 0: no memory is
 * left.
 */
static size_t ring_bytes_at(uint64_t total)
{
	uint64_t memory = rings.settings.memory_bytes;
	uint64_t left = memory > total ? memory - total : 0;
	size_t size = rings.settings.ring_bytes;

	if (left < memory / 4)
		size = RING_BYTES_MIN;
	else if (left <= memory / 2)
		size = size / 16 > RING_BYTES_MIN ? size / 16 : RING_BYTES_MIN;
	while (size + RING_NESTED_BYTES > left && size > RING_BYTES_MIN)
		size /= 2;
	return size + RING_NESTED_BYTES <= left ? size : 0;
}

/* Reserves memory for the rings of a thread; returns the size of its main ring, or 0. */
static size_t ring_reserve(void)
{
	uint64_t total = __atomic_load_n(&rings.ring_total, __ATOMIC_RELAXED);
	size_t size;

	do
		size = ring_bytes_at(total);
	while (size && !__atomic_compare_exchange_n(&rings.ring_total, &total,
			       total + size + RING_NESTED_BYTES, true, __ATOMIC_RELAXED,
			       __ATOMIC_RELAXED));
	return size;
}

static void ring_unreserve(size_t size)
{
	__atomic_fetch_sub(&rings.ring_total, size + RING_NESTED_BYTES, __ATOMIC_RELAXED);
}

/* The ring's memory has no pages. */
static void populated_reset(struct thread_ring *ring)
{
	uint64_t at = __atomic_load_n(&ring->front->front.published, __ATOMIC_RELAXED);

	__atomic_store_n(&ring->populated, at, __ATOMIC_RELAXED);
	__atomic_store_n(&ring->populated_end, at + ring->mask + 1, __ATOMIC_RELAXED);
}

static bool ring_map(struct thread_ring *ring, struct ring_front *own_front, size_t size,
	uint64_t thread_id)
{
	struct ring_front *front = own_front;
	uint8_t *base;

	if (rings.settings.map_in_file)
		base = rings.settings.map_in_file(size, thread_id, &front);
	else
		base = platform_map_twice(-1, 0, size);
	if (!base)
		return false;
	__atomic_store_n(&ring->base, base, __ATOMIC_RELAXED);
	ring->mask = size - 1;
	ring->front = front;
	ring->before = 0;
	ring->limit = 0;
	populated_reset(ring);
	return true;
}

static void scratch_unmap(struct thread_ring *ring)
{
	if (ring->logged.scratch)
		platform_unmap(ring->logged.scratch, SPOOR_PAYLOAD_MAX);
	ring->logged.scratch = NULL;
}

/* Maps both rings of a state that has none. */
static bool state_map(struct thread_state *state, uint64_t thread_id)
{
	size_t size = ring_reserve();

	if (!size)
		return false;
	bool main_mapped = ring_map(&state->main, &state->own_fronts[0], size, thread_id);
	if (!main_mapped ||
		!ring_map(&state->nested, &state->own_fronts[1], RING_NESTED_BYTES, thread_id)) {
		if (main_mapped && !rings.settings.map_in_file)
			platform_unmap(state->main.base, 2 * size);
		__atomic_store_n(&state->main.base, NULL, __ATOMIC_RELAXED);
		ring_unreserve(size);
		return false;
	}
	ring_populate(&state->main, state->main.populated, RING_POPULATE_BYTES);
	return true;
}

/* A state that an ended thread released, with rings or without. NULL: there is none. */
static struct thread_state *state_take(bool with_rings)
{
	for (struct thread_state *state = thread_state_first(); state; state = state->next) {
		uint32_t expected = THREAD_FREE;
		if (__atomic_load_n(&state->status, __ATOMIC_ACQUIRE) != THREAD_FREE ||
			(__atomic_load_n(&state->main.base, __ATOMIC_RELAXED) != NULL) !=
				with_rings ||
			!__atomic_compare_exchange_n(&state->status, &expected, THREAD_TAKEN, false,
				__ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		if (state->main.base)
			__atomic_fetch_sub(&rings.spare_count, 1, __ATOMIC_RELAXED);
		return state;
	}
	return NULL;
}

static struct thread_state *state_make(uint64_t thread_id)
{
	struct thread_state *state = platform_map_private(sizeof(*state));

	if (!state)
		return NULL;
	state->magic = THREAD_MAGIC;
	state->status = THREAD_TAKEN;
	if (!state_map(state, thread_id)) {
		platform_unmap(state, sizeof(*state));
		return NULL;
	}
	state->next = thread_state_first();
	return state;
}

/*
 * Signals are blocked meanwhile, and everything in it may be called in a handler: mmap() and a few
 * atomics. The destructor is set only if that needs no allocation; for other threads the loop
 * thread checks whether they still exist.
 */
struct thread_state *thread_attach(void)
{
	struct platform_signals before;
	struct thread_state *state;

	if (!__atomic_load_n(&pipe_hot.running, __ATOMIC_ACQUIRE))
		return NULL;
	platform_signals_block(&before);
	state = current_thread;
	if (!state) {
		uint64_t thread_id = platform_thread_id();
		bool taken = true;

		state = state_take(true);
		if (!state)
			state = state_take(false);
		if (!state) {
			state = state_make(thread_id);
			taken = false;
		} else if (!state->main.base && !state_map(state, thread_id)) {
			__atomic_store_n(&state->status, THREAD_FREE, __ATOMIC_RELEASE);
			state = NULL;
		}
		if (state) {
			__atomic_store_n(&state->thread_id, thread_id, __ATOMIC_RELAXED);
			__atomic_store_n(&state->main.front->thread_id, thread_id,
				__ATOMIC_RELAXED);
			__atomic_store_n(&state->nested.front->thread_id, thread_id,
				__ATOMIC_RELAXED);
			state->stack = (struct stack_bounds){ 0 };
			state->has_destructor = rings.key < KEYS_WITHOUT_ALLOCATION &&
						pthread_setspecific(rings.key, state) == 0;
			current_thread = state;
			__atomic_store_n(&state->status, THREAD_LIVE, __ATOMIC_RELEASE);
			if (!taken) {
				struct thread_state *first = thread_state_first();
				do
					state->next = first;
				while (!__atomic_compare_exchange_n(&rings.first, &first, state,
					true, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE));
			}
		}
	}
	platform_signals_restore(&before);
	return state;
}

int rings_set_up(const struct ring_settings *settings)
{
	if (!rings.key_made) {
		int r = pthread_key_create(&rings.key, thread_ends);
		if (r)
			return -r;
		rings.key_made = true;
	}
	rings.settings = *settings;
	return 0;
}

void rings_child(void)
{
	/*
	 * The states read as zero in the child, and the rings are not mapped there: only addresses
	 * are left.
	 */
	current_thread = NULL;
	if (rings.key_made)
		(void)pthread_setspecific(rings.key, NULL);
	rings.first = NULL;
	rings.ring_total = 0;
	rings.spare_count = 0;
	memset(&pipe_hot, 0, sizeof(pipe_hot));
}

void thread_state_release(struct thread_state *state)
{
	if (rings.settings.map_in_file ||
		__atomic_load_n(&rings.spare_count, __ATOMIC_RELAXED) < SPARE_MAX) {
		__atomic_fetch_add(&rings.spare_count, 1, __ATOMIC_RELAXED);
	} else {
		size_t size = state->main.mask + 1;
		platform_unmap(state->main.base, 2 * size);
		platform_unmap(state->nested.base, 2 * (size_t)RING_NESTED_BYTES);
		state->nested.base = NULL;
		scratch_unmap(&state->main);
		scratch_unmap(&state->nested);
		__atomic_store_n(&state->main.base, NULL, __ATOMIC_RELAXED);
		ring_unreserve(size);
	}
	__atomic_store_n(&state->status, THREAD_FREE, __ATOMIC_RELEASE);
}

void thread_state_trim(struct thread_state *state)
{
	struct thread_ring *ring = &state->main;

	platform_release(ring->base, ring->mask + 1);
	populated_reset(ring);
}

void ring_populate(struct thread_ring *ring, uint64_t published, uint64_t size)
{
	uint64_t page = platform_page_size();
	uint64_t from = ring->populated > published ? ring->populated : published;
	uint64_t to =
		published + size < ring->populated_end ? published + size : ring->populated_end;

	from &= ~(page - 1);
	while (from < to) {
		uint64_t at = from & ring->mask;
		uint64_t count = to - from < ring->mask + 1 - at ? to - from : ring->mask + 1 - at;
		platform_populate(ring->base + at, count);
		from += count;
		__atomic_store_n(&ring->populated, from, __ATOMIC_RELAXED);
	}
}

void rings_refuse(uint64_t sessions)
{
	for (; sessions; sessions &= sessions - 1)
		__atomic_fetch_add(&rings.refused[__builtin_ctzll(sessions)], 1, __ATOMIC_RELEASE);
}

uint64_t rings_refused(uint32_t slot)
{
	return __atomic_load_n(&rings.refused[slot], __ATOMIC_ACQUIRE);
}
