/* See session_writer.h. */
#include "pipeline/session_writer.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/text.h"
#include "dotnet/guard.h"
#include "dotnet/ipc.h"
#include "machine/command_line.h"
#include "machine/proc.h"
#include "machine/rights.h"
#include "nettrace/nettrace_write.h"
#include "pipeline/relay.h"
#include "pipeline/reorder_window.h"
#include "trace/event.h"
#include "trace/spoor_payload.h"
#include "trace/trace.h"

/* PerfView mislabels events that are less than 5 ms after the sync time */
#define SYNC_LEAD_NS     UINT64_C(10000000)
#define EVENT_COST       48u
#define UNFLUSHED_MAX    ((size_t)512 << 10)
#define FLUSH_LEAST      512u /* fewer bytes are not worth a flush */
#define STACKS_MAX       65536u
#define STACK_BYTES_MAX  (16u << 20)
#define SEVERITY_LIMITED 2u /* severity: the session is limited, not failed */

int session_writer_init(struct session_writer *writer, struct trace *trace,
	struct reorder_window *window)
{
	*writer = (struct session_writer){ .trace = trace, .window = window };
	box_read(&writer->box);
	writer->recorder_process = trace_process(trace, (uint32_t)getpid());
	return writer->recorder_process ? 0 : -ENOMEM;
}

int session_writer_open(struct session_writer *writer, const struct session_file *file,
	struct diag *diag)
{
	struct recording *recording = &writer->trace->recording;
	const struct nettrace_key keys[] = {
		{ "SpoorVersion", file->version },
		{ "Host", writer->box.host },
		{ "Kernel", writer->box.kernel },
	};
	const struct nettrace_sink_options options = {
		.fd = file->fd,
		.name = file->name,
		.keys = keys,
		.key_count = sizeof(keys) / sizeof(keys[0]),
		.packed = file->packed,
	};

	recording->page_size_bytes = writer->box.page_size_bytes;
	recording->cpu_online = writer->box.cpu_online;
	recording->cpu_possible = writer->box.cpu_possible;
	recording->recorder_process = writer->recorder_process;
	recording->sync_ns = clock_monotonic_ns() - SYNC_LEAD_NS;
	recording->utc_ns = clock_utc_ns() - SYNC_LEAD_NS;
	writer->window->watermark_ns = recording->sync_ns + SYNC_LEAD_NS;
	int result = nettrace_sink_open(&options, writer->trace, &writer->sink, diag);

	if (result == 0)
		writer->sink_ops = &nettrace_sink;
	return result;
}

void session_writer_head(struct session_writer *writer, const struct payload_session *session)
{
	const struct box *box = &writer->box;
	struct payload_session out = *session;
	struct rights rights;

	rights_read(&rights);
	out.event_set = 1;
	out.clock = "CLOCK_MONOTONIC";
	out.utc_ns = writer->trace->recording.utc_ns;
	payload_session(&writer->payload, &out);
	session_writer_emit_about(writer, SPOOR_SESSION, writer->recorder_process);
	payload_machine(&writer->payload,
		&(struct payload_machine){ .host = box->host,
			.kernel = box->kernel,
			.system = box->system,
			.architecture = box->architecture,
			.cpu_model = box->cpu_model,
			.cpu_online = box->cpu_online,
			.cpu_possible = box->cpu_possible,
			.memory_bytes = box->memory_bytes,
			.page_size_bytes = box->page_size_bytes,
			.boot_id = box->boot_id,
			.virtualization = box->virtualization,
			.perf_event_paranoid = rights.perf_event_paranoid });
	session_writer_emit_about(writer, SPOOR_MACHINE, writer->recorder_process);
}

void session_writer_event(struct session_writer *writer, const struct event *event)
{
	size_t size = event->payload_size + EVENT_COST;

	if (!writer->sink_ops || writer->error)
		return;
	writer->unflushed_bytes += size;
	if (writer->limit.ceiling_bytes) {
		uint32_t frame_count;
		(void)stack_table_get(&writer->trace->stacks, event->stack_index, &frame_count);
		writer->unflushed_most += size + frame_count * sizeof(uint64_t);
	}
	writer->error = writer->sink_ops->event(writer->sink, event, &writer->diag);
}

void session_writer_emit(struct session_writer *writer, enum known_event known, struct event event)
{
	if (!event.payload) {
		event.payload = writer->payload.data;
		event.payload_size = (uint32_t)writer->payload.len;
	}
	event.schema_index = trace_known_schema(writer->trace, known);
	event.kind = known_events[known].kind;
	if (!event.time_ns)
		event.time_ns = writer->window->watermark_ns;
	if (!writer->payload.failed && event.schema_index)
		session_writer_event(writer, &event);
	bytes_reset(&writer->payload);
}

void session_writer_emit_about(struct session_writer *writer, enum known_event known,
	uint32_t process)
{
	session_writer_emit(writer, known,
		(struct event){ .thread_index = writer->trace->processes.items[process].main_thread,
			.cpu = EVENT_CPU_UNKNOWN });
}

static uint32_t text_index(struct session_writer *writer, const char *text, size_t len)
{
	return strtab_add(&writer->trace->strings, text, len);
}

/* Reads from /proc what the process's row lacks. Returns its arguments, which the caller frees. */
static char *read_facts(struct session_writer *writer, struct proc_reader *proc,
	struct process *process, struct payload_process_facts *out, size_t *ret_args_len,
	uint64_t *ret_groups_hash)
{
	struct trace *trace = writer->trace;
	struct proc_process facts;
	char *args = NULL;
	const char *text;
	size_t len;

	if (!proc || proc_read(proc, process->pid, &facts) < 0)
		return NULL;
	out->gid = facts.gid;
	process->uid = facts.uid;
	process->inner_pid = facts.inner_pid;
	process->parent_pid = facts.parent_pid;
	if (!process->begin_ns || !process->existed)
		process->begin_ns = facts.start_ns;
	if (!process->name)
		process->name = text_index(writer, facts.comm, strlen(facts.comm));
	if (proc_read_exe(proc, process->pid, &text, &len) == 0)
		process->executable = text_index(writer, text, len);
	if (proc_read_arguments(proc, process->pid, &text, &len) == 0 && len)
		args = malloc(len + 1);
	if (args) {
		const char *name;
		size_t name_len;
		memcpy(args, text, len);
		args[len] = '\0';
		*ret_args_len = len;
		/* A process named "dotnet" is renamed to the application that it runs. */
		if (strcmp(trace_text(trace, process->name), "dotnet") == 0 &&
			command_line_application(args, len, &name, &name_len))
			process->name = text_index(writer, name, name_len);
	}
	if (proc_read_cgroup(proc, process->pid, &text, &len, ret_groups_hash) == 0) {
		char id[CONTAINER_ID_ROOM];
		out->cgroup = trace_text(trace, text_index(writer, text, len));
		if (container_id_from_cgroup(text, len, id))
			process->container = trace_add_text(trace, id);
	}
	(void)proc_read_namespaces(proc, process->pid, &out->pid_namespace,
		&out->mount_namespace); /* stay 0 without permission */
	return args;
}

uint64_t session_writer_process(struct session_writer *writer, struct proc_reader *proc,
	uint32_t index, unsigned flags)
{
	struct trace *trace = writer->trace;
	struct process *process = &trace->processes.items[index];
	const char *arguments[PAYLOAD_ARGUMENTS_MAX];
	struct payload_process_facts out = { .arguments = arguments };
	size_t args_len = 0;
	uint64_t groups_hash = 0;
	cleanup(freep) char *args =
		read_facts(writer, proc, process, &out, &args_len, &groups_hash);

	/* The name that was taken from the arguments is kept. */
	if (flags & SESSION_PROCESS_NO_ARGUMENTS)
		args_len = 0;
	bytes_reset(&writer->text);
	for (size_t at = 0; at < args_len && out.argument_count < PAYLOAD_ARGUMENTS_MAX;
		at += strlen(args + at) + 1) {
		arguments[out.argument_count++] = args + at;
		bytes_printf(&writer->text, "%s%s", at ? " " : "", args + at);
	}
	const char *name = trace_text(trace, process->name);

	out.parent_pid = process->parent_pid;
	out.uid = process->uid;
	out.inner_pid = process->inner_pid;
	out.born_ns = process->begin_ns;
	out.executable = trace_text(trace, process->executable);
	out.command = name;
	out.container = trace_text(trace, process->container);
	payload_process(&writer->payload,
		&(struct payload_process){
			.inner_pid = out.inner_pid, .name = name, .name_space = out.container });
	session_writer_emit_about(writer,
		flags & SESSION_PROCESS_CREATED ? SYSTEM_PROCESS_CREATE : SYSTEM_EXISTING_PROCESS,
		index);
	payload_process_facts(&writer->payload, &out);
	session_writer_emit_about(writer, SPOOR_PROCESS_FACTS, index);
	/* Viewers take the command line from this event. */
	payload_process_info(&writer->payload,
		&(struct payload_process_info){
			.command_line = writer->text.len ? bytes_z(&writer->text) : name,
			.system = "Linux",
			.architecture = writer->box.architecture });
	session_writer_emit_about(writer, EVENTPIPE_PROCESS_INFO, index);
	return groups_hash;
}

void session_writer_runtime(struct session_writer *writer, uint32_t process,
	const struct ipc_process_info *info, const struct payload_runtime *runtime)
{
	struct trace *trace = writer->trace;
	struct process *row = &trace->processes.items[process];
	struct payload_runtime out = *runtime;

	out.kind = "coreclr";
	out.version = "";
	out.path = "";
	if (info) {
		/* The version is "10.0.12+hash"; the hash is removed. */
		row->runtime_version = text_index(writer, info->runtime_version,
			strcspn(info->runtime_version, "+"));
		out.version = trace_text(trace, row->runtime_version);
		memcpy(out.cookie, info->cookie, sizeof(out.cookie));
	}
	row->runtime_kind = RUNTIME_CORECLR;
	row->runtime_reason = trace_add_text(trace, out.reason);
	payload_runtime(&writer->payload, &out);
	session_writer_emit_about(writer, SPOOR_RUNTIME, process);
}

static void __attribute__((format(printf, 5, 0))) write_notice(struct session_writer *writer,
	uint32_t process, const char *code, const char *remedy, const char *format, va_list args)
{
	cleanup(bytes_done) struct bytes text = { 0 };

	bytes_vprintf(&text, format, args);
	payload_notice(&writer->payload, &(struct payload_notice){ .severity = SEVERITY_LIMITED,
						 .code = code,
						 .text = bytes_z(&text),
						 .remedy = remedy });
	session_writer_emit_about(writer, SPOOR_NOTICE,
		process ? process : writer->recorder_process);
}

void session_writer_notice(struct session_writer *writer, uint32_t process, enum notice_code code,
	const char *remedy, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	write_notice(writer, process, notice_code_word(code), remedy, format, args);
	va_end(args);
}

void session_writer_unreachable(struct session_writer *writer, uint32_t process,
	enum reason_kind kind, const char *remedy, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	write_notice(writer, process, reason_word(kind), remedy, format, args);
	va_end(args);
}

void session_writer_paused(struct session_writer *writer, uint64_t paused_ns, const char *effect)
{
	session_writer_notice(writer, 0, NOTICE_PAUSED, "",
		"spoor was stopped for %s (Ctrl-Z, SIGTSTP): %s",
		TEXT_DURATION((double)paused_ns / 1e9), effect);
}

void session_add_guarded(struct bytes *text, const struct guard *guard, uint32_t process_count,
	bool opens_again, uint64_t now_ns)
{
	uint64_t seen_ns;
	char state;

	guard_last_round(guard, &seen_ns, &state);
	bytes_printf(text,
		"spoor %s for %s: its sessions in %u .NET process%s were ended after 2 s, so that %s not held up",
		state == 'T'   ? "was stopped"
		: state == 't' ? "was held by a debugger"
			       : "did not run",
		TEXT_DURATION((double)(now_ns > seen_ns ? now_ns - seen_ns : 0) / 1e9),
		process_count, process_count == 1 ? "" : "es",
		process_count == 1 ? "it was" : "they were");
	if (opens_again)
		bytes_text(text, ", and are opened again");
}

void session_writer_loss(struct session_writer *writer, uint32_t process, enum loss_source source,
	enum loss_unit unit, const struct payload_loss *loss, bool gap)
{
	struct payload_loss out = *loss;

	out.source = loss_source_word(source);
	out.unit = loss_unit_word(unit);
	if (!out.provider)
		out.provider = "";
	payload_loss(&writer->payload, &out);
	session_writer_emit(writer, SPOOR_LOSS,
		(struct event){ .thread_index = writer->trace->processes.items[process].main_thread,
			.lost_before = !gap                    ? 0
				       : out.count < INT32_MAX ? (uint32_t)out.count
							       : INT32_MAX,
			.cpu = (int32_t)out.cpu });
}

void session_writer_loss_at_all(struct session_writer *writer, enum loss_source source,
	enum loss_unit unit, uint64_t count, uint64_t last_ns)
{
	session_writer_loss(writer, writer->recorder_process, source, unit,
		&(struct payload_loss){ .count = count,
			.cpu = EVENT_CPU_UNKNOWN,
			.first_ns = writer->begin_ns,
			.last_ns = last_ns },
		false);
}

void session_writer_flush(struct session_writer *writer)
{
	writer->unflushed_bytes = writer->unflushed_most = 0;
	if (writer->sink_ops && !writer->error)
		writer->error = writer->sink_ops->flush(writer->sink, &writer->diag);
}

void session_writer_relieve(struct session_writer *writer)
{
	if (writer->unflushed_bytes > UNFLUSHED_MAX)
		session_writer_flush(writer);
}

/* Near the limit the sink is flushed first: compressed data is much smaller than unflushed. */
static bool has_reached(struct session_writer *writer,
	bool (*reached)(const struct output_limit *limit, uint64_t size_bytes))
{
	if (!writer->limit.ceiling_bytes ||
		!reached(&writer->limit, session_writer_bytes(writer) + writer->unflushed_most))
		return false;
	if (writer->unflushed_most > FLUSH_LEAST && !writer->error)
		session_writer_flush(writer);
	return reached(&writer->limit, session_writer_bytes(writer) + writer->unflushed_most);
}

bool session_writer_is_full(struct session_writer *writer)
{
	return has_reached(writer, output_limit_is_full);
}

bool session_writer_is_over(struct session_writer *writer)
{
	return has_reached(writer, output_limit_is_over);
}

void session_writer_trim_stacks(struct session_writer *writer, struct relay *relay,
	session_move_stacks *move, void *context)
{
	struct stack_table *stacks = &writer->trace->stacks;
	struct stack_table fresh = { 0 };

	if (stacks->stacks.count <= STACKS_MAX && stack_table_size_bytes(stacks) <= STACK_BYTES_MAX)
		return;
	if (relay && !relay_move_stacks(relay, &fresh)) {
		stack_table_done(&fresh);
		return; /* the table grows on; the next flush tries again */
	}
	if (move)
		move(context, &fresh);
	if (writer->sink_ops && !writer->error)
		writer->error = writer->sink_ops->forget_stacks(writer->sink, &writer->diag);
	for (uint32_t i = writer->window->taken; i < writer->window->items.count; i++) {
		struct pending *item = &writer->window->items.items[i];
		uint32_t count;
		if (item->kind == PENDING_CODE_REMOVED) /* an index of another table */
			continue;
		const uint64_t *frames = stack_table_get(stacks, item->stack_index, &count);
		item->stack_index = stack_table_intern(&fresh, frames, count);
	}
	stack_table_done(stacks);
	*stacks = fresh;
	if (relay)
		relay_stacks_moved(relay);
}

void session_writer_forget_thread(struct session_writer *writer, uint32_t thread)
{
	if (writer->sink_ops)
		writer->sink_ops->forget_thread(writer->sink, thread);
	trace_forget_thread(writer->trace, thread);
}

void session_writer_end(struct session_writer *writer, const char *reason,
	const struct session_count *counts, size_t count)
{
	struct payload_count named[SESSION_COUNTS];

	static_assert(SESSION_COUNTS <= PAYLOAD_COUNTS_MAX, "all of them are written");
	assert(count <= SESSION_COUNTS);
	for (size_t i = 0; i < count; i++)
		named[i] =
			(struct payload_count){ session_count_name(counts[i].id), counts[i].count };
	payload_session_end(&writer->payload,
		&(struct payload_session_end){
			.reason = reason, .counts = named, .count_count = count });
	session_writer_emit_about(writer, SPOOR_SESSION_END, writer->recorder_process);
	if (writer->sink_ops && !writer->error)
		writer->error = writer->sink_ops->end(writer->sink, &writer->diag);
}

int session_writer_error(const struct session_writer *writer, struct diag *diag)
{
	if (writer->error && diag && !diag->error)
		*diag = writer->diag;
	return writer->error;
}

uint64_t session_writer_bytes(const struct session_writer *writer)
{
	return writer->sink ? nettrace_sink_counts(writer->sink)->bytes : 0;
}

void session_writer_done(struct session_writer *writer)
{
	if (writer->sink_ops)
		writer->sink_ops->close(writer->sink);
	bytes_done(&writer->payload);
	bytes_done(&writer->text);
}
