/* See heap_snapshot.h. */
#include "heap/heap_snapshot.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clocks.h"
#include "base/diag.h"
#include "dotnet/eventpipe.h"
#include "dotnet/guard.h"
#include "dotnet/ipc.h"
#include "dotnet/port.h"
#include "dotnet/reason.h"
#include "heap/heap_events.h"
#include "machine/memory_cgroup.h"
#include "machine/proc.h"
#include "machine/thread_state.h"
#include "nettrace/nettrace_read.h"
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

struct taking {
	const struct heap_snapshot_options *options;
	struct heap_snapshot_result *result;
	struct trace trace; /* schemas of the stream only */
	struct nettrace_decoder *decoder;
	struct heap_events heap;
	struct eventpipe *data;
	struct eventpipe *trigger;
	struct diag broken; /* the stream, or memory */
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

static int take_event(struct taking *t, const struct event *event)
{
	const struct schema *schema = &t->trace.schemas.items[event->schema_index];
	bool ended = t->heap.ended;
	bool begun = t->heap.begun;
	uint32_t collection = t->heap.collection;
	uint64_t blocks = t->heap.blocks;

	if (schema->provider_kind != PROVIDER_CLR && schema->provider_kind != PROVIDER_CLR_RUNDOWN)
		return 0;
	int result = heap_events_take(&t->heap, schema->provider_kind == PROVIDER_CLR_RUNDOWN,
		schema->event_id, event->payload, event->payload_size);

	if (result == -EBADMSG)
		return diag_set(&t->broken, result,
			"the runtime's event %u does not have the layout it should",
			schema->event_id);
	if (result == -ENOMEM)
		return diag_set(&t->broken, result, "there is no memory for so large a heap: %m");
	if (result < 0)
		return diag_set(&t->broken, result,
			"the heap has more objects or references than 2^31");
	if (t->heap.blocks != blocks)
		t->heard_ns = clock_monotonic_ns();
	if (t->heap.begun && (!begun || t->heap.collection != collection))
		t->gc_begin_ns = event->time_ns;
	if (!ended && t->heap.ended && event->time_ns > t->gc_begin_ns)
		t->result->pause_ns = event->time_ns - t->gc_begin_ns;
	return 0;
}

static int on_data(void *user, const uint8_t *data, size_t size)
{
	struct taking *t = user;
	struct event event;
	int result = 0;

	if (!size)
		return 0;
	if (t->stopping)
		t->heard_ns = clock_monotonic_ns();
	t->result->bytes += size;
	if (t->broken.error)
		return 0; /* read on, so that the runtime can continue */
	if (nettrace_decoder_push(t->decoder, data, size) < 0)
		return diag_set(&t->broken, -ENOMEM, "there is no memory for the stream: %m"), 0;
	while (!t->broken.error &&
		(result = nettrace_decoder_next(t->decoder, &event, &t->broken)) > 0)
		(void)take_event(t, &event); /* kept in t->broken */
	return 0;
}

/* The trigger's stream carries the collection's events again; it is read and left. */
static int on_trigger(void *user, const uint8_t *data, size_t size)
{
	struct taking *t = user;

	(void)data;
	(void)size;
	if (t->stopping)
		t->heard_ns = clock_monotonic_ns();
	return 0;
}

static int open_pipe(struct taking *t, uint64_t keywords, uint8_t level, uint32_t buffer_mb,
	uint64_t rundown, struct ipc_provider *provider,
	int (*bytes)(void *, const uint8_t *, size_t), struct eventpipe **ret_pipe)
{
	*provider = (struct ipc_provider){
		.keywords = keywords, .level = level, .name = PROVIDER_CLR_NAME
	};
	const struct dotnet_door door = dotnet_target_door(t->options->target);
	const struct eventpipe_options options = {
		.providers = provider,
		.provider_count = 1,
		.buffer_mb = buffer_mb,
		.rundown_keywords = rundown,
		.no_stacks = true,
		.no_info = bytes == on_trigger,
		.guard = t->options->guard,
		.target = t->options->target,
	};
	const struct eventpipe_handler handler = { .bytes = bytes, .user = t };

	return eventpipe_new(&door, &options, &handler, clock_monotonic_ns(), ret_pipe);
}

/*
 * One turn: waits for either session or the watched descriptor, for a limited time, then advances
 * both sessions.
 */
static void turn(struct taking *t)
{
	struct pollfd fds[2 * EVENTPIPE_FDS_MAX + 1];
	size_t count = eventpipe_fds(t->data, fds);
	uint64_t now = clock_monotonic_ns();
	uint64_t wake_ns = eventpipe_wake_ns(t->data);

	if (t->trigger) {
		count += eventpipe_fds(t->trigger, fds + count);
		if (eventpipe_wake_ns(t->trigger) < wake_ns)
			wake_ns = eventpipe_wake_ns(t->trigger);
	}
	size_t own = count;

	if (t->options->watched && !t->result->interrupted)
		fds[count++] = *t->options->watched;
	if (t->look_ns && !t->trigger && t->look_ns < wake_ns)
		wake_ns = t->look_ns;
	uint64_t wait_ns = wake_ns <= now ? 0 : wake_ns - now < TURN_NS ? wake_ns - now : TURN_NS;
	struct timespec timeout = { .tv_nsec = (long)wait_ns };

	if (ppoll(fds, (nfds_t)count, &timeout, NULL) > 0 && count > own && fds[own].revents)
		t->result->interrupted = true;
	now = clock_monotonic_ns();
	if (t->options->guard)
		guard_beat(t->options->guard, now);
	(void)eventpipe_advance(t->data, now); /* its state is checked below */
	if (t->trigger)
		(void)eventpipe_advance(t->trigger, now); /* as above */
}

static void tell_progress(struct taking *t, uint64_t *told_ns)
{
	uint64_t now = clock_monotonic_ns();

	if (!t->options->progress || now < *told_ns + TURN_NS)
		return;
	*told_ns = now;
	t->options->progress(t->options->context, t->heap.graph->object_count, t->result->bytes);
}

static uint64_t timeout_of(const struct heap_snapshot_options *options)
{
	return options->timeout_ns ? options->timeout_ns : TIMEOUT_NS;
}

/*
 * The trigger's session opens when the collection is over: its events have been sent by then, or
 * wait in the buffer, or are lost.
 */
static bool timed_out(const struct taking *t)
{
	uint64_t timeout_ns = timeout_of(t->options);
	uint64_t now = clock_monotonic_ns();

	if (t->trigger && !t->stopping && eventpipe_opened_ns(t->trigger) && timeout_ns > AFTER_NS)
		timeout_ns = AFTER_NS;
	return now >= t->heard_ns + timeout_ns || now >= t->deadline_ns;
}

static bool is_over(const struct eventpipe *pipe)
{
	return !pipe || eventpipe_state(pipe) == EVENTPIPE_ENDED;
}

static int fail(const struct taking *t, const struct eventpipe *pipe, struct diag *diag)
{
	bool refused = reason_word_is(eventpipe_reason_code(pipe), REASON_KIND_PERMISSION);

	diag_set(diag, refused ? -EACCES : -EIO, "no heap snapshot of process %u: %s",
		t->options->target->pid,
		*eventpipe_reason(pipe) ? eventpipe_reason(pipe) : "its stream ended at once");
	if (refused)
		diag_remedy(diag, "run it as that user, or with sudo");
	return diag->error;
}

/*
 * Threads of the runtime that send a session's events, or that answer at its socket; `asleep`
 * counts those that are new and wait for something.
 */
static uint32_t look_for_readers(struct taking *t, bool new_ones)
{
	struct proc_reader proc;
	struct thread_state state;
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
static bool may_collect(struct taking *t)
{
	uint64_t now = clock_monotonic_ns();

	if (eventpipe_state(t->data) != EVENTPIPE_STREAMING)
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
static int collect(struct taking *t, struct ipc_provider *trigger, struct diag *diag)
{
	uint64_t told_ns = t->begin_ns;
	bool opened = false;

	while (!t->heap.ended && !t->heap.end_lost && !t->broken.error && !t->result->interrupted &&
		!timed_out(t)) {
		turn(t);
		tell_progress(t, &told_ns);
		if (is_over(t->data))
			return t->heap.begun ? 0 : fail(t, t->data, diag);
		if (t->trigger && !opened && eventpipe_opened_ns(t->trigger)) {
			opened = true;
			t->heard_ns = clock_monotonic_ns();
		}
		if (!t->trigger && may_collect(t)) {
			t->heard_ns = clock_monotonic_ns();
			int result = open_pipe(t, HEAP_KEYWORD_COLLECT, 4, TRIGGER_MB, 0, trigger,
				on_trigger, &t->trigger);
			if (result < 0)
				return diag_set(diag, result, "cannot take a heap snapshot: %m");
		}
		if (t->trigger && !t->heap.begun && is_over(t->trigger))
			return fail(t, t->trigger, diag);
	}
	return 0;
}

/*
 * Stops the trigger session first, and waits for its end: when a session ends, the runtime looks at
 * the keywords of the others, and a trigger session that is still open would start another
 * collection. Module names are sent at the end of the data session.
 */
static void stop(struct taking *t)
{
	t->stopping = true;
	t->heard_ns = clock_monotonic_ns();
	if (t->deadline_ns < t->heard_ns + timeout_of(t->options))
		t->deadline_ns = t->heard_ns + timeout_of(t->options);
	if (t->trigger)
		eventpipe_stop(t->trigger, clock_monotonic_ns());
	while (!is_over(t->trigger) && !timed_out(t))
		turn(t);
	eventpipe_stop(t->data, clock_monotonic_ns());
	while (!is_over(t->data) && !timed_out(t))
		turn(t);
}

static int finish(struct taking *t, int result, struct diag *diag)
{
	const struct ipc_process_info *info = eventpipe_info(t->data);

	if (info)
		(void)snprintf(t->result->runtime_version, sizeof(t->result->runtime_version),
			"%.*s",
			/* cut if it is long */
			(int)strcspn(info->runtime_version, "+"), info->runtime_version);
	t->result->lost_events = nettrace_decoder_lost(t->decoder);
	t->result->took_ns = clock_monotonic_ns() - t->begin_ns;
	t->result->collection = t->heap.collection;
	if (result < 0)
		return result;
	if (t->broken.error && (t->broken.error == -ENOMEM || !t->heap.graph->object_count)) {
		*diag = t->broken;
		return diag->error;
	}
	const char *missing = heap_events_missing(&t->heap);

	t->result->lost = t->heap.gap || t->heap.end_lost || t->result->lost_events ||
			  (t->heap.ended && *missing);
	t->result->missing = missing;
	if (t->broken.error)
		t->result->missing = "its stream was torn";
	else if (t->result->interrupted && !t->heap.ended)
		t->result->missing = "it was interrupted";
	else if (!*missing && t->result->lost_events)
		t->result->missing = "events were lost on the way";
	if (t->heap.begun && t->heap.graph->object_count)
		return 0;
	if (!t->result->interrupted && !eventpipe_opened_ns(t->data) && *eventpipe_reason(t->data))
		return fail(t, t->data, diag);
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
	struct taking t = { .options = options,
		.result = ret_result,
		.heap.graph = graph,
		.deadline_ns = deadline_ns };
	struct ipc_provider providers[2];
	int result = trace_init(&t.trace);

	*ret_result = (struct heap_snapshot_result){ .missing = "", .buffer_mb = buffer_mb };
	if (result == 0)
		t.decoder =
			nettrace_decoder_new(&t.trace, "the heap's events", NETTRACE_NAMES_ONLY);
	t.begin_ns = t.heard_ns = clock_monotonic_ns();
	if (!t.decoder)
		result = -ENOMEM;
	if (result == 0)
		(void)look_for_readers(&t, false);
	if (result == 0)
		result = open_pipe(&t,
			HEAP_KEYWORD_GC | HEAP_KEYWORD_TYPE | HEAP_KEYWORD_DUMP |
				HEAP_KEYWORD_TYPENAMES,
			5, buffer_mb, RUNDOWN_LOADER, &providers[0], on_data, &t.data);
	if (result < 0) {
		diag_set(diag, result, "cannot take a heap snapshot: %m");
	} else {
		result = collect(&t, &providers[1], diag);
		stop(&t);
		result = finish(&t, result, diag);
	}
	eventpipe_free(t.trigger);
	eventpipe_free(t.data);
	nettrace_decoder_free(t.decoder);
	trace_done(&t.trace);
	vec_done(&t.readers.ids);
	return result;
}

/*
 * Whether the target's memory has room for a larger buffer, and for what the process itself
 * allocates meanwhile.
 */
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
