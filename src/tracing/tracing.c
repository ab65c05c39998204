/*
 * See tracing.h.
 *
 * Each process has a runtime client (traced.h). The relay decodes its stream and puts the events into
 * the reorder window, from where they are written to the sink in time order. In a trace of raw bytes,
 * the streams are written to their files unchanged, without relay and window. tracing_step() drives
 * everything.
 */
#include "tracing/tracing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clocks.h"
#include "base/diag.h"
#include "base/json.h"
#include "base/poll_set.h"
#include "base/text.h"
#include "base/vec.h"
#include "dotnet/eventpipe.h"
#include "dotnet/guard.h"
#include "dotnet/held_runtime.h"
#include "dotnet/ipc.h"
#include "dotnet/path_endpoint.h"
#include "dotnet/reason.h"
#include "dotnet/reverse.h"
#include "machine/descriptors.h"
#include "machine/scheduling.h"
#include "nettrace/nettrace_read.h"
#include "pipeline/relay.h"
#include "pipeline/reorder_window.h"
#include "pipeline/session_writer.h"
#include "pipeline/thread_clocks.h"
#include "target/port_peer.h"
#include "target/targets.h"
#include "trace/event.h"
#include "trace/schema.h"
#include "trace/session_options.h"
#include "trace/spoor_payload.h"
#include "trace/trace.h"
#include "tracing/traced.h"

#define GIVE_OUT_NS    UINT64_C(100000000)
#define GIVE_OUT_BYTES (1u << 20)

static void write_head(struct tracing *tracing)
{
	struct json j = { .out = &tracing->writer.text };

	bytes_reset(&tracing->writer.text);
	json_object(&j, NULL);
	json_z(&j, "scope", session_value_word(SESSION_PROCESSES));
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
				traced->lost_reported += event.lost_before;
			traced_write_loss(tracing, traced, event.lost_before,
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

static void release_until(struct tracing *tracing, uint64_t until_ns)
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
	tracing->released_ns = clock_monotonic_ns();
	tracing->released_bytes = 2 * relay_pending_bytes(tracing->relay);
	if (tracing->released_bytes < GIVE_OUT_BYTES)
		tracing->released_bytes = GIVE_OUT_BYTES;
}

static void flush(struct tracing *tracing)
{
	session_writer_flush(&tracing->writer);
	session_writer_trim_stacks(&tracing->writer, tracing->relay, NULL, NULL);
	tracing->flush_ns = clock_monotonic_ns();
}

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
	static const struct thread_clocks_handler handler = { .clock = on_clock };
	bool sampled = false;

	for (uint32_t i = 0; i < tracing->options.provider_count; i++)
		sampled |= strcmp(tracing->options.providers[i].name,
				   provider_name(PROVIDER_SAMPLE)) == 0;
	return sampled && !tracing_is_raw(tracing)
		       ? thread_clocks_new(&handler, tracing, &tracing->clocks)
		       : 0;
}

/* ---- the guard and the clocks ---- */

static void need_guard(struct tracing *tracing)
{
	struct diag diag = { 0 };

	if (!tracing->guard && guard_start(&tracing->guard, &diag) < 0)
		text_set(tracing->unguarded, "%s%s", SESSION_UNGUARDED, diag.text);
}

/* Writes a notice to the file, one time, if there is no guard or it has stopped working. */
static void look_at_guard(struct tracing *tracing)
{
	const char *problem = tracing->guard ? guard_problem(tracing->guard) : NULL;

	if (problem && !*tracing->unguarded)
		text_set(tracing->unguarded, "%s%s", SESSION_UNGUARDED, problem);
	if (!*tracing->unguarded || tracing->unguarded_emitted || !tracing->writer.sink)
		return;
	tracing->unguarded_emitted = true;
	session_writer_notice(&tracing->writer, 0, NOTICE_UNGUARDED, "", "%s", tracing->unguarded);
}

/* Writes a notice to the file if the guard has ended sessions, which are opened again by now. */
static void tell_guarded(struct tracing *tracing, uint64_t now_ns)
{
	struct bytes *text = &tracing->writer.text;

	if (!tracing->guarded)
		return;
	bytes_reset(text);
	session_add_guarded(text, tracing->guard, tracing->guarded, true, now_ns);
	session_writer_notice(&tracing->writer, 0, NOTICE_GUARD, "", "%s", bytes_z(text));
	tracing->guarded = 0;
}

int tracing_add(struct tracing *tracing, const struct target *target, struct diag *diag)
{
	return traced_add(tracing, target, true, NULL, -1, diag);
}

int tracing_add_path(struct tracing *tracing, const char *path, struct diag *diag)
{
	const struct dotnet_endpoint endpoint = path_endpoint(path);
	struct port_peer peer;
	int r = port_peer_ask(path, TARGET_PLACE, &peer, diag);

	if (r == 0)
		r = traced_add(tracing, &peer.target, peer.seen, &endpoint, -1, diag);
	port_peer_done(&peer);
	return r;
}

void tracing_listen(struct tracing *tracing, struct reverse *reverse)
{
	tracing->reverse = reverse;
}

/* Adds the runtimes that connected to the listen port; while the trace ends, only resumes them. */
static void take_newcomers(struct tracing *tracing)
{
	uint32_t peer;

	if (!tracing->reverse)
		return;
	reverse_advance(tracing->reverse);
	while (tracing->phase == PHASE_RUNNING && reverse_next(tracing->reverse, &peer)) {
		const struct dotnet_endpoint endpoint = reverse_endpoint(tracing->reverse, peer);
		struct port_peer newcomer;

		port_peer_read(reverse_peer(tracing->reverse, peer), TARGET_PLACE, &newcomer);
		/* Without memory the runtime is not traced; it is resumed at the end. */
		(void)traced_add(tracing, &newcomer.target, newcomer.seen, &endpoint, (int)peer,
			NULL);
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
	tracing->released_bytes = GIVE_OUT_BYTES;
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
	tracing->released_ns = tracing->writer.begin_ns;
	for (uint32_t i = 0; i < tracing->list.count; i++)
		traced_advance(tracing->list.items[i], clock_monotonic_ns());
	return session_writer_error(&tracing->writer, diag);
}

/* Waits for streams, runtimes that connect, and the caller's descriptors. */
static void wait_for(struct tracing *tracing, struct pollfd *fds, size_t fd_count,
	uint64_t until_ns)
{
	struct poll_set *set = &tracing->set;

	poll_set_begin(set, until_ns);
	poll_set_wake(set, clock_monotonic_ns() + TRACING_BEAT_NS);
	if (tracing->clocks && tracing->phase != PHASE_ENDING)
		poll_set_wake(set, thread_clocks_wake_ns(tracing->clocks));
	for (uint32_t i = 0; i < tracing->list.count; i++) {
		const struct traced *traced = tracing->list.items[i];
		held_runtime_await(&traced->held, set);
		if (traced->state == TRACED_DELAYED)
			poll_set_wake(set, traced->start.due_ns);
		runtime_client_await(&traced->own, set);
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
		if (tracing->list.items[i]->pipe || traced_is_waiting(tracing->list.items[i]) ||
			held_runtime_is_resuming(&tracing->list.items[i]->held))
			return true;
	return false;
}

int tracing_step(struct tracing *tracing, struct pollfd *fds, size_t fd_count, uint64_t until_ns,
	struct diag *diag)
{
	bool waiting = tracing->window.items.count > tracing->window.taken;

	uint64_t due_ns = waiting ? tracing->released_ns + GIVE_OUT_NS : UINT64_MAX;

	wait_for(tracing, fds, fd_count, until_ns < due_ns ? until_ns : due_ns);
	uint64_t now_ns = clock_monotonic_ns();

	guard_beat(tracing->guard, now_ns);
	look_at_guard(tracing);
	take_newcomers(tracing);
	if (tracing->clocks && tracing->phase != PHASE_ENDING)
		thread_clocks_read(tracing->clocks, now_ns);
	for (uint32_t i = 0; i < tracing->list.count; i++)
		traced_advance(tracing->list.items[i], now_ns);
	tell_guarded(tracing, now_ns);
	if (!tracing_is_raw(tracing)) {
		now_ns = clock_monotonic_ns();
		if (now_ns >= tracing->released_ns + GIVE_OUT_NS ||
			relay_pending_bytes(tracing->relay) > tracing->released_bytes)
			release_until(tracing, limit_of(tracing, now_ns));
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

void tracing_pause(struct tracing *tracing)
{
	uint64_t now_ns = clock_monotonic_ns();

	tracing->phase = PHASE_PAUSING;
	for (uint32_t i = 0; i < tracing->list.count; i++) {
		struct traced *traced = tracing->list.items[i];
		if (!traced->pipe)
			continue;
		if (!tracing_is_raw(tracing) && traced->state == TRACED_OPEN)
			traced_enter(traced, TRACED_PAUSING);
		eventpipe_stop(traced->pipe, now_ns);
	}
}

bool tracing_paused(const struct tracing *tracing)
{
	for (uint32_t i = 0; i < tracing->list.count; i++)
		if (traced_still_ends(tracing->list.items[i]))
			return false;
	return tracing->phase == PHASE_PAUSING;
}

int tracing_flush(struct tracing *tracing, struct diag *diag)
{
	if (tracing_is_raw(tracing))
		return 0;
	release_until(tracing, limit_of(tracing, clock_monotonic_ns()));
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
			traced_advance(traced, now_ns);
		else if (traced->state == TRACED_PAUSED)
			traced_open_again(traced, now_ns);
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
		runtime_client_stop(&tracing->list.items[i]->own, now_ns);
		traced_advance_wait(tracing->list.items[i], now_ns);
	}
	for (uint32_t i = 0; i < tracing->list.count; i++)
		traced_begin_resume(tracing->list.items[i], now_ns);
}

bool tracing_ended(const struct tracing *tracing)
{
	return tracing->phase == PHASE_ENDING && !anything_open(tracing);
}

static void emit_end(struct tracing *tracing)
{
	struct relay_counts relayed;

	relay_count(tracing->relay, &relayed);
	const struct session_count counts[] = {
		{ SESSION_COUNT_EVENTS, tracing->events },
		{ SESSION_COUNT_LOST, relayed.lost },
		{ SESSION_COUNT_LATE, tracing->late },
		{ SESSION_COUNT_PROCESSES, tracing_process_count(tracing) },
		{ SESSION_COUNT_SAMPLED_FROM_NS, tracing->first_open_ns },
		{ SESSION_COUNT_SAMPLED_TO_NS, tracing->writer.end_ns },
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
		if (traced->opened && !*traced->reason.text)
			reason_note_set_known(&traced->reason, REASON_END_CUT);
		traced_tell_runtime(traced);
		traced->bytes += eventpipe_bytes(traced->pipe);
		runtime_client_close(traced->client, &traced->pipe);
		traced_enter(traced, TRACED_FAILED);
	}
	if (tracing_is_raw(tracing))
		return 0;
	release_until(tracing, UINT64_MAX);
	if (!tracing->writer.sink)
		return 0;
	for (uint32_t i = 0; i < tracing->list.count; i++)
		traced_tell_rest_of_loss(tracing->list.items[i]);
	if (tracing->reverse && reverse_unplaced(tracing->reverse))
		session_writer_notice(&tracing->writer, 0, NOTICE_NO_PLACE, "",
			"%s resumed without being traced: %u others ran or were being traced",
			TEXT_THINGS(reverse_unplaced(tracing->reverse), "runtime was",
				"runtimes were"),
			REVERSE_PEERS_MAX);
	if (tracing->reverse && reverse_missed(tracing->reverse))
		session_writer_notice(&tracing->writer, 0, NOTICE_WAS_STOPPED, "",
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
		.state = traced_public_state(traced),
		.reason = "",
		.runtime_version = trace_text(&tracing->trace,
			tracing->trace.processes.items[traced->process].runtime_version),
		.held = traced->held.waits,
	};
	traced_add_facts(traced, ret_process);
	if (traced->later)
		traced_add_facts(traced->later, ret_process);
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
		.file_bytes = tracing_is_raw(tracing) ? tracing->raw_bytes
						      : session_writer_bytes(&tracing->writer),
		.begin_ns = tracing->writer.begin_ns,
		.first_open_ns = tracing->first_open_ns,
		.due_open_ns = tracing->due_open_ns,
		.end_ns = tracing->writer.end_ns,
		.processes = (uint32_t)tracing_process_count(tracing),
	};
	if (tracing_is_raw(tracing))
		ret_counts->stream_bytes = tracing->raw_bytes;
	for (uint32_t i = 0; i < tracing->list.count; i++) {
		if (tracing->list.items[i]->earlier)
			continue;
		enum tracing_state state = traced_public_state(tracing->list.items[i]);
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
		runtime_client_done(&traced->own);
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
