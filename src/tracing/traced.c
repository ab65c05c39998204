/* See traced.h. */
#include "tracing/traced.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clocks.h"
#include "base/diag.h"
#include "base/text.h"
#include "dotnet/ipc.h"
#include "dotnet/reason.h"
#include "machine/proc.h"
#include "nettrace/nettrace_read.h"
#include "pipeline/relay.h"
#include "pipeline/thread_clocks.h"
#include "target/targets.h"
#include "trace/event.h"
#include "trace/spoor_payload.h"

#define APPEAR_NS UINT64_C(5000000000)
/* limit for a runtime's start when its session must wait for it */
#define START_NS UINT64_C(5000000000)

/* The one place where the state changes. */
void traced_enter(struct traced *traced, enum traced_state state)
{
	enum {
		OVER = 1u << TRACED_ENDED | 1u << TRACED_FAILED,
		OPEN = 1u << TRACED_OPEN,
	};
	static const unsigned next[] = {
		[TRACED_NEW] = 1u << TRACED_HELD | OPEN | 1u << TRACED_FAILED,
		[TRACED_HELD] = 1u << TRACED_DELAYED | 1u << TRACED_FAILED,
		[TRACED_DELAYED] = OPEN | 1u << TRACED_FAILED,
		[TRACED_OPEN] = OPEN | 1u << TRACED_PAUSING | OVER, /* again after the guard */
		[TRACED_PAUSING] = OPEN | 1u << TRACED_PAUSED | OVER,
		[TRACED_PAUSED] = OPEN | OVER,
		[TRACED_ENDED] = 0,
		[TRACED_FAILED] = 0,
	};

	(void)next; /* without assertions */
	assert(next[traced->state] & 1u << state);
	assert((state == TRACED_OPEN || state == TRACED_PAUSING) == (traced->pipe != NULL));
	traced->state = state;
}

/* No session will follow that of a pipe that was freed. */
static void enter_end(struct traced *traced)
{
	traced_enter(traced, traced->opened && traced->whole ? TRACED_ENDED : TRACED_FAILED);
}

bool traced_is_waiting(const struct traced *traced)
{
	return traced->state == TRACED_HELD || traced->state == TRACED_DELAYED;
}

bool tracing_is_raw(const struct tracing *tracing)
{
	return tracing->options.open_raw != NULL;
}

void traced_write_loss(struct tracing *tracing, const struct traced *traced, uint64_t count,
	uint32_t tid, uint64_t time_ns, bool gap)
{
	session_writer_loss(&tracing->writer, traced->process, LOSS_EVENTPIPE, LOSS_EVENTS,
		&(struct payload_loss){ .count = count,
			.pid = traced->pid,
			.tid = tid,
			.cpu = EVENT_CPU_UNKNOWN,
			.first_ns = tracing->writer.begin_ns,
			.last_ns = time_ns },
		gap);
}

/* ---- its stream ---- */

/* Opens the file of a raw stream with its first bytes, and the decoder for options.event. */
static int open_raw(struct traced *traced)
{
	struct tracing *tracing = traced->tracing;
	struct diag diag = { 0 };
	int fd = tracing->options.open_raw(tracing->options.context, traced->name, traced->pid,
		traced->earlier != NULL, &diag);

	if (fd < 0) {
		traced->write_error = fd;
		text_set(traced->write_reason, "%s", diag.text);
		return fd;
	}
	traced->raw_fd = fd;
	if (tracing->options.event && trace_init(&traced->watched) == 0)
		traced->watcher =
			nettrace_decoder_new(&traced->watched, traced->name, NETTRACE_NAMES_ONLY);
	return 0;
}

/* Writes raw bytes. After an error the session is ended. */
static int write_raw(struct traced *traced, const uint8_t *data, size_t size)
{
	while (size) {
		ssize_t n = write(traced->raw_fd, data, size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			traced->write_error = n < 0 ? -errno : -EIO;
			text_set(traced->write_reason, "its file cannot be written: %s",
				strerror(-traced->write_error));
			return traced->write_error;
		}
		data += n;
		size -= (size_t)n;
		traced->tracing->raw_bytes += (uint64_t)n;
	}
	return 0;
}

/*
 * Passes the events of raw bytes to options.event, without stacks. Bytes that cannot be decoded are
 * still written to the file.
 */
static void watch_raw(struct traced *traced, const uint8_t *data, size_t size)
{
	struct tracing *tracing = traced->tracing;
	struct event event;

	if (!traced->watcher || !size || nettrace_decoder_push(traced->watcher, data, size) < 0)
		return;
	while (nettrace_decoder_next(traced->watcher, &event, NULL) > 0) {
		traced->events++;
		if (tracing->options.event(tracing->options.context, &traced->watched, &event))
			tracing->wants_end = true;
	}
}

static int on_bytes(void *user, const uint8_t *data, size_t size)
{
	struct traced *traced = user;
	struct tracing *tracing = traced->tracing;

	if (tracing_is_raw(tracing)) {
		int opened = size && traced->raw_fd < 0 ? open_raw(traced) : 0;
		if (opened < 0)
			return opened;
		watch_raw(traced, data, size);
		return write_raw(traced, data, size);
	}
	if (traced->stream < 0) {
		bytes_reset(&tracing->writer.text);
		bytes_printf(&tracing->writer.text, "the events of %s (%u)", traced->name,
			traced->pid);
		traced->stream =
			relay_open(tracing->relay, traced->process, bytes_z(&tracing->writer.text));
		if (traced->stream < 0)
			return traced->stream;
	}
	struct diag diag = { 0 };
	int r = relay_bytes(tracing->relay, traced->stream, data, size, &diag);

	if (!size) {
		traced->stream_state = r < 0 ? TRACED_STREAM_CUT : TRACED_STREAM_ENDED;
		tracing->released_ns = 0; /* no event waits for this stream any more */
	}
	if (r < 0 && size)
		text_set(traced->reason.text, "%s", diag.text);
	return r < 0 && size ? r : 0;
}

static uint8_t *room_for_bytes(void *user, size_t size)
{
	struct traced *traced = user;

	return traced->stream < 0 ? NULL : relay_room(traced->tracing->relay, traced->stream, size);
}

/* Reads a process's clocks from the opening of its session, if its pid is of this namespace. */
static void read_clocks_of(struct traced *traced, uint64_t now_ns)
{
	if (traced->tracing->clocks && traced->client->target &&
		traced->tracing->phase != PHASE_ENDING)
		/* after its end, or without memory, the file has no CPU time of it */
		(void)thread_clocks_add(traced->tracing->clocks, traced->pid, true, now_ns, false);
}

static void open_session(struct traced *traced, uint64_t now_ns)
{
	struct tracing *tracing = traced->tracing;
	const struct late_providers *split = &tracing->split;
	const struct eventpipe_options options = {
		.providers = traced->earlier ? split->late
			     : traced->later ? split->early
					     : tracing->options.providers,
		.provider_count = traced->earlier ? split->late_count
				  : traced->later ? split->early_count
						  : tracing->options.provider_count,
		.buffer_mb = tracing->options.buffer_mb,
		.rundown_keywords = traced->earlier ? 0 : tracing->options.rundown_keywords,
		.appear_ns = traced->peer >= 0 ? now_ns + APPEAR_NS : 0,
	};
	const struct eventpipe_handler handler = {
		.bytes = on_bytes,
		.room = tracing_is_raw(tracing) ? NULL : room_for_bytes,
		.user = traced,
	};

	traced->stream = -1;
	traced->stream_state = TRACED_STREAM_READ;
	traced->lost_reported = 0;
	reason_note_set(&traced->reason, REASON_KIND_NONE, "");
	traced->asked_ns = now_ns;
	if (runtime_client_open(traced->client, &options, &handler, now_ns, &traced->pipe) < 0) {
		reason_note_set_known(&traced->reason, REASON_NO_MEMORY);
		traced_enter(traced, TRACED_FAILED);
	} else {
		traced_enter(traced, TRACED_OPEN);
	}
}

/* ---- sessions that wait for a runtime's start ---- */

/* The session of a process that waits for the runtime's start; NULL: none. */
static struct traced *waiting_of(struct traced *traced)
{
	struct traced *last = traced->later ? traced->later : traced;

	return traced_is_waiting(last) ? last : NULL;
}

/* The runtime is resumed now: sets the time of opening the waiting session. */
static void begin_wait(struct traced *waiting, uint64_t now_ns)
{
	if (!waiting || waiting->state != TRACED_HELD)
		return;
	runtime_start_begin(&waiting->start, waiting->pid, now_ns);
	waiting->late = true;
	traced_enter(waiting, TRACED_DELAYED);
}

/* Spoor does not resume the runtime: it is not of the listen port, or options.hold is set. */
static bool goes_on_by_itself(const struct traced *traced)
{
	return traced->peer < 0 || traced->tracing->options.hold;
}

static void tell_wait(struct traced *traced)
{
	struct tracing *tracing = traced->tracing;

	session_writer_notice(&tracing->writer, traced->process, NOTICE_LATE_COUNTERS, "",
		"EventCounters of %s were enabled %s after its start, because enabling them during the start can deadlock a runtime",
		traced->name,
		TEXT_DURATION((double)(traced->start.due_ns - traced->start.begin_ns) / 1e9));
}

void traced_advance_wait(struct traced *traced, uint64_t now_ns)
{
	struct tracing *tracing = traced->tracing;

	if (!traced_is_waiting(traced) || tracing->phase == PHASE_PAUSING)
		return;
	if (tracing->phase == PHASE_ENDING ||
		!dotnet_endpoint_is_alive(&traced->client->endpoint)) {
		if (!traced->earlier) /* which reports the reason */
			reason_note_set_known(&traced->reason, REASON_ENDED_STARTING);
		traced_enter(traced, TRACED_FAILED);
		return;
	}
	if (traced->state == TRACED_HELD && goes_on_by_itself(traced) &&
		now_ns >= traced->look_ns) {
		traced->look_ns = now_ns + TRACING_BEAT_NS;
		if (late_providers_has_begun(traced->pid))
			begin_wait(traced, now_ns);
	}
	if (traced->state == TRACED_DELAYED &&
		runtime_start_is_over(&traced->start, traced->pid, now_ns))
		open_session(traced, now_ns);
}

/* ---- its steps ---- */

void traced_begin_resume(struct traced *traced, uint64_t now_ns)
{
	if (!traced->held.waits || traced->tracing->options.hold ||
		held_runtime_is_resuming(&traced->held))
		return;
	begin_wait(waiting_of(traced), now_ns);
	held_runtime_resume(&traced->held, now_ns);
}

/* Describes a runtime's session in one line. */
static void describe_session(struct tracing *tracing)
{
	bytes_reset(&tracing->writer.text);
	bytes_printf(&tracing->writer.text, "%s, rundown 0x%llx, %u MB, with stacks",
		tracing->options.providers_text ? tracing->options.providers_text : "",
		(unsigned long long)tracing->options.rundown_keywords, tracing->options.buffer_mb);
}

/* Reports what the runtime answered about itself, one time. */
void traced_tell_runtime(struct traced *traced)
{
	const struct ipc_process_info *info = eventpipe_info(traced->pipe);

	if (traced->runtime_reported)
		return;
	traced->runtime_reported = true;
	describe_session(traced->tracing);
	session_writer_runtime(&traced->tracing->writer, traced->process, info,
		&(struct payload_runtime){ .reachable = traced->opened,
			.reason = traced->reason.text,
			.sessions = traced->opened ? bytes_z(&traced->tracing->writer.text) : "" });
	traced->tracing->flush_ns =
		0; /* flush in the next step, so that a truncated file contains it */
	if (traced->opened)
		return;
	session_writer_unreachable(&traced->tracing->writer, traced->process, traced->reason.kind,
		"", "not traced: %s", traced->reason.text);
}

/* Reports events that were lost after the last one that arrived. */
void traced_tell_rest_of_loss(struct traced *traced)
{
	struct tracing *tracing = traced->tracing;

	if (traced->stream < 0 || tracing_is_raw(tracing))
		return;
	uint64_t lost = relay_stream_lost(tracing->relay, traced->stream);
	if (lost > traced->lost_reported) {
		traced_write_loss(tracing, traced, lost - traced->lost_reported, traced->pid,
			tracing->window.watermark_ns, true);
		traced->lost_reported = lost;
	}
}

static void close_session(struct traced *traced)
{
	const struct reason_note *reason = eventpipe_reason(traced->pipe);

	if (*traced->reason.text && reason->kind == REASON_KIND_LIED)
		traced->reason.kind = reason->kind; /* the relay has said more about its stream */
	else
		traced->reason = *reason;
	traced->whole = eventpipe_whole(traced->pipe);
	if (traced->write_error)
		reason_note_set(&traced->reason, REASON_KIND_WRITE, traced->write_reason);
	traced->bytes += eventpipe_bytes(traced->pipe);
	traced_tell_runtime(traced);
	runtime_client_close(traced->client, &traced->pipe);
	if (traced->stream >= 0 && traced->stream_state == TRACED_STREAM_READ)
		(void)on_bytes(traced, NULL, 0); /* the relay no longer waits for it */
	if (traced->raw_fd >= 0) {
		close(traced->raw_fd);
		traced->raw_fd = -1;
	}
}

/* Opens the session of a pause that is over. */
void traced_open_again(struct traced *traced, uint64_t now_ns)
{
	if (dotnet_endpoint_is_alive(&traced->client->endpoint))
		open_session(traced, now_ns);
	else
		enter_end(traced);
}

static bool is_over(const struct traced *traced)
{
	return traced->state == TRACED_ENDED || traced->state == TRACED_FAILED;
}

/*
 * Frees the port's slot of a runtime whose sessions have ended, because it gets no further request.
 */
static void leave_place(struct traced *traced, uint64_t now_ns)
{
	if (!traced->held.reverse || !is_over(traced) || (traced->later && !is_over(traced->later)))
		return;
	if (traced->tracing->phase != PHASE_ENDING)
		traced_begin_resume(traced, now_ns); /* again, if the earlier connection was lost */
	if (held_runtime_is_resuming(&traced->held) ||
		(traced->held.waits && dotnet_endpoint_is_alive(&traced->client->endpoint)))
		return;
	held_runtime_done(&traced->held);
}

void traced_advance(struct traced *traced, uint64_t now_ns)
{
	struct tracing *tracing = traced->tracing;

	held_runtime_advance(&traced->held, now_ns);
	leave_place(traced, now_ns);
	if (traced->state == TRACED_HELD && !traced->earlier)
		/* no session is opened before its start, so it is resumed now */
		traced_begin_resume(traced, now_ns);
	traced_advance_wait(traced, now_ns);
	if (!traced->pipe)
		return;
	enum eventpipe_state state = eventpipe_advance(traced->pipe, now_ns);

	if (eventpipe_opened_ns(traced->pipe) && !traced->opened) {
		traced->opened = true;
		if (traced->late)
			tell_wait(traced);
		read_clocks_of(traced, now_ns);
		if (!tracing->first_open_ns)
			tracing->first_open_ns = now_ns;
	}
	if (traced->opened)
		traced_tell_runtime(traced);
	if (traced->opened || state == EVENTPIPE_ENDED)
		traced_begin_resume(traced, now_ns);
	if (traced->stream >= 0 && !eventpipe_behind(traced->pipe))
		relay_caught_up(tracing->relay, traced->stream, now_ns);
	if (state != EVENTPIPE_ENDED)
		return;
	bool guarded = eventpipe_reason(traced->pipe)->kind == REASON_KIND_GUARDED;

	close_session(traced);
	if (tracing->phase == PHASE_ENDING) {
		enter_end(traced);
	} else if (traced->state == TRACED_PAUSING) {
		if (tracing->phase == PHASE_PAUSING)
			traced_enter(traced, TRACED_PAUSED);
		else
			traced_open_again(traced, now_ns);
	} else if (guarded && !tracing_is_raw(tracing)) {
		/* a second session of the same process is not counted again */
		tracing->guarded += !traced->earlier || !traced->earlier->pipe;
		open_session(traced, now_ns);
	} else {
		enter_end(traced);
	}
}

/* ---- adding ---- */

static struct traced *new_traced(struct tracing *tracing, const char *name, uint32_t pid)
{
	struct traced *traced = calloc(1, sizeof(*traced));

	if (!traced)
		return NULL;
	traced->tracing = tracing;
	traced->client = &traced->own;
	traced->name = strdup(name);
	traced->pid = pid;
	traced->stream = traced->raw_fd = traced->peer = -1;
	if (!traced->name || !vec_add(&tracing->list, traced)) {
		free(traced->name);
		free(traced);
		return NULL;
	}
	return traced;
}

/* True if the runtime waits before its first instruction, or has just begun. */
static bool is_starting(const struct traced *traced)
{
	return traced->held.waits || (traced->seen && !late_providers_has_begun(traced->pid));
}

/*
 * Makes the providers that must not be enabled during the start wait: in a second session, or in
 * the only one if there are no other providers.
 */
static int wait_for_start(struct traced *traced, struct traced **ret_waiting)
{
	struct tracing *tracing = traced->tracing;
	struct traced *waiting = traced;

	if (tracing->split.early_count) {
		waiting = new_traced(tracing, traced->name, traced->pid);
		if (!waiting)
			return -ENOMEM;
		waiting->seen = traced->seen;
		waiting->client = traced->client;
		waiting->process = traced->process;
		waiting->peer = traced->peer;
		waiting->runtime_reported = true; /* the first session reports it */
		waiting->earlier = traced;
		traced->later = waiting;
	}
	traced_enter(waiting, TRACED_HELD);
	if (goes_on_by_itself(waiting) && !waiting->seen) {
		reason_note_set_known(&waiting->reason, REASON_STARTING);
		traced_enter(waiting, TRACED_FAILED);
	}
	*ret_waiting = waiting;
	return 0;
}

/* Writes the facts of a process, before its first event. `seen` is as for traced_add(). */
static void write_process(struct tracing *tracing, uint32_t process, const struct target *target,
	bool seen)
{
	struct process *row = &tracing->trace.processes.items[process];
	struct proc_reader proc;
	bool readable = seen && proc_open(&proc, NULL) == 0;

	row->inner_pid = target->inner_pid;
	row->existed = true;
	row->name = trace_add_text(&tracing->trace, target->name);
	(void)session_writer_process(&tracing->writer, readable ? &proc : NULL, process, 0);
	if (readable)
		proc_close(&proc);
}

/* `seen`: its pid is in the recorder's pid namespace, so the guard can connect to it. */
int traced_add(struct tracing *tracing, const struct target *target, bool seen,
	const struct dotnet_endpoint *endpoint, int peer, struct diag *diag)
{
	struct traced *traced = new_traced(tracing, target->name, target->pid);

	if (!traced)
		return diag_set(diag, -ENOMEM, "cannot trace: %m");
	traced->process = trace_process(&tracing->trace, target->pid);
	if (!traced->process)
		return diag_set(diag, -ENOMEM, "cannot trace: %m");
	traced->seen = seen;
	bool has_port = seen && dotnet_target_read(target->pid, &traced->port, NULL) == 0;
	const struct dotnet_endpoint own = dotnet_target_endpoint(&traced->port);

	traced->peer = peer;
	if (peer >= 0)
		traced->held = held_runtime_of(tracing->reverse, (uint32_t)peer);
	runtime_client_init(&traced->own, endpoint ? endpoint : &own,
		has_port ? &traced->port : NULL, tracing->guard);
	write_process(tracing, traced->process, target, seen);
	if (!endpoint && !has_port) {
		reason_note_set_known(&traced->reason, REASON_ENDED_UNTRACED);
		traced_enter(traced, TRACED_FAILED);
		return 0;
	}
	struct traced *waiting = NULL;
	int r = tracing->split.late_count && is_starting(traced) ? wait_for_start(traced, &waiting)
								 : 0;

	if (r < 0)
		return diag_set(diag, r, "cannot trace: %m");
	uint64_t due_ns = clock_monotonic_ns() + (waiting == traced ? START_NS : 0);

	if (!tracing->due_open_ns || due_ns < tracing->due_open_ns)
		tracing->due_open_ns = due_ns;
	if (waiting != traced)
		open_session(traced, clock_monotonic_ns());
	return 0;
}

/* ---- its facts ---- */

/*
 * True if a session is still ending. A process that a signal has stopped cannot end its session
 * until it continues, so it does not count.
 */
bool traced_still_ends(const struct traced *traced)
{
	return traced->pipe && !dotnet_endpoint_is_stopped(&traced->client->endpoint);
}

enum tracing_state traced_public_state(const struct traced *traced)
{
	if (traced_is_waiting(traced))
		return TRACING_OPENING;
	if (!traced->pipe)
		return traced->state == TRACED_ENDED ? TRACING_ENDED : TRACING_FAILED;
	switch (eventpipe_state(traced->pipe)) {
	case EVENTPIPE_OPENING:
	case EVENTPIPE_HUNG:
		return TRACING_OPENING;
	case EVENTPIPE_STREAMING:
		return TRACING_RUNNING;
	default:
		return TRACING_STOPPING;
	}
}

/* Adds the counts and reasons of one session to those of its process. */
void traced_add_facts(const struct traced *traced, struct tracing_process *facts)
{
	bool live = traced->pipe != NULL;

	const struct reason_note *reason = live ? eventpipe_reason(traced->pipe) : &traced->reason;

	if (!*facts->reason) {
		facts->reason = reason->text;
		facts->reason_kind = reason->kind;
	}
	/* A process that is killed later leaves a cut stream, with the events before its end. */
	if (!*facts->reason && !live && traced->opened && !traced->events &&
		(tracing_is_raw(traced->tracing) ? !traced->bytes
						 : traced->stream_state == TRACED_STREAM_CUT)) {
		facts->reason = reason_text(REASON_CLOSED_EMPTY);
		facts->reason_kind = reason_kind(REASON_CLOSED_EMPTY);
	}
	facts->bytes += traced->bytes + (live ? eventpipe_bytes(traced->pipe) : 0);
	facts->events += traced->events;
	facts->lost += traced->stream >= 0
			       ? relay_stream_lost(traced->tracing->relay, traced->stream)
		       : traced->watcher ? nettrace_decoder_lost(traced->watcher)
					 : 0;
}
