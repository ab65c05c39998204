/* See seen_threads.h. */
#include "stacks/seen_threads.h"

#include "base/cursor.h"
#include "stacks/thread_dump.h"
#include "stacks/thread_stacks_state.h"
#include "trace/clr.h"
#include "trace/event.h"
#include "trace/schema.h"
#include "trace/trace.h"

/* a tick of the sampler has every thread in managed code: one that is missing has left it */
#define TICKS_STALE 4u

struct seen *seen_of(struct stacks_taking *t, uint64_t inner_tid)
{
	uint32_t at = map_get(&t->seen_index, inner_tid);

	if (at)
		return &t->seen.items[at - 1];
	if (t->seen.count >= THREADS_MAX)
		return NULL;
	struct seen *seen = vec_push(&t->seen);
	if (!seen || !map_put(&t->seen_index, inner_tid, t->seen.count)) {
		t->seen.count -= seen != NULL;
		return NULL;
	}
	seen->inner_tid = inner_tid;
	return seen;
}

const struct seen *seen_now(const struct stacks_taking *t, uint64_t inner_tid)
{
	uint32_t at = map_get(&t->seen_index, inner_tid);
	const struct seen *seen = at ? &t->seen.items[at - 1] : NULL;

	return seen && t->looked_tick < seen->tick + TICKS_STALE ? seen : NULL;
}

/*
 * Whether an event is of a time before /proc was read for its thread. What arrived before that is.
 */
static bool is_before(const struct stacks_taking *t, const struct seen *seen, uint64_t time_ns)
{
	return !t->looked || (!t->own_clock && seen->looked_ns && time_ns <= seen->looked_ns);
}

static void take_sample(struct stacks_taking *t, struct seen *seen, const struct event *event)
{
	struct cursor c = cursor_of(event->payload, event->payload_size);
	uint32_t type = cursor_u32(&c);

	t->sampled = true;
	if (seen->tick == t->tick)
		t->tick++;
	seen->tick = t->tick;
	if (c.short_read)
		return;
	struct moment moment = {
		.time_ns = event->time_ns,
		.stack = event->stack_index,
		.mode = type == 2 ? THREAD_MANAGED : THREAD_NATIVE,
	};

	if (!is_before(t, seen, event->time_ns)) {
		if (!seen->after.mode)
			seen->after = moment;
		return;
	}
	/*
	 * The last one is nearest to what /proc shows. The runtime sends the thread's own events in
	 * other buffers, so their order may differ from that of their times.
	 */
	if (event->time_ns < seen->before.time_ns)
		return;
	moment.lock = seen->before.lock;
	moment.lock_owner = seen->before.lock_owner;
	seen->before = moment;
}

/*
 * The thread begins to wait for a lock: the event's stack shows where, and its payload has the
 * lock's owner (.NET 7 and later).
 */
static void take_contention(struct stacks_taking *t, struct seen *seen, const struct event *event)
{
	struct cursor c = cursor_of(event->payload, event->payload_size);

	(void)cursor_u8(&c); /* flags: the kind of lock */
	(void)cursor_u16(&c);
	(void)cursor_u64(&c); /* LockID: the runtime's own address */
	uint64_t object = cursor_u64(&c);
	uint64_t owner = cursor_u64(&c);

	if (c.short_read || !is_before(t, seen, event->time_ns))
		return;
	seen->tick = t->tick;
	seen->before.lock = object;
	seen->before.lock_owner = owner;
	if (event->stack_index && event->time_ns >= seen->before.time_ns) {
		seen->before.stack = event->stack_index;
		seen->before.time_ns = event->time_ns;
		seen->before.mode = THREAD_NATIVE;
		seen->before.over = false;
	}
}

static void end_contention(struct stacks_taking *t, struct seen *seen, const struct event *event)
{
	if (!is_before(t, seen, event->time_ns))
		return;
	seen->before.over =
		seen->before.over || (seen->before.lock && seen->before.time_ns <= event->time_ns);
	seen->before.lock = seen->before.lock_owner = 0;
}

void seen_take_event(void *user, const struct schema *schema, const struct event *event,
	struct diag *broken)
{
	struct stacks_taking *t = user;
	struct seen *seen = NULL;

	(void)broken; /* a thread that is not seen has no managed frames */
	if (schema->provider_kind == PROVIDER_CLR_RUNDOWN) {
		/* A body that cannot be taken costs its own name only. */
		(void)clr_absorb_method(&t->codemap, 1, schema->event_id, schema->version,
			event->time_ns, event->payload, event->payload_size);
		return;
	}
	if (event->thread_index)
		seen = seen_of(t, t->session.trace.threads.items[event->thread_index].tid);
	if (!seen)
		return;
	if (schema->provider_kind == PROVIDER_SAMPLE && schema->event_id == CLR_THREAD_SAMPLE) {
		take_sample(t, seen, event);
	} else if (schema->provider_kind == PROVIDER_CLR &&
		   schema->event_id == CLR_ID_ContentionStart_V1) {
		take_contention(t, seen, event);
	} else if (schema->provider_kind == PROVIDER_CLR &&
		   schema->event_id == CLR_ID_ContentionStop) {
		end_contention(t, seen, event);
	}
}
