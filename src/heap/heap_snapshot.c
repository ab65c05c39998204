/* See heap_snapshot.h. */
#include "heap/heap_snapshot.h"

#include <errno.h>
#include <string.h>

#include "base/clocks.h"
#include "base/diag.h"
#include "base/poll_set.h"
#include "dotnet/ipc.h"
#include "dotnet/port.h"
#include "heap/heap_events.h"
#include "machine/memory_cgroup.h"
#include "machine/proc.h"
#include "machine/thread_state.h"
#include "nettrace/nettrace_read.h"
#include "pipeline/event_session.h"
#include "trace/event.h"
#include "trace/heap_graph.h"
#include "trace/schema.h"
#include "trace/trace.h"

#define RUNDOWN_LOADER UINT64_C(0x8) /* module names */
#define TRIGGER_MB     1u
#define TIMEOUT_NS     UINT64_C(30000000000)
/* without an event of the collection once it is over */
#define AFTER_NS       UINT64_C(10000000000)
#define TURN_NS        UINT64_C(250000000)
#define READER_LOOK_NS UINT64_C(10000000)
#define READER_WAIT_NS UINT64_C(3000000000)
#define READER_NAME    ".NET EventPipe"

struct snapshot_taking {
	const struct heap_snapshot_options *options;
	struct heap_snapshot_result *result;
	struct poll_set set;
	struct heap_events heap;
	struct runtime_client client;
	struct event_session data;
	struct event_session trigger;
	uint64_t begin_ns;
	uint64_t deadline_ns; /* of all attempts */
	uint64_t heard_ns; /* of the last event of the collection, or of the last step towards it */
	bool stopping;     /* any byte counts as progress: the runtime now sends only the rest */
	uint64_t gc_begin_ns;
	/* threads of this name that were there before the data's session */
	struct id_list readers;
	uint64_t open_ns; /* when that was open; 0 not yet */
	uint64_t look_ns; /* when to look for its thread again */
	uint32_t seen;    /* looks in a row at which it slept */
};

static void take_event(void *user, const struct schema *schema, const struct event *event,
	struct diag *broken)
{
	struct snapshot_taking *t = user;
	bool ended = t->heap.ended;
	bool begun = t->heap.begun;
	uint32_t collection = t->heap.collection;
	uint64_t blocks = t->heap.blocks;

	if (schema->provider_kind != PROVIDER_CLR && schema->provider_kind != PROVIDER_CLR_RUNDOWN)
		return;
	int result = heap_events_take(&t->heap, schema->provider_kind == PROVIDER_CLR_RUNDOWN,
		schema->event_id, event->payload, event->payload_size);

	if (result == -EBADMSG)
		diag_set(broken, result,
			"the runtime's event %u does not have the layout it should",
			schema->event_id);
	else if (result == -ENOMEM)
		diag_set(broken, result, "there is no memory for so large a heap: %m");
	else if (result < 0)
		diag_set(broken, result, "the heap has more objects or references than 2^31");
	if (result < 0)
		return;
	if (t->heap.blocks != blocks)
		t->heard_ns = clock_monotonic_ns();
	if (t->heap.begun && (!begun || t->heap.collection != collection))
		t->gc_begin_ns = event->time_ns;
	if (!ended && t->heap.ended && event->time_ns > t->gc_begin_ns)
		t->result->pause_ns = event->time_ns - t->gc_begin_ns;
}

/* The trigger's stream carries the collection's events again, so it is read and not decoded. */
static int open_session(struct snapshot_taking *t, struct event_session *session, uint64_t keywords,
	uint8_t level, uint32_t buffer_mb, uint64_t rundown, struct ipc_provider *provider)
{
	const struct eventpipe_options options = {
		.providers = provider,
		.provider_count = 1,
		.buffer_mb = buffer_mb,
		.rundown_keywords = rundown,
		.no_stacks = true,
		.no_info = session == &t->trigger,
	};
	const struct event_reading reading = {
		.take = session == &t->trigger ? NULL : take_event,
		.user = t,
		.name = "the heap's events",
		.flags = NETTRACE_NAMES_ONLY,
	};

	*provider = (struct ipc_provider){
		.keywords = keywords, .level = level, .name = PROVIDER_CLR_NAME
	};
	return event_session_open(session, &t->client, &options, &reading);
}

/* One turn: waits a limited time for a session or the watched descriptor, then advances both. */
static void turn(struct snapshot_taking *t)
{
	struct pollfd *watched = t->result->interrupted ? NULL : t->options->watched;
	uint64_t bytes = t->data.bytes + t->trigger.bytes;

	poll_set_begin(&t->set, clock_monotonic_ns() + TURN_NS);
	if (t->look_ns && !t->trigger.pipe)
		poll_set_wake(&t->set, t->look_ns);
	uint64_t now = runtime_client_turn(&t->client, &t->set, watched, watched ? 1 : 0);

	if (watched && watched->revents)
		t->result->interrupted = true;
	if (t->stopping && t->data.bytes + t->trigger.bytes != bytes)
		t->heard_ns = now;
}

static void tell_progress(struct snapshot_taking *t, uint64_t *reported_ns)
{
	uint64_t now = clock_monotonic_ns();

	if (!t->options->progress || now < *reported_ns + TURN_NS)
		return;
	*reported_ns = now;
	t->options->progress(t->options->context, t->heap.graph->object_count, t->data.bytes);
}

static uint64_t timeout_of(const struct heap_snapshot_options *options)
{
	return options->timeout_ns ? options->timeout_ns : TIMEOUT_NS;
}

/*
 * The trigger's session opens when the collection is over: its events have been sent by then, or
 * wait in the buffer, or are lost.
 */
static bool timed_out(const struct snapshot_taking *t)
{
	uint64_t timeout_ns = timeout_of(t->options);
	uint64_t now = clock_monotonic_ns();

	if (t->trigger.pipe && !t->stopping && eventpipe_opened_ns(t->trigger.pipe) &&
		timeout_ns > AFTER_NS)
		timeout_ns = AFTER_NS;
	return now >= t->heard_ns + timeout_ns || now >= t->deadline_ns;
}

static int fail(const struct snapshot_taking *t, const struct event_session *session,
	struct diag *diag)
{
	return event_session_explain(session, "no heap snapshot of process",
		t->options->target->pid, diag);
}

/*
 * Threads of the runtime that send a session's events, or that answer at its socket; `asleep`
 * counts those that are new and wait for something.
 */
static uint32_t look_for_readers(struct snapshot_taking *t, bool new_ones)
{
	struct proc_reader proc;
	struct proc_thread_state state;
	struct id_list list = { 0 };
	uint32_t pid = t->options->target->pid;
	uint32_t asleep = 0;

	if (proc_open(&proc, NULL) < 0)
		return 0;
	if (proc_list_threads(&proc, pid, &list) < 0)
		vec_reset(&list.ids);
	for (uint32_t i = 0; i < list.ids.count; i++) {
		uint32_t tid = list.ids.items[i];
		bool known = false;
		if (thread_state_read(&proc, pid, tid, &state) < 0 ||
			strcmp(state.thread.comm, READER_NAME) != 0)
			continue;
		for (uint32_t k = 0; k < t->readers.ids.count && !known; k++)
			known = t->readers.ids.items[k] == tid;
		if (!new_ones)
			/* without memory an old one counts as new */
			(void)vec_add(&t->readers.ids, tid);
		else if (!known && state.state == 'S')
			asleep++;
	}
	vec_done(&list.ids);
	proc_close(&proc);
	return asleep;
}

/*
 * Whether the collection may begin. The runtime has a thread for the data session that sends the
 * events of the collection. On a busy machine the session is open well before that thread has run.
 * A thread that has not begun by then waits for the collection's end, and only the events that fit
 * into the buffer are sent. So this waits until the thread was seen asleep in its loop twice; where
 * threads have other names, or are hidden, for three seconds at most.
 */
static bool may_collect(struct snapshot_taking *t)
{
	uint64_t now = clock_monotonic_ns();

	if (eventpipe_state(t->data.pipe) != EVENTPIPE_STREAMING)
		return false;
	if (!t->open_ns)
		t->open_ns = now;
	if (now < t->look_ns)
		return false;
	t->look_ns = now + READER_LOOK_NS;
	t->seen = look_for_readers(t, true) ? t->seen + 1 : 0;
	return t->seen >= 2 || now >= t->open_ns + READER_WAIT_NS;
}

/* Until the collection has ended, or there is a reason not to wait for it. */
static int collect(struct snapshot_taking *t, struct ipc_provider *trigger, struct diag *diag)
{
	uint64_t reported_ns = t->begin_ns;
	bool opened = false;

	while (!t->heap.ended && !t->heap.end_lost && !t->data.broken.error &&
		!t->result->interrupted && !timed_out(t)) {
		turn(t);
		tell_progress(t, &reported_ns);
		if (event_session_is_over(&t->data))
			return t->heap.begun ? 0 : fail(t, &t->data, diag);
		if (t->trigger.pipe && !opened && eventpipe_opened_ns(t->trigger.pipe)) {
			opened = true;
			t->heard_ns = clock_monotonic_ns();
		}
		if (!t->trigger.pipe && may_collect(t)) {
			t->heard_ns = clock_monotonic_ns();
			int result = open_session(t, &t->trigger, HEAP_KEYWORD_COLLECT, 4,
				TRIGGER_MB, 0, trigger);
			if (result < 0)
				return diag_set(diag, result, "cannot take a heap snapshot: %m");
		}
		if (t->trigger.pipe && !t->heap.begun && event_session_is_over(&t->trigger))
			return fail(t, &t->trigger, diag);
	}
	return 0;
}

/*
 * Stops the trigger session first, and waits for its end: when a session ends, the runtime looks at
 * the keywords of the others, and a trigger session that is still open would start another
 * collection. Module names are sent at the end of the data session.
 */
static void stop(struct snapshot_taking *t)
{
	t->stopping = true;
	t->heard_ns = clock_monotonic_ns();
	if (t->deadline_ns < t->heard_ns + timeout_of(t->options))
		t->deadline_ns = t->heard_ns + timeout_of(t->options);
	event_session_stop(&t->trigger, clock_monotonic_ns());
	while (!event_session_is_over(&t->trigger) && !timed_out(t))
		turn(t);
	event_session_stop(&t->data, clock_monotonic_ns());
	while (!event_session_is_over(&t->data) && !timed_out(t))
		turn(t);
}

static int finish(struct snapshot_taking *t, int result, struct diag *diag)
{
	(void)event_session_version(&t->data, t->result->runtime_version,
		sizeof(t->result->runtime_version)); /* else it stays "" */
	t->result->bytes = t->data.bytes;
	t->result->lost_events = event_session_lost(&t->data);
	t->result->took_ns = clock_monotonic_ns() - t->begin_ns;
	t->result->collection = t->heap.collection;
	if (result < 0)
		return result;
	int broken = t->data.broken.error;

	if (broken && (broken == -ENOMEM || !t->heap.graph->object_count)) {
		*diag = t->data.broken;
		return diag->error;
	}
	const char *missing = heap_events_missing(&t->heap);

	t->result->lost = t->heap.gap || t->heap.end_lost || t->result->lost_events ||
			  (t->heap.ended && *missing);
	t->result->missing = missing;
	if (broken)
		t->result->missing = "its stream was torn";
	else if (t->result->interrupted && !t->heap.ended)
		t->result->missing = "it was interrupted";
	else if (!*missing && t->result->lost_events)
		t->result->missing = "events were lost on the way";
	if (t->heap.begun && t->heap.graph->object_count)
		return 0;
	if (!t->result->interrupted && !eventpipe_opened_ns(t->data.pipe) &&
		*eventpipe_reason(t->data.pipe)->text)
		return fail(t, &t->data, diag);
	return diag_set(diag, -ETIMEDOUT, "no heap snapshot of process %u: %s",
		t->options->target->pid,
		t->result->interrupted ? "it was interrupted"
		: t->result->lost      ? "its objects were lost on the way"
				       : "no collection came");
}

static int attempt(const struct heap_snapshot_options *options, uint32_t buffer_mb,
	uint64_t deadline_ns, struct heap_graph *graph, struct heap_snapshot_result *ret_result,
	struct diag *diag)
{
	struct snapshot_taking t = { .options = options,
		.result = ret_result,
		.heap.graph = graph,
		.deadline_ns = deadline_ns };
	struct ipc_provider providers[2];

	*ret_result = (struct heap_snapshot_result){ .missing = "", .buffer_mb = buffer_mb };
	t.begin_ns = t.heard_ns = clock_monotonic_ns();
	runtime_client_init(&t.client, NULL, options->target, options->guard);
	(void)look_for_readers(&t, false);
	int result = open_session(&t, &t.data,
		HEAP_KEYWORD_GC | HEAP_KEYWORD_TYPE | HEAP_KEYWORD_DUMP | HEAP_KEYWORD_TYPENAMES, 5,
		buffer_mb, RUNDOWN_LOADER, &providers[0]);
	if (result < 0) {
		diag_set(diag, result, "cannot take a heap snapshot: %m");
	} else {
		result = collect(&t, &providers[1], diag);
		stop(&t);
		result = finish(&t, result, diag);
	}
	event_session_close(&t.trigger);
	event_session_close(&t.data);
	runtime_client_done(&t.client);
	poll_set_done(&t.set);
	vec_done(&t.readers.ids);
	return result;
}

/* Whether the target's memory has room for a larger buffer and its own allocations meanwhile. */
static bool may_grow(const struct heap_snapshot_options *options, uint32_t buffer_mb)
{
	uint64_t left_bytes = memory_cgroup_left("", options->target->pid);

	return (uint64_t)buffer_mb * 2 << 20 <= left_bytes;
}

int heap_snapshot_take(const struct heap_snapshot_options *options, struct heap_graph *graph,
	struct heap_snapshot_result *ret_result, struct diag *diag)
{
	uint64_t begin_ns = clock_monotonic_ns();
	uint64_t deadline_ns = begin_ns + HEAP_SNAPSHOT_LIMIT * timeout_of(options);
	uint32_t buffer_mb = options->buffer_mb ? options->buffer_mb : HEAP_SNAPSHOT_BUFFER_MB;
	int result = attempt(options, buffer_mb, deadline_ns, graph, ret_result, diag);

	buffer_mb *= HEAP_SNAPSHOT_RETRY_FACTOR;
	if (!ret_result->lost || ret_result->interrupted || options->buffer_mb ||
		clock_monotonic_ns() >= deadline_ns || !may_grow(options, buffer_mb))
		return result;
	heap_graph_done(graph);
	*diag = (struct diag){ 0 };
	result = heap_graph_init(graph);
	if (result < 0)
		return diag_set(diag, result, "cannot take a heap snapshot: %m");
	result = attempt(options, buffer_mb, deadline_ns, graph, ret_result, diag);
	ret_result->took_ns = clock_monotonic_ns() - begin_ns;
	return result;
}
