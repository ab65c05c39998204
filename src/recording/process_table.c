/* See process_table.h. */
#include "recording/process_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "dotnet/port.h"
#include "perf/recorder.h"
#include "recording/live_state.h"
#include "recording/managed.h"
#include "recording/throttling.h"
#include "trace/spoor_payload.h"

/* ended processes that are kept because the symbol worker still resolves their names */
#define AWAIT_MAX  256u
#define BURY_COUNT 512u
/* a starting runtime connects to the listen port about 20 ms after its start */
#define PORT_GRACE_NS UINT64_C(1000000000)

struct live_process *process_table_entry(struct live *live, uint32_t process)
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
	/* With other targets, the command is not recorded; its exit only ends the recording. */
	return !live->options.pid_count && live->child.pid && pid == live->child.pid;
}

/* Creates the entry of a new process with this pid. The slot of a freed process is reused. */
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
		*process = (struct process){
			.pid = pid, .main_thread = thread, .mappings = mappings, .codes = codes
		};
		if (!trace_reuse_thread(trace, thread, index, pid) ||
			!map_put(&trace->by_pid, pid, index))
			return 0;
	} else {
		index = trace_new_process(trace, pid);
	}
	struct live_process *own = index ? process_table_entry(live, index) : NULL;

	if (!own)
		return 0;
	*own = (struct live_process){ .wanted = is_wanted_pid(live, pid) };
	trace->processes.items[index].begin_ns = live->window.watermark_ns;
	return index;
}

uint32_t process_table_find(const struct live *live, uint32_t pid)
{
	uint32_t index = trace_find_process(&live->trace, pid);

	/* The slot may have been reused for another pid. */
	return index && live->trace.processes.items[index].pid == pid ? index : 0;
}

uint32_t process_table_process(struct live *live, uint32_t pid)
{
	uint32_t index = process_table_find(live, pid);

	return index ? index : new_process(live, pid);
}

static void watch_if_managed(struct live *live, uint32_t process, const char *path)
{
	if (live->options.no_dotnet || live->options.no_names ||
		!dotnet_signs_worth_asking(dotnet_signs_of_path(path)))
		return;
	/*
	 * A process that starts during the recording may still connect to the listen port. A
	 * session opened before that would miss the start of its runtime.
	 */
	const struct process *facts = &live->trace.processes.items[process];
	bool may_come = live->reverse &&
			(facts->begin_ns >= live->writer.begin_ns || facts->pid == live->child.pid);

	if (live->writer.end_ns)
		managed_miss(live->managed, process);
	else
		managed_watch(live->managed, process,
			clock_monotonic_ns() + (may_come ? PORT_GRACE_NS : 0));
}

void process_table_add_mapping(struct live *live, uint32_t process,
	const struct pending_mapping *in, uint64_t time_ns)
{
	struct trace *trace = &live->trace;
	struct process *owner = &trace->processes.items[process];
	uint32_t index = 0;

	if (live->symbolizer.full)
		return; /* the memory limit is reached: no more addresses are named */
	for (uint32_t i = owner->mappings.count; i-- > 0;) {
		const struct mapping *old = &trace->mappings.items[owner->mappings.items[i]];
		if (old->begin == in->begin && old->end == in->end && old->path == in->path &&
			old->file_offset == in->file_offset)
			/* reported twice: by /proc and by the ring, or again after mprotect */
			return;
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
		.path = live_text(scan->live, mapping->path, mapping->path_len),
	};

	if (!mapping->path_len)
		/* the name that kernel records use */
		in.path = trace_add_text(&scan->live->trace, "//anon");
	process_table_add_mapping(scan->live, scan->process, &in, scan->time_ns);
	return 0;
}

/* Copies a process's identity and mappings from /proc into the tables. */
static void take_process(struct live *live, uint32_t pid, const struct proc_process *facts)
{
	uint32_t index = process_table_process(live, pid);

	if (!index)
		return;
	struct process *process = &live->trace.processes.items[index];

	process->parent_pid = facts->parent_pid;
	process->inner_pid = facts->inner_pid;
	process->uid = facts->uid;
	process->existed = true;
	process->name = live_text(live, facts->comm, strlen(facts->comm));
	process->begin_ns = facts->start_ns;
	uint32_t parent = process_table_find(live, facts->parent_pid);

	if (parent && live->processes.items[parent].wanted)
		live->processes.items[index].wanted = true;
	uint64_t now_ns = clock_monotonic_ns();

	live->processes.items[index].read_ns = now_ns;
	if (facts->kernel_thread)
		return;
	struct scan scan = { .live = live, .process = index, .time_ns = now_ns };

	/* without permission, or after its exit, its frames stay unnamed and are counted */
	(void)proc_read_maps(&live->proc, pid, on_mapping, &scan);
}

/* A process that has ended meanwhile gets no entry. */
static void read_process(struct live *live, uint32_t pid)
{
	struct proc_process facts;

	if (proc_read(&live->proc, pid, &facts) == 0)
		take_process(live, pid, &facts);
}

void process_table_read_mappings(struct live *live, uint32_t process)
{
	struct scan scan = { .live = live, .process = process, .time_ns = clock_monotonic_ns() };

	/* ignored as in take_process() */
	(void)proc_read_maps(&live->proc, live->trace.processes.items[process].pid, on_mapping,
		&scan);
}

/*
 * Adds the process to the tables if it is a target or the child of a recorded process. Returns 0 if
 * it is neither.
 */
static uint32_t take_if_wanted(struct live *live, uint32_t pid, const struct proc_process *facts)
{
	uint32_t parent = process_table_find(live, facts->parent_pid);

	if (!is_wanted_pid(live, pid) && !(parent && live->processes.items[parent].wanted))
		return 0;
	take_process(live, pid, facts);
	uint32_t process = process_table_find(live, pid);

	return process && live->processes.items[process].wanted ? process : 0;
}

uint32_t process_table_look(struct live *live, uint32_t pid)
{
	struct proc_process facts;

	return proc_read(&live->proc, pid, &facts) == 0 ? take_if_wanted(live, pid, &facts) : 0;
}

/*
 * Decides about a process that has no fork record: it started before the rings, or its record was
 * lost. A target or a child of a recorded process that started after the recording began is
 * recorded. Every other process is added to the pid filter.
 */
static uint32_t judge(struct live *live, uint32_t pid)
{
	struct proc_process facts;
	uint32_t process = 0;

	if (proc_read(&live->proc, pid, &facts) == 0 && facts.start_ns >= live->writer.begin_ns)
		process = take_if_wanted(live, pid, &facts);
	if (!process)
		pid_filter_add(&live->filter, pid);
	return process;
}

uint32_t process_table_owner(struct live *live, uint32_t pid)
{
	if (!recorder_info(live->recorder)->filter_by_pid)
		return process_table_process(live, pid);
	uint32_t process = process_table_find(live, pid);

	if (!process && !pid_filter_has(&live->filter, pid))
		process = judge(live, pid);
	return process && live->processes.items[process].wanted ? process : 0;
}

/* Adds the descendants of a command that already runs. Repeats until a pass adds no process. */
static void find_descendants(struct live *live, const struct id_list *list)
{
	bool found;

	do {
		found = false;
		for (uint32_t i = 0; i < list->ids.count; i++)
			found |= !process_table_find(live, list->ids.items[i]) &&
				 process_table_look(live, list->ids.items[i]);
	} while (found);
}

void process_table_scan(struct live *live)
{
	struct id_list list = { 0 };

	if (!live->options.machine) {
		for (size_t i = 0; i < live->options.pid_count; i++)
			read_process(live, live->options.pids[i]);
		if (live->child.pid && !live->options.pid_count)
			read_process(live, live->child.pid);
		if (live->options.late_start && live->child.pid && !live->options.pid_count &&
			proc_list(&live->proc, &list, NULL) == 0)
			find_descendants(live, &list);
	} else if (proc_list(&live->proc, &list, NULL) == 0) {
		for (uint32_t i = 0; i < list.ids.count; i++)
			read_process(live, list.ids.items[i]);
	}
	vec_done(&list.ids);
}

/* Writes the process's first events: name, facts and command line. */
void process_table_announce(struct live *live, uint32_t index)
{
	struct live_process *own = &live->processes.items[index];
	const struct process *process = &live->trace.processes.items[index];

	if (own->announced)
		return;
	own->announced = true;
	uint64_t groups_hash =
		session_writer_process(&live->writer, process->ended ? NULL : &live->proc, index,
			(process->existed || own->follows_exec ? 0 : SESSION_PROCESS_CREATED) |
				(live->options.no_arguments ? SESSION_PROCESS_NO_ARGUMENTS : 0));

	if (groups_hash)
		throttling_look(live, index, groups_hash);
}

/* Copies to a process the mappings that it has shared with its parent since fork. */
void process_table_adopt_mappings(struct live *live, uint32_t index)
{
	struct live_process *own = &live->processes.items[index];
	uint32_t parent = own->fork_parent;

	if (!parent)
		return;
	own->fork_parent = 0;
	for (uint32_t i = 0; i < own->fork_end; i++) {
		const struct process *from = &live->trace.processes.items[parent];
		if (i >= from->mappings.count)
			break; /* the parent's mapping list was cleared */
		const struct mapping *mapping =
			&live->trace.mappings.items[from->mappings.items[i]];
		struct pending_mapping in = {
			.begin = mapping->begin,
			.end = mapping->end,
			.file_offset = mapping->file_offset,
			.device = mapping->device,
			.inode = mapping->inode,
			.path = mapping->path,
			.build_id = mapping->build_id,
		};
		process_table_add_mapping(live, index, &in, mapping->from_ns);
	}
}

/* Marks the process as ended in the tables. Its pid may already belong to another process. */
static void end_life(struct live *live, uint32_t index, uint64_t time_ns)
{
	struct process *process = &live->trace.processes.items[index];

	process->ended = true;
	process->end_ns = time_ns;
	managed_process_ended(live->managed, index);
	(void)vec_add(&live->ended, index); /* without memory its slot is not reused */
}

/* As end_life(); an announced process also gets its exit event in the file. */
static void end_process(struct live *live, uint32_t index, uint64_t time_ns)
{
	end_life(live, index, time_ns);
	if (!live->processes.items[index].announced)
		return;
	session_writer_emit_about(&live->writer, SYSTEM_PROCESS_EXIT, index);
}

void process_table_fork(struct live *live, const struct pending *item)
{
	uint32_t parent_pid = (uint32_t)(item->value >> 32);

	if (item->pid == parent_pid) /* a new thread */
		return;
	uint32_t old = process_table_find(live, item->pid);

	if (old && (live->processes.items[old].read_ns >= item->time_ns))
		return; /* the /proc reading is newer */
	uint32_t parent = process_table_find(live, parent_pid);

	if (recorder_info(live->recorder)->filter_by_pid &&
		!(parent && live->processes.items[parent].wanted)) {
		pid_filter_add(&live->filter, item->pid);
		if (old) /* a recorded process had this pid before */
			map_remove(&live->trace.by_pid, item->pid, old);
		if (old && !live->trace.processes.items[old].ended)
			end_process(live, old, item->time_ns);
		return;
	}
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

	/* the parent shares its own parent's mappings, so the child shares those */
	if (parents->fork_parent) {
		own->fork_parent = parents->fork_parent;
		own->fork_end = parents->fork_end;
	} else {
		own->fork_parent = parent;
		own->fork_end = from->mappings.count;
	}
}

/* Frees the process's mapping slots for reuse. Without memory a slot is not reused. */
static void give_up_mappings(struct live *live, uint32_t index)
{
	struct process *process;

	for (uint32_t i = 1; i < live->processes.count; i++) /* forked processes that share them */
		if (live->processes.items[i].fork_parent == index)
			process_table_adopt_mappings(live, i);
	process = &live->trace.processes.items[index];
	for (uint32_t i = 0; i < process->mappings.count; i++)
		(void)vec_add(&live->free_mappings, process->mappings.items[i]);
	process->mappings.count = 0;
}

/*
 * Creates a second process with the same pid after an exec in a process that has samples, because
 * the new program's code may occupy the old program's addresses. Returns 0 without memory.
 *
 * In the file it is written as an existing process with a new thread row, not as a second creation:
 * TraceEvent would make two processes of two creations, and look up the frames of the second one in
 * the modules of the first one.
 */
static uint32_t next_life(struct live *live, uint32_t old, const struct pending *item)
{
	end_life(live, old, item->time_ns);
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
	live->processes.items[index].follows_exec = true;
	return index;
}

void process_table_comm(struct live *live, const struct pending *item)
{
	uint32_t index = process_table_owner(live, item->pid);

	if (item->flag && item->pid == live->child.pid && item->time_ns < live->child_exec_ns)
		live->child_exec_ns = item->time_ns;
	if (!index || live->processes.items[index].read_ns >= item->time_ns)
		return;
	struct process *process = &live->trace.processes.items[index];
	struct live_process *own = &live->processes.items[index];

	if (item->flag && own->announced) {
		index = next_life(live, index, item);
		if (!index)
			return;
	} else if (item->flag) { /* no sample of the old program was written */
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

void process_table_exit(struct live *live, const struct pending *item)
{
	uint32_t index = process_table_find(live, item->pid);

	if (!index)
		return;
	if (item->pid != item->tid) {
		uint32_t thread = map_get(&live->trace.by_tid, item->tid);
		if (thread && live->trace.threads.items[thread].process == index)
			/* without memory its slot is not reused */
			(void)vec_add(&live->ended_threads, thread);
		return;
	}
	struct process *process = &live->trace.processes.items[index];

	if (process->ended)
		return;
	end_process(live, index, item->time_ns);
}

/* The thread's slot; the slot of an ended thread is reused. */
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

uint32_t process_table_thread(struct live *live, uint32_t process, uint32_t pid, uint32_t tid)
{
	if (pid == tid || live->symbolizer.full)
		return live_main_thread(live, process);
	uint32_t thread = thread_of(live, process, pid, tid);

	if (!thread)
		return live_main_thread(live, process);
	struct thread *row = &live->trace.threads.items[thread];
	struct proc_thread facts;

	if (row->name)
		return thread;
	if (proc_read_thread(&live->proc, pid, tid, &facts) < 0) {
		row->name = live->trace.processes.items[process].name;
		return thread;
	}
	row->name = live_text(live, facts.comm, strlen(facts.comm));
	payload_thread_name(&live->writer.payload,
		&(struct payload_thread_name){ .name = facts.comm, .inner_tid = facts.inner_tid });
	session_writer_emit(&live->writer, SPOOR_THREAD_NAME,
		(struct event){ .thread_index = thread, .cpu = EVENT_CPU_UNKNOWN });
	return thread;
}

/* Frees the slots of the process and its mappings for reuse. */
static void free_process(struct live *live, uint32_t index)
{
	give_up_mappings(live, index);
	session_writer_forget_thread(&live->writer, live->trace.processes.items[index].main_thread);
	trace_forget_process(&live->trace, index);
	managed_forget(live->managed, index);
	(void)vec_add(&live->free_processes, index); /* without memory the slot is not reused */
}

/* Frees the slots of ended threads whose process still runs. */
static void bury_threads(struct live *live, const bool *dead)
{
	for (uint32_t i = 0; i < live->ended_threads.count; i++) {
		uint32_t thread = live->ended_threads.items[i];
		struct thread *row = &live->trace.threads.items[thread];
		if (!row->process || dead[row->process])
			continue;
		session_writer_forget_thread(&live->writer, thread);
		row->process = 0;
		(void)vec_add(&live->free_threads, thread); /* ignored as in free_process() */
	}
	vec_reset(&live->ended_threads);
}

/*
 * Frees the slots of ended processes and threads. Ended processes that were never written to the
 * file are freed at each flush. The others are freed in batches of at least BURY_COUNT, because
 * every table that refers to them must be scanned.
 */
void process_table_bury(struct live *live)
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
		if (managed_is_busy(live->managed, index) ||
			(kept < AWAIT_MAX && symbolizer_awaits(&live->symbolizer, index)))
			live->ended.items[kept++] = index;
		else
			dead[index] = true;
	}
	symbolizer_forget_processes(&live->symbolizer, dead, count);
	/* names that were resolved just now are events of these processes */
	session_writer_flush(&live->writer);
	if (live->writer.error)
		return;
	bury_threads(live, dead);
	for (uint32_t i = 1; i < live->trace.threads.count; i++) {
		struct thread *row = &live->trace.threads.items[i];
		if (!row->process || !dead[row->process] ||
			i == live->trace.processes.items[row->process].main_thread)
			continue;
		session_writer_forget_thread(&live->writer, i);
		row->process = 0;
		(void)vec_add(&live->free_threads, i); /* ignored as in free_process() */
	}
	for (uint32_t i = 1; i < count; i++)
		if (dead[i])
			free_process(live, i);
	live->ended.count = kept;
}
