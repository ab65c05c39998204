/* See live.h. */
#include "session/live.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "base/json.h"
#include "dotnet/ipc.h"
#include "dotnet/port.h"
#include "format/nettrace_write.h"
#include "format/perf_record.h"
#include "machine/box.h"
#include "machine/proc.h"
#include "machine/rights.h"
#include "model/arch.h"
#include "model/clr.h"
#include "model/spoor_payload.h"
#include "model/trace.h"
#include "record/child.h"
#include "record/recorder.h"
#include "record/ring.h"
#include "session/managed.h"
#include "session/merge.h"

#define FLUSH_NS         UINT64_C(500000000)
#define SYNC_LEAD_NS     UINT64_C(10000000) /* PerfView mislabels what comes within 5 ms of the sync time */
#define FOLLOW_CPUS_NS   UINT64_C(1000000000)
#define STACKS_MAX       65536u
#define STACK_BYTES_MAX  (16u << 20)
#define TABLE_BYTES_MAX  (40u << 20) /* of 64 MiB: the rest is code, file images, buffers */
#define SLOW_HZ          1000u
#define SLOW_RING_BYTES  (1u << 20) /* two seconds of deep stacks at that rate; larger ones cost page clearing at the start */
#define FRAMES_MAX       2048u
#define POLL_MAX         1024u
#define BURY_COUNT       512u
#define END_BOUND_NS     UINT64_C(8000000000)

/* Side of PENDING_MAPPING. */
struct pending_mapping {
	uint64_t begin;
	uint64_t end;
	uint64_t file_offset;
	uint64_t device;
	uint64_t inode;
	uint32_t path;     /* strtab */
	uint32_t build_id; /* strtab */
};

/* What a live session knows of a process beyond the model. Parallel to trace.processes. */
struct live_process {
	uint64_t read_ns;     /* its tables were read from /proc at this time: older sideband is in them */
	uint32_t fork_parent; /* shares the mappings [fork_first, fork_end) of this process's list until its own exec */
	uint32_t fork_first;
	uint32_t fork_end;
	bool wanted;          /* one of the targets or started by one */
	bool announced;       /* in the file */
};

struct live_cpu {
	uint64_t carry_ns;    /* of sample weights, below a millisecond */
	uint64_t last_ns;     /* time of the last record */
	uint64_t throttle_ns; /* since when; 0 not throttled */
};

struct live {
	struct live_options options;
	struct trace trace;
	struct recorder *recorder;
	struct managed *managed;
	struct names names;
	struct merge merge;
	struct proc_reader proc;
	struct box box;
	const struct arch *arch;
	struct perf_layout layout;
	const struct sink_ops *sink_ops;
	struct sink *sink;
	struct record_child child;
	VEC(struct live_process) processes;
	VEC(struct live_cpu) cpus;
	VEC(struct pollfd) poll_fds;
	VEC(uint32_t) free_processes;
	VEC(uint32_t) free_threads;
	VEC(uint32_t) free_mappings;
	VEC(uint32_t) ended;         /* processes whose places may be given to others after a flush */
	VEC(uint32_t) ended_threads; /* likewise */
	struct bytes payload;
	struct bytes text;
	uint64_t frames[FRAMES_MAX];
	uint64_t begin_ns;
	uint64_t end_ns;        /* rings stopped; 0 they run */
	uint64_t flush_ns;      /* of the last flush */
	uint64_t follow_ns;
	uint64_t samples;
	uint64_t lost;
	uint64_t late;
	uint32_t recorder_process;
	bool started;
	bool child_waits;
	int sink_error;
	struct diag sink_diag;
};

uint64_t live_now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail for this clock */
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t utc_now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now); /* as above */
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint32_t text_of(struct live *live, const char *text, size_t len)
{
	return strtab_add(&live->trace.strings, text, len);
}

/* ---- events out ---- */

static void to_sink(struct live *live, const struct event *event)
{
	if (live->sink_error)
		return;
	live->sink_error = live->sink_ops->event(live->sink, event, &live->sink_diag);
}

/* An event about a thread, at the place the stream has reached. */
static void emit_at(struct live *live, enum known_event known, uint32_t thread,
	const struct bytes *payload, int32_t cpu, uint32_t lost_before)
{
	struct event event = {
		.time_ns = live->merge.reached_ns,
		.payload = payload->data,
		.payload_size = (uint32_t)payload->len,
		.thread_index = thread,
		.schema_index = trace_known_schema(&live->trace, known),
		.lost_before = lost_before,
		.cpu = cpu,
		.kind = known_events[known].kind,
	};

	if (!payload->failed && event.schema_index)
		to_sink(live, &event);
}

static uint32_t main_thread(const struct live *live, uint32_t process)
{
	return live->trace.processes.items[process].main_thread;
}

static void emit_about_recording(struct live *live, enum known_event known)
{
	emit_at(live, known, main_thread(live, live->recorder_process), &live->payload,
		EVENT_CPU_UNKNOWN, 0);
}

static void notice(struct live *live, uint32_t process, uint64_t severity, const char *code,
	const char *text, const char *remedy)
{
	bytes_reset(&live->payload);
	payload_notice(&live->payload,
		&(struct payload_notice){ .severity = severity, .code = code, .text = text, .remedy = remedy });
	emit_at(live, SPOOR_NOTICE, main_thread(live, process), &live->payload, EVENT_CPU_UNKNOWN, 0);
}

static void loss(struct live *live, const char *source, const char *unit, uint64_t count, int32_t cpu,
	uint64_t first_ns, uint64_t last_ns, bool gap)
{
	bytes_reset(&live->payload);
	payload_loss(&live->payload,
		&(struct payload_loss){ .source = source,
			.unit = unit,
			.count = count,
			.cpu = cpu,
			.provider = "",
			.first_ns = first_ns,
			.last_ns = last_ns });
	emit_at(live, SPOOR_LOSS, main_thread(live, live->recorder_process), &live->payload, cpu,
		gap ? (uint32_t)(count > INT32_MAX ? INT32_MAX : count) : 0);
}

/* ---- processes ---- */

static struct live_process *live_process(struct live *live, uint32_t process)
{
	while (live->processes.count <= process)
		if (!vec_push(&live->processes))
			return NULL;
	return &live->processes.items[process];
}

static bool is_wanted_pid(const struct live *live, uint32_t pid)
{
	if (live->options.machine)
		return true;
	for (size_t i = 0; i < live->options.pid_count; i++)
		if (live->options.pids[i] == pid)
			return true;
	return live->child.pid && pid == live->child.pid;
}

/* A new life of a pid; a slot of a process that came and went unseen is used again. */
static uint32_t new_process(struct live *live, uint32_t pid)
{
	struct trace *trace = &live->trace;
	uint32_t index;

	if (live->free_processes.count) {
		index = live->free_processes.items[--live->free_processes.count];
		struct process *process = &trace->processes.items[index];
		uint32_t thread = process->main_thread;
		__typeof__(process->mappings) mappings = process->mappings;
		__typeof__(process->codes) codes = process->codes;
		mappings.count = 0;
		codes.count = 0;
		*process = (struct process){ .pid = pid, .main_thread = thread, .mappings = mappings, .codes = codes };
		if (!trace_reuse_thread(trace, thread, index, pid) || !map_put(&trace->by_pid, pid, index))
			return 0;
	} else {
		index = trace_new_process(trace, pid);
	}
	struct live_process *own = index ? live_process(live, index) : NULL;

	if (!own)
		return 0;
	*own = (struct live_process){ .wanted = is_wanted_pid(live, pid) };
	trace->processes.items[index].begin_ns = live->merge.reached_ns;
	return index;
}

static uint32_t find_process(const struct live *live, uint32_t pid)
{
	uint32_t index = trace_find_process(&live->trace, pid);

	/* A slot that was given to another pid since is not this one. */
	return index && live->trace.processes.items[index].pid == pid ? index : 0;
}

static uint32_t process_of(struct live *live, uint32_t pid)
{
	uint32_t index = find_process(live, pid);

	return index ? index : new_process(live, pid);
}

static void watch_if_managed(struct live *live, uint32_t process, const char *path)
{
	if (live->options.no_dotnet || live->options.no_names || live->end_ns)
		return;
	if (dotnet_signs_worth_asking(dotnet_signs_of_path(path)))
		managed_watch(live->managed, process, live_now_ns());
}

static void add_mapping(struct live *live, uint32_t process, const struct pending_mapping *in, uint64_t time_ns)
{
	struct trace *trace = &live->trace;
	struct process *owner = &trace->processes.items[process];
	uint32_t index = 0;

	for (uint32_t i = owner->mappings.count; i-- > 0;) {
		const struct mapping *old = &trace->mappings.items[owner->mappings.items[i]];
		if (old->begin == in->begin && old->end == in->end && old->path == in->path &&
			old->file_offset == in->file_offset)
			return; /* told twice: by /proc and by the ring, or by mprotect */
		if (old->begin < in->end && in->begin < old->end)
			break;
	}
	if (live->free_mappings.count) {
		index = live->free_mappings.items[live->free_mappings.count - 1];
		if (!vec_add(&owner->mappings, index))
			return;
		live->free_mappings.count--;
	} else {
		index = trace_add_mapping(trace, process);
		if (!index)
			return;
	}
	trace->mappings.items[index] = (struct mapping){
		.begin = in->begin,
		.end = in->end,
		.file_offset = in->file_offset,
		.from_ns = time_ns,
		.process = process,
		.path = in->path,
		.build_id = in->build_id,
		.device = in->device,
		.inode = in->inode,
	};
	watch_if_managed(live, process, strtab_get(&trace->strings, in->path));
}

struct scan {
	struct live *live;
	uint32_t process;
	uint64_t time_ns;
};

static int on_mapping(void *user, const struct proc_mapping *mapping)
{
	struct scan *scan = user;
	struct pending_mapping in = {
		.begin = mapping->begin,
		.end = mapping->end,
		.file_offset = mapping->file_offset,
		.device = makedev(mapping->device_major, mapping->device_minor),
		.inode = mapping->inode,
		.path = text_of(scan->live, mapping->path, mapping->path_len),
	};

	if (!mapping->path_len)
		in.path = trace_add_text(&scan->live->trace, "//anon"); /* as the kernel's records call it */
	add_mapping(scan->live, scan->process, &in, scan->time_ns);
	return 0;
}

/* Reads a process from /proc: identity and mappings. Only a vanished one fails. */
static int read_process(struct live *live, uint32_t pid)
{
	struct proc_process facts;
	int result = proc_read(&live->proc, pid, &facts);

	if (result < 0)
		return result;
	uint32_t index = process_of(live, pid);

	if (!index)
		return -ENOMEM;
	struct process *process = &live->trace.processes.items[index];

	process->parent_pid = facts.parent_pid;
	process->inner_pid = facts.inner_pid;
	process->uid = facts.uid;
	process->existed = true;
	process->name = text_of(live, facts.comm, strlen(facts.comm));
	process->begin_ns = facts.start_ns;
	uint32_t parent = find_process(live, facts.parent_pid);

	if (parent && live->processes.items[parent].wanted)
		live->processes.items[index].wanted = true;
	uint64_t now_ns = live_now_ns();

	live->processes.items[index].read_ns = now_ns;
	if (facts.kernel_thread)
		return 0;
	struct scan scan = { .live = live, .process = index, .time_ns = now_ns };

	(void)proc_read_maps(&live->proc, pid, on_mapping, &scan); /* not ours to see, or gone: its frames stay unnamed, counted */
	return 0;
}

static void scan_processes(struct live *live)
{
	struct id_list list = { 0 };

	if (!live->options.machine) {
		for (size_t i = 0; i < live->options.pid_count; i++)
			(void)read_process(live, live->options.pids[i]); /* gone meanwhile: the ring says so */
		if (live->child.pid)
			(void)read_process(live, live->child.pid); /* as above */
		if (recorder_info(live->recorder)->filter_by_pid && proc_list(&live->proc, &list, NULL) == 0)
			for (uint32_t i = 0; i < list.ids.count; i++)
				if (!find_process(live, list.ids.items[i]))
					(void)read_process(live, list.ids.items[i]); /* as above */
	} else if (proc_list(&live->proc, &list, NULL) == 0) {
		for (uint32_t i = 0; i < list.ids.count; i++)
			(void)read_process(live, list.ids.items[i]); /* as above */
	}
	vec_done(&list.ids);
}

/* A .NET host goes by the application that it runs: what people call it. */
static void choose_name(struct live *live, struct process *process, const char *args, size_t len)
{
	const char *name;
	size_t name_len;

	if (strcmp(trace_text(&live->trace, process->name), "dotnet") == 0 &&
		proc_parse_application(args, len, &name, &name_len))
		process->name = text_of(live, name, name_len);
}

/* The process's first appearance in the file: who it is. */
static void announce(struct live *live, uint32_t index)
{
	if (live->processes.items[index].announced)
		return;
	live->processes.items[index].announced = true;

	struct trace *trace = &live->trace;
	struct process *process = &trace->processes.items[index];
	struct proc_process facts = { 0 };
	const char *arguments[PAYLOAD_ARGUMENTS_MAX];
	struct payload_process_facts out = { .parent_pid = process->parent_pid };
	cleanup(freep) char *args = NULL;
	size_t args_len = 0;
	const char *text;
	size_t len;

	bytes_reset(&live->text);
	if (!process->ended && proc_read(&live->proc, process->pid, &facts) == 0) {
		process->uid = facts.uid;
		process->inner_pid = facts.inner_pid;
		process->parent_pid = facts.parent_pid;
		if (!process->begin_ns || !process->existed)
			process->begin_ns = facts.start_ns;
		if (!process->name)
			process->name = text_of(live, facts.comm, strlen(facts.comm));
		if (proc_read_exe(&live->proc, process->pid, &text, &len) == 0)
			process->executable = text_of(live, text, len);
		if (proc_read_arguments(&live->proc, process->pid, &text, &len) == 0 && len) {
			args = malloc(len + 1);
			if (args) {
				memcpy(args, text, len);
				args[len] = '\0';
				args_len = len;
				choose_name(live, process, args, args_len);
			}
		}
		if (proc_read_cgroup(&live->proc, process->pid, &text, &len) == 0) {
			char id[CONTAINER_ID_ROOM];
			out.cgroup = trace_text(trace, text_of(live, text, len));
			if (container_id_from_cgroup(text, len, id))
				process->container = trace_add_text(trace, id);
		}
		(void)proc_read_namespaces(&live->proc, process->pid, &out.pid_namespace,
			&out.mount_namespace); /* stays 0: not ours to see */
	}
	for (size_t at = 0; at < args_len && out.argument_count < PAYLOAD_ARGUMENTS_MAX;
		at += strlen(args + at) + 1) {
		arguments[out.argument_count++] = args + at;
		bytes_printf(&live->text, "%s%s", at ? " " : "", args + at);
	}
	const char *name = trace_text(trace, process->name);
	const char *command = live->text.len ? bytes_z(&live->text) : name;

	bytes_reset(&live->payload);
	payload_process(&live->payload,
		&(struct payload_process){ .inner_pid = process->inner_pid,
			.name = name,
			.name_space = trace_text(trace, process->container) });
	emit_at(live, process->existed ? SYSTEM_EXISTING_PROCESS : SYSTEM_PROCESS_CREATE,
		process->main_thread, &live->payload, EVENT_CPU_UNKNOWN, 0);
	out.uid = process->uid;
	out.gid = facts.gid;
	out.inner_pid = process->inner_pid;
	out.born_ns = process->begin_ns;
	out.executable = trace_text(trace, process->executable);
	out.command = name;
	out.arguments = arguments;
	out.container = trace_text(trace, process->container);
	out.parent_pid = process->parent_pid;
	bytes_reset(&live->payload);
	payload_process_facts(&live->payload, &out);
	emit_at(live, SPOOR_PROCESS_FACTS, process->main_thread, &live->payload, EVENT_CPU_UNKNOWN, 0);
	bytes_reset(&live->payload);
	payload_process_info(&live->payload,
		&(struct payload_process_info){ .command_line = command,
			.system = "Linux",
			.architecture = live->box.architecture });
	emit_at(live, EVENTPIPE_PROCESS_INFO, process->main_thread, &live->payload, EVENT_CPU_UNKNOWN, 0);
}

static int on_names_event(void *context, enum known_event known, uint32_t process,
	const struct bytes *payload)
{
	struct live *live = context;

	if (!process)
		process = live->recorder_process;
	announce(live, process);
	emit_at(live, known, main_thread(live, process), payload, EVENT_CPU_UNKNOWN, 0);
	return live->sink_error;
}

static void on_managed(void *context, const struct managed_outcome *outcome)
{
	struct live *live = context;
	struct process *process = &live->trace.processes.items[outcome->process];
	struct payload_runtime runtime = {
		.kind = "coreclr",
		.version = outcome->info ? outcome->info->runtime_version : "",
		.path = "",
		.reachable = outcome->reachable,
		.reason = outcome->reason,
	};

	if (outcome->info) {
		/* "10.0.12+hash": the hash says nothing to a person */
		process->runtime_version = text_of(live, runtime.version, strcspn(runtime.version, "+"));
		runtime.version = trace_text(&live->trace, process->runtime_version);
		memcpy(runtime.cookie, outcome->info->cookie, sizeof(runtime.cookie));
	}
	process->runtime_kind = RUNTIME_CORECLR;
	process->runtime_reason = trace_add_text(&live->trace, outcome->reason);
	announce(live, outcome->process);
	bytes_reset(&live->payload);
	payload_runtime(&live->payload, &runtime);
	emit_at(live, SPOOR_RUNTIME, process->main_thread, &live->payload, EVENT_CPU_UNKNOWN, 0);
	if (outcome->reachable)
		return;
	bytes_reset(&live->text);
	bytes_printf(&live->text, "no names from its runtime: %s", outcome->reason); /* whose, the event says */
	notice(live, outcome->process, 2, outcome->reason_code, bytes_z(&live->text),
		strcmp(outcome->reason_code, "permission") == 0 ? "run spoor as that user, or with sudo" : "");
}

/* ---- what leaves the window ---- */

static void on_fork(struct live *live, const struct pending *item)
{
	uint32_t parent_pid = (uint32_t)(item->value >> 32);

	if (item->pid == parent_pid) /* a thread */
		return;
	uint32_t old = find_process(live, item->pid);

	if (old && (live->processes.items[old].read_ns >= item->time_ns))
		return; /* /proc showed it already */
	uint32_t parent = find_process(live, parent_pid);
	uint32_t index = new_process(live, item->pid);

	if (!index)
		return;
	struct process *process = &live->trace.processes.items[index];
	struct live_process *own = &live->processes.items[index];

	process->parent_pid = parent_pid;
	process->begin_ns = item->time_ns;
	if (!parent)
		return;
	const struct process *from = &live->trace.processes.items[parent];

	process->name = from->name;
	process->uid = from->uid;
	own->wanted |= live->processes.items[parent].wanted;
	const struct live_process *parents = &live->processes.items[parent];

	if (parents->fork_parent) { /* which has looked at none of its own yet: what it shares, we share */
		own->fork_parent = parents->fork_parent;
		own->fork_first = parents->fork_first;
		own->fork_end = parents->fork_end;
	} else {
		own->fork_parent = parent;
		own->fork_first = 0;
		own->fork_end = from->mappings.count;
	}
}

/* The mapping that a forked process still shares with its parent becomes its own when it is hit. */
static void adopt_mappings(struct live *live, uint32_t index)
{
	struct live_process *own = &live->processes.items[index];
	uint32_t parent = own->fork_parent;

	if (!parent)
		return;
	own->fork_parent = 0;
	for (uint32_t i = own->fork_first; i < own->fork_end; i++) {
		const struct process *from = &live->trace.processes.items[parent];
		if (i >= from->mappings.count)
			break; /* the parent has ended and its tables went */
		const struct mapping *mapping = &live->trace.mappings.items[from->mappings.items[i]];
		struct pending_mapping in = {
			.begin = mapping->begin,
			.end = mapping->end,
			.file_offset = mapping->file_offset,
			.device = mapping->device,
			.inode = mapping->inode,
			.path = mapping->path,
			.build_id = mapping->build_id,
		};
		add_mapping(live, index, &in, mapping->from_ns);
	}
}

/* Its mappings' places may be used again. No memory for that: they are not, and that is all. */
static void give_up_mappings(struct live *live, uint32_t index)
{
	struct process *process;

	for (uint32_t i = 1; i < live->processes.count; i++) /* who still shares them */
		if (live->processes.items[i].fork_parent == index)
			adopt_mappings(live, i);
	process = &live->trace.processes.items[index];
	for (uint32_t i = 0; i < process->mappings.count; i++)
		(void)vec_add(&live->free_mappings, process->mappings.items[i]);
	process->mappings.count = 0;
}

/* The process is over in the tables and in the file; its pid may have another life already. */
static void end_process(struct live *live, uint32_t index, uint64_t time_ns)
{
	struct process *process = &live->trace.processes.items[index];

	process->ended = true;
	process->end_ns = time_ns;
	managed_process_ended(live->managed, index);
	if (live->processes.items[index].announced) {
		bytes_reset(&live->payload);
		emit_at(live, SYSTEM_PROCESS_EXIT, process->main_thread, &live->payload,
			EVENT_CPU_UNKNOWN, 0);
	}
	(void)vec_add(&live->ended, index); /* no memory: its tables stay, that is all */
}

/*
 * exec in a process that has samples: what runs from now on is another program, whose code may stand where the old one's did. So it
 * is a process of its own that has the same pid. 0: no memory.
 */
static uint32_t next_life(struct live *live, uint32_t old, const struct pending *item)
{
	end_process(live, old, item->time_ns);
	uint32_t index = new_process(live, item->pid);

	if (!index)
		return 0;
	const struct process *before = &live->trace.processes.items[old];
	struct process *process = &live->trace.processes.items[index];

	process->parent_pid = before->parent_pid;
	process->inner_pid = before->inner_pid;
	process->uid = before->uid;
	process->begin_ns = item->time_ns;
	process->name = (uint32_t)item->value;
	live->processes.items[index].wanted |= live->processes.items[old].wanted;
	return index;
}

static void on_comm(struct live *live, const struct pending *item)
{
	uint32_t index = process_of(live, item->pid);

	if (!index || live->processes.items[index].read_ns >= item->time_ns)
		return;
	struct process *process = &live->trace.processes.items[index];
	struct live_process *own = &live->processes.items[index];

	if (item->flag && own->announced) {
		index = next_life(live, index, item);
		if (!index)
			return;
	} else if (item->flag) { /* nobody has seen the program it was */
		give_up_mappings(live, index);
		own->fork_parent = 0;
		process->executable = 0;
		process->name = (uint32_t)item->value;
	} else if (item->tid == item->pid) {
		process->name = (uint32_t)item->value;
	}
	uint32_t thread = map_get(&live->trace.by_tid, item->tid);

	if (thread && live->trace.threads.items[thread].process == index)
		live->trace.threads.items[thread].name = (uint32_t)item->value;
}

static void on_exit_record(struct live *live, const struct pending *item)
{
	uint32_t index = find_process(live, item->pid);

	if (!index)
		return;
	if (item->pid != item->tid) {
		uint32_t thread = map_get(&live->trace.by_tid, item->tid);
		if (thread && live->trace.threads.items[thread].process == index)
			(void)vec_add(&live->ended_threads, thread); /* no memory: its place stays taken */
		return;
	}
	struct process *process = &live->trace.processes.items[index];

	if (process->ended)
		return;
	end_process(live, index, item->time_ns);
}

/* The thread's place in the tables; one that an ended thread has left is used again. */
static uint32_t thread_of(struct live *live, uint32_t process, uint32_t pid, uint32_t tid)
{
	struct trace *trace = &live->trace;
	uint32_t index = map_get(&trace->by_tid, tid);

	if (index && trace->threads.items[index].process == process)
		return index;
	if (!live->free_threads.count)
		return trace_thread(trace, pid, tid);
	index = live->free_threads.items[live->free_threads.count - 1];
	live->free_threads.count--;
	return trace_reuse_thread(trace, index, process, tid) ? index : 0;
}

static uint32_t sample_thread(struct live *live, uint32_t process, uint32_t pid, uint32_t tid)
{
	if (pid == tid || live->names.full)
		return main_thread(live, process);
	uint32_t thread = thread_of(live, process, pid, tid);

	if (!thread)
		return main_thread(live, process);
	struct thread *row = &live->trace.threads.items[thread];
	struct proc_thread facts;

	if (row->name)
		return thread;
	if (proc_read_thread(&live->proc, pid, tid, &facts) < 0) {
		row->name = live->trace.processes.items[process].name;
		return thread;
	}
	row->name = text_of(live, facts.comm, strlen(facts.comm));
	bytes_reset(&live->payload);
	payload_thread_name(&live->payload,
		&(struct payload_thread_name){ .name = facts.comm, .inner_tid = facts.inner_tid });
	emit_at(live, SPOOR_THREAD_NAME, thread, &live->payload, EVENT_CPU_UNKNOWN, 0);
	return thread;
}

static struct live_cpu *live_cpu(struct live *live, int32_t cpu)
{
	uint32_t index = cpu < 0 ? 0 : (uint32_t)cpu + 1;

	while (live->cpus.count <= index)
		if (!vec_push(&live->cpus))
			return NULL;
	return &live->cpus.items[index];
}

static void on_sample(struct live *live, const struct pending *item, uint64_t late_ns)
{
	const struct recorder_info *info = recorder_info(live->recorder);
	uint32_t process = process_of(live, item->pid);
	struct live_cpu *cpu = live_cpu(live, item->cpu);

	if (!process || !cpu)
		return;
	if (info->filter_by_pid && !live->processes.items[process].wanted)
		return;
	announce(live, process);
	adopt_mappings(live, process);
	uint32_t thread = sample_thread(live, process, item->pid, item->tid);
	uint32_t stack = item->stack_index;
	uint64_t flags = item->value;

	(void)names_hit(&live->names, process, stack, item->time_ns, &stack); /* no memory: counted there */
	if (stack != item->stack_index)
		flags |= SAMPLE_WALK_STOPPED;
	struct event event = {
		.time_ns = item->time_ns,
		.value = info->period_ns,
		.thread_index = thread,
		.stack_index = stack,
		.schema_index = trace_known_schema(&live->trace, EVENTS_CPU),
		.late_ns = late_ns > UINT32_MAX ? UINT32_MAX : (uint32_t)late_ns,
		.cpu = item->cpu,
		.kind = EVENT_SAMPLE,
	};

	cpu->carry_ns += info->period_ns;
	bytes_reset(&live->payload);
	payload_cpu(&live->payload,
		&(struct payload_cpu){ .value = cpu->carry_ns / 1000000,
			.weight_ns = info->period_ns,
			.count = 1,
			.flags = flags },
		info->period_ns);
	cpu->carry_ns %= 1000000;
	event.payload = live->payload.data;
	event.payload_size = (uint32_t)live->payload.len;
	to_sink(live, &event);
	live->samples++;
	live->late += late_ns != 0;
}

static void on_lost(struct live *live, const struct pending *item, uint64_t first_ns, const char *source)
{
	live->lost += item->value;
	loss(live, source, "samples", item->value, item->cpu, first_ns, item->time_ns, true);
}

static void on_throttle(struct live *live, const struct pending *item)
{
	struct live_cpu *cpu = live_cpu(live, item->cpu);
	uint64_t period_ns = recorder_info(live->recorder)->period_ns;

	if (!cpu)
		return;
	if (item->kind == PENDING_THROTTLE) {
		cpu->throttle_ns = item->time_ns;
		return;
	}
	if (!cpu->throttle_ns)
		return;
	struct pending missing = *item;

	/* The kernel does not say how many; as many as would have come in that time. */
	missing.value = period_ns ? (item->time_ns - cpu->throttle_ns) / period_ns : 0;
	if (missing.value)
		on_lost(live, &missing, cpu->throttle_ns, "throttle");
	cpu->throttle_ns = 0;
}

static void on_code_removed(struct live *live, const struct pending *item)
{
	uint32_t process = item->pid;
	const struct code *code = names_end_code(&live->names, process, item->stack_index, item->value);

	if (!code)
		return;
	struct process *owner = &live->trace.processes.items[process];

	bytes_reset(&live->payload);
	payload_code_removed(&live->payload, code->begin, code->end);
	emit_at(live, SPOOR_CODE_REMOVED, owner->main_thread, &live->payload, EVENT_CPU_UNKNOWN, 0);
	bytes_reset(&live->payload);
	clr_method_unload_payload(code, &live->payload);
	emit_at(live, CLR_METHOD_UNLOAD_VERBOSE, owner->main_thread, &live->payload, EVENT_CPU_UNKNOWN, 0);
	owner->code_epoch++;
}

static void give_out(struct live *live, uint64_t until_ns)
{
	struct pending *item;
	uint64_t late_ns;

	merge_sort(&live->merge, until_ns);
	while ((item = merge_next(&live->merge, &late_ns))) {
		switch ((enum pending_kind)item->kind) {
		case PENDING_SAMPLE:
			on_sample(live, item, late_ns);
			break;
		case PENDING_MAPPING: {
			uint32_t process = process_of(live, item->pid);
			if (process && live->processes.items[process].read_ns < item->time_ns)
				add_mapping(live, process, item->side, item->time_ns);
			break;
		}
		case PENDING_COMM:
			on_comm(live, item);
			break;
		case PENDING_FORK:
			on_fork(live, item);
			break;
		case PENDING_EXIT:
			on_exit_record(live, item);
			break;
		case PENDING_LOST: {
			const struct live_cpu *cpu = live_cpu(live, item->cpu);
			on_lost(live, item, cpu && cpu->last_ns ? cpu->last_ns : live->begin_ns, "ring");
			break;
		}
		case PENDING_THROTTLE:
		case PENDING_UNTHROTTLE:
			on_throttle(live, item);
			break;
		case PENDING_CODE_REMOVED:
			on_code_removed(live, item);
			break;
		}
		struct live_cpu *cpu = live_cpu(live, item->cpu);
		if (cpu)
			cpu->last_ns = item->time_ns;
		free(item->side);
		item->side = NULL;
	}
}

/* ---- what comes from the rings ---- */

static uint32_t build_id_text(struct live *live, const uint8_t *id, size_t size)
{
	static const char digits[] = "0123456789abcdef";
	char text[2 * PERF_BUILD_ID_MAX];

	for (size_t i = 0; i < size && i < PERF_BUILD_ID_MAX; i++) {
		text[2 * i] = digits[id[i] >> 4];
		text[2 * i + 1] = digits[id[i] & 15];
	}
	return text_of(live, text, 2 * size);
}

static void take_mapping(struct live *live, const struct perf_record *record)
{
	struct pending_mapping *side;

	if (record->type == PERF_TYPE_MMAP2 && !(record->protection & PERF_PROT_EXEC))
		return;
	if (record->misc & PERF_MISC_MMAP_DATA || record->pid == UINT32_MAX || !record->length)
		return;
	side = calloc(1, sizeof(*side));
	struct pending *item = side ? merge_add(&live->merge) : NULL;

	if (!item) {
		free(side);
		return;
	}
	bool deleted;
	size_t len = proc_strip_deleted(record->text, record->text_len, &deleted);

	side->begin = record->address;
	side->end = record->address + record->length;
	side->file_offset = record->file_offset;
	side->path = text_of(live, record->text, len);
	if (record->build_id_size) {
		side->build_id = build_id_text(live, record->build_id, record->build_id_size);
	} else {
		side->device = makedev(record->device_major, record->device_minor);
		side->inode = record->inode;
	}
	item->kind = PENDING_MAPPING;
	item->time_ns = record->time_ns;
	item->pid = record->pid;
	item->tid = record->tid;
	item->cpu = (int16_t)record->cpu;
	item->side = side;
}

static void take_sample(struct live *live, const struct perf_record *record)
{
	const struct recorder_info *info = recorder_info(live->recorder);

	if (!record->pid || record->pid == UINT32_MAX) /* idle, or a thread that is past its end */
		return;
	struct perf_callchain chain = perf_callchain_flatten(record, live->arch->kernel_begin,
		info->max_stack, live->frames, FRAMES_MAX);
	struct pending *item = merge_add(&live->merge);

	if (!item)
		return;
	item->kind = PENDING_SAMPLE;
	item->time_ns = record->time_ns;
	item->pid = record->pid;
	item->tid = record->tid;
	item->cpu = (int16_t)record->cpu;
	item->stack_index = stack_table_intern(&live->trace.stacks, live->frames, chain.count);
	item->value = (chain.flags & PERF_CHAIN_CUT ? SAMPLE_STACK_CUT : 0u) |
		(chain.flags & PERF_CHAIN_BROKEN ? SAMPLE_WALK_STOPPED : 0u) |
		(chain.flags & PERF_CHAIN_GUEST ? SAMPLE_GUEST : 0u);
}

static void take_simple(struct live *live, const struct perf_record *record, enum pending_kind kind,
	uint64_t value, bool flag)
{
	struct pending *item = merge_add(&live->merge);

	if (!item)
		return;
	item->kind = (uint8_t)kind;
	item->time_ns = record->has_time ? record->time_ns : live_now_ns();
	item->pid = record->pid;
	item->tid = record->tid;
	item->cpu = (int16_t)record->cpu;
	item->value = value;
	item->flag = flag;
}

static void take_record(struct live *live, const uint8_t *data, uint32_t size)
{
	struct perf_record record;

	if (perf_record_decode(&live->layout, data, size, &record) < 0)
		return;
	switch (record.type) {
	case PERF_TYPE_SAMPLE:
		take_sample(live, &record);
		break;
	case PERF_TYPE_MMAP:
	case PERF_TYPE_MMAP2:
		take_mapping(live, &record);
		break;
	case PERF_TYPE_COMM:
		take_simple(live, &record, PENDING_COMM, text_of(live, record.text, record.text_len), record.exec);
		break;
	case PERF_TYPE_FORK:
		take_simple(live, &record, PENDING_FORK,
			(uint64_t)record.parent_pid << 32 | record.parent_tid, false);
		break;
	case PERF_TYPE_EXIT:
		take_simple(live, &record, PENDING_EXIT, 0, false);
		break;
	case PERF_TYPE_LOST:
	case PERF_TYPE_LOST_SAMPLES:
		if (record.lost)
			take_simple(live, &record, PENDING_LOST, record.lost, false);
		break;
	case PERF_TYPE_THROTTLE:
		take_simple(live, &record, PENDING_THROTTLE, 0, false);
		break;
	case PERF_TYPE_UNTHROTTLE:
		take_simple(live, &record, PENDING_UNTHROTTLE, 0, false);
		break;
	default:
		break;
	}
}

static void drain(struct live *live)
{
	uint32_t count = recorder_info(live->recorder)->ring_count;

	for (uint32_t i = 0; i < count; i++) {
		struct ring *ring = recorder_ring(live->recorder, i);
		const uint8_t *data;
		uint32_t size;
		if (!ring_begin(ring))
			continue;
		while (ring_next(ring, &data, &size))
			take_record(live, data, size);
		ring_end(ring);
	}
}

/* ---- flush ---- */

static void on_removed_code(void *context, uint32_t process, uint32_t code, const struct code *body)
{
	struct live *live = context;
	struct pending *item = merge_add(&live->merge);

	if (!item)
		return; /* its names stay where they are: wrong only if other code comes there */
	item->kind = PENDING_CODE_REMOVED;
	item->time_ns = body->until_ns;
	item->pid = process;
	item->stack_index = code;
	item->value = body->begin;
	item->cpu = EVENT_CPU_UNKNOWN;
}

static uint64_t table_bytes(const struct live *live)
{
	const struct trace *trace = &live->trace;

	return names_size_bytes(&live->names) + strtab_size_bytes(&trace->strings) +
		stack_table_size_bytes(&trace->stacks) +
		trace->processes.capacity * sizeof(struct process) +
		trace->threads.capacity * sizeof(struct thread) +
		trace->mappings.capacity * sizeof(struct mapping) +
		map_size_bytes(&trace->by_tid) + map_size_bytes(&trace->by_pid) +
		live->merge.items.capacity * sizeof(struct pending);
}

static void forget_thread(struct live *live, uint32_t thread)
{
	if (live->sink_ops->forget_thread)
		live->sink_ops->forget_thread(live->sink, thread);
	trace_forget_thread(&live->trace, thread);
}

/* Its place may be used again, as its mappings' may. */
static void free_process(struct live *live, uint32_t index)
{
	give_up_mappings(live, index);
	forget_thread(live, live->trace.processes.items[index].main_thread);
	trace_forget_process(&live->trace, index);
	managed_forget(live->managed, index);
	(void)vec_add(&live->free_processes, index); /* no memory: it stays taken */
}

/* Threads whose process lives on. */
static void bury_threads(struct live *live, const bool *dead)
{
	for (uint32_t i = 0; i < live->ended_threads.count; i++) {
		uint32_t thread = live->ended_threads.items[i];
		struct thread *row = &live->trace.threads.items[thread];
		if (!row->process || dead[row->process])
			continue;
		forget_thread(live, thread);
		row->process = 0;
		(void)vec_add(&live->free_threads, thread); /* as above */
	}
	vec_reset(&live->ended_threads);
}

/*
 * Places of what has ended, so that memory does not grow with every process that ever ran. Those that never had a sample go at each flush,
 * which costs nothing; the others in lots, because everything that knows them must be gone through. Called right after a flush.
 */
static void bury(struct live *live)
{
	uint32_t kept = 0;
	uint32_t count = live->trace.processes.count;

	for (uint32_t i = 0; i < live->ended.count; i++) {
		uint32_t index = live->ended.items[i];
		if (live->processes.items[index].announced || managed_is_busy(live->managed, index))
			live->ended.items[kept++] = index;
		else
			free_process(live, index);
	}
	live->ended.count = kept;
	if (kept + live->ended_threads.count < BURY_COUNT)
		return;
	cleanup(freep) bool *dead = calloc(count, sizeof(*dead));

	if (!dead)
		return;
	kept = 0;
	for (uint32_t i = 0; i < live->ended.count; i++) {
		uint32_t index = live->ended.items[i];
		if (managed_is_busy(live->managed, index))
			live->ended.items[kept++] = index;
		else
			dead[index] = true;
	}
	names_forget_processes(&live->names, dead, count);
	if (!live->sink_error) /* last answers are events */
		live->sink_error = live->sink_ops->flush(live->sink, &live->sink_diag);
	if (live->sink_error)
		return;
	bury_threads(live, dead);
	for (uint32_t i = 1; i < live->trace.threads.count; i++) {
		struct thread *row = &live->trace.threads.items[i];
		if (!row->process || !dead[row->process] ||
			i == live->trace.processes.items[row->process].main_thread)
			continue;
		forget_thread(live, i);
		row->process = 0;
		(void)vec_add(&live->free_threads, i); /* as above */
	}
	for (uint32_t i = 1; i < count; i++)
		if (dead[i])
			free_process(live, i);
	live->ended.count = kept;
}

/* The stack table has grown large: all of it goes, but what is still in the window. */
static void forget_stacks(struct live *live)
{
	struct stack_table fresh = { 0 };

	if (live->sink_ops->forget_stacks && !live->sink_error)
		live->sink_error = live->sink_ops->forget_stacks(live->sink, &live->sink_diag);
	names_forget_stacks(&live->names);
	for (uint32_t i = live->merge.taken; i < live->merge.items.count; i++) {
		struct pending *item = &live->merge.items.items[i];
		uint32_t count;
		if (item->kind != PENDING_SAMPLE)
			continue;
		const uint64_t *frames = stack_table_get(&live->trace.stacks, item->stack_index, &count);
		item->stack_index = stack_table_intern(&fresh, frames, count);
	}
	stack_table_done(&live->trace.stacks);
	live->trace.stacks = fresh;
}

static void flush(struct live *live, uint64_t until_ns)
{
	names_removed_codes(&live->names, on_removed_code, live);
	give_out(live, until_ns);
	(void)names_resolve(&live->names, live_now_ns()); /* what fails stays unnamed, counted */
	if (!live->sink_error)
		live->sink_error = live->sink_ops->flush(live->sink, &live->sink_diag);
	if (!live->sink_error)
		bury(live);
	if (live->trace.stacks.stacks.count > STACKS_MAX ||
		stack_table_size_bytes(&live->trace.stacks) > STACK_BYTES_MAX)
		forget_stacks(live);
	if (!live->names.full && table_bytes(live) > TABLE_BYTES_MAX) {
		live->names.full = true;
		notice(live, live->recorder_process, 2, "memory",
			"the recorder's memory is used up: what is first hit from now on stays without a name", "");
	}
}

/* ---- the caller's side ---- */

static void describe(struct live *live)
{
	struct recording *recording = &live->trace.recording;
	const struct recorder_info *info = recorder_info(live->recorder);
	struct box *box = &live->box;

	recording->page_size_bytes = box->page_size_bytes;
	recording->cpu_online = box->cpu_online;
	recording->cpu_possible = box->cpu_possible;
	recording->period_ns = info->period_ns;
	recording->recorder_process = live->recorder_process;
	recording->sync_ns = live_now_ns() - SYNC_LEAD_NS;
	recording->utc_ns = utc_now_ns() - SYNC_LEAD_NS;
	live->merge.reached_ns = recording->sync_ns + SYNC_LEAD_NS;
}

int live_open(const struct live_options *options, struct live **ret_live, struct diag *diag)
{
	struct live *live = calloc(1, sizeof(*live));
	int result = -ENOMEM;

	if (!live || trace_init(&live->trace) < 0) {
		free(live);
		return diag_set(diag, -ENOMEM, "cannot record: %m");
	}
	live->options = *options;
	box_read(&live->box);
	live->arch = arch_here();
	result = proc_open(&live->proc, diag);
	if (result < 0)
		goto fail;
	struct names_options names_options = {
		.trace = &live->trace,
		.box = &live->box,
		.emit = on_names_event,
		.context = live,
		.symbol_paths = options->symbol_paths,
		.mappings_only = options->no_names,
	};
	result = names_init(&live->names, &names_options);
	if (result == 0)
		result = managed_new(&live->trace, &live->names, on_managed, live, &live->managed);
	if (result < 0) {
		diag_set(diag, result, "cannot record: %m");
		goto fail;
	}
	struct recorder_options recorder_options = {
		.scope = options->machine ? RECORD_MACHINE : options->command ? RECORD_CHILD : RECORD_PIDS,
		.frequency_hz = options->frequency_hz,
		.pids = options->pids,
		.pid_count = options->pid_count,
		.ring_bytes = options->frequency_hz <= SLOW_HZ ? SLOW_RING_BYTES : RECORDER_RING_BYTES,
		.user_only = options->user_only,
	};
	if (options->command) {
		result = record_child_spawn(&live->child, (char *const *)options->command, diag);
		if (result < 0)
			goto fail;
		live->child_waits = true;
		if (!options->machine) {
			recorder_options.pids = &live->child.pid;
			recorder_options.pid_count = 1;
		}
	}
	result = recorder_open(&recorder_options, &live->recorder, diag);
	if (result < 0)
		goto fail;
	live->layout = (struct perf_layout){ .sample_type = recorder_info(live->recorder)->sample_type,
		.sample_id_all = true };
	live->recorder_process = trace_process(&live->trace, (uint32_t)getpid());
	if (!live->recorder_process || !live_process(live, live->recorder_process)) {
		result = diag_set(diag, -ENOMEM, "cannot record: %m");
		goto fail;
	}
	*ret_live = live;
	return 0;
fail:
	live_close(live);
	return result;
}

const struct recorder_info *live_recorder_info(const struct live *live)
{
	return recorder_info(live->recorder);
}

const struct trace *live_trace(const struct live *live)
{
	return &live->trace;
}

uint32_t live_child_pid(const struct live *live)
{
	return live->child.pid;
}

int live_write_to(struct live *live, int fd, const char *name, struct diag *diag)
{
	struct nettrace_key keys[] = {
		{ "SpoorVersion", live->options.version },
		{ "Host", live->box.host },
		{ "Kernel", live->box.kernel },
	};
	struct nettrace_sink_options options = {
		.fd = fd,
		.name = name,
		.keys = keys,
		.key_count = sizeof(keys) / sizeof(keys[0]),
	};

	describe(live);
	live->sink_ops = &nettrace_sink;
	return nettrace_sink_open(&options, &live->trace, &live->sink, diag);
}

/* How it was asked for, as JSON for the file. */
static void options_json(const struct live *live, struct bytes *out)
{
	const struct recorder_info *info = recorder_info(live->recorder);
	struct json j = { .out = out };

	json_object(&j, NULL);
	json_z(&j, "scope", live->options.machine ? "machine" : live->options.command ? "command" : "processes");
	json_array(&j, "pids");
	for (size_t i = 0; i < live->options.pid_count; i++)
		json_u64(&j, NULL, live->options.pids[i]);
	json_end(&j);
	json_u64(&j, "frequency_hz", live->options.frequency_hz);
	json_z(&j, "event", info->clock == RECORD_CLOCK_CYCLES ? "cycles" : "cpu-clock");
	json_bool(&j, "kernel", !info->kernel_excluded);
	json_bool(&j, "idle", !info->idle_excluded);
	json_bool(&j, "names", !live->options.no_names);
	json_bool(&j, "dotnet", !live->options.no_dotnet);
	json_u64(&j, "stack_frames_max", info->max_stack);
	json_end(&j);
}

static void emit_head(struct live *live)
{
	const struct recorder_info *info = recorder_info(live->recorder);
	const struct box *box = &live->box;
	struct rights rights;

	rights_read(&rights);
	bytes_reset(&live->text);
	options_json(live, &live->text);
	bytes_reset(&live->payload);
	payload_session(&live->payload,
		&(struct payload_session){ .event_set = 1,
			.tool_version = live->options.version,
			.command_line = live->options.command_line,
			.options = bytes_z(&live->text),
			.period_ns = info->period_ns,
			.clock = "CLOCK_MONOTONIC",
			.utc_ns = live->trace.recording.utc_ns });
	emit_about_recording(live, SPOOR_SESSION);
	bytes_reset(&live->payload);
	payload_machine(&live->payload,
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
	emit_about_recording(live, SPOOR_MACHINE);
	if (info->limit.error)
		notice(live, live->recorder_process, 2, "rights", info->limit.text, info->limit.remedy);
}

int live_start(struct live *live, struct diag *diag)
{
	live->begin_ns = live_now_ns();
	live->flush_ns = live->begin_ns;
	live->follow_ns = live->begin_ns;
	live->merge.reached_ns = live->begin_ns;
	announce(live, live->recorder_process);
	emit_head(live);
	int result = recorder_start(live->recorder, diag);

	if (result < 0)
		return result;
	live->started = true;
	scan_processes(live);
	if (live->child_waits) {
		live->child_waits = false;
		result = record_child_go(&live->child, live->options.command[0], diag);
		if (result < 0)
			return result;
	}
	if (!live->sink_error)
		live->sink_error = live->sink_ops->flush(live->sink, &live->sink_diag);
	managed_advance(live->managed, live_now_ns());
	return 0;
}

static int tell_sink_error(struct live *live, struct diag *diag)
{
	if (diag && !diag->error)
		*diag = live->sink_diag;
	return live->sink_error;
}

/* Waits for rings, streams and the caller's descriptors, at most until `until_ns`. */
static void wait_for(struct live *live, struct pollfd *fds, size_t fd_count, uint64_t until_ns)
{
	size_t rings = recorder_poll_fds(live->recorder, NULL, 0);

	vec_reset(&live->poll_fds);
	if (!vec_reserve(&live->poll_fds, rings + POLL_MAX + fd_count))
		return;
	struct pollfd *all = live->poll_fds.items;
	size_t count = live->end_ns ? 0 : recorder_poll_fds(live->recorder, all, rings);
	size_t ring_fds = count;

	count += managed_fds(live->managed, all + count, POLL_MAX);
	size_t own = count;

	for (size_t i = 0; i < fd_count; i++)
		all[count++] = fds[i];
	uint64_t now_ns = live_now_ns();
	uint64_t wake_ns = managed_wake_ns(live->managed);

	if (until_ns < wake_ns)
		wake_ns = until_ns;
	uint64_t wait_ns = wake_ns > now_ns ? wake_ns - now_ns : 0;
	struct timespec timeout = { .tv_sec = (time_t)(wait_ns / 1000000000),
		.tv_nsec = (long)(wait_ns % 1000000000) };

	if (ppoll(all, count, &timeout, NULL) < 0)
		for (size_t i = 0; i < count; i++)
			all[i].revents = 0;
	if (!live->end_ns)
		recorder_note_poll(live->recorder, all, ring_fds);
	for (size_t i = 0; i < fd_count; i++)
		fds[i].revents = all[own + i].revents;
}

int live_step(struct live *live, struct pollfd *fds, size_t fd_count, uint64_t until_ns,
	struct diag *diag)
{
	uint64_t due_ns = live->flush_ns + FLUSH_NS;

	wait_for(live, fds, fd_count, until_ns < due_ns ? until_ns : due_ns);
	managed_advance(live->managed, live_now_ns());
	drain(live);
	uint64_t now_ns = live_now_ns();

	if (now_ns >= due_ns) {
		flush(live, now_ns - MERGE_WINDOW_NS);
		live->flush_ns = now_ns;
	}
	if (live->options.machine && now_ns >= live->follow_ns + FOLLOW_CPUS_NS) {
		live->follow_ns = now_ns;
		(void)recorder_follow_cpus(live->recorder, NULL); /* a CPU we can't follow is one without samples */
	}
	if (live->sink_error)
		return tell_sink_error(live, diag);
	return live->options.machine || recorder_targets_left(live->recorder) ? 1 : 0;
}

/* The .NET sessions' end: bounded, and cut short when one of the caller's descriptors asks for it. */
static void end_managed(struct live *live, struct pollfd *fds, size_t fd_count)
{
	uint64_t bound_ns = live_now_ns() + END_BOUND_NS;

	managed_stop(live->managed, live_now_ns());
	while (!managed_ended(live->managed)) {
		uint64_t now_ns = live_now_ns();
		if (now_ns >= bound_ns)
			break;
		wait_for(live, fds, fd_count, now_ns + UINT64_C(100000000));
		managed_advance(live->managed, live_now_ns());
		for (size_t i = 0; i < fd_count; i++)
			if (fds[i].revents)
				return;
	}
}

static void emit_end(struct live *live, const char *reason)
{
	const struct nettrace_sink_counts *sink = nettrace_sink_counts(live->sink);
	struct payload_count counts[] = {
		{ "samples", live->samples },
		{ "lost", live->lost },
		{ "late", live->late },
		{ "frames", live->names.frames_total },
		{ "unnamed_no_symbols", live->names.frames_unnamed[UNNAMED_NO_SYMBOLS] },
		{ "unnamed_no_image", live->names.frames_unnamed[UNNAMED_NO_IMAGE] },
		{ "unnamed_no_mapping", live->names.frames_unnamed[UNNAMED_NO_MAPPING] },
		{ "unnamed_no_method", live->names.frames_unnamed[UNNAMED_NO_METHOD] },
		{ "unnamed_not_asked", live->names.frames_unnamed[UNNAMED_NOT_ASKED] },
		{ "unnamed_kernel_hidden", live->names.frames_unnamed[UNNAMED_KERNEL_HIDDEN] },
		{ "unnamed_no_memory", live->names.frames_unnamed[UNNAMED_NO_MEMORY] },
		{ "events", sink->events },
	};

	if (live->late)
		loss(live, "late", "events", live->late, EVENT_CPU_UNKNOWN, live->begin_ns, live->end_ns, false);
	uint64_t stream_lost = managed_lost(live->managed);

	if (stream_lost)
		loss(live, "eventpipe", "events", stream_lost, EVENT_CPU_UNKNOWN, live->begin_ns, live->end_ns,
			false);
	bytes_reset(&live->payload);
	payload_session_end(&live->payload,
		&(struct payload_session_end){ .reason = reason,
			.counts = counts,
			.count_count = sizeof(counts) / sizeof(counts[0]) });
	emit_about_recording(live, SPOOR_SESSION_END);
}

int live_end(struct live *live, const char *reason, struct pollfd *fds, size_t fd_count,
	struct diag *diag)
{
	if (!live->started)
		return 0;
	recorder_stop(live->recorder);
	drain(live);
	live->end_ns = live_now_ns();
	if (!live->sink_error)
		flush(live, live->end_ns - MERGE_WINDOW_NS); /* so that a second signal finds a good file */
	end_managed(live, fds, fd_count);
	names_removed_codes(&live->names, on_removed_code, live);
	give_out(live, UINT64_MAX);
	if (live->merge.reached_ns < live->end_ns)
		live->merge.reached_ns = live->end_ns;
	(void)names_finish(&live->names); /* as in flush() */
	emit_end(live, reason);
	if (!live->sink_error)
		live->sink_error = live->sink_ops->end(live->sink, &live->sink_diag);
	return live->sink_error ? tell_sink_error(live, diag) : 0;
}

void live_count(const struct live *live, struct live_counts *ret_counts)
{
	*ret_counts = (struct live_counts){
		.samples = live->samples,
		.lost = live->lost,
		.late = live->late,
		.bytes = live->sink ? nettrace_sink_counts(live->sink)->bytes : 0,
		.frames = live->names.frames_total,
		.begin_ns = live->begin_ns,
		.end_ns = live->end_ns,
		.targets_left = recorder_targets_left(live->recorder),
		.memory_full = live->names.full,
	};
	memcpy(ret_counts->unnamed, live->names.frames_unnamed, sizeof(ret_counts->unnamed));
	managed_counts(live->managed, &ret_counts->dotnet_asked, &ret_counts->dotnet_known);
}

void live_close(struct live *live)
{
	if (!live)
		return;
	if (live->child_waits)
		record_child_cancel(&live->child);
	managed_free(live->managed);
	if (live->sink)
		live->sink_ops->close(live->sink);
	if (live->recorder)
		recorder_close(live->recorder);
	names_done(&live->names);
	merge_done(&live->merge);
	proc_close(&live->proc);
	vec_done(&live->processes);
	vec_done(&live->cpus);
	vec_done(&live->poll_fds);
	vec_done(&live->free_processes);
	vec_done(&live->free_threads);
	vec_done(&live->free_mappings);
	vec_done(&live->ended);
	vec_done(&live->ended_threads);
	bytes_done(&live->payload);
	bytes_done(&live->text);
	trace_done(&live->trace);
	free(live);
}
