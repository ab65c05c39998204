/*
 * See firing.h.
 *
 * The fast path is spoor_fire_begin() down to the stamp. Unusual cases (no ring yet, no room,
 * stacks, activities, unreported losses, a signal inside a record) leave it at one of two branches.
 * On the slow path the thread is inside its record (`turn` is odd) except while it waits.
 */
#include "lib/event/firing.h"

#include <string.h>

#include "lib/event/left_record.h"
#include "lib/event/record_entry.h"
#include "lib/event/thread_ring.h"
#include "lib/platform/loop.h"
#include "lib/platform/platform.h"

_Static_assert(offsetof(struct ring_front, front) == 0,
	"what the header's fire_end() gets is a ring's front");

struct pipe_hot pipe_hot;
static pipe_log_function *log_function;

/* Initial-exec (the whole library is compiled so): the first access does not allocate. */
static __thread struct pipe_activity activity;

struct pipe_activity *pipe_activity(void)
{
	return &activity;
}

/* Where the payload of an event goes that no session enables. NULL: no memory. */
static uint8_t *scratch_of(struct thread_ring *ring)
{
	if (!ring->logged.scratch)
		ring->logged.scratch = platform_map_private(SPOOR_PAYLOAD_MAX);
	return ring->logged.scratch;
}

static const struct spoor_slot no_slot;

static inline uint32_t units_of(size_t size)
{
	return (uint32_t)((size + RECORD_UNIT - 1) / RECORD_UNIT);
}

/*
 * Is there room for `size` bytes? Reads how much of the ring the loop thread has drained. A thread
 * that reaches the end of the populated pages wakes the loop thread, which populates more of them
 * if the thread is fast.
 */
static bool has_room(const struct thread_state *state, struct thread_ring *ring, size_t size)
{
	uint64_t at = ring->front->front.published;
	uint64_t limit = __atomic_load_n(&ring->front->tail, __ATOMIC_ACQUIRE) + ring->mask + 1;
	uint64_t populated = __atomic_load_n(&ring->populated, __ATOMIC_RELAXED);

	ring->limit = limit;
	if (limit - at < size)
		return false;
	if (populated < __atomic_load_n(&ring->populated_end, __ATOMIC_RELAXED)) {
		if (at + size > populated) {
			loop_wake();
			populated = at + size + RING_POPULATE_BYTES;
		}
		if (populated < limit)
			ring->limit = populated;
	}
	if (left_wait_any(state))
		ring->limit = 0;
	return true;
}

/*
 * Writes the header of a record of `size` bytes at the end of the ring, where room was found.
 * Returns where the data after the header goes.
 */
static inline uint8_t *header_write(struct thread_ring *ring, uint64_t now, uint64_t at,
	size_t size, uint32_t flags, uint32_t event, uint64_t sessions)
{
	struct record *record = (struct record *)(void *)(ring->base + (at & ring->mask));
	uint32_t units = units_of(size);
	uint32_t padding = units * RECORD_UNIT - (uint32_t)size;

	record->stamp = now;
	record->sizes = units | ring->before << RECORD_BEFORE_SHIFT |
			padding << RECORD_PADDING_SHIFT | flags << RECORD_FLAG_SHIFT;
	record->event = event;
	record->sessions = sessions;
	ring->before = units;
	/* The header is complete when `next` differs from `published`. */
	__atomic_store_n(&ring->front->front.next, at + units * RECORD_UNIT, __ATOMIC_RELEASE);
	return (uint8_t *)record + RECORD_HEADER;
}

static size_t loss_record_size(const struct thread_ring *ring)
{
	return ring->loss_sessions
		       ? RECORD_HEADER +
				 8u * ((size_t)__builtin_popcountll(ring->loss_sessions) + 2)
		       : 0;
}

/* Writes a loss record, for which room was found, before that of an event of sessions `wanted`. */
static void loss_write(struct thread_state *state, struct thread_ring *ring, uint64_t wanted)
{
	uint64_t sessions = ring->loss_sessions;
	uint8_t *at = header_write(ring, record_stamp(), ring->front->front.published,
		loss_record_size(ring), 0, RECORD_LOSS, sessions);

	for (uint64_t left = sessions; left; left &= left - 1) {
		uint64_t lost = __atomic_load_n(&state->root->lost[__builtin_ctzll(left)],
			__ATOMIC_RELAXED);
		memcpy(at, &lost, sizeof(lost));
		at += sizeof(lost);
	}
	memcpy(at, &ring->loss_first_stamp, 8);
	memcpy(at + 8, &ring->loss_last_stamp, 8);
	ring->loss_sessions = 0;
	__atomic_store_n(&ring->front->front.published, ring->front->front.next, __ATOMIC_RELEASE);
	record_note(ring, ring->front->front.published, wanted);
}

/* Sleeps until the loop thread has made room or `until_ns` is reached. False: the time is over. */
static bool wait_for_room(uint64_t until_ns)
{
	uint32_t word = __atomic_load_n(&pipe_hot.room_word, __ATOMIC_ACQUIRE);
	uint64_t now = platform_now_ns();

	if (now >= until_ns || !__atomic_load_n(&pipe_hot.running, __ATOMIC_RELAXED))
		return false;
	__atomic_store_n(&pipe_hot.waiting, 1, __ATOMIC_SEQ_CST);
	/*
	 * The loop thread wakes waiting threads, but may have checked for them just before this
	 * store. So each sleep is at most 2 ms.
	 */
	uint64_t left = until_ns - now;
	platform_wait(&pipe_hot.room_word, word, left < 2000000 ? left : 2000000);
	return true;
}

static uint64_t longest_block_ns(uint64_t sessions)
{
	uint64_t longest = 0;

	for (uint64_t left = sessions; left; left &= left - 1) {
		uint64_t ns = __atomic_load_n(&pipe_hot.block_ns[__builtin_ctzll(left)],
			__ATOMIC_RELAXED);
		if (ns > longest)
			longest = ns;
	}
	return longest;
}

/* Until when a thread waits for sinks that are full: block_ms after they last took something. */
static uint64_t stall_end_ns(uint64_t stalled)
{
	uint64_t latest = 0;

	for (uint64_t left = stalled; left; left &= left - 1) {
		int slot = __builtin_ctzll(left);
		uint64_t ns = __atomic_load_n(&pipe_hot.taken_ns[slot], __ATOMIC_RELAXED) +
			      __atomic_load_n(&pipe_hot.block_ns[slot], __ATOMIC_RELAXED);
		if (ns > latest)
			latest = ns;
	}
	return latest;
}

struct firing {
	struct spoor_event *event;
	uint64_t only; /* mask of sessions that may get it */
	size_t payload_size;
	const uint64_t *frames; /* NULL: walk the stack */
	uint32_t frame_count;
	uintptr_t frame; /* frame address of the called function; the stack walk begins there */
	struct thread_state *state;
	struct thread_ring *ring; /* `main` or `nested` of `state`; where the record will be */
};

/*
 * Enters a record of the thread's main ring. A signal handler that fires before the record is entered
 * may move the thread to another ring.
 */
static void enter_main(struct firing *firing)
{
	for (;;) {
		struct thread_state *state = __atomic_load_n(&current_thread, __ATOMIC_RELAXED);
		record_enter(state->main.front, firing->frame);
		if (state == __atomic_load_n(&current_thread, __ATOMIC_RELAXED)) {
			firing->state = state;
			firing->ring = &state->main;
			return;
		}
		record_leave(state->main.front);
	}
}

/*
 * The main ring is full: moves the thread to another one, and from the record in this ring into one
 * in the other. A handler that interrupts this fires into a nested ring, because both are inside a
 * record while `current_thread` changes. False: there is no other ring. Makes no system call but a
 * write, as all of firing.
 */
static bool move(struct firing *firing)
{
	struct thread_state *from = firing->state;
	struct thread_state *to = thread_move(from);

	if (!to)
		return false;
	record_enter(to->main.front, firing->frame);
	thread_moved(from, to);
	firing->state = to;
	firing->ring = &to->main;
	loop_wake();
	return true;
}

/*
 * Leaves the record until there may be room for an event of the sessions `wanted`, or `until_ns` is
 * reached. False: the time is over.
 */
static bool wait_outside(struct firing *firing, uint64_t wanted, uint64_t until_ns)
{
	struct thread_ring *ring = firing->ring;

	record_note(ring, 0, 0);
	int number = left_wait_begin(firing->state, firing->frame, wanted);
	if (number < 0)
		return false;
	ring->limit = 0; /* the next event looks whether a handler has left this one */
	record_leave(ring->front);
	bool again = wait_for_room(until_ns);
	enter_main(firing);
	left_wait_end(firing->state, number);
	return again;
}

/* Reads which sessions want the event. It counts as theirs from here on. */
static uint64_t sessions_read(const struct firing *firing)
{
	uint64_t wanted =
		__atomic_load_n(&firing->event->sessions, __ATOMIC_ACQUIRE) & firing->only;

	record_note(firing->ring, firing->ring->front->front.published, wanted);
	return wanted;
}

/* The stack of an event, walked when the first session wants it. */
struct fired_stack {
	uint64_t walked[RECORD_FRAMES_MAX];
	const uint64_t *frames; /* NULL: not walked yet */
	size_t count;
};

/* What the record of an event has beside its payload. */
struct record_plan {
	bool has_activity;
	bool has_stack;
	size_t frame_count; /* the frames that fit */
	size_t size;        /* of the whole record */
};

static inline struct record_plan plan_record(const struct firing *firing, uint64_t wanted,
	struct fired_stack *stack)
{
	struct record_plan plan = { .has_activity = activity.set,
		.has_stack = (wanted & __atomic_load_n(&pipe_hot.stacks, __ATOMIC_RELAXED)) != 0 };

	plan.size = RECORD_HEADER + (plan.has_activity ? 32u : 0u) + firing->payload_size;
	if (!plan.has_stack)
		return plan;
	if (!stack->frames) {
		stack->frames = stack->walked;
		stack->count = stack_walk(&firing->state->stack, firing->frame, stack->walked,
			RECORD_FRAMES_MAX);
	}
	if (plan.size + 8 > RECORD_BYTES_MAX) {
		plan.has_stack = false;
		return plan;
	}
	plan.frame_count = stack->count;
	if (plan.size + 8 + 8 * plan.frame_count > RECORD_BYTES_MAX)
		plan.frame_count = (RECORD_BYTES_MAX - plan.size - 8) / 8;
	plan.size += 8 + 8 * plan.frame_count;
	return plan;
}

/* Writes a record for which room was found, up to the payload, which the caller writes. */
static inline struct spoor_slot begin_record(const struct firing *firing,
	const struct record_plan *plan, const uint64_t *frames, uint64_t wanted)
{
	struct thread_ring *ring = firing->ring;
	uint8_t *at = header_write(ring, record_stamp(), ring->front->front.published, plan->size,
		(plan->has_activity ? RECORD_ACTIVITY : 0u) | (plan->has_stack ? RECORD_STACK : 0u),
		__atomic_load_n(&firing->event->index, __ATOMIC_RELAXED), wanted);

	if (plan->has_activity) {
		memcpy(at, activity.current, 16);
		memcpy(at + 16, activity.related, 16);
		at += 32;
	}
	if (plan->has_stack) {
		uint64_t n = plan->frame_count;
		memcpy(at, &n, 8);
		memcpy(at + 8, frames, 8 * plan->frame_count);
		at += 8 + 8 * plan->frame_count;
	}
	return (struct spoor_slot){ at, &ring->front->front };
}

/*
 * Waits for the sinks of the sessions `stalled`, which block. *deadline 0: not set yet. True: the
 * event is to be tried again. False: the time is over, and the sessions are given up.
 */
static bool wait_for_sinks(struct firing *firing, uint64_t wanted, uint64_t stalled,
	uint64_t *deadline)
{
	uint64_t end_ns = stall_end_ns(stalled);

	if (!*deadline)
		*deadline = platform_now_ns() + longest_block_ns(stalled);
	bool again = wait_outside(firing, wanted, end_ns > *deadline ? end_ns : *deadline);

	if (again || stall_end_ns(stalled) > platform_now_ns())
		return true;
	__atomic_fetch_or(&pipe_hot.given_up, stalled, __ATOMIC_RELAXED);
	return false;
}

/*
 * The ring is full: waits for room if a session blocks, else moves to another ring. True: the event
 * is to be tried again. False: it is lost, to the sessions *wanted, which are read again.
 */
static bool make_room(struct firing *firing, bool may_wait, uint64_t *wanted, uint64_t *deadline)
{
	uint64_t blocking = *wanted & __atomic_load_n(&pipe_hot.blocking, __ATOMIC_RELAXED);

	if (!blocking || !may_wait)
		return firing->ring != &firing->state->nested && move(firing);
	if (!*deadline)
		*deadline = platform_now_ns() + longest_block_ns(blocking);
	loop_wake();
	if (wait_outside(firing, *wanted, *deadline))
		return true;
	*wanted = sessions_read(firing);
	return false;
}

/*
 * Losses are recorded before the event of this record: in this step if there is room, else before
 * the next event.
 */
static void write_losses(const struct firing *firing, size_t size, uint64_t wanted)
{
	struct thread_ring *ring = firing->ring;

	if (has_room(firing->state, ring, units_of(size) * RECORD_UNIT + loss_record_size(ring)))
		loss_write(firing->state, ring, wanted);
	(void)has_room(firing->state, ring, size);
	if (ring->loss_sessions)
		ring->limit = 0;
}

/*
 * The slow path. The thread is inside a record (`turn` odd) when this is called, and stays inside
 * if a slot is returned; otherwise it is outside. It may leave and enter the record while it waits,
 * and then reads the event's mask again, because sessions may have started or ended.
 */
static struct spoor_slot fire_sessions(struct firing *firing)
{
	struct fired_stack stack; /* its frames are written by plan_record() */
	uint64_t deadline = 0;
	bool may_wait = firing->ring != &firing->state->nested && !loop_is_self();

	stack.frames = firing->frames;
	stack.count = firing->frame_count;
	if (__atomic_load_n(&pipe_hot.asleep, __ATOMIC_RELAXED) &&
		__atomic_exchange_n(&pipe_hot.asleep, 0, __ATOMIC_ACQ_REL))
		loop_wake();
	for (;;) {
		/* `turn` is visible before the mask is read. */
		if (__atomic_load_n(&pipe_hot.fences, __ATOMIC_RELAXED))
			platform_fence();
		uint64_t wanted = sessions_read(firing);
		if (!wanted)
			break;
		if (firing->payload_size > SPOOR_PAYLOAD_MAX) {
			record_lose_noted(firing->state, firing->ring, wanted);
			break;
		}

		/* Sessions with SPOOR_BLOCK whose sink is full. */
		uint64_t stalled = wanted & __atomic_load_n(&pipe_hot.stalled, __ATOMIC_RELAXED);
		uint64_t given_up = stalled & __atomic_load_n(&pipe_hot.given_up, __ATOMIC_RELAXED);
		if (stalled & ~given_up && may_wait) {
			if (wait_for_sinks(firing, wanted, stalled, &deadline))
				continue;
			wanted = sessions_read(firing);
			stalled &= wanted;
		}

		struct record_plan plan = plan_record(firing, wanted, &stack);
		size_t needed = units_of(plan.size) * RECORD_UNIT + loss_record_size(firing->ring);
		if (!has_room(firing->state, firing->ring, needed)) {
			if (make_room(firing, may_wait, &wanted, &deadline))
				continue;
			record_lose_noted(firing->state, firing->ring, wanted);
			break;
		}
		record_lose_noted(firing->state, firing->ring, stalled);
		wanted &= ~stalled;
		if (!wanted)
			break;
		if (firing->ring->loss_sessions)
			write_losses(firing, plan.size, wanted);
		return begin_record(firing, &plan, stack.frames, wanted);
	}
	record_leave(firing->ring->front);
	return no_slot;
}

/*
 * As fire_sessions(), for an event that loggers enable as well. They get it in any case, also if the
 * sessions lose it.
 */
static __attribute__((noinline)) struct spoor_slot fire_logged(struct firing *firing,
	uint64_t loggers)
{
	bool nested = firing->ring == &firing->state->nested;
	struct spoor_slot slot = no_slot;
	bool in_ring = false;

	if (__atomic_load_n(&firing->event->sessions, __ATOMIC_ACQUIRE) & firing->only) {
		slot = fire_sessions(firing);
		in_ring = slot.at != NULL;
		if (!in_ring && nested)
			record_enter(firing->ring->front, firing->frame);
		else if (!in_ring)
			enter_main(firing);
	}
	struct thread_ring *ring = firing->ring;
	if (!in_ring) {
		slot.at = firing->payload_size > SPOOR_PAYLOAD_MAX ? NULL : scratch_of(ring);
		slot.front = &ring->front->front;
	}
	if (!slot.at) {
		record_leave(ring->front);
		return no_slot;
	}
	ring->logged.loggers = loggers;
	ring->logged.payload_size = firing->payload_size;
	ring->logged.event = __atomic_load_n(&firing->event->index, __ATOMIC_RELAXED);
	ring->logged.in_ring = in_ring;
	slot.front = (struct spoor_ring_front *)((uintptr_t)slot.front | SPOOR_SLOT_LOGGED);
	return slot;
}

/* The thread is inside a record of `ring`, which may be one that it has left. */
static inline struct spoor_slot fire_slow(struct thread_state *state, struct thread_ring *ring,
	struct firing *firing)
{
	firing->state = state;
	firing->ring = ring;
	if (__builtin_expect(state != __atomic_load_n(&current_thread, __ATOMIC_RELAXED), 0)) {
		record_leave(ring->front);
		enter_main(firing);
	}
	if (__builtin_expect(left_wait_any(firing->state), 0) &&
		firing->ring == &firing->state->main)
		left_wait_settle(firing->state, firing->ring, firing->frame);
	uint64_t loggers = __atomic_load_n(&firing->event->sessions, __ATOMIC_ACQUIRE) &
			   firing->only & LOGGER_SLOTS;

	firing->only &= ~LOGGER_SLOTS;
	return loggers ? fire_logged(firing, loggers) : fire_sessions(firing);
}

void pipe_log_to(pipe_log_function *function)
{
	__atomic_store_n(&log_function, function, __ATOMIC_RELEASE);
}

void spoor_fire_logged(struct spoor_slot slot)
{
	struct ring_front *front =
		(struct ring_front *)((uintptr_t)slot.front & ~(uintptr_t)SPOOR_SLOT_LOGGED);
	struct thread_ring *ring = front == current_thread->main.front ? &current_thread->main
								       : &current_thread->nested;
	pipe_log_function *function = __atomic_load_n(&log_function, __ATOMIC_ACQUIRE);

	function(registry_entry(ring->logged.event), ring->logged.loggers, slot.at,
		ring->logged.payload_size);
	if (ring->logged.in_ring)
		__atomic_store_n(&front->front.published, front->front.next, __ATOMIC_RELEASE);
	record_leave(front);
}

/* A signal handler has interrupted this thread inside a record, or the thread has no ring. */
static __attribute__((noinline)) struct spoor_slot fire_unusual(struct thread_state *state,
	struct firing *firing)
{
	if (!state) {
		state = thread_attach();
		if (!state) {
			rings_refuse(__atomic_load_n(&firing->event->sessions, __ATOMIC_ACQUIRE) &
				     firing->only & ~LOGGER_SLOTS);
			return no_slot;
		}
	}
	/* A child that was not made by fork(): nothing is recorded in it. */
	if (!state->main.front)
		return no_slot;
	struct thread_ring *ring = &state->main;
	if (left_record_inside(state, ring, firing->frame))
		ring = &state->nested;
	if (left_record_inside(state, &state->nested, firing->frame) && ring == &state->nested) {
		/*
		 * A handler has interrupted another handler inside a record. The event is only
		 * counted as lost; the next record of the nested ring reports it.
		 */
		uint64_t wanted = __atomic_load_n(&firing->event->sessions, __ATOMIC_ACQUIRE) &
				  firing->only & ~LOGGER_SLOTS;
		for (; wanted; wanted &= wanted - 1)
			__atomic_fetch_add(&state->root->lost[__builtin_ctzll(wanted)], 1,
				__ATOMIC_RELEASE);
		__atomic_fetch_add(&state->root->losses, 1, __ATOMIC_RELEASE);
		return no_slot;
	}
	record_enter(ring->front, firing->frame);
	return fire_slow(state, ring, firing);
}

static __attribute__((noinline)) struct spoor_slot fire_inside(struct thread_state *state,
	struct spoor_event *event, size_t payload_size, uintptr_t frame)
{
	struct firing firing = {
		.event = event, .only = UINT64_MAX, .payload_size = payload_size, .frame = frame
	};

	return fire_slow(state, &state->main, &firing);
}

static __attribute__((noinline)) struct spoor_slot fire_outside(struct thread_state *state,
	struct spoor_event *event, size_t payload_size, uintptr_t frame)
{
	struct firing firing = {
		.event = event, .only = UINT64_MAX, .payload_size = payload_size, .frame = frame
	};

	return fire_unusual(state, &firing);
}

static __attribute__((noinline)) struct spoor_slot fire_clocked(struct thread_ring *ring,
	struct spoor_event *event, size_t size, uint64_t wanted)
{
	record_note(ring, ring->front->front.published, wanted);
	uint64_t now = platform_now_ns();
	struct ring_front *front = ring->front;
	uint8_t *payload = header_write(ring, now, front->front.published, size, 0,
		__atomic_load_n(&event->index, __ATOMIC_RELAXED), wanted);

	return (struct spoor_slot){ payload, &front->front };
}

struct spoor_slot spoor_fire_begin(struct spoor_event *event, size_t payload_size)
{
	struct thread_state *state = current_thread;
	struct ring_front *front = state ? state->main.front : NULL;

	if (__builtin_expect(!front || (front->front.turn & 1), 0))
		return fire_outside(state, event, payload_size,
			(uintptr_t)__builtin_frame_address(0));
	record_enter(front, (uintptr_t)__builtin_frame_address(0));

	struct thread_ring *ring = &state->main;
	uint64_t wanted = __atomic_load_n(&event->sessions, __ATOMIC_ACQUIRE);
	uint64_t at = front->front.published;
	size_t size = RECORD_HEADER + payload_size;
	bool unusual = (wanted & __atomic_load_n(&pipe_hot.special, __ATOMIC_RELAXED)) || !wanted ||
		       activity.set || payload_size > SPOOR_PAYLOAD_MAX ||
		       at + units_of(size) * RECORD_UNIT > ring->limit;
	if (__builtin_expect(unusual, 0))
		return fire_inside(state, event, payload_size,
			(uintptr_t)__builtin_frame_address(0));

	/*
	 * In a function of its own: a call here would cost the path with the counter some
	 * registers.
	 */
	if (__builtin_expect(!pipe_hot.counter, 0))
		return fire_clocked(ring, event, size, wanted);
	record_note(ring, at, wanted);
	uint8_t *payload = header_write(ring, ticks_read(), at, size, 0,
		__atomic_load_n(&event->index, __ATOMIC_RELAXED), wanted);
	return (struct spoor_slot){ payload, &front->front };
}

void spoor_fire(struct spoor_event *event, const void *payload, size_t size)
{
	if (!spoor_event_enabled(event))
		return;
	struct spoor_slot slot = spoor_fire_begin(event, size);
	if (!slot.at)
		return;
	if (size)
		memcpy(slot.at, payload, size);
	spoor_fire_end(slot);
}

void pipe_fire(struct spoor_event *event, uint64_t sessions, const void *payload,
	uint32_t payload_size, const uint64_t *frames, uint32_t frame_count)
{
	struct firing firing = {
		.event = event,
		.only = sessions,
		.payload_size = payload_size,
		.frames = frames,
		.frame_count = frame_count < RECORD_FRAMES_MAX ? frame_count : RECORD_FRAMES_MAX,
		.frame = (uintptr_t)__builtin_frame_address(0),
	};

	if (!(__atomic_load_n(&event->sessions, __ATOMIC_RELAXED) & sessions))
		return;
	struct spoor_slot slot = fire_unusual(current_thread, &firing);
	if (!slot.at)
		return;
	if (payload_size)
		memcpy(slot.at, payload, payload_size);
	spoor_fire_end(slot);
}
