/* See pipe.h. Everything here runs on the loop thread. */
#include "lib/pipe/pipe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/event/left_record.h"
#include "lib/event/record_entry.h"
#include "lib/event/thread_ring.h"
#include "lib/pipe/ended_slot.h"
#include "lib/pipe/grace_period.h"
#include "lib/pipe/pass_pace.h"
#include "lib/pipe/pending_list.h"
#include "lib/pipe/record_run.h"
#include "lib/pipe/ring_look.h"
#include "lib/pipe/session_state.h"
#include "lib/pipe/slow_path.h"
#include "lib/platform/clock.h"
#include "lib/platform/loop.h"
#include "lib/platform/platform.h"

#define HOLD_MAX_NS UINT64_C(50000000)
#define ALIVE_NS    UINT64_C(1000000000)
/* a thread inside the same record for longer is stopped, or has abandoned it */
#define STUCK_NS UINT64_C(1000000000)
/* after this time all threads know that they need fences */
#define FENCES_NS UINT64_C(10000000)
/*
 * a thread that has fired this many bytes since the last pass will fill its ring soon: the next
 * pages are allocated here, not by page faults of the thread
 */
#define POPULATE_FROM  (16u << 10)
#define POPULATE_BYTES (8u << 20)
#define RELEASE_PARTS  8u
/* a ring that its thread has left keeps its pages for so long after its last record was read */
#define LEFT_NS UINT64_C(1000000000)
/* a pass takes about as much at most: some milliseconds of a processor */
#define PASS_BYTES     (UINT64_C(4) << 20)
#define PASS_BYTES_END (UINT64_C(256) << 10) /* while a session ends, which waits for passes */
/* written to one session after the other while it is in the nearest cache */
#define RUN_BYTES (16u << 10)

static struct {
	struct clock_line clock;
	struct clock_segment segment; /* of the newest stamp, in this pass */
	uint64_t segment_end;         /* the first stamp after `segment`; 0: not looked up */
	uint64_t pass;
	uint64_t run;
	uint64_t last_ticks; /* of the previous pass */
	uint64_t watermark_ticks;
	uint64_t watermark_ns;
	/* watermark of the previous pass: no event is delivered with an earlier time */
	uint64_t before_ns;
	bool quiescent; /* every thread but stuck ones was seen outside of records in this pass */
	bool stuck;     /* a thread has been inside the same record for STUCK_NS */
	bool barrier;
	struct grace grace;
	uint64_t fences_ns; /* when the system refused the barrier, in this run; 0: at the start */
	/* see pipe_set_up() */
	void (*clock_taken)(const struct clock_line *line, struct clock_pair newest);
	struct pending_list pending;         /* threads with records in this pass */
	uint64_t refused_seen[SESSIONS_MAX]; /* events that threads without a ring lost, by slot */
	void *forgotten; /* buffer of the parent process, kept for the leak checker */
	struct pass_pace pace;
} pipe_state;

uint64_t pipe_watermark_ns(void)
{
	return pipe_state.watermark_ns;
}

int pipe_set_up(bool counter,
	void (*clock_taken)(const struct clock_line *line, struct clock_pair newest))
{
	pipe_state.clock_taken = clock_taken;
	clock_line_init(&pipe_state.clock, counter);
	/* The program may crash before the first pass. */
	if (clock_taken)
		clock_taken(&pipe_state.clock,
			pipe_state.clock.pairs[(pipe_state.clock.count - 1) % CLOCK_PAIRS]);
	pipe_state.last_ticks = 0;
	pipe_state.before_ns = pipe_state.watermark_ns = 0;
	pipe_state.watermark_ticks = 0;
	pipe_state.fences_ns = 0;
	slow_path_set_up(!platform_barrier_everywhere());
	/* The stamps of the previous run may be those of the other clock. */
	for (struct thread_state *state = thread_state_first(); state; state = state->next)
		state->quiescent_ticks = state->main.tail_stamp = state->nested.tail_stamp = 0;
	return 0;
}

void pipe_child(void)
{
	/*
	 * The loop thread of the parent may have been inside realloc(), so this pointer may be
	 * invalid. It is not freed.
	 */
	void *forgotten = pipe_state.pending.items;

	memset(&pipe_state, 0, sizeof(pipe_state));
	slow_path_child();
	pipe_state.forgotten = forgotten;
}

/* ---- Inspecting the threads ---- */

/* The thread was seen inside a record: lowers the watermark, so that this record comes in time. */
static void thread_hold(struct thread_state *state, bool main_quiescent, bool nested_quiescent,
	uint64_t now_ns)
{
	uint64_t turns = (ring_turn(&state->main) + ring_turn(&state->nested)) & TURN_COUNT;
	uint64_t since =
		main_quiescent ? UINT64_MAX : stamp_at_least(&state->main, state->quiescent_ticks);
	uint64_t nested_since = nested_quiescent
					? UINT64_MAX
					: stamp_at_least(&state->nested, state->quiescent_ticks);

	if (nested_since < since)
		since = nested_since;
	if (!state->held_since_ns || state->held_turns != turns) {
		state->held_since_ns = now_ns;
		state->held_turns = turns;
	}
	uint64_t held_ns = now_ns - state->held_since_ns;
	if (held_ns < STUCK_NS)
		pipe_state.quiescent = false;
	else
		pipe_state.stuck = true;
	if (held_ns < HOLD_MAX_NS && since < pipe_state.watermark_ticks)
		pipe_state.watermark_ticks = since;
}

/* The pass takes PASS_BYTES, if the waiting `bytes` are evenly spread over their time. */
static void watermark_lower(uint64_t bytes)
{
	uint64_t most = ended_slot_any() ? PASS_BYTES_END : PASS_BYTES;
	uint64_t first = pipe_state.pending.count ? pipe_state.pending.items[0].first_stamp : 0;

	pipe_state.pace.behind = bytes > most && pipe_state.watermark_ticks > first;
	if (pipe_state.pace.behind)
		pipe_state.watermark_ticks =
			first + (uint64_t)((unsigned __int128)(pipe_state.watermark_ticks - first) *
					   most / bytes);
}

static void threads_inspect(uint64_t now_ns, bool wants_grace)
{
	uint64_t bytes = 0;

	pipe_state.quiescent = true;
	pipe_state.stuck = false;
	pipe_state.pending.count = 0;
	if (pipe_state.barrier)
		grace_pass_begin(&pipe_state.grace, pipe_state.pass,
			ended_slot_wants_grace(&pipe_state.grace, wants_grace));
	for (struct thread_state *state = thread_state_first(); state; state = state->next) {
		uint32_t status = __atomic_load_n(&state->status, __ATOMIC_ACQUIRE);

		if (status == THREAD_FREE || status == THREAD_TAKEN)
			continue;
		if (status != THREAD_DEAD && !state->has_destructor &&
			now_ns - state->checked_ns > ALIVE_NS) {
			state->checked_ns = now_ns;
			if (!platform_thread_alive(__atomic_load_n(&state->thread_id,
				    __ATOMIC_RELAXED)))
				__atomic_store_n(&state->status, status = THREAD_DEAD,
					__ATOMIC_RELEASE);
		}
		uint64_t main_held = status == THREAD_DEAD ? 0 : ring_held(&state->main);
		uint64_t nested_held = status == THREAD_DEAD ? 0 : ring_held(&state->nested);
		bool main_quiescent = !main_held, nested_quiescent = !nested_held;
		ring_see(&state->main, main_held);
		ring_see(&state->nested, nested_held);
		if (main_quiescent && nested_quiescent) {
			state->quiescent_ticks = pipe_state.last_ticks;
			state->held_since_ns = 0;
		} else {
			thread_hold(state, main_quiescent, nested_quiescent, now_ns);
		}
		if (pipe_state.barrier)
			grace_thread(&pipe_state.grace, state, main_quiescent, nested_quiescent,
				state->held_since_ns && now_ns - state->held_since_ns >= STUCK_NS);
		uint64_t pending_bytes = state->main.seen_published - state->main.tail;
		bytes += pending_bytes + state->nested.seen_published - state->nested.tail;
		if (pending_bytes >= POPULATE_FROM)
			ring_populate(&state->main, state->main.seen_published, POPULATE_BYTES);
		pending_list_add(&pipe_state.pending, state);
	}
	pending_list_sort(&pipe_state.pending);
	watermark_lower(bytes);
}

/* ---- Delivering ---- */

/* The session's entry for the thread; looked up once. */
static inline struct session_thread *thread_in(struct session *session, struct thread_state *state)
{
	uint32_t slot = session->slot;

	if (__builtin_expect(state->session_serial[slot] != session->id, 0)) {
		struct session_thread *thread = session_thread_of(session, state->thread_id);
		if (!thread)
			return NULL;
		state->session_serial[slot] = session->id;
		state->session_thread[slot] = (uint32_t)(thread - session->threads);
	}
	struct session_thread *thread = &session->threads[state->session_thread[slot]];
	/* The id belonged to another thread, whose end was noticed after this one had begun. */
	if (__builtin_expect(thread->tombstone || thread->ending, 0))
		thread->tombstone = thread->ending = false;
	return thread;
}

/* The sink has taken `count` events of a run. */
static inline void delivered(struct session *session, struct session_thread *thread, uint32_t count)
{
	session->run = pipe_state.run;
	session_delivered(session, thread, count);
}

static void deliver_whole(struct session *session, struct session_thread *thread,
	struct record_run *run)
{
	uint32_t count = run->count;
	int r = session->sink->ops->records(session->sink, run);

	if (run->count < count)
		delivered(session, thread, count - run->count);
	if (__builtin_expect(run->count > 0, 0))
		session_not_delivered(session, thread, run->count, record_run_first_ns(run),
			record_run_last_ns(run), r);
}

static void deliver_single(struct session *session, struct session_thread *thread,
	struct record_run *run)
{
	struct pipe_event event;

	while (record_run_next(run, &event)) {
		event.sequence = thread->sequence + 1;
		event.lost_before = thread->lost_pending;
		event.run_start = session->run != pipe_state.run;
		int r = session->sink->ops->event(session->sink, &event);
		if (__builtin_expect(r == 0, 1))
			delivered(session, thread, 1);
		else
			session_not_delivered(session, thread, 1, event.time_ns, event.time_ns, r);
	}
}

static void deliver(struct session *session, struct thread_state *state,
	const struct record_run *run)
{
	struct session_thread *thread = thread_in(session, state);
	struct record_run own = *run;

	if (!thread) {
		session_not_delivered(session, NULL, run->count, record_run_first_ns(run),
			record_run_last_ns(run), 0);
		return;
	}
	own.sequence = thread->sequence + 1;
	own.lost_before = thread->lost_pending;
	own.run_start = session->run != pipe_state.run;
	own.stacks = session->config.options.stacks;
	if (session->sink->ops->records)
		deliver_whole(session, thread, &own);
	else
		deliver_single(session, thread, &own);
}

/* Counts events of a thread as lost for the session. */
static void session_lose_in(struct session *session, struct thread_state *state, uint64_t count,
	uint64_t first_ns, uint64_t last_ns)
{
	session_lose(session, thread_in(session, state), count, first_ns, last_ns);
}

/* Counts the events of threads that got no ring as lost for the session in a slot. */
static void lost_without_ring(uint32_t slot)
{
	uint64_t lost = rings_refused(slot);

	if (session_active[slot] && lost != pipe_state.refused_seen[slot])
		session_lose(session_active[slot], NULL, lost - pipe_state.refused_seen[slot],
			pipe_state.before_ns, pipe_state.watermark_ns);
	pipe_state.refused_seen[slot] = lost;
}

/* The thread has lost `lost` events in all for the session in a slot. */
static void lost_upto(struct thread_state *state, uint32_t slot, uint64_t lost, uint64_t first_ns,
	uint64_t last_ns)
{
	struct session *session = session_active[slot];
	uint64_t seen = state->lost_seen[slot];

	if (lost <= seen)
		return;
	state->lost_seen[slot] = lost;
	if (!session)
		return;
	session_lose_in(session, state, lost - seen, first_ns, last_ns);
}

/* `slots`: those for which the losses are counted now. */
static void loss_record(const struct thread_state *state, const struct record *record,
	uint64_t slots)
{
	struct thread_state *root = __atomic_load_n(&state->root, __ATOMIC_RELAXED);
	const uint8_t *at = (const uint8_t *)record + RECORD_HEADER;
	uint64_t span[2];

	memcpy(span, at + 8 * (size_t)__builtin_popcountll(record->sessions), sizeof(span));
	uint64_t first_ns = clock_line_ns(&pipe_state.clock, span[0]);
	uint64_t last_ns = clock_line_ns(&pipe_state.clock, span[1]);
	for (uint64_t left = record->sessions; left; left &= left - 1) {
		uint64_t lost;
		memcpy(&lost, at, sizeof(lost));
		at += sizeof(lost);
		if (left & -left & slots)
			lost_upto(root, (uint32_t)__builtin_ctzll(left), lost, first_ns, last_ns);
	}
}

/*
 * Gathers the run at a ring's tail: at least one record (which is not a loss record), at most
 * `count_max`, none stamped after the watermark. Returns the last record of the run.
 */
static const struct record *run_gather(struct thread_state *state, const struct thread_ring *ring,
	uint32_t count_max, uint64_t next_stamp, struct record_run *ret_run)
{
	const struct record *first = ring_record(ring);
	const struct record *record = first;
	const struct record *last = first;
	uint64_t room = ring->seen_published - ring->tail;
	uint64_t sessions = first->sessions;
	uint64_t latest = pipe_state.watermark_ticks;
	uint32_t event = first->event;
	uint32_t sizes = 0;
	uint32_t bytes = 0;
	uint32_t count = 0;

	if (first->stamp < pipe_state.segment.from_ticks || first->stamp >= pipe_state.segment_end)
		pipe_state.segment_end =
			clock_line_segment(&pipe_state.clock, first->stamp, &pipe_state.segment);
	if (latest >= pipe_state.segment_end)
		latest = pipe_state.segment_end - 1;
	if (room > RUN_BYTES)
		room = RUN_BYTES;
	const struct event_entry *entry = registry_entry(event);
	do {
		sizes |= record->sizes;
		bytes += record_size(record);
		count++;
		last = record;
		if (bytes >= room || count == count_max)
			break;
		record = (const struct record *)(const void *)((const uint8_t *)first + bytes);
		if (record->event != event) {
			if (record->event == RECORD_LOSS || !registry_entry(record->event))
				break;
			event = record->event;
		}
	} while (record->sessions == sessions && record->stamp <= latest &&
		 record->stamp >= last->stamp && record_size(record) >= RECORD_HEADER &&
		 bytes + record_size(record) <= room);

	/*
	 * Events that were held back for longer than HOLD_MAX_NS get a later time, so that time
	 * never decreases.
	 */
	uint64_t floor_ns =
		state->last_ns > pipe_state.before_ns ? state->last_ns : pipe_state.before_ns;
	*ret_run = (struct record_run){
		.records = (const uint8_t *)first,
		.bytes = bytes,
		.count = count,
		.thread_id = state->thread_id,
		.last_stamp = last->stamp,
		.next_stamp = next_stamp,
		.floor_ns = floor_ns,
		.clock = pipe_state.segment,
		.entry = entry,
		.entry_index = first->event,
		.any_stack = (sizes >> RECORD_FLAG_SHIFT & RECORD_STACK) != 0,
	};
	return last;
}

static inline void deliver_to_sessions(struct thread_state *state, const struct record_run *run,
	uint64_t sessions)
{
	state->last_ns = record_run_last_ns(run);
	for (uint64_t left = sessions; left; left &= left - 1) {
		struct session *session = session_active[__builtin_ctzll(left)];
		if (__builtin_expect(!session, 0))
			continue;
		if (__builtin_expect(run->entry != NULL, 1))
			deliver(session, state, run);
		else /* the event is not one that was registered */
			session_not_delivered(session, thread_in(session, state), run->count,
				record_run_first_ns(run), record_run_last_ns(run), 0);
	}
}

/* The sessions that the record at the ring's tail is for. */
static inline uint64_t record_sessions(struct thread_ring *ring, const struct record *record)
{
	uint64_t sessions = record->sessions;

	if (__builtin_expect(ring->stale_slots && ring->tail >= ring->stale_at, 0)) {
		if (ring->tail == ring->stale_at)
			sessions &= ~ring->stale_slots;
		__atomic_store_n(&ring->stale_slots, 0, __ATOMIC_RELAXED);
	}
	return sessions;
}

struct drained {
	uint64_t given; /* up to here the writer may write */
	uint64_t last;  /* start of the last record before the tail */
};

static inline void ring_free_upto_tail(struct thread_ring *ring, struct drained *drained)
{
	drained->given = ring->tail;
	__atomic_store_n(&ring->front->tail_last, drained->last, __ATOMIC_RELAXED);
	__atomic_store_n(&ring->front->tail, ring->tail, __ATOMIC_RELEASE);
}

/* Wakes the threads that wait for room; false: there are none. */
static inline bool wake_waiting(void)
{
	if (__builtin_expect(!__atomic_load_n(&pipe_hot.waiting, __ATOMIC_RELAXED), 1))
		return false;
	__atomic_store_n(&pipe_hot.waiting, 0, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&pipe_hot.room_word, 1, __ATOMIC_RELEASE);
	platform_wake_all(&pipe_hot.room_word);
	return true;
}

/*
 * Room is returned to the writer in large parts, not for each record: the cache line is the
 * writer's.
 */
static inline void ring_release(struct thread_ring *ring, struct drained *drained)
{
	if (ring->tail - drained->given < (ring->mask + 1) / RELEASE_PARTS)
		return;
	ring_free_upto_tail(ring, drained);
	(void)wake_waiting();
}

static bool is_drained(const struct thread_state *state)
{
	return state->main.tail ==
		       __atomic_load_n(&state->main.front->front.published, __ATOMIC_ACQUIRE) &&
	       state->nested.tail ==
		       __atomic_load_n(&state->nested.front->front.published, __ATOMIC_ACQUIRE);
}

/* Has the thread whose first state is `root` other states? `with_records`: such with unread records. */
static bool has_others(const struct thread_state *root, bool with_records)
{
	for (struct thread_state *state = thread_state_first(); state; state = state->next) {
		uint32_t status = __atomic_load_n(&state->status, __ATOMIC_ACQUIRE);
		if (state != root && status != THREAD_FREE &&
			__atomic_load_n(&state->root, __ATOMIC_RELAXED) == root &&
			(!with_records || !is_drained(state)))
			return true;
	}
	return false;
}

/*
 * Delivers all records of this thread up to the watermark, from both rings in the order of time.
 * next_stamp: the first stamp of the next thread.
 */
static void drain(struct thread_state *state, uint64_t next_stamp, uint64_t now_ns)
{
	struct thread_ring *rings[2] = { &state->main, &state->nested };
	struct drained drained[2] = { { state->main.tail, 0 }, { state->nested.tail, 0 } };
	uint64_t from = state->main.tail;

	state->drained_ns = now_ns;
	pipe_state.run++;
	for (;;) {
		unsigned which = 0;
		bool both = ring_pending(rings[0]) && ring_pending(rings[1]);
		if (__builtin_expect(both, 0))
			which = ring_record(rings[1])->stamp < ring_record(rings[0])->stamp;
		else if (ring_pending(rings[1]))
			which = 1;
		else if (!ring_pending(rings[0]))
			break;
		struct thread_ring *ring = rings[which];
		const struct record *record = ring_record(ring);
		uint32_t size = record_size(record);
		if (record->stamp > pipe_state.watermark_ticks)
			break;
		if (__builtin_expect(size < RECORD_HEADER, 0)) {
			/* overwritten by an error of the program: the rest cannot be read */
			ring->tail = ring->seen_published;
			continue;
		}
		drained[which].last = ring->tail;
		if (__builtin_expect(record->event == RECORD_LOSS, 0)) {
			loss_record(state, record, UINT64_MAX);
			ring->tail_stamp = record->stamp;
		} else {
			struct record_run run;
			bool single = both || ring->stale_slots;
			uint64_t sessions = record_sessions(ring, record);
			const struct record *last =
				run_gather(state, ring, single ? 1 : UINT32_MAX, next_stamp, &run);
			drained[which].last +=
				(uint64_t)((const uint8_t *)last - (const uint8_t *)record);
			deliver_to_sessions(state, &run, sessions);
			ring->tail_stamp = run.last_stamp;
			size = run.bytes;
		}
		ring->tail += size;
		ring_release(ring, &drained[which]);
	}
	for (int i = 0; i < 2; i++)
		if (rings[i]->tail != drained[i].given)
			ring_free_upto_tail(rings[i], &drained[i]);
	uint64_t parts = (state->main.tail - from) * 256 / (state->main.mask + 1);
	if (parts > pipe_state.pace.most_drained)
		pipe_state.pace.most_drained = parts;
}

/* Delivers the records of a ring for one session, and takes its bit out of them. */
static void ring_drain_for(struct thread_state *state, const struct thread_ring *ring,
	struct session *session, uint64_t next_stamp)
{
	/* The ring's tail stays: other sessions get their records later. */
	struct thread_ring rest = {
		.base = ring->base,
		.mask = ring->mask,
		.tail = ring->tail,
		.seen_published = ring->seen_published,
		.stale_slots = __atomic_load_n(&ring->stale_slots, __ATOMIC_RELAXED),
		.stale_at = ring->stale_at,
	};
	uint64_t bit = UINT64_C(1) << session->slot;

	while (ring_pending(&rest)) {
		struct record *record =
			(struct record *)(void *)(rest.base + (rest.tail & rest.mask));
		uint32_t size = record_size(record);
		bool ended = rest.tail == rest.stale_at && (rest.stale_slots & bit);
		if (size < RECORD_HEADER)
			break; /* overwritten by an error of the program */
		if ((record->sessions & bit) && record->event == RECORD_LOSS) {
			loss_record(state, record, bit);
		} else if ((record->sessions & bit) && !ended) {
			struct record_run run;
			(void)run_gather(state, &rest, rest.stale_slots ? 1 : UINT32_MAX,
				next_stamp, &run);
			size = run.bytes;
			if (run.entry)
				deliver(session, state, &run);
			else
				session_not_delivered(session, thread_in(session, state), run.count,
					record_run_first_ns(&run), record_run_last_ns(&run), 0);
			for (uint32_t at = 0; at < run.bytes;) {
				record = (struct record *)(void *)(rest.base +
								   ((rest.tail + at) & rest.mask));
				record->sessions &= ~bit;
				at += record_size(record);
			}
		}
		rest.tail += size;
	}
}

void pipe_slot_drain(uint32_t slot)
{
	struct session *session = session_active[slot];
	uint64_t watermark_ticks = pipe_state.watermark_ticks;

	(void)clock_line_advance(&pipe_state.clock);
	pipe_state.segment_end = 0;
	pipe_state.watermark_ticks = UINT64_MAX;
	pipe_state.pending.count = 0;
	for (struct thread_state *state = thread_state_first(); state; state = state->next) {
		uint32_t status = __atomic_load_n(&state->status, __ATOMIC_ACQUIRE);
		if (status != THREAD_FREE && status != THREAD_TAKEN)
			pending_list_add(&pipe_state.pending, state);
	}
	pending_list_sort(&pipe_state.pending);
	for (uint32_t i = 0; i < pipe_state.pending.count; i++) {
		struct thread_state *state = pipe_state.pending.items[i].state;
		uint64_t next = pending_list_next(&pipe_state.pending, i);
		pipe_state.run++;
		ring_drain_for(state, &state->nested, session, next);
		ring_drain_for(state, &state->main, session, next);
	}
	pipe_state.watermark_ticks = watermark_ticks;
	pipe_state.segment_end = 0;
}

/* The rings that a thread has left are returned, unless the thread comes back to them. */
static void left_return(struct thread_state *state)
{
	uint32_t status = THREAD_LEFT;

	if (!__atomic_compare_exchange_n(&state->status, &status, THREAD_TAKEN, false,
		    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return;
	if (thread_state_has_rings(state) && is_drained(state))
		thread_state_unmap(state);
	/* Not if the thread has ended meanwhile. */
	status = THREAD_TAKEN;
	(void)__atomic_compare_exchange_n(&state->status, &status, THREAD_LEFT, false,
		__ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* Counts the losses of threads after their last event, and releases threads that have ended. */
static void losses_and_ends(uint64_t now_ns)
{
	for (uint32_t slot = 0; slot < SESSIONS_MAX; slot++)
		lost_without_ring(slot);
	for (struct thread_state *state = thread_state_first(); state; state = state->next) {
		uint32_t status = __atomic_load_n(&state->status, __ATOMIC_ACQUIRE);
		if (status == THREAD_FREE || status == THREAD_TAKEN)
			continue;
		if (status == THREAD_DEAD)
			thread_state_finish(state);
		uint64_t losses = __atomic_load_n(&state->losses, __ATOMIC_ACQUIRE);
		/* Read after the losses: events in the ring now precede them. */
		bool drained = is_drained(state);
		if (losses != state->losses_seen && drained && !has_others(state, true)) {
			state->losses_seen = losses;
			for (uint32_t slot = 0; slot < SESSIONS_MAX; slot++)
				lost_upto(state, slot,
					__atomic_load_n(&state->lost[slot], __ATOMIC_ACQUIRE),
					pipe_state.watermark_ns, pipe_state.watermark_ns);
		}
		if (status == THREAD_LEFT && drained && !pipe_state.clock_taken &&
			state->drained_ns && now_ns - state->drained_ns > LEFT_NS) {
			state->drained_ns = 0;
			left_return(state);
		}
		if (status != THREAD_DEAD || !drained)
			continue;
		if (state->others != state && has_others(state, false))
			continue; /* they count their losses here */
		for (uint32_t slot = 0; slot < SESSIONS_MAX; slot++) {
			struct session *session = session_active[slot];
			if (session && state->session_serial[slot] == session->id)
				session->threads[state->session_thread[slot]].ending = true;
			state->session_serial[slot] = 0;
		}
		state->main.loss_sessions = state->nested.loss_sessions = 0;
		state->last_ns = 0;
		thread_state_release(state);
	}
}

void pipe_slot_begin(uint32_t slot)
{
	pipe_state.refused_seen[slot] = rings_refused(slot);
	for (struct thread_state *state = thread_state_first(); state; state = state->next) {
		ended_slot_forget(state, slot);
		state->lost_seen[slot] = __atomic_load_n(&state->lost[slot], __ATOMIC_ACQUIRE);
		state->session_serial[slot] = 0;
	}
}

bool pipe_slot_end(uint32_t slot, uint64_t cleared_pass)
{
	bool held = false;

	lost_without_ring(slot);
	for (struct thread_state *state = thread_state_first(); state; state = state->next) {
		uint64_t lost = 0;
		uint32_t status = __atomic_load_n(&state->status, __ATOMIC_ACQUIRE);
		if ((status == THREAD_LIVE || status == THREAD_LEFT) && state->held_since_ns &&
			state->grace_passed < cleared_pass) {
			lost = ended_slot_records(state, slot);
			held = true;
		}
		lost += ended_slot_waits(state, slot);
		if (lost)
			session_lose_in(session_active[slot], state, lost, pipe_state.watermark_ns,
				pipe_state.watermark_ns);
		lost_upto(state, slot, __atomic_load_n(&state->lost[slot], __ATOMIC_ACQUIRE),
			pipe_state.watermark_ns, pipe_state.watermark_ns);
	}
	return held;
}

void pipe_trim(void)
{
	if (pipe_state.clock_taken)
		return;
	for (struct thread_state *state = thread_state_first(); state; state = state->next) {
		uint32_t status = __atomic_load_n(&state->status, __ATOMIC_ACQUIRE);
		/* A record that is being written keeps its memory. */
		if (status != THREAD_TAKEN && thread_state_has_rings(state) &&
			!state->held_since_ns &&
			state->main.tail == __atomic_load_n(&state->main.front->front.published,
						    __ATOMIC_ACQUIRE))
			thread_state_trim(state);
	}
	rings_unprepare();
}

/* ---- The pass ---- */

/*
 * Are all stores visible that other threads made before this call, and do they see those of this
 * thread? With `fences`, each thread and this one make a fence. When the barrier is refused later
 * than at the start (the program has installed a filter), threads may not have noticed yet that
 * they need a fence.
 */
static bool barrier(uint64_t now_ns)
{
	if (!__atomic_load_n(&pipe_hot.fences, __ATOMIC_RELAXED)) {
		if (platform_barrier_everywhere())
			return true;
		pipe_state.fences_ns = now_ns;
		slow_path_fences();
	}
	platform_fence();
	return !pipe_state.fences_ns || now_ns - pipe_state.fences_ns > FENCES_NS;
}

void pipe_pass(bool wants_grace, struct pipe_pass *ret_pass)
{
	struct clock_pair now = clock_line_advance(&pipe_state.clock);
	uint64_t now_ns = now.ns;
	pipe_state.pass++;
	/* not 0: thread_state.move_failed of a new state */
	__atomic_store_n(&pipe_hot.passes, (uint32_t)pipe_state.pass | 1u << 31, __ATOMIC_RELAXED);
	for (uint32_t slot = 0; slot < SESSIONS_MAX; slot++) {
		struct session *session = session_active[slot];
		if (session &&
			__atomic_load_n(&session->status, __ATOMIC_ACQUIRE) == SESSION_CLEARED &&
			!session->cleared_pass)
			session->cleared_pass = pipe_state.pass;
	}

	pipe_state.barrier = barrier(now_ns);
	uint64_t ticks = pipe_state.barrier ? now.ticks : pipe_state.last_ticks;
	pipe_state.last_ticks = pipe_state.barrier ? now.ticks : pipe_state.last_ticks;
	pipe_state.before_ns = pipe_state.watermark_ns;
	pipe_state.watermark_ticks = ticks;
	threads_inspect(now_ns, wants_grace);
	bool grace_ends = pipe_state.barrier && grace_pass_end(&pipe_state.grace);
	if (!pipe_state.barrier)
		pipe_state.last_ticks = now.ticks;
	pipe_state.watermark_ns = clock_line_ns(&pipe_state.clock, pipe_state.watermark_ticks);
	if (pipe_state.watermark_ns < pipe_state.before_ns)
		pipe_state.watermark_ns = pipe_state.before_ns;

	pipe_state.pace.most_drained = 0;
	pipe_state.segment_end = 0; /* the conversion has a new segment */
	uint64_t runs_before = pipe_state.run;
	for (uint32_t i = 0; i < pipe_state.pending.count; i++) {
		if (pipe_state.pending.items[i].first_stamp > pipe_state.watermark_ticks)
			break;
		drain(pipe_state.pending.items[i].state, pending_list_next(&pipe_state.pending, i),
			now_ns);
	}
	losses_and_ends(now_ns);
	pipe_state.pace.prepares = !rings_prepare();
	if (pipe_state.clock_taken)
		pipe_state.clock_taken(&pipe_state.clock, now);

	bool idle = pipe_state.run == runs_before;
	if (!idle || pipe_state.pending.count)
		pass_pace_busy(&pipe_state.pace, now_ns);
	*ret_pass = (struct pipe_pass){
		.number = pipe_state.pass,
		.now_ns = now_ns,
		.watermark_ns = pipe_state.watermark_ns,
		.ticks = ticks,
		.watermark_ticks = pipe_state.watermark_ticks,
		.grace_complete = pipe_state.grace.complete,
		.grace_ends = grace_ends,
		.quiescent = pipe_state.quiescent && pipe_state.barrier,
		.stuck = pipe_state.stuck,
		.idle = idle,
	};
}

uint64_t pipe_next_pass_ns(const struct pipe_pass *pass, uint64_t sessions_ns)
{
	return pass_pace_next_ns(&pipe_state.pace, pass->now_ns, pass->quiescent, wake_waiting(),
		sessions_ns);
}
