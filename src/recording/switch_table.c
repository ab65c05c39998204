/* See switch_table.h. */
#include "recording/switch_table.h"

#include "machine/thread_state.h"
#include "pipeline/reorder_window.h"
#include "pipeline/session_writer.h"
#include "recording/process_table.h"
#include "recording/samples.h"
#include "symbolize/symbolizer.h"
#include "trace/event.h"
#include "trace/spoor_payload.h"
#include "trace/switch_state.h"
#include "trace/trace.h"

/* a thread that has exited leaves its CPU for the last time within this time */
#define ENDED_NS UINT64_C(5000000000)

static struct switch_thread *thread_of(struct switch_table *switches, uint32_t tid)
{
	uint32_t row = map_get(&switches->by_tid, tid);

	return row ? &switches->threads.items[row - 1] : NULL;
}

static uint32_t row_of(const struct switch_table *switches, const struct switch_thread *thread)
{
	return (uint32_t)(thread - switches->threads.items);
}

static struct switch_thread *new_thread(struct switch_table *switches, uint32_t process,
	uint32_t pid, uint32_t tid)
{
	struct switch_thread *thread;

	if (switches->free_rows.count) {
		uint32_t row = switches->free_rows.items[--switches->free_rows.count];
		thread = &switches->threads.items[row];
	} else {
		thread = vec_push(&switches->threads);
	}
	if (!thread)
		return NULL;
	*thread = (struct switch_thread){ .process = process, .pid = pid, .tid = tid };
	return map_put(&switches->by_tid, tid, row_of(switches, thread) + 1) ? thread : NULL;
}

static void free_thread(struct switch_table *switches, struct switch_thread *thread)
{
	map_remove(&switches->by_tid, thread->tid, row_of(switches, thread) + 1);
	thread->place = SWITCH_PLACE_FREE;
	/* without memory the row is not reused */
	(void)vec_add(&switches->free_rows, row_of(switches, thread));
}

/* The row of the thread in the file, which is made with its process at the first use. */
static uint32_t file_row(struct switch_table *switches, const struct switch_thread *thread)
{
	if (switches->table->trace->processes.items[thread->process].pid != thread->pid)
		return 0; /* the process's exit has freed its row */
	process_table_announce(switches->table, thread->process);
	return process_table_thread(switches->table, thread->process, thread->pid, thread->tid);
}

/* Requests the names of the stack's frames; returns the part of it that is sound. */
static uint32_t take_stack(struct switch_table *switches, uint32_t process, uint32_t stack_index,
	uint64_t time_ns)
{
	struct process_table *table = switches->table;

	if (!stack_index)
		return 0;
	process_table_announce(table, process);
	process_table_adopt_mappings(table, process);
	/* without memory the name is missing, and counted */
	(void)symbolizer_hit(table->symbolizer, process, stack_index, time_ns, &stack_index);
	return stack_index;
}

static void emit(struct switch_table *switches, enum known_event known, uint32_t thread,
	uint32_t stack_index, int32_t cpu)
{
	session_writer_emit(switches->table->writer, known,
		(struct event){ .thread_index = thread, .stack_index = stack_index, .cpu = cpu });
}

/* ---- blocks ---- */

static void write_waker(struct switch_table *switches, const struct switch_thread *thread)
{
	struct process_table *table = switches->table;
	uint32_t process = process_table_other(table, thread->waker_pid);

	if (!process)
		return;
	uint32_t row = process_table_thread(table, process, thread->waker_pid, thread->waker_tid);
	uint32_t stack_index =
		take_stack(switches, process, thread->waker_stack, thread->waking_ns);

	process_table_announce(table, process);
	payload_wakeup(&table->writer->payload,
		&(struct payload_wakeup){ .woken_pid = thread->pid,
			.woken_tid = thread->tid,
			.flags = thread->flags & SWITCH_WOKEN_BY_INTERRUPT });
	emit(switches, SPOOR_WAKEUP, row, stack_index, thread->waker_cpu);
}

static bool add_short(struct switch_table *switches, const struct switch_thread *thread,
	const struct payload_cswitch *block)
{
	uint32_t row = row_of(switches, thread);
	uint64_t key = hash_u64((uint64_t)row << 32 | thread->stack_index) + thread->state;
	struct short_block *sum = NULL;

	for (struct map_walk w = map_find(&switches->short_index, key); w.value; map_next(&w)) {
		struct short_block *known = &switches->short_blocks.items[w.value - 1];
		if (known->thread == row && known->stack_index == thread->stack_index &&
			known->state == thread->state)
			sum = known;
	}
	if (!sum) {
		sum = vec_push(&switches->short_blocks);
		if (!sum || !map_add(&switches->short_index, key, switches->short_blocks.count))
			return false;
		*sum = (struct short_block){
			.thread = row, .stack_index = thread->stack_index, .state = thread->state
		};
	}
	sum->value_ns += block->value;
	sum->ready_ns += block->ready_ns;
	sum->flags |= (uint8_t)(block->flags & SWITCH_READY_UNKNOWN);
	sum->count++;
	switches->short_count++;
	return true;
}

/* The thread's block as it ends at `time_ns`, split into runnable and blocked. */
static struct payload_cswitch end_block(struct switch_thread *thread, uint64_t time_ns)
{
	uint64_t value = time_ns > thread->since_ns ? time_ns - thread->since_ns : 0;
	uint64_t ready = 0;

	if (thread->state == SWITCH_PREEMPTED || thread->flags & SWITCH_NEW_THREAD)
		ready = value;
	else if (thread->waking_ns)
		ready = time_ns > thread->waking_ns ? time_ns - thread->waking_ns : 0;
	else
		thread->flags |= SWITCH_READY_UNKNOWN;
	thread->ready_ns += ready;
	thread->blocked_ns += value - ready;
	return (struct payload_cswitch){ .value = value,
		.state = thread->state,
		.ready_ns = ready,
		.waker_pid = thread->waker_pid,
		.waker_tid = thread->waker_tid,
		.flags = thread->flags };
}

static void write_block(struct switch_table *switches, struct switch_thread *thread,
	uint64_t time_ns, uint64_t late_ns, int32_t cpu)
{
	struct session_writer *writer = switches->table->writer;
	struct payload_cswitch block = end_block(thread, time_ns);

	switches->count++;
	if (block.value < switches->min_block_ns && !(block.flags & SWITCH_OFF_AT_END) &&
		add_short(switches, thread, &block))
		return;
	if (session_writer_is_full(writer)) {
		switches->samples->cut++;
		return;
	}
	uint32_t row = file_row(switches, thread);

	if (!row)
		return;
	if (switches->wakers && thread->waker_pid)
		write_waker(switches, thread);
	payload_cswitch(&writer->payload, &block);
	session_writer_emit(writer, EVENTS_CSWITCH,
		(struct event){ .time_ns = time_ns,
			.value = block.value,
			.thread_index = row,
			.stack_index = thread->stack_index,
			.late_ns = late_ns > UINT32_MAX ? UINT32_MAX : (uint32_t)late_ns,
			.cpu = cpu });
	session_writer_relieve(writer); /* the next flush resolves the names */
}

static void write_short_blocks(struct switch_table *switches)
{
	for (uint32_t i = 0; i < switches->short_blocks.count; i++) {
		const struct short_block *sum = &switches->short_blocks.items[i];
		const struct switch_thread *thread = &switches->threads.items[sum->thread];
		if (session_writer_is_full(switches->table->writer)) {
			switches->samples->cut += sum->count;
			continue;
		}
		uint32_t row = file_row(switches, thread);
		if (!row)
			continue;
		payload_short_blocks(&switches->table->writer->payload,
			&(struct payload_short_blocks){ .value = sum->value_ns,
				.count = sum->count,
				.state = sum->state,
				.ready_ns = sum->ready_ns,
				.flags = sum->flags });
		emit(switches, SPOOR_SHORT_BLOCKS, row, sum->stack_index, EVENT_CPU_UNKNOWN);
	}
	vec_reset(&switches->short_blocks);
	map_reset(&switches->short_index);
}

/* ---- places ---- */

static void leave_cpu(struct switch_table *switches, struct switch_thread *thread,
	const struct pending *item)
{
	/* Off already: a record was lost, or the kernel wrote this one twice. */
	thread->run_ns += item->time_ns - thread->since_ns;
	thread->place = SWITCH_PLACE_OFF;
	thread->since_ns = item->time_ns;
	thread->switches++;
	thread->state = (uint8_t)(item->value & ~(uint64_t)SWITCH_CAME_UNSEEN);
	thread->flags = 0;
	thread->waking_ns = 0;
	thread->waker_pid = thread->waker_tid = 0;
	thread->stack_index =
		take_stack(switches, thread->process, item->stack_index, item->time_ns);
}

void switch_table_note_ready(struct switch_table *switches, uint32_t tid)
{
	(void)map_put(&switches->ready, tid, 1); /* without memory it counts as blocked */
}

void switch_table_begin(struct switch_table *switches, const uint32_t *pids, size_t count)
{
	struct proc_reader *proc = &switches->table->proc;

	for (size_t i = 0; i < count; i++) {
		struct id_list list = { 0 };
		(void)proc_list_threads(proc, pids[i], &list); /* at worst it has ended */
		vec_each(tid, &list.ids)
			if (thread_state_can_run(proc, pids[i], *tid))
				switch_table_note_ready(switches, *tid);
		vec_done(&list.ids);
	}
}

void switch_table_switch(struct switch_table *switches, const struct pending *item,
	uint64_t late_ns)
{
	struct switch_thread *thread = thread_of(switches, item->tid);

	if (process_table_is_before_exec(switches->table, item))
		return;
	if (!thread) { /* it lived before the recording began, or its fork record was lost */
		uint32_t process = process_table_owner(switches->table, item->pid);
		thread = process ? new_thread(switches, process, item->pid, item->tid) : NULL;
		if (!thread)
			return;
		thread->begin_ns = switches->table->writer->begin_ns;
		if (item->pid == switches->table->command_pid && switches->table->filter_by_pid)
			thread->begin_ns = switches->table->command_exec_ns;
		thread->since_ns = thread->begin_ns;
		thread->place = item->flag ? SWITCH_PLACE_ON : SWITCH_PLACE_OFF;
		thread->flags = SWITCH_OFF_BEFORE;
		if (!item->flag && map_get(&switches->ready, item->tid))
			thread->waking_ns = thread->begin_ns;
		map_remove(&switches->ready, item->tid, 1);
	}
	if (thread->place == SWITCH_PLACE_ENDED)
		return;
	if (item->time_ns < thread->since_ns)
		return; /* before the recording began */
	uint32_t process = process_table_find(switches->table, item->pid);

	if (process) /* another one after an exec */
		thread->process = process;
	if (item->flag) {
		/* It left another CPU after the last known time of the CPU to which it came. */
		if (thread->place == SWITCH_PLACE_OFF && item->value & SWITCH_CAME_UNSEEN) {
			write_block(switches, thread, item->time_ns, late_ns, item->cpu);
			thread->since_ns = item->time_ns;
		}
		leave_cpu(switches, thread, item);
		return;
	}
	if (thread->place == SWITCH_PLACE_ON)
		return; /* the record of its leaving was lost */
	write_block(switches, thread, item->time_ns, late_ns, item->cpu);
	thread->place = SWITCH_PLACE_ON;
	thread->since_ns = item->time_ns;
}

void switch_table_waking(struct switch_table *switches, const struct pending *item)
{
	struct switch_thread *thread = thread_of(switches, (uint32_t)item->value);

	if (!thread || thread->place != SWITCH_PLACE_OFF || thread->waking_ns ||
		thread->state == SWITCH_PREEMPTED || item->time_ns < thread->since_ns)
		return;
	thread->waking_ns = item->time_ns;
	if (item->flag || !item->pid) {
		thread->flags |= SWITCH_WOKEN_BY_INTERRUPT;
		return;
	}
	thread->waker_pid = item->pid;
	thread->waker_tid = item->tid;
	thread->waker_stack = item->stack_index;
	thread->waker_cpu = item->cpu;
}

void switch_table_fork(struct switch_table *switches, const struct pending *item)
{
	struct switch_thread *old = thread_of(switches, item->tid);
	uint32_t process = process_table_find(switches->table, item->pid);

	if (old && old->begin_ns == item->time_ns)
		return; /* the kernel wrote the record twice */
	if (old)        /* its exit was lost */
		free_thread(switches, old);
	if (!process || process_table_owner(switches->table, item->pid) != process)
		return;
	struct switch_thread *thread = new_thread(switches, process, item->pid, item->tid);

	if (!thread)
		return;
	thread->begin_ns = thread->since_ns = item->time_ns;
	thread->place = SWITCH_PLACE_OFF;
	thread->flags = SWITCH_NEW_THREAD;
}

static void write_time(struct switch_table *switches, struct switch_thread *thread, uint64_t end_ns,
	bool ended)
{
	if (thread->place == SWITCH_PLACE_ON && end_ns > thread->since_ns)
		thread->run_ns += end_ns - thread->since_ns;
	if (session_writer_is_full(switches->table->writer))
		return;
	uint32_t row = file_row(switches, thread);

	if (!row)
		return;
	payload_thread_time(&switches->table->writer->payload,
		&(struct payload_thread_time){ .begin_ns = thread->begin_ns,
			.run_ns = thread->run_ns,
			.ready_ns = thread->ready_ns,
			.blocked_ns = thread->blocked_ns,
			.switches = thread->switches,
			.ended = ended });
	emit(switches, SPOOR_THREAD_TIME, row, 0, EVENT_CPU_UNKNOWN);
}

void switch_table_exec(struct switch_table *switches, const struct pending *item)
{
	struct switch_thread *thread = thread_of(switches, item->tid);
	uint32_t process = process_table_find(switches->table, item->pid);

	if (!thread || !process || thread->process == process ||
		thread->place == SWITCH_PLACE_ENDED)
		return;
	write_short_blocks(switches);
	write_time(switches, thread, item->time_ns, true);
	*thread = (struct switch_thread){ .process = process,
		.pid = thread->pid,
		.tid = thread->tid,
		.begin_ns = item->time_ns,
		.since_ns = item->time_ns,
		.place = SWITCH_PLACE_ON };
}

void switch_table_exit(struct switch_table *switches, const struct pending *item)
{
	struct switch_thread *thread = thread_of(switches, item->tid);

	if (!thread || thread->place == SWITCH_PLACE_ENDED)
		return;
	if (thread->place == SWITCH_PLACE_OFF) /* it came back to exit, and that record was lost */
		write_block(switches, thread, item->time_ns, 0, item->cpu);
	write_short_blocks(switches); /* before its time, which includes them */
	write_time(switches, thread, item->time_ns, true);
	thread->place = SWITCH_PLACE_ENDED;
	thread->since_ns = item->time_ns;
}

/* ---- flush and end ---- */

/* Frees the rows of ended threads, whose last records have come by now. */
static void free_ended(struct switch_table *switches)
{
	uint64_t now_ns = switches->table->writer->window->watermark_ns;

	for (uint32_t i = 0; i < switches->threads.count; i++) {
		struct switch_thread *thread = &switches->threads.items[i];
		if (thread->place == SWITCH_PLACE_ENDED && now_ns > thread->since_ns + ENDED_NS)
			free_thread(switches, thread);
	}
}

void switch_table_flush(struct switch_table *switches)
{
	write_short_blocks(switches);
	free_ended(switches);
}

void switch_table_end(struct switch_table *switches, uint64_t end_ns)
{
	for (uint32_t i = 0; i < switches->threads.count; i++) {
		struct switch_thread *thread = &switches->threads.items[i];
		if (thread->place != SWITCH_PLACE_OFF || end_ns <= thread->since_ns)
			continue;
		thread->flags |= SWITCH_OFF_AT_END;
		write_block(switches, thread, end_ns, 0, EVENT_CPU_UNKNOWN);
	}
	write_short_blocks(switches);
	for (uint32_t i = 0; i < switches->threads.count; i++)
		if (switches->threads.items[i].place == SWITCH_PLACE_ON ||
			switches->threads.items[i].place == SWITCH_PLACE_OFF)
			write_time(switches, &switches->threads.items[i], end_ns, false);
}

static uint32_t move_stack(const struct stack_table *stacks, struct stack_table *fresh,
	uint32_t stack_index)
{
	uint32_t count;
	const uint64_t *frames = stack_table_get(stacks, stack_index, &count);

	return stack_table_intern(fresh, frames, count);
}

void switch_table_move_stacks(struct switch_table *switches, struct stack_table *fresh)
{
	const struct stack_table *stacks = &switches->table->trace->stacks;

	for (uint32_t i = 0; i < switches->threads.count; i++) {
		struct switch_thread *thread = &switches->threads.items[i];
		thread->stack_index = move_stack(stacks, fresh, thread->stack_index);
		thread->waker_stack = move_stack(stacks, fresh, thread->waker_stack);
	}
}

size_t switch_table_size_bytes(const struct switch_table *switches)
{
	return switches->threads.capacity * sizeof(struct switch_thread) +
	       switches->short_blocks.capacity * sizeof(struct short_block) +
	       map_size_bytes(&switches->by_tid) + map_size_bytes(&switches->ready) +
	       map_size_bytes(&switches->short_index);
}

void switch_table_done(struct switch_table *switches)
{
	vec_done(&switches->threads);
	vec_done(&switches->free_rows);
	vec_done(&switches->short_blocks);
	map_done(&switches->by_tid);
	map_done(&switches->ready);
	map_done(&switches->short_index);
}
