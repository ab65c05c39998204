/* See process_table.h. */
#include "recording/process_table.h"

#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "dotnet/port.h"
#include "pipeline/reorder_window.h"
#include "pipeline/session_writer.h"
#include "recording/live_options.h"
#include "recording/managed.h"
#include "recording/throttling.h"
#include "symbolize/symbolizer.h"
#include "trace/event.h"
#include "trace/spoor_payload.h"
#include "trace/trace.h"

/* ended processes that are kept because the symbol worker still resolves their names */
#define AWAIT_MAX  256u
#define BURY_COUNT 512u
/* a starting runtime connects to the listen port about 20 ms after its start */
#define PORT_GRACE_NS UINT64_C(1000000000)

struct live_process *process_table_entry(struct process_table *table, uint32_t process)
{
	while (table->rows.count <= process)
		if (!vec_push(&table->rows))
			return NULL;
	return &table->rows.items[process];
}

static bool is_wanted_pid(const struct process_table *table, uint32_t pid)
{
	if (table->options->machine)
		return true;
	for (size_t i = 0; i < table->options->pid_count; i++)
		if (table->options->pids[i] == pid)
			return true;
	/* With other targets, the command is not recorded; its exit only ends the recording. */
	return !table->options->pid_count && table->command_pid && pid == table->command_pid;
}

/* Creates the entry of a new process with this pid. The slot of a freed process is reused. */
static uint32_t new_process(struct process_table *table, uint32_t pid)
{
	struct trace *trace = table->trace;
	uint32_t index;

	if (table->free_processes.count) {
		index = table->free_processes.items[--table->free_processes.count];
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
	struct live_process *own = index ? process_table_entry(table, index) : NULL;

	if (!own)
		return 0;
	*own = (struct live_process){ .wanted = is_wanted_pid(table, pid) };
	trace->processes.items[index].begin_ns = table->writer->window->watermark_ns;
	return index;
}

uint32_t process_table_find(const struct process_table *table, uint32_t pid)
{
	uint32_t index = trace_find_process(table->trace, pid);

	/* The slot may have been reused for another pid. */
	return index && table->trace->processes.items[index].pid == pid ? index : 0;
}

uint32_t process_table_process(struct process_table *table, uint32_t pid)
{
	uint32_t index = process_table_find(table, pid);

	return index ? index : new_process(table, pid);
}

static void watch_if_managed(struct process_table *table, uint32_t process, const char *path)
{
	unsigned signs = dotnet_signs_of_path(path);
	struct symbolizer_process *own;

	if (table->options->names_from_memory && dotnet_signs_worth_asking(signs) &&
		(own = symbolizer_process(table->symbolizer, process)) != NULL)
		managed_state_enter(&own->managed, MANAGED_REFUSED);
	if (table->options->no_dotnet || table->options->no_names ||
		!dotnet_signs_worth_asking(signs))
		return;
	if (table->filter_by_pid && !table->rows.items[process].wanted)
		return; /* not recorded: it only woke a thread that is */
	/*
	 * A process that starts during the recording may still connect to the listen port. A
	 * session opened before that would miss the start of its runtime.
	 */
	const struct process *facts = &table->trace->processes.items[process];
	bool may_come = table->options->reverse && (facts->begin_ns >= table->writer->begin_ns ||
							   facts->pid == table->command_pid);

	if (table->writer->end_ns)
		managed_miss(table->managed, process);
	else
		managed_watch(table->managed, process,
			clock_monotonic_ns() + (may_come ? PORT_GRACE_NS : 0));
}

void process_table_add_mapping(struct process_table *table, uint32_t process,
	const struct pending_mapping *in, uint64_t time_ns)
{
	struct trace *trace = table->trace;
	struct process *owner = &trace->processes.items[process];
	uint32_t index = 0;

	if (table->symbolizer->full)
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
	if (table->free_mappings.count) {
		index = table->free_mappings.items[table->free_mappings.count - 1];
		if (!vec_add(&owner->mappings, index))
			return;
		table->free_mappings.count--;
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
	watch_if_managed(table, process, strtab_get(&trace->strings, in->path));
}

struct scan {
	struct process_table *table;
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
		.path = strtab_add(&scan->table->trace->strings, mapping->path, mapping->path_len),
	};

	if (!mapping->path_len)
		/* the name that kernel records use */
		in.path = trace_add_text(scan->table->trace, "//anon");
	process_table_add_mapping(scan->table, scan->process, &in, scan->time_ns);
	if (scan->table->mapped)
		scan->table->mapped(scan->table->mapped_context,
			scan->table->trace->processes.items[scan->process].pid, mapping->path);
	return 0;
}

/* Copies a process's identity and mappings from /proc into the tables. */
static void take_process(struct process_table *table, uint32_t pid,
	const struct proc_process *facts)
{
	uint32_t index = process_table_process(table, pid);

	if (!index)
		return;
	struct process *process = &table->trace->processes.items[index];

	process->parent_pid = facts->parent_pid;
	process->inner_pid = facts->inner_pid;
	process->uid = facts->uid;
	process->existed = true;
	process->name = strtab_add(&table->trace->strings, facts->comm, strlen(facts->comm));
	process->begin_ns = facts->start_ns;
	uint32_t parent = process_table_find(table, facts->parent_pid);

	if (parent && table->rows.items[parent].wanted)
		table->rows.items[index].wanted = true;
	uint64_t now_ns = clock_monotonic_ns();

	table->rows.items[index].read_ns = now_ns;
	if (facts->kernel_thread)
		return;
	struct scan scan = { .table = table, .process = index, .time_ns = now_ns };

	/* without permission, or after its exit, its frames stay unnamed and are counted */
	(void)proc_read_maps(&table->proc, pid, on_mapping, &scan);
}

/* A process that has ended meanwhile gets no entry. */
static void read_process(struct process_table *table, uint32_t pid)
{
	struct proc_process facts;

	if (proc_read(&table->proc, pid, &facts) == 0)
		take_process(table, pid, &facts);
}

void process_table_read_mappings(struct process_table *table, uint32_t process)
{
	struct scan scan = { .table = table, .process = process, .time_ns = clock_monotonic_ns() };

	/* ignored as in take_process() */
	(void)proc_read_maps(&table->proc, table->trace->processes.items[process].pid, on_mapping,
		&scan);
}

/* Adds the process if it is a target or the child of a recorded process. 0: it is neither. */
static uint32_t take_if_wanted(struct process_table *table, uint32_t pid,
	const struct proc_process *facts)
{
	uint32_t parent = process_table_find(table, facts->parent_pid);

	if (!is_wanted_pid(table, pid) && !(parent && table->rows.items[parent].wanted))
		return 0;
	take_process(table, pid, facts);
	uint32_t process = process_table_find(table, pid);

	return process && table->rows.items[process].wanted ? process : 0;
}

uint32_t process_table_look(struct process_table *table, uint32_t pid)
{
	struct proc_process facts;

	return proc_read(&table->proc, pid, &facts) == 0 ? take_if_wanted(table, pid, &facts) : 0;
}

/*
 * Decides about a process that has no fork record: it started before the rings, or its record was
 * lost. A target or a child of a recorded process that started after the recording began is
 * recorded. Every other process is added to the pid filter.
 */
static uint32_t judge(struct process_table *table, uint32_t pid)
{
	struct proc_process facts;
	uint32_t process = 0;

	if (proc_read(&table->proc, pid, &facts) == 0 && facts.start_ns >= table->writer->begin_ns)
		process = take_if_wanted(table, pid, &facts);
	if (!process)
		pid_filter_add(&table->filter, pid);
	return process;
}

uint32_t process_table_owner(struct process_table *table, uint32_t pid)
{
	if (!table->filter_by_pid)
		return process_table_process(table, pid);
	uint32_t process = process_table_find(table, pid);

	if (!process && !pid_filter_has(&table->filter, pid))
		process = judge(table, pid);
	return process && table->rows.items[process].wanted ? process : 0;
}

uint32_t process_table_other(struct process_table *table, uint32_t pid)
{
	uint32_t process = process_table_owner(table, pid);

	if (process)
		return process;
	process = process_table_find(table, pid);
	if (!process) {
		read_process(table, pid);
		process = process_table_find(table, pid);
	}
	return process;
}

bool process_table_is_before_exec(const struct process_table *table, const struct pending *item)
{
	return item->pid == table->command_pid && table->filter_by_pid &&
	       item->time_ns < table->command_exec_ns;
}

bool process_table_is_foreign(struct process_table *table, uint32_t pid)
{
	struct proc_process facts;

	if (!table->filter_by_pid || process_table_find(table, pid) ||
		proc_read(&table->proc, pid, &facts) < 0 ||
		facts.start_ns >= table->writer->begin_ns)
		return false;
	pid_filter_add(&table->filter, pid);
	return true;
}

/* Adds the descendants of a command that already runs. Repeats until a pass adds no process. */
static void find_descendants(struct process_table *table, const struct id_list *list)
{
	bool found;

	do {
		found = false;
		for (uint32_t i = 0; i < list->ids.count; i++)
			found |= !process_table_find(table, list->ids.items[i]) &&
				 process_table_look(table, list->ids.items[i]);
	} while (found);
}

void process_table_scan(struct process_table *table)
{
	struct id_list list = { 0 };

	if (!table->options->machine) {
		for (size_t i = 0; i < table->options->pid_count; i++)
			read_process(table, table->options->pids[i]);
		if (table->command_pid && !table->options->pid_count)
			read_process(table, table->command_pid);
		if (table->options->late_start && table->command_pid &&
			!table->options->pid_count && proc_list(&table->proc, &list, NULL) == 0)
			find_descendants(table, &list);
	} else if (proc_list(&table->proc, &list, NULL) == 0) {
		for (uint32_t i = 0; i < list.ids.count; i++)
			read_process(table, list.ids.items[i]);
	}
	vec_done(&list.ids);
}

/* Writes the process's first events: name, facts and command line. */
/* Its last sample came after its end: it is counted by its own events now. */
static void count_no_more(struct process_table *table, uint32_t index)
{
	struct live_process *own = &table->rows.items[index];
	struct live_process *parent = &table->rows.items[own->counted_by];
	const struct process *process = &table->trace->processes.items[index];
	uint64_t life_ns =
		process->end_ns > process->begin_ns ? process->end_ns - process->begin_ns : 0;

	if (own->counted_by && parent->other_children) {
		parent->other_children--;
		parent->other_lives_ns -=
			life_ns < parent->other_lives_ns ? life_ns : parent->other_lives_ns;
	}
	own->counted_by = 0;
}

void process_table_announce(struct process_table *table, uint32_t index)
{
	struct live_process *own = &table->rows.items[index];
	const struct process *process = &table->trace->processes.items[index];

	if (own->announced)
		return;
	own->announced = true;
	count_no_more(table, index);
	uint64_t groups_hash =
		session_writer_process(table->writer, process->ended ? NULL : &table->proc, index,
			(process->existed || own->follows_exec ? 0 : SESSION_PROCESS_CREATED) |
				(table->options->no_arguments ? SESSION_PROCESS_NO_ARGUMENTS : 0));

	if (groups_hash)
		throttling_look(table->throttling, index, groups_hash);
}

/* Copies to a process the mappings that it has shared with its parent since fork. */
void process_table_adopt_mappings(struct process_table *table, uint32_t index)
{
	struct live_process *own = &table->rows.items[index];
	uint32_t parent = own->fork_parent;

	if (!parent)
		return;
	own->fork_parent = 0;
	for (uint32_t i = 0; i < own->fork_end; i++) {
		const struct process *from = &table->trace->processes.items[parent];
		if (i >= from->mappings.count)
			break; /* the parent's mapping list was cleared */
		const struct mapping *mapping =
			&table->trace->mappings.items[from->mappings.items[i]];
		struct pending_mapping in = {
			.begin = mapping->begin,
			.end = mapping->end,
			.file_offset = mapping->file_offset,
			.device = mapping->device,
			.inode = mapping->inode,
			.path = mapping->path,
			.build_id = mapping->build_id,
		};
		process_table_add_mapping(table, index, &in, mapping->from_ns);
	}
}

/* Marks the process as ended in the tables. Its pid may already belong to another process. */
static void end_life(struct process_table *table, uint32_t index, uint64_t time_ns)
{
	struct process *process = &table->trace->processes.items[index];

	process->ended = true;
	process->end_ns = time_ns;
	managed_process_ended(table->managed, index);
	(void)vec_add(&table->ended, index); /* without memory its slot is not reused */
}

/* Counts a process that has no event for its parent. */
static void count_other(struct process_table *table, uint32_t index, uint64_t until_ns)
{
	const struct process *process = &table->trace->processes.items[index];
	uint32_t parent = process_table_find(table, process->parent_pid);

	if (process->existed || table->rows.items[index].follows_exec || !parent)
		return;
	table->rows.items[parent].other_children++;
	table->rows.items[index].counted_by = parent;
	if (until_ns > process->begin_ns)
		table->rows.items[parent].other_lives_ns += until_ns - process->begin_ns;
}

static void tell_others(struct process_table *table, uint32_t index)
{
	struct live_process *own = &table->rows.items[index];

	if (!own->announced || !own->other_children || session_writer_is_full(table->writer))
		return;
	payload_other_children(&table->writer->payload,
		&(struct payload_other_children){
			.count = own->other_children, .life_ns = own->other_lives_ns });
	session_writer_emit_about(table->writer, SPOOR_OTHER_CHILDREN, index);
	own->other_children = 0;
	own->other_lives_ns = 0;
}

void process_table_tell_others(struct process_table *table, uint64_t end_ns)
{
	for (uint32_t i = 1; i < table->rows.count && i < table->trace->processes.count; i++)
		if (!table->trace->processes.items[i].ended && !table->rows.items[i].announced &&
			table->trace->processes.items[i].pid)
			count_other(table, i, end_ns);
	for (uint32_t i = 1; i < table->rows.count && i < table->trace->processes.count; i++)
		if (!table->trace->processes.items[i].ended)
			tell_others(table, i);
}

/* As end_life(); an announced process also gets its exit event in the file. */
static void end_process(struct process_table *table, uint32_t index, uint64_t time_ns)
{
	end_life(table, index, time_ns);
	if (!table->rows.items[index].announced) {
		count_other(table, index, time_ns);
		return;
	}
	tell_others(table, index);
	session_writer_emit_about(table->writer, SYSTEM_PROCESS_EXIT, index);
}

void process_table_fork(struct process_table *table, const struct pending *item)
{
	uint32_t parent_pid = (uint32_t)(item->value >> 32);

	if (item->pid == parent_pid) /* a new thread */
		return;
	uint32_t old = process_table_find(table, item->pid);

	if (old && (table->rows.items[old].read_ns >= item->time_ns))
		return; /* the /proc reading is newer */
	uint32_t parent = process_table_find(table, parent_pid);

	if (table->filter_by_pid && !(parent && table->rows.items[parent].wanted)) {
		pid_filter_add(&table->filter, item->pid);
		if (old) /* a recorded process had this pid before */
			map_remove(&table->trace->by_pid, item->pid, old);
		if (old && !table->trace->processes.items[old].ended)
			end_process(table, old, item->time_ns);
		return;
	}
	uint32_t index = new_process(table, item->pid);

	if (!index)
		return;
	struct process *process = &table->trace->processes.items[index];
	struct live_process *own = &table->rows.items[index];

	process->parent_pid = parent_pid;
	process->begin_ns = item->time_ns;
	if (!parent)
		return;
	const struct process *from = &table->trace->processes.items[parent];

	process->name = from->name;
	process->uid = from->uid;
	own->wanted |= table->rows.items[parent].wanted;
	const struct live_process *parents = &table->rows.items[parent];

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
static void give_up_mappings(struct process_table *table, uint32_t index)
{
	struct process *process;

	for (uint32_t i = 1; i < table->rows.count; i++) /* forked processes that share them */
		if (table->rows.items[i].fork_parent == index)
			process_table_adopt_mappings(table, i);
	process = &table->trace->processes.items[index];
	for (uint32_t i = 0; i < process->mappings.count; i++)
		(void)vec_add(&table->free_mappings, process->mappings.items[i]);
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
static uint32_t next_life(struct process_table *table, uint32_t old, const struct pending *item)
{
	end_life(table, old, item->time_ns);
	uint32_t index = new_process(table, item->pid);

	if (!index)
		return 0;
	const struct process *before = &table->trace->processes.items[old];
	struct process *process = &table->trace->processes.items[index];

	process->parent_pid = before->parent_pid;
	process->inner_pid = before->inner_pid;
	process->uid = before->uid;
	process->begin_ns = item->time_ns;
	process->name = (uint32_t)item->value;
	table->rows.items[index].wanted |= table->rows.items[old].wanted;
	table->rows.items[index].follows_exec = true;
	return index;
}

/* `inner_tid` 0: not known. Of a main thread it is the process's name as well. */
static void write_thread_name(struct process_table *table, uint32_t thread, const char *name,
	uint32_t inner_tid)
{
	if (session_writer_is_full(table->writer))
		return;
	payload_thread_name(&table->writer->payload,
		&(struct payload_thread_name){ .name = name, .inner_tid = inner_tid });
	session_writer_emit(table->writer, SPOOR_THREAD_NAME,
		(struct event){ .thread_index = thread, .cpu = EVENT_CPU_UNKNOWN });
}

void process_table_comm(struct process_table *table, const struct pending *item)
{
	uint32_t index = process_table_owner(table, item->pid);

	if (item->flag && item->pid == table->command_pid && item->time_ns < table->command_exec_ns)
		table->command_exec_ns = item->time_ns;
	if (!index || table->rows.items[index].read_ns >= item->time_ns)
		return;
	struct process *process = &table->trace->processes.items[index];
	struct live_process *own = &table->rows.items[index];

	if (item->flag && own->announced) {
		index = next_life(table, index, item);
		if (!index)
			return;
	} else if (item->flag) { /* no sample of the old program was written */
		give_up_mappings(table, index);
		own->fork_parent = 0;
		process->executable = 0;
		process->name = (uint32_t)item->value;
	} else if (item->tid == item->pid) {
		process->name = (uint32_t)item->value;
	}
	if (item->flag) {
		table->rows.items[index].exec_ns = item->time_ns;
		table->rows.items[index].start_steps = 0;
	}
	uint32_t thread = map_get(&table->trace->by_tid, item->tid);

	if (!thread || table->trace->threads.items[thread].process != index)
		return;
	bool other = table->trace->threads.items[thread].name != (uint32_t)item->value;

	table->trace->threads.items[thread].name = (uint32_t)item->value;
	/* The name that it had before is in the file already. */
	if (other && !item->flag && table->rows.items[index].announced)
		write_thread_name(table, thread, trace_text(table->trace, (uint32_t)item->value),
			0);
}

void process_table_exit(struct process_table *table, const struct pending *item)
{
	uint32_t index = process_table_find(table, item->pid);

	if (!index)
		return;
	if (item->pid != item->tid) {
		uint32_t thread = map_get(&table->trace->by_tid, item->tid);
		if (thread && table->trace->threads.items[thread].process == index)
			/* without memory its slot is not reused */
			(void)vec_add(&table->ended_threads, thread);
		return;
	}
	struct process *process = &table->trace->processes.items[index];

	if (process->ended)
		return;
	end_process(table, index, item->time_ns);
}

/* The thread's slot; the slot of an ended thread is reused. */
static uint32_t thread_of(struct process_table *table, uint32_t process, uint32_t pid, uint32_t tid)
{
	struct trace *trace = table->trace;
	uint32_t index = map_get(&trace->by_tid, tid);

	if (index && trace->threads.items[index].process == process)
		return index;
	if (!table->free_threads.count)
		return trace_thread(trace, pid, tid);
	index = table->free_threads.items[table->free_threads.count - 1];
	table->free_threads.count--;
	return trace_reuse_thread(trace, index, process, tid) ? index : 0;
}

uint32_t process_table_thread(struct process_table *table, uint32_t process, uint32_t pid,
	uint32_t tid)
{
	if (pid == tid || table->symbolizer->full)
		return table->trace->processes.items[process].main_thread;
	uint32_t thread = thread_of(table, process, pid, tid);

	if (!thread)
		return table->trace->processes.items[process].main_thread;
	struct thread *row = &table->trace->threads.items[thread];
	struct proc_thread facts;

	if (row->name)
		return thread;
	if (proc_read_thread(&table->proc, pid, tid, &facts) < 0) {
		row->name = table->trace->processes.items[process].name;
		return thread;
	}
	row->name = strtab_add(&table->trace->strings, facts.comm, strlen(facts.comm));
	write_thread_name(table, thread, facts.comm, facts.inner_tid);
	return thread;
}

/* Frees the slots of the process and its mappings for reuse. */
static void free_process(struct process_table *table, uint32_t index)
{
	give_up_mappings(table, index);
	session_writer_forget_thread(table->writer,
		table->trace->processes.items[index].main_thread);
	trace_forget_process(table->trace, index);
	managed_forget(table->managed, index);
	(void)vec_add(&table->free_processes, index); /* without memory the slot is not reused */
}

/* Frees the slots of ended threads whose process still runs. */
static void bury_threads(struct process_table *table, const bool *dead)
{
	for (uint32_t i = 0; i < table->ended_threads.count; i++) {
		uint32_t thread = table->ended_threads.items[i];
		struct thread *row = &table->trace->threads.items[thread];
		if (!row->process || dead[row->process])
			continue;
		session_writer_forget_thread(table->writer, thread);
		row->process = 0;
		(void)vec_add(&table->free_threads, thread); /* ignored as in free_process() */
	}
	vec_reset(&table->ended_threads);
}

/*
 * Frees the slots of ended processes and threads. Ended processes that were never written to the
 * file are freed at each flush. The others are freed in batches of at least BURY_COUNT, because
 * every table that refers to them must be scanned.
 */
void process_table_bury(struct process_table *table)
{
	uint32_t kept = 0;
	uint32_t count = table->trace->processes.count;

	for (uint32_t i = 0; i < table->ended.count; i++) {
		uint32_t index = table->ended.items[i];
		if (table->rows.items[index].announced || managed_is_busy(table->managed, index))
			table->ended.items[kept++] = index;
		else
			free_process(table, index);
	}
	table->ended.count = kept;
	if (kept + table->ended_threads.count < BURY_COUNT)
		return;
	cleanup(freep) bool *dead = calloc(count, sizeof(*dead));

	if (!dead)
		return;
	kept = 0;
	for (uint32_t i = 0; i < table->ended.count; i++) {
		uint32_t index = table->ended.items[i];
		if (managed_is_busy(table->managed, index) ||
			(kept < AWAIT_MAX && symbolizer_awaits(table->symbolizer, index)))
			table->ended.items[kept++] = index;
		else
			dead[index] = true;
	}
	symbolizer_forget_processes(table->symbolizer, dead, count);
	/* names that were resolved just now are events of these processes */
	session_writer_flush(table->writer);
	if (table->writer->error)
		return;
	bury_threads(table, dead);
	for (uint32_t i = 1; i < table->trace->threads.count; i++) {
		struct thread *row = &table->trace->threads.items[i];
		if (!row->process || !dead[row->process] ||
			i == table->trace->processes.items[row->process].main_thread)
			continue;
		session_writer_forget_thread(table->writer, i);
		row->process = 0;
		(void)vec_add(&table->free_threads, i); /* ignored as in free_process() */
	}
	for (uint32_t i = 1; i < count; i++)
		if (dead[i])
			free_process(table, i);
	table->ended.count = kept;
}

void process_table_done(struct process_table *table)
{
	proc_close(&table->proc);
	vec_done(&table->rows);
	pid_filter_done(&table->filter);
	vec_done(&table->free_processes);
	vec_done(&table->free_threads);
	vec_done(&table->free_mappings);
	vec_done(&table->ended);
	vec_done(&table->ended_threads);
}
