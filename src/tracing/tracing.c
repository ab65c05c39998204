/*
 * See tracing.h.
 *
 * Each process has an eventpipe. The relay decodes its stream and puts the events into the reorder
 * window, from where they are written to the sink in time order. In a trace of raw bytes, the
 * streams are written to their files unchanged, without relay and window. tracing_step() drives
 * everything.
 */
#include "tracing/tracing.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clocks.h"
#include "base/diag.h"
#include "base/poll_set.h"
#include "base/json.h"
#include "base/text.h"
#include "base/vec.h"
#include "dotnet/eventpipe.h"
#include "dotnet/guard.h"
#include "dotnet/held_runtime.h"
#include "dotnet/ipc.h"
#include "dotnet/port.h"
#include "dotnet/reason.h"
#include "dotnet/reverse.h"
#include "machine/descriptors.h"
#include "machine/proc.h"
#include "machine/scheduling.h"
#include "nettrace/nettrace_read.h"
#include "pipeline/reorder_window.h"
#include "pipeline/relay.h"
#include "pipeline/session_writer.h"
#include "pipeline/thread_clocks.h"
#include "target/port_peer.h"
#include "target/targets.h"
#include "trace/event.h"
#include "trace/flow.h"
#include "trace/schema.h"
#include "trace/spoor_payload.h"
#include "trace/trace.h"
#include "tracing/late_providers.h"

#define GIVE_OUT_NS UINT64_C(100000000)
#define BEAT_NS     UINT64_C(250000000)
#define APPEAR_NS   UINT64_C(5000000000)
/* limit for a runtime's start when its session must wait for it */
#define START_NS       UINT64_C(5000000000)
#define GIVE_OUT_BYTES (1u << 20)

enum traced_state {
	TRACED_NEW,
	TRACED_HELD,    /* to be opened after the start of the runtime, which was not resumed yet */
	TRACED_DELAYED, /* the runtime was resumed: to be opened at open_ns */
	TRACED_OPEN,    /* it has an eventpipe, which opens, streams or stops */
	TRACED_PAUSING, /* as TRACED_OPEN, but ended by tracing_pause(), to be opened again */
	TRACED_PAUSED,  /* has ended, to be opened again */
	TRACED_ENDED,   /* its stream was read to its end */
	TRACED_FAILED,  /* no session, or it broke off */
};

enum traced_stream {
	TRACED_STREAM_READ, /* none yet, or being read */
	TRACED_STREAM_ENDED,
	TRACED_STREAM_CUT, /* it ended in the middle, or was empty */
};

/*
 * A session in a process. A process that starts during the trace may have a second one, for the
 * providers that must not be enabled before it runs.
 */
struct traced {
	struct tracing *tracing;
	struct traced *later;   /* the second session; NULL: none */
	struct traced *earlier; /* of a second session: the first */
	enum traced_state state;
	enum traced_stream stream_state;
	uint64_t open_ns;  /* when its wait for the runtime's start is over; 0: it did not wait */
	uint64_t asked_ns; /* when its opening began */
	/* when to check again whether another program has resumed the runtime */
	uint64_t look_ns;
	char *name;
	uint32_t pid;
	bool seen; /* its pid is in the recorder's pid namespace */
	struct dotnet_target port;
	bool has_port; /* the guard can connect to it */
	struct dotnet_door door;
	struct eventpipe *pipe;           /* in TRACED_OPEN and TRACED_PAUSING */
	uint32_t process;                 /* index in the trace */
	int stream;                       /* number in the relay; -1: none yet */
	int raw_fd;                       /* -1: none */
	struct nettrace_decoder *watcher; /* decoder of raw bytes, for options.event */
	struct trace watched;
	uint64_t events;
	uint64_t lost_told;
	uint64_t bytes; /* of the process's earlier sessions */
	int peer;       /* index in the listen port; -1: none */
	struct held_runtime held;
	bool runtime_told;
	bool opened; /* a session was open at some time */
	bool whole;
	int write_error;
	char write_reason[640];
	const char *reason_code;
	char reason[640];
};

enum tracing_phase { PHASE_RUNNING, PHASE_PAUSING, PHASE_ENDING };

struct tracing {
	struct tracing_options options;
	struct late_providers split; /* options.providers, split for runtimes that are starting */
	struct trace trace;
	struct reorder_window window;
	struct session_writer writer;
	struct relay *relay;
	struct thread_clocks *clocks; /* NULL: no samples are requested that need them */
	struct guard *guard;
	uint32_t guard_rounds;
	struct reverse *reverse;
	VEC(struct traced *) list; /* entries are not moved: handlers point to them */
	struct poll_set set;
	uint64_t first_open_ns;
	uint64_t due_open_ns;
	uint64_t flush_ns;
	uint64_t give_out_ns;
	size_t give_out_bytes; /* the window is released early when more bytes than this wait */
	uint64_t events;
	uint64_t late;
	uint64_t raw_bytes;
	const char *end_reason;
	enum tracing_phase phase;
	bool wants_end;
	bool unguarded_emitted;
	char unguarded[768]; /* why there is no guard; "" if there is one */
};

/* The one place where the state changes. */
static void enter(struct traced *traced, enum traced_state state)
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
	enter(traced, traced->opened && traced->whole ? TRACED_ENDED : TRACED_FAILED);
}

static bool is_waiting(const struct traced *traced)
{
	return traced->state == TRACED_HELD || traced->state == TRACED_DELAYED;
}

static void set_reason(struct traced *traced, const char *code, const char *reason)
{
	traced->reason_code = code;
	(void)snprintf(traced->reason, sizeof(traced->reason), "%s", reason); /* may be truncated */
}

static bool is_raw(const struct tracing *tracing)
{
	return tracing->options.open_raw != NULL;
}

/* ---- writing to the file ---- */

static void write_loss(struct tracing *tracing, const struct traced *traced, uint64_t count,
	uint32_t tid, uint64_t time_ns, bool gap)
{
	session_writer_loss(&tracing->writer, traced->process,
		&(struct payload_loss){ .source = "eventpipe",
			.unit = "events",
			.count = count,
			.pid = traced->pid,
			.tid = tid,
			.cpu = EVENT_CPU_UNKNOWN,
			.first_ns = tracing->writer.begin_ns,
			.last_ns = time_ns },
		gap);
}

/* Describes a runtime's session in one line. */
static void describe_session(struct tracing *tracing)
{
	bytes_reset(&tracing->writer.text);
	bytes_printf(&tracing->writer.text, "%s, rundown 0x%llx, %u MB, with stacks",
		tracing->options.providers_text ? tracing->options.providers_text : "",
		(unsigned long long)tracing->options.rundown_keywords, tracing->options.buffer_mb);
}

static void write_head(struct tracing *tracing)
{
	struct json j = { .out = &tracing->writer.text };

	bytes_reset(&tracing->writer.text);
	json_object(&j, NULL);
	json_z(&j, "scope", "processes");
	json_z(&j, "providers",
		tracing->options.providers_text ? tracing->options.providers_text : "");
	json_u64(&j, "buffer_mb", tracing->options.buffer_mb);
	json_u64(&j, "rundown_keywords", tracing->options.rundown_keywords);
	json_bool(&j, "thread_clocks", tracing->clocks != NULL);
	json_end(&j);
	session_writer_head(&tracing->writer,
		&(struct payload_session){ .tool_version = tracing->options.version,
			.command_line = tracing->options.command_line,
			.options = bytes_z(&tracing->writer.text) });
}

/* ---- leaving the window ---- */

/*
 * The session that an event came from. If it was replaced by a new one, any session of its process.
 */
static struct traced *traced_of(struct tracing *tracing, const struct pending *item)
{
	struct traced *found = NULL;

	for (uint32_t i = 0; i < tracing->list.count; i++) {
		struct traced *traced = tracing->list.items[i];
		if (traced->stream == relay_stream(item))
			return traced;
		if (!found && traced->process == item->pid)
			found = traced;
	}
	return found;
}

static void hand_over(struct tracing *tracing, struct pending *item, uint64_t late_ns)
{
	struct event event;

	relay_take(tracing->relay, item, late_ns, &event);
	if (event.lost_before) {
		struct traced *traced = traced_of(tracing, item);
		if (traced) {
			if (traced->stream == relay_stream(item))
				traced->lost_told += event.lost_before;
			write_loss(tracing, traced, event.lost_before,
				tracing->trace.threads.items[event.thread_index].tid, event.time_ns,
				false);
		}
	}
	tracing->events++;
	tracing->late += late_ns != 0;
	session_writer_event(&tracing->writer, &event);
	session_writer_relieve(&tracing->writer);
	if (tracing->options.event &&
		tracing->options.event(tracing->options.context, &tracing->trace, &event))
		tracing->wants_end = true;
	relay_give_back(tracing->relay, item);
}

/*
 * The watermark: events up to this time may leave the window. The events of a session that is being
 * opened are not older than the begin of its opening.
 */
static uint64_t limit_of(const struct tracing *tracing, uint64_t now_ns)
{
	uint64_t limit_ns = relay_settled_ns(tracing->relay, now_ns);

	for (uint32_t i = 0; i < tracing->list.count; i++) {
		const struct traced *traced = tracing->list.items[i];
		if (!traced->pipe || traced->stream >= 0)
			continue;
		uint64_t own_ns = now_ns - REORDER_WINDOW_NS;
		if (traced->asked_ns > own_ns)
			own_ns = traced->asked_ns;
		if (own_ns < limit_ns)
			limit_ns = own_ns;
	}
	return limit_ns;
}

/* Writes the CPU time of a thread, which the runtime's samples do not contain. */
static void hand_over_clock(struct tracing *tracing, const struct pending *item)
{
	const struct process *process = &tracing->trace.processes.items[item->pid];
	uint32_t thread = item->flag ? process->main_thread
				     : relay_place_thread(tracing->relay, item->pid, item->tid);

	if (!thread)
		return;
	payload_thread_clock(&tracing->writer.payload,
		&(struct payload_thread_clock){ .run_ns = item->value, .rest = item->flag });
	session_writer_emit(&tracing->writer, SPOOR_THREAD_CLOCK,
		(struct event){ .time_ns = item->time_ns,
			.thread_index = thread,
			.cpu = EVENT_CPU_UNKNOWN });
}

static void give_out(struct tracing *tracing, uint64_t until_ns)
{
	struct pending *item;
	uint64_t late_ns;

	reorder_window_sort(&tracing->window, until_ns);
	while ((item = reorder_window_next(&tracing->window, &late_ns))) {
		if (item->kind == PENDING_CLOCK)
			hand_over_clock(tracing, item);
		else
			hand_over(tracing, item, late_ns);
	}
	tracing->give_out_ns = clock_monotonic_ns();
	tracing->give_out_bytes = 2 * relay_pending_bytes(tracing->relay);
	if (tracing->give_out_bytes < GIVE_OUT_BYTES)
		tracing->give_out_bytes = GIVE_OUT_BYTES;
}

static void flush(struct tracing *tracing)
{
	session_writer_flush(&tracing->writer);
	session_writer_trim_stacks(&tracing->writer, tracing->relay, NULL, NULL);
	tracing->flush_ns = clock_monotonic_ns();
}

/* ---- entering the window ---- */

/* Opens the file of a raw stream with its first bytes, and the decoder for options.event. */
static int open_raw(struct traced *traced)
{
	struct tracing *tracing = traced->tracing;
	struct diag diag = { 0 };
	int fd = tracing->options.open_raw(tracing->options.context, traced->name, traced->pid,
		traced->earlier != NULL, &diag);

	if (fd < 0) {
		traced->write_error = fd;
		/* the buffers have the same size */
		(void)snprintf(traced->write_reason, sizeof(traced->write_reason), "%s", diag.text);
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
			(void)snprintf(traced->write_reason, sizeof(traced->write_reason),
				/* fits */
				"its file cannot be written: %s", strerror(-traced->write_error));
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

	if (is_raw(tracing)) {
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
		tracing->give_out_ns = 0; /* no event waits for this stream any more */
	}
	if (r < 0 && size)
		(void)snprintf(traced->reason, sizeof(traced->reason), "%s",
			diag.text); /* may be truncated */
	return r < 0 && size ? r : 0;
}

static uint8_t *room_for_bytes(void *user, size_t size)
{
	struct traced *traced = user;

	return traced->stream < 0 ? NULL : relay_room(traced->tracing->relay, traced->stream, size);
}

/* ---- clocks ---- */

static void on_clock(void *context, uint32_t pid, uint32_t tid, uint64_t time_ns, uint64_t cpu_ns)
{
	struct tracing *tracing = context;
	uint32_t process = trace_find_process(&tracing->trace, pid);
	struct pending *item = process ? reorder_window_add(&tracing->window) : NULL;

	if (!item)
		return; /* without memory: one longer interval */
	item->kind = PENDING_CLOCK;
	item->time_ns = time_ns;
	item->pid = process;
	item->tid = tid;
	item->value = cpu_ns;
	item->flag = !tid;
	item->cpu = EVENT_CPU_UNKNOWN;
}

/*
 * The runtime's samples show where threads are but not whether they run. So the threads' CPU clocks
 * are read while the session is open.
 */
static int open_clocks(struct tracing *tracing)
{
	static const struct thread_clocks_told told = { .clock = on_clock };
	bool sampled = false;

	for (uint32_t i = 0; i < tracing->options.provider_count; i++)
		sampled |= strcmp(tracing->options.providers[i].name,
				   provider_name(PROVIDER_SAMPLE)) == 0;
	return sampled && !is_raw(tracing) ? thread_clocks_new(&told, tracing, &tracing->clocks)
					   : 0;
}

/*
 * Reads the clocks of a process from the opening of its session, if its pid is in the recorder's
 * pid namespace.
 */
static void read_clocks_of(struct traced *traced, uint64_t now_ns)
{
	if (traced->tracing->clocks && traced->has_port && traced->tracing->phase != PHASE_ENDING)
		/* after its end, or without memory, the file has no CPU time of it */
		(void)thread_clocks_add(traced->tracing->clocks, traced->pid, true, now_ns, false);
}

/* ---- processes ---- */

static void need_guard(struct tracing *tracing)
{
	struct diag diag = { 0 };

	if (!tracing->guard && guard_start(&tracing->guard, &diag) < 0)
		/* fits */
		(void)snprintf(tracing->unguarded, sizeof(tracing->unguarded), "%s%s",
			SESSION_UNGUARDED, diag.text);
	tracing->guard_rounds = guard_rounds(tracing->guard);
}

/* Writes a notice to the file, one time, if there is no guard or it has stopped working. */
static void look_at_guard(struct tracing *tracing)
{
	const char *problem = tracing->guard ? guard_problem(tracing->guard) : NULL;

	if (problem && !*tracing->unguarded)
		/* fits */
		(void)snprintf(tracing->unguarded, sizeof(tracing->unguarded), "%s%s",
			SESSION_UNGUARDED, problem);
	if (!*tracing->unguarded || tracing->unguarded_emitted || !tracing->writer.sink)
		return;
	tracing->unguarded_emitted = true;
	session_writer_notice(&tracing->writer, 0, "unguarded", "", "%s", tracing->unguarded);
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
		.guard = traced->has_port ? tracing->guard : NULL,
		.target = &traced->port,
	};
	const struct eventpipe_handler handler = {
		.bytes = on_bytes,
		.room = is_raw(tracing) ? NULL : room_for_bytes,
		.user = traced,
	};

	traced->stream = -1;
	traced->stream_state = TRACED_STREAM_READ;
	traced->lost_told = 0;
	set_reason(traced, "", "");
	traced->asked_ns = now_ns;
	if (eventpipe_new(&traced->door, &options, &handler, now_ns, &traced->pipe) < 0) {
		set_reason(traced, reason_word(REASON_KIND_ERROR), "no memory for its session");
		enter(traced, TRACED_FAILED);
	} else {
		enter(traced, TRACED_OPEN);
	}
}

/* ---- sessions that wait for a runtime's start ---- */

/* The session of a process that waits for the runtime's start; NULL: none. */
static struct traced *waiting_of(struct traced *traced)
{
	struct traced *last = traced->later ? traced->later : traced;

	return is_waiting(last) ? last : NULL;
}

/* The runtime is resumed now: sets the time of opening the waiting session. */
static void begin_wait(struct traced *waiting, uint64_t now_ns)
{
	if (!waiting || waiting->state != TRACED_HELD)
		return;
	waiting->open_ns = now_ns + LATE_PROVIDERS_NS;
	enter(waiting, TRACED_DELAYED);
}

/*
 * True if spoor does not resume the runtime: it did not connect to the listen port, or options.hold
 * is set.
 */
static bool goes_on_by_itself(const struct traced *traced)
{
	return traced->peer < 0 || traced->tracing->options.hold;
}

static void tell_wait(struct traced *traced)
{
	struct tracing *tracing = traced->tracing;

	session_writer_notice(&tracing->writer, traced->process, "late-counters", "",
		"%s was asked for its EventCounters %s after its start: requested earlier, they can deadlock a runtime",
		traced->name, TEXT_DURATION((double)LATE_PROVIDERS_NS / 1e9));
}

static void advance_wait(struct traced *traced, uint64_t now_ns)
{
	struct tracing *tracing = traced->tracing;

	if (!is_waiting(traced) || tracing->phase == PHASE_PAUSING)
		return;
	char state = traced->door.state(traced->door.context);

	if (tracing->phase == PHASE_ENDING || !state || state == 'Z' || state == 'X') {
		if (!traced->earlier) /* which reports the reason */
			set_reason(traced, reason_word(REASON_KIND_ENDED),
				"it ended before it could be asked for EventCounters, which is not done during its start");
		enter(traced, TRACED_FAILED);
		return;
	}
	if (traced->state == TRACED_HELD && goes_on_by_itself(traced) &&
		now_ns >= traced->look_ns) {
		traced->look_ns = now_ns + BEAT_NS;
		if (late_providers_has_begun(traced->pid))
			begin_wait(traced, now_ns);
	}
	if (traced->state == TRACED_DELAYED && now_ns >= traced->open_ns)
		open_session(traced, now_ns);
}

static void begin_resume(struct traced *traced, uint64_t now_ns)
{
	if (!traced->held.waits || traced->tracing->options.hold ||
		held_runtime_is_resuming(&traced->held))
		return;
	begin_wait(waiting_of(traced), now_ns);
	held_runtime_resume(&traced->held, now_ns);
}

/* Reports what the runtime answered about itself, one time. */
static void tell_runtime(struct traced *traced)
{
	const struct ipc_process_info *info = eventpipe_info(traced->pipe);

	if (traced->runtime_told)
		return;
	traced->runtime_told = true;
	describe_session(traced->tracing);
	session_writer_runtime(&traced->tracing->writer, traced->process, info,
		&(struct payload_runtime){ .reachable = traced->opened,
			.reason = traced->reason,
			.sessions = traced->opened ? bytes_z(&traced->tracing->writer.text) : "" });
	traced->tracing->flush_ns =
		0; /* flush in the next step, so that a truncated file contains it */
	if (traced->opened)
		return;
	session_writer_notice(&traced->tracing->writer, traced->process, traced->reason_code, "",
		"not traced: %s", traced->reason);
}

/* Reports events that were lost after the last one that arrived. */
static void tell_rest_of_loss(struct traced *traced)
{
	struct tracing *tracing = traced->tracing;

	if (traced->stream < 0 || is_raw(tracing))
		return;
	uint64_t lost = relay_stream_lost(tracing->relay, traced->stream);
	if (lost > traced->lost_told) {
		write_loss(tracing, traced, lost - traced->lost_told, traced->pid,
			tracing->window.watermark_ns, true);
		traced->lost_told = lost;
	}
}

static void close_session(struct traced *traced)
{
	if (!*traced->reason ||
		!reason_word_is(eventpipe_reason_code(traced->pipe), REASON_KIND_LIED))
		(void)snprintf(traced->reason, sizeof(traced->reason), "%s",
			eventpipe_reason(traced->pipe)); /* the buffers have the same size */
	traced->reason_code = eventpipe_reason_code(traced->pipe);
	traced->whole = eventpipe_whole(traced->pipe);
	if (traced->write_error)
		set_reason(traced, reason_word(REASON_KIND_WRITE), traced->write_reason);
	traced->bytes += eventpipe_bytes(traced->pipe);
	tell_runtime(traced);
	eventpipe_free(traced->pipe);
	traced->pipe = NULL;
	if (traced->stream >= 0 && traced->stream_state == TRACED_STREAM_READ)
		(void)on_bytes(traced, NULL, 0); /* the relay no longer waits for it */
	if (traced->raw_fd >= 0) {
		close(traced->raw_fd);
		traced->raw_fd = -1;
	}
}

/* True if the process still exists, so that a session can be opened. */
static bool door_is_open(const struct traced *traced)
{
	char state = traced->door.state(traced->door.context);

	return state && state != 'Z' && state != 'X';
}

/* Opens the session of a pause that is over. */
static void open_again(struct traced *traced, uint64_t now_ns)
{
	if (door_is_open(traced))
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
		begin_resume(traced, now_ns); /* again, if the earlier connection was lost */
	if (held_runtime_is_resuming(&traced->held) || (traced->held.waits && door_is_open(traced)))
		return;
	held_runtime_done(&traced->held);
}

static void advance_one(struct traced *traced, uint64_t now_ns)
{
	struct tracing *tracing = traced->tracing;

	held_runtime_advance(&traced->held, now_ns);
	leave_place(traced, now_ns);
	if (traced->state == TRACED_HELD && !traced->earlier)
		/* no session is opened before its start, so it is resumed now */
		begin_resume(traced, now_ns);
	advance_wait(traced, now_ns);
	if (!traced->pipe)
		return;
	enum eventpipe_state state = eventpipe_advance(traced->pipe, now_ns);

	if (eventpipe_opened_ns(traced->pipe) && !traced->opened) {
		traced->opened = true;
		if (traced->open_ns)
			tell_wait(traced);
		read_clocks_of(traced, now_ns);
		if (!tracing->first_open_ns)
			tracing->first_open_ns = now_ns;
	}
	if (traced->opened)
		tell_runtime(traced);
	if (traced->opened || state == EVENTPIPE_ENDED)
		begin_resume(traced, now_ns);
	if (traced->stream >= 0 && !eventpipe_behind(traced->pipe))
		relay_caught_up(tracing->relay, traced->stream, now_ns);
	if (state != EVENTPIPE_ENDED)
		return;
	bool guarded = reason_word_is(eventpipe_reason_code(traced->pipe), REASON_KIND_GUARDED);

	close_session(traced);
	if (tracing->phase == PHASE_ENDING) {
		enter_end(traced);
	} else if (traced->state == TRACED_PAUSING) {
		if (tracing->phase == PHASE_PAUSING)
			enter(traced, TRACED_PAUSED);
		else
			open_again(traced, now_ns);
	} else if (guarded && !is_raw(tracing)) {
		session_writer_notice(&tracing->writer, traced->process, "guard", "",
			"spoor had stood still: its session in %s was ended, so that it was not held up, and is opened again",
			traced->name);
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
	traced->name = strdup(name);
	traced->pid = pid;
	traced->stream = traced->raw_fd = traced->peer = -1;
	traced->reason_code = "";
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
		waiting->port = traced->port;
		waiting->has_port = traced->has_port;
		waiting->door = traced->door;
		if (waiting->door.context == &traced->port)
			waiting->door = dotnet_target_door(&waiting->port);
		waiting->process = traced->process;
		waiting->peer = traced->peer;
		waiting->runtime_told = true; /* the first session reports it */
		waiting->earlier = traced;
		traced->later = waiting;
	}
	enter(waiting, TRACED_HELD);
	if (goes_on_by_itself(waiting) && !waiting->seen) {
		set_reason(waiting, "starting",
			"its EventCounters must not be requested before its start is over, which cannot be observed from here");
		enter(waiting, TRACED_FAILED);
	}
	*ret_waiting = waiting;
	return 0;
}

/* Writes the facts of a process, before its first event. `seen` is as for add(). */
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
static int add(struct tracing *tracing, const struct target *target, bool seen,
	const struct dotnet_door *door, int peer, struct diag *diag)
{
	struct traced *traced = new_traced(tracing, target->name, target->pid);

	if (!traced)
		return diag_set(diag, -ENOMEM, "cannot trace: %m");
	traced->process = trace_process(&tracing->trace, target->pid);
	if (!traced->process)
		return diag_set(diag, -ENOMEM, "cannot trace: %m");
	traced->seen = seen;
	traced->has_port = seen && dotnet_target_read(target->pid, &traced->port, NULL) == 0;
	traced->peer = peer;
	if (peer >= 0)
		traced->held = held_runtime_of(tracing->reverse, (uint32_t)peer);
	traced->door = door ? *door : dotnet_target_door(&traced->port);
	write_process(tracing, traced->process, target, seen);
	if (!door && !traced->has_port) {
		set_reason(traced, reason_word(REASON_KIND_ENDED),
			"it ended before it could be traced");
		enter(traced, TRACED_FAILED);
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

int tracing_add(struct tracing *tracing, const struct target *target, struct diag *diag)
{
	return add(tracing, target, true, NULL, -1, diag);
}

int tracing_add_path(struct tracing *tracing, const char *path, struct diag *diag)
{
	const struct dotnet_door door = path_door(path);
	struct port_peer peer;
	int r = port_peer_ask(path, TARGET_PLACE, &peer, diag);

	if (r == 0)
		r = add(tracing, &peer.target, peer.seen, &door, -1, diag);
	port_peer_done(&peer);
	return r;
}

void tracing_listen(struct tracing *tracing, struct reverse *reverse)
{
	tracing->reverse = reverse;
}

/*
 * Adds the runtimes that have connected to the listen port. When the trace is ending they are only
 * resumed.
 */
static void take_newcomers(struct tracing *tracing)
{
	uint32_t peer;

	if (!tracing->reverse)
		return;
	reverse_advance(tracing->reverse);
	while (tracing->phase == PHASE_RUNNING && reverse_next(tracing->reverse, &peer)) {
		const struct dotnet_door door = reverse_door(tracing->reverse, peer);
		struct port_peer newcomer;

		port_peer_read(reverse_peer(tracing->reverse, peer), TARGET_PLACE, &newcomer);
		/* Without memory the runtime is not traced; it is resumed at the end. */
		(void)add(tracing, &newcomer.target, newcomer.seen, &door, (int)peer, NULL);
		port_peer_done(&newcomer);
	}
	if (tracing->phase == PHASE_ENDING)
		reverse_release(tracing->reverse, 0, 0);
}

/* ---- the trace ---- */

int tracing_new(const struct tracing_options *options, struct tracing **ret_tracing,
	struct diag *diag)
{
	struct tracing *tracing = calloc(1, sizeof(*tracing));

	if (!tracing || trace_init(&tracing->trace) < 0) {
		free(tracing);
		return diag_set(diag, -ENOMEM, "cannot trace: %m");
	}
	tracing->options = *options;
	tracing->give_out_bytes = GIVE_OUT_BYTES;
	int r = session_writer_init(&tracing->writer, &tracing->trace, &tracing->window);

	if (r == 0)
		r = late_providers_split(&tracing->split, options->providers,
			options->provider_count);
	if (r == 0)
		r = relay_new(&tracing->trace, &tracing->window, &tracing->relay);
	if (r == 0)
		r = open_clocks(tracing);
	if (r < 0) {
		tracing_close(tracing);
		return diag_set(diag, r, "cannot trace: %m");
	}
	need_guard(tracing);
	*ret_tracing = tracing;
	return 0;
}

int tracing_write_to(struct tracing *tracing, int fd, const char *name, struct diag *diag)
{
	int r = session_writer_open(&tracing->writer,
		&(struct session_file){
			.fd = fd, .name = name, .version = tracing->options.version },
		diag);

	if (r == 0) {
		write_head(tracing);
		look_at_guard(tracing);
	}
	return r;
}

int tracing_start(struct tracing *tracing, struct diag *diag)
{
	scheduling_wait_ones_turn(); /* unread events stay in the runtime's buffer */
	tracing->writer.begin_ns = clock_monotonic_ns();
	tracing->flush_ns = tracing->writer.begin_ns;
	tracing->give_out_ns = tracing->writer.begin_ns;
	for (uint32_t i = 0; i < tracing->list.count; i++)
		advance_one(tracing->list.items[i], clock_monotonic_ns());
	return session_writer_error(&tracing->writer, diag);
}

/* Waits for streams, runtimes that connect, and the caller's descriptors. */
static void wait_for(struct tracing *tracing, struct pollfd *fds, size_t fd_count,
	uint64_t until_ns)
{
	struct poll_set *set = &tracing->set;

	poll_set_begin(set, until_ns);
	poll_set_wake(set, clock_monotonic_ns() + BEAT_NS);
	if (tracing->clocks && tracing->phase != PHASE_ENDING)
		poll_set_wake(set, thread_clocks_wake_ns(tracing->clocks));
	for (uint32_t i = 0; i < tracing->list.count; i++) {
		const struct traced *traced = tracing->list.items[i];
		held_runtime_await(&traced->held, set);
		if (traced->state == TRACED_DELAYED)
			poll_set_wake(set, traced->open_ns);
		if (traced->pipe)
			eventpipe_await(traced->pipe, set);
		if (traced->pipe && eventpipe_behind(traced->pipe))
			poll_set_wake(set, 0);
	}
	if (tracing->reverse)
		reverse_await(tracing->reverse, set);
	poll_set_add_callers(set, fds, fd_count);
	(void)poll_set_wait(set);
}

static bool anything_open(const struct tracing *tracing)
{
	for (uint32_t i = 0; i < tracing->list.count; i++)
		if (tracing->list.items[i]->pipe || is_waiting(tracing->list.items[i]) ||
			held_runtime_is_resuming(&tracing->list.items[i]->held))
			return true;
	return false;
}

int tracing_step(struct tracing *tracing, struct pollfd *fds, size_t fd_count, uint64_t until_ns,
	struct diag *diag)
{
	bool waiting = tracing->window.items.count > tracing->window.taken;

	uint64_t due_ns = waiting ? tracing->give_out_ns + GIVE_OUT_NS : UINT64_MAX;

	wait_for(tracing, fds, fd_count, until_ns < due_ns ? until_ns : due_ns);
	uint64_t now_ns = clock_monotonic_ns();

	guard_beat(tracing->guard, now_ns);
	look_at_guard(tracing);
	take_newcomers(tracing);
	if (tracing->clocks && tracing->phase != PHASE_ENDING)
		thread_clocks_read(tracing->clocks, now_ns);
	for (uint32_t i = 0; i < tracing->list.count; i++)
		advance_one(tracing->list.items[i], now_ns);
	if (!is_raw(tracing)) {
		now_ns = clock_monotonic_ns();
		if (now_ns >= tracing->give_out_ns + GIVE_OUT_NS ||
			relay_pending_bytes(tracing->relay) > tracing->give_out_bytes)
			give_out(tracing, limit_of(tracing, now_ns));
		if (now_ns >= tracing->flush_ns + SESSION_FLUSH_NS)
			flush(tracing);
	}
	if (tracing->writer.error)
		return session_writer_error(&tracing->writer, diag);
	/* No session can end and free a descriptor: the runtime would wait forever. */
	if (tracing->reverse && tracing->phase != PHASE_ENDING && reverse_error(tracing->reverse) &&
		!anything_open(tracing)) {
		char reason[160];
		descriptors_explain(reason, sizeof(reason));
		return diag_set(diag, reverse_error(tracing->reverse),
			"cannot take a runtime's connection: %s", reason);
	}
	return tracing->reverse || tracing->phase == PHASE_PAUSING || anything_open(tracing) ? 1
											     : 0;
}

const char *tracing_unguarded(const struct tracing *tracing)
{
	return *tracing->unguarded ? tracing->unguarded : NULL;
}

bool tracing_wants_end(const struct tracing *tracing)
{
	return tracing->wants_end;
}

/*
 * True if a session is still ending. A process that a signal has stopped cannot end its session
 * until it continues, so it does not count.
 */
static bool still_ends(const struct traced *traced)
{
	char state = traced->pipe ? traced->door.state(traced->door.context) : 0;

	return traced->pipe && state != 'T' && state != 't';
}

void tracing_pause(struct tracing *tracing)
{
	uint64_t now_ns = clock_monotonic_ns();

	tracing->phase = PHASE_PAUSING;
	for (uint32_t i = 0; i < tracing->list.count; i++) {
		struct traced *traced = tracing->list.items[i];
		if (!traced->pipe)
			continue;
		if (!is_raw(tracing) && traced->state == TRACED_OPEN)
			enter(traced, TRACED_PAUSING);
		eventpipe_stop(traced->pipe, now_ns);
	}
}

bool tracing_paused(const struct tracing *tracing)
{
	for (uint32_t i = 0; i < tracing->list.count; i++)
		if (still_ends(tracing->list.items[i]))
			return false;
	return tracing->phase == PHASE_PAUSING;
}

int tracing_flush(struct tracing *tracing, struct diag *diag)
{
	if (is_raw(tracing))
		return 0;
	give_out(tracing, limit_of(tracing, clock_monotonic_ns()));
	flush(tracing);
	return session_writer_error(&tracing->writer, diag);
}

void tracing_resume(struct tracing *tracing, uint64_t paused_ns)
{
	uint64_t now_ns = clock_monotonic_ns();

	tracing->phase = PHASE_RUNNING;
	session_writer_paused(&tracing->writer, paused_ns,
		"its sessions were ended before that and opened again, and what "
		"runtimes did meanwhile is missing");
	for (uint32_t i = 0; i < tracing->list.count; i++) {
		struct traced *traced = tracing->list.items[i];
		/* Ended by the guard, or stopped with this process: opened again when it has ended. */
		if (traced->state == TRACED_PAUSING)
			advance_one(traced, now_ns);
		else if (traced->state == TRACED_PAUSED)
			open_again(traced, now_ns);
	}
}

void tracing_end(struct tracing *tracing, const char *reason)
{
	uint64_t now_ns = clock_monotonic_ns();

	if (tracing->phase == PHASE_ENDING)
		return;
	if (tracing->clocks)
		thread_clocks_read_last(tracing->clocks, now_ns);
	tracing->phase = PHASE_ENDING;
	tracing->writer.end_ns = now_ns;
	tracing->end_reason = reason;
	for (uint32_t i = 0; i < tracing->list.count; i++) {
		if (tracing->list.items[i]->pipe)
			eventpipe_stop(tracing->list.items[i]->pipe, now_ns);
		advance_wait(tracing->list.items[i], now_ns);
	}
	for (uint32_t i = 0; i < tracing->list.count; i++)
		begin_resume(tracing->list.items[i], now_ns);
}

bool tracing_ended(const struct tracing *tracing)
{
	return tracing->phase == PHASE_ENDING && !anything_open(tracing);
}

static void emit_end(struct tracing *tracing)
{
	struct relay_counts relayed;

	relay_count(tracing->relay, &relayed);
	struct payload_count counts[] = {
		{ "events", tracing->events },
		{ "lost", relayed.lost },
		{ "late", tracing->late },
		{ "processes", tracing_process_count(tracing) },
		/* Times of the trace's clock, as in a recording. */
		{ "sampled_from_ns", tracing->first_open_ns },
		{ "sampled_to_ns", tracing->writer.end_ns },
	};

	session_writer_end(&tracing->writer, tracing->end_reason ? tracing->end_reason : "", counts,
		sizeof(counts) / sizeof(counts[0]));
}

int tracing_finish(struct tracing *tracing, struct diag *diag)
{
	for (uint32_t i = 0; i < tracing->list.count; i++) {
		struct traced *traced = tracing->list.items[i];
		if (!traced->pipe)
			continue;
		if (traced->opened && !*traced->reason)
			set_reason(traced, reason_word(REASON_KIND_CUT_SHORT),
				"the end was cut short, so its last events are missing");
		tell_runtime(traced);
		traced->bytes += eventpipe_bytes(traced->pipe);
		eventpipe_free(traced->pipe);
		traced->pipe = NULL;
		enter(traced, TRACED_FAILED);
	}
	if (is_raw(tracing))
		return 0;
	give_out(tracing, UINT64_MAX);
	if (!tracing->writer.sink)
		return 0;
	for (uint32_t i = 0; i < tracing->list.count; i++)
		tell_rest_of_loss(tracing->list.items[i]);
	if (tracing->reverse && reverse_unplaced(tracing->reverse))
		session_writer_notice(&tracing->writer, 0, "no-place", "",
			"%s resumed without being traced: %u others ran or were being traced",
			TEXT_THINGS(reverse_unplaced(tracing->reverse), "runtime was",
				"runtimes were"),
			REVERSE_PEERS_MAX);
	if (tracing->reverse && reverse_missed(tracing->reverse))
		session_writer_notice(&tracing->writer, 0, "was-stopped", "",
			"%s resumed while spoor was stopped or hung, and not traced from the start",
			TEXT_THINGS(reverse_missed(tracing->reverse), "runtime was",
				"runtimes were"));
	uint64_t now_ns = clock_monotonic_ns();

	if (tracing->window.watermark_ns < now_ns)
		tracing->window.watermark_ns = now_ns;
	emit_end(tracing);
	return session_writer_error(&tracing->writer, diag);
}

size_t tracing_process_count(const struct tracing *tracing)
{
	size_t count = 0;

	for (uint32_t i = 0; i < tracing->list.count; i++)
		count += !tracing->list.items[i]->earlier;
	return count;
}

static enum tracing_state state_of(const struct traced *traced)
{
	if (is_waiting(traced))
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
static void add_facts(const struct traced *traced, struct tracing_process *facts)
{
	bool live = traced->pipe != NULL;

	if (!*facts->reason) {
		facts->reason = live ? eventpipe_reason(traced->pipe) : traced->reason;
		facts->reason_code =
			live ? eventpipe_reason_code(traced->pipe) : traced->reason_code;
	}
	/*
	 * A process that is killed later also leaves a cut stream, but with the events before its
	 * end.
	 */
	if (!*facts->reason && !live && traced->opened && !traced->events &&
		(is_raw(traced->tracing) ? !traced->bytes
					 : traced->stream_state == TRACED_STREAM_CUT)) {
		facts->reason = "it closed its stream before it sent an event";
		facts->reason_code = reason_word(REASON_KIND_CLOSED);
	}
	facts->bytes += traced->bytes + (live ? eventpipe_bytes(traced->pipe) : 0);
	facts->events += traced->events;
	facts->lost += traced->stream >= 0
			       ? relay_stream_lost(traced->tracing->relay, traced->stream)
		       : traced->watcher ? nettrace_decoder_lost(traced->watcher)
					 : 0;
}

void tracing_process(const struct tracing *tracing, size_t i, struct tracing_process *ret_process)
{
	uint32_t at = 0;

	for (;; at++)
		if (!tracing->list.items[at]->earlier && !i--)
			break;
	const struct traced *traced = tracing->list.items[at];

	*ret_process = (struct tracing_process){
		.pid = traced->pid,
		.name = traced->name,
		.state = state_of(traced),
		.reason = "",
		.reason_code = "",
		.runtime_version = trace_text(&tracing->trace,
			tracing->trace.processes.items[traced->process].runtime_version),
		.held = traced->held.waits,
	};
	add_facts(traced, ret_process);
	if (traced->later)
		add_facts(traced->later, ret_process);
}

void tracing_count(const struct tracing *tracing, struct tracing_counts *ret_counts)
{
	struct relay_counts relayed;

	relay_count(tracing->relay, &relayed);
	*ret_counts = (struct tracing_counts){
		.events = relayed.events,
		.lost = relayed.lost,
		.late = tracing->late,
		.stream_bytes = relayed.bytes,
		.file_bytes = is_raw(tracing) ? tracing->raw_bytes
					      : session_writer_bytes(&tracing->writer),
		.begin_ns = tracing->writer.begin_ns,
		.first_open_ns = tracing->first_open_ns,
		.due_open_ns = tracing->due_open_ns,
		.end_ns = tracing->writer.end_ns,
		.processes = (uint32_t)tracing_process_count(tracing),
	};
	if (is_raw(tracing))
		ret_counts->stream_bytes = tracing->raw_bytes;
	for (uint32_t i = 0; i < tracing->list.count; i++) {
		if (tracing->list.items[i]->earlier)
			continue;
		enum tracing_state state = state_of(tracing->list.items[i]);
		ret_counts->running += state == TRACING_RUNNING || state == TRACING_STOPPING;
		ret_counts->opening += state == TRACING_OPENING;
	}
}

void tracing_close(struct tracing *tracing)
{
	if (!tracing)
		return;
	for (uint32_t i = 0; i < tracing->list.count; i++) {
		struct traced *traced = tracing->list.items[i];
		eventpipe_free(traced->pipe);
		held_runtime_done(&traced->held);
		if (traced->raw_fd >= 0)
			close(traced->raw_fd);
		nettrace_decoder_free(traced->watcher);
		trace_done(&traced->watched);
		free(traced->name);
		free(traced);
	}
	late_providers_done(&tracing->split);
	thread_clocks_free(tracing->clocks);
	guard_free(tracing->guard);
	relay_free(tracing->relay);
	reorder_window_done(&tracing->window);
	session_writer_done(&tracing->writer);
	vec_done(&tracing->list);
	poll_set_done(&tracing->set);
	trace_done(&tracing->trace);
	free(tracing);
}
