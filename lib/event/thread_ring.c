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
#define PREPARE_BYTES           (1u << 20) /* pages are allocated in steps of so many bytes */

/* Free states with rings, by class: of ended threads at most, and how many are made in advance. */
static const uint32_t spare_most[RING_CLASSES] = { 8, 8 };
static const uint32_t spare_prepared[RING_CLASSES] = { 2, 8 };
#define SPARE_POPULATED 2u /* of these: so many have their pages */

static struct {
	struct thread_state *first;         /* atomic */
	uint64_t ring_total;                /* bytes of all rings; atomic */
	uint32_t spare_count[RING_CLASSES]; /* free states with rings; atomic */
	uint64_t refused[SESSIONS_MAX];     /* events of threads without a ring; atomic */
	struct thread_state *preparing;     /* of the loop thread */
	struct ring_settings settings;
	pthread_key_t key;
	bool key_made;
} rings;

__thread struct thread_state *current_thread;
static __thread uint32_t attach_failed; /* the pass in which the thread got no ring */
static __thread bool is_ending;         /* its destructor has run */

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
	is_ending = true;
	struct thread_state *each = state;
	do {
		struct thread_state *next = each->others;
		__atomic_store_n(&each->status, THREAD_DEAD, __ATOMIC_RELEASE);
		each = next;
	} while (each != state);
}

/*
 * The size of a new ring when `total` bytes are in use. Large rings take the first quarter of the
 * memory at most. The first half is for first rings of full size, the next quarter for those of a
 * sixteenth, the last for the smallest. 0: no memory is left.
 */
static size_t ring_bytes_at(enum ring_class ring_class, uint64_t total)
{
	uint64_t memory = rings.settings.memory_bytes;
	uint64_t left = memory > total ? memory - total : 0;
	size_t size = rings.settings.first_bytes;

	if (ring_class == RING_LARGE) {
		size = rings.settings.large_bytes;
		return total + size + RING_NESTED_BYTES <= memory / 4 ? size : 0;
	}
	if (left < memory / 4)
		size = RING_BYTES_MIN;
	else if (left <= memory / 2)
		size = size / 16 > RING_BYTES_MIN ? size / 16 : RING_BYTES_MIN;
	while (size + RING_NESTED_BYTES > left && size > RING_BYTES_MIN)
		size /= 2;
	return size + RING_NESTED_BYTES <= left ? size : 0;
}

/* Reserves memory for the rings of a thread; returns the size of its main ring, or 0. */
static size_t ring_reserve(enum ring_class ring_class)
{
	uint64_t total = __atomic_load_n(&rings.ring_total, __ATOMIC_RELAXED);
	size_t size;

	do
		size = ring_bytes_at(ring_class, total);
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
static bool state_map(struct thread_state *state, enum ring_class ring_class, uint64_t thread_id)
{
	size_t size = ring_reserve(ring_class);

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
	state->ring_class = ring_class;
	if (ring_class == RING_LARGE)
		platform_prefer_huge(state->main.base, 2 * size);
	return true;
}

static bool is_populated(const struct thread_ring *ring)
{
	return __atomic_load_n(&ring->populated, __ATOMIC_RELAXED) >=
	       __atomic_load_n(&ring->populated_end, __ATOMIC_RELAXED);
}

/*
 * A state that is free: with rings of this class, or without rings (RING_CLASSES). NULL: there is
 * none.
 */
static struct thread_state *state_take_if(enum ring_class ring_class, bool populated)
{
	bool with_rings = ring_class != RING_CLASSES;

	for (struct thread_state *state = thread_state_first(); state; state = state->next) {
		uint32_t expected = THREAD_FREE;
		if (__atomic_load_n(&state->status, __ATOMIC_ACQUIRE) != THREAD_FREE ||
			thread_state_has_rings(state) != with_rings ||
			(with_rings && state->ring_class != ring_class) ||
			(populated && !is_populated(&state->main)) ||
			!__atomic_compare_exchange_n(&state->status, &expected, THREAD_TAKEN, false,
				__ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		/* Another thread may have used it in the meantime, and left it without rings. */
		if (thread_state_has_rings(state) != with_rings ||
			(with_rings && state->ring_class != ring_class)) {
			__atomic_store_n(&state->status, THREAD_FREE, __ATOMIC_RELEASE);
			continue;
		}
		if (with_rings)
			__atomic_fetch_sub(&rings.spare_count[ring_class], 1, __ATOMIC_RELAXED);
		return state;
	}
	return NULL;
}

/* The same; one whose pages exist if there is one. */
static struct thread_state *state_take(enum ring_class ring_class)
{
	struct thread_state *state =
		ring_class == RING_CLASSES ? NULL : state_take_if(ring_class, true);

	return state ? state : state_take_if(ring_class, false);
}

/* A state with new rings, not in the list if it is new itself. NULL: no memory. */
static struct thread_state *state_make(enum ring_class ring_class, uint64_t thread_id)
{
	struct thread_state *state = state_take(RING_CLASSES);

	if (!state) {
		state = platform_map_private(sizeof(*state));
		if (!state)
			return NULL;
		state->magic = THREAD_MAGIC;
		state->status = THREAD_TAKEN;
	}
	if (state_map(state, ring_class, thread_id))
		return state;
	if (state->listed)
		__atomic_store_n(&state->status, THREAD_FREE, __ATOMIC_RELEASE);
	else
		platform_unmap(state, sizeof(*state));
	return NULL;
}

/* Sets the status of a state that was taken. The loop thread finds it from here on. */
static void state_publish(struct thread_state *state, enum thread_status status)
{
	struct thread_state *first = thread_state_first();

	__atomic_store_n(&state->status, status, __ATOMIC_RELEASE);
	if (state->listed)
		return;
	state->listed = true;
	do
		state->next = first;
	while (!__atomic_compare_exchange_n(&rings.first, &first, state, true, __ATOMIC_RELEASE,
		__ATOMIC_ACQUIRE));
}

/* Makes the state that of the calling thread. */
static void state_bind(struct thread_state *state, uint64_t thread_id)
{
	uint64_t stamp = pipe_hot.counter ? ticks_read() : platform_now_ns();

	__atomic_store_n(&state->thread_id, thread_id, __ATOMIC_RELAXED);
	__atomic_store_n(&state->main.front->thread_id, thread_id, __ATOMIC_RELAXED);
	__atomic_store_n(&state->nested.front->thread_id, thread_id, __ATOMIC_RELAXED);
	state->main.tail_stamp = state->nested.tail_stamp = stamp; /* no record is earlier */
	state->others = state;
	__atomic_store_n(&state->root, state, __ATOMIC_RELAXED);
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
	/* One try for each pass: a thread that loses its events does not become slow as well. */
	uint32_t passes = __atomic_load_n(&pipe_hot.passes, __ATOMIC_RELAXED);
	if (passes && attach_failed == passes)
		return NULL;
	platform_signals_block(&before);
	state = current_thread;
	if (!state) {
		uint64_t thread_id = platform_thread_id();

		state = state_take(RING_FIRST);
		if (!state) {
			state = state_make(RING_FIRST, thread_id);
			if (state)
				ring_populate(&state->main, state->main.populated,
					RING_POPULATE_BYTES);
		}
		if (state) {
			state_bind(state, thread_id);
			state->stack = (struct stack_bounds){ 0 };
			/* A thread that is ending may have no further round of destructors. */
			state->has_destructor = rings.key < KEYS_WITHOUT_ALLOCATION &&
						pthread_setspecific(rings.key, state) == 0 &&
						!is_ending;
			current_thread = state;
			state_publish(state, THREAD_LIVE);
		} else {
			attach_failed = passes;
		}
	}
	platform_signals_restore(&before);
	return state;
}

static bool is_empty(const struct thread_ring *ring)
{
	return __atomic_load_n(&ring->front->tail, __ATOMIC_ACQUIRE) ==
	       ring->front->front.published;
}

/*
 * A state with large rings that this thread has left, or one whose large rings were returned since.
 * Both rings are empty, because the records of a state are read together. Not one that interrupted
 * code has entered (thread_ring.h).
 */
static struct thread_state *state_left(struct thread_state *state, bool with_rings)
{
	for (struct thread_state *other = state->others; other != state; other = other->others) {
		uint32_t expected = THREAD_LEFT;
		if (other->ring_class == RING_LARGE &&
			thread_state_has_rings(other) == with_rings &&
			!(__atomic_load_n(&other->main.front->front.turn, __ATOMIC_RELAXED) & 1) &&
			is_empty(&other->main) && is_empty(&other->nested) &&
			__atomic_compare_exchange_n(&other->status, &expected, THREAD_TAKEN, false,
				__ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
			/* The loop thread may have returned them in the meantime. */
			if (thread_state_has_rings(other) == with_rings)
				return other;
			__atomic_store_n(&other->status, THREAD_LEFT, __ATOMIC_RELEASE);
		}
	}
	return NULL;
}

/* Moves the memory of a ring to another one, which has none; both are empty. */
static void ring_hand_over(struct thread_ring *from, struct thread_ring *to)
{
	uint64_t at = to->front->front.published;
	bool populated = is_populated(from);

	to->mask = from->mask;
	to->before = 0; /* the record before is not in this memory */
	to->logged.scratch = from->logged.scratch;
	from->logged.scratch = NULL;
	__atomic_store_n(&to->populated, populated ? at + to->mask + 1 : at, __ATOMIC_RELAXED);
	__atomic_store_n(&to->populated_end, at + to->mask + 1, __ATOMIC_RELAXED);
	__atomic_store_n(&to->base, from->base, __ATOMIC_RELAXED);
	__atomic_store_n(&from->base, NULL, __ATOMIC_RELAXED);
}

/*
 * A state of this thread with the rings of `spare`: one that it has left, whose rings were returned,
 * or else the spare itself.
 */
static struct thread_state *state_of_spare(struct thread_state *state, struct thread_state *spare)
{
	struct thread_state *left = state_left(state, false);

	if (left) {
		ring_hand_over(&spare->nested, &left->nested);
		ring_hand_over(&spare->main, &left->main);
		__atomic_store_n(&spare->status, THREAD_FREE, __ATOMIC_RELEASE);
		return left;
	}
	state_bind(spare, state->thread_id);
	spare->stack = state->stack;
	spare->has_destructor = state->has_destructor;
	spare->others = state->others;
	state->others = spare;
	__atomic_store_n(&spare->root, state->root, __ATOMIC_RELAXED);
	return spare;
}

struct thread_state *thread_move(struct thread_state *state)
{
	uint32_t passes = __atomic_load_n(&pipe_hot.passes, __ATOMIC_RELAXED);

	/* One search for each pass: a thread that loses its events does not become slow as well. */
	if (!rings.settings.large_bytes || state->move_failed == passes ||
		!__atomic_load_n(&pipe_hot.running, __ATOMIC_ACQUIRE))
		return NULL;
	struct thread_state *to = state_left(state, true);
	if (!to) {
		struct thread_state *spare = state_take(RING_LARGE);
		if (!spare) {
			state->move_failed = passes;
			return NULL;
		}
		to = state_of_spare(state, spare);
	}
	state_publish(to, THREAD_LIVE);
	return to;
}

/* The next record on the other ring is preceded by a record of these losses. */
static void losses_move(struct thread_ring *from, struct thread_ring *to)
{
	if (!from->loss_sessions)
		return;
	if (!to->loss_sessions)
		to->loss_first_stamp = from->loss_first_stamp;
	to->loss_last_stamp = from->loss_last_stamp;
	to->loss_sessions |= from->loss_sessions;
	to->limit = 0;
	from->loss_sessions = 0;
}

void thread_moved(struct thread_state *from, struct thread_state *to)
{
	losses_move(&from->main, &to->main);
	losses_move(&from->nested, &to->nested);
	from->main.limit = 0; /* see thread_ring.h: code that enters it takes the slow path */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	__atomic_store_n(&current_thread, to, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	__atomic_store_n(&from->main.front->front.turn, from->main.front->front.turn + 1,
		__ATOMIC_RELEASE);
	__atomic_store_n(&from->status, THREAD_LEFT, __ATOMIC_RELEASE);
}

/* The size of rings of this class with the memory that exists at the start. */
static size_t class_bytes(const struct ring_settings *settings, enum ring_class ring_class)
{
	return ring_class == RING_LARGE ? settings->large_bytes : settings->first_bytes;
}

int rings_set_up(const struct ring_settings *settings)
{
	bool same = true;

	if (!rings.key_made) {
		int r = pthread_key_create(&rings.key, thread_ends);
		if (r)
			return -r;
		rings.key_made = true;
	}
	for (enum ring_class i = 0; i < RING_CLASSES; i++)
		same = same && class_bytes(settings, i) == class_bytes(&rings.settings, i);
	/* Rings of another size were made ready before spoor_stop(). */
	if (!same && !settings->map_in_file)
		rings_unprepare();
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
	rings.preparing = NULL;
	memset(rings.spare_count, 0, sizeof(rings.spare_count));
	memset(&pipe_hot, 0, sizeof(pipe_hot));
}

void thread_state_unmap(struct thread_state *state)
{
	size_t size = state->main.mask + 1;

	platform_unmap(state->main.base, 2 * size);
	platform_unmap(state->nested.base, 2 * (size_t)RING_NESTED_BYTES);
	state->nested.base = NULL;
	scratch_unmap(&state->main);
	scratch_unmap(&state->nested);
	__atomic_store_n(&state->main.base, NULL, __ATOMIC_RELAXED);
	ring_unreserve(size);
}

void thread_state_release(struct thread_state *state)
{
	__atomic_store_n(&state->root, state, __ATOMIC_RELAXED);
	uint32_t *spares = &rings.spare_count[state->ring_class];

	bool fits = state->main.mask < class_bytes(&rings.settings, state->ring_class);
	bool is_kept =
		rings.settings.map_in_file ||
		(fits && __atomic_load_n(spares, __ATOMIC_RELAXED) < spare_most[state->ring_class]);
	if (thread_state_has_rings(state) && is_kept)
		__atomic_fetch_add(spares, 1, __ATOMIC_RELAXED);
	else if (thread_state_has_rings(state))
		thread_state_unmap(state);
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

bool rings_prepare(void)
{
	const size_t sizes[RING_CLASSES] = { rings.settings.first_bytes,
		rings.settings.large_bytes };

	if (rings.settings.map_in_file || !sizes[RING_LARGE])
		return true;
	for (enum ring_class i = 0; i < RING_CLASSES && !rings.preparing; i++)
		if (__atomic_load_n(&rings.spare_count[i], __ATOMIC_RELAXED) < spare_prepared[i])
			rings.preparing = state_make(i, 0);
	struct thread_state *state = rings.preparing;
	if (!state)
		return true;
	uint32_t populated = 0;
	for (struct thread_state *other = thread_state_first(); other; other = other->next)
		populated += __atomic_load_n(&other->status, __ATOMIC_ACQUIRE) == THREAD_FREE &&
			     __atomic_load_n(&other->main.base, __ATOMIC_RELAXED) &&
			     other->ring_class == state->ring_class && is_populated(&other->main);
	if (populated < SPARE_POPULATED) {
		ring_populate(&state->main, state->main.populated, PREPARE_BYTES);
		if (!is_populated(&state->main))
			return false;
	}
	rings.preparing = NULL;
	__atomic_fetch_add(&rings.spare_count[state->ring_class], 1, __ATOMIC_RELAXED);
	state_publish(state, THREAD_FREE);
	return false;
}

void rings_unprepare(void)
{
	struct thread_state *state = rings.preparing;

	rings.preparing = NULL;
	if (state) {
		thread_state_unmap(state);
		state_publish(state, THREAD_FREE);
	}
	for (enum ring_class i = 0; i < RING_CLASSES; i++) {
		while ((state = state_take(i))) {
			thread_state_unmap(state);
			__atomic_store_n(&state->status, THREAD_FREE, __ATOMIC_RELEASE);
		}
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
