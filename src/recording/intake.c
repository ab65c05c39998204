/* See intake.h. */
#include "recording/intake.h"

#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/clocks.h"
#include "base/text.h"
#include "code/arch.h"
#include "code/unwind_state.h"
#include "code/unwind_trace.h"
#include "perf/known_block.h"
#include "perf/recorder.h"
#include "perf/ring.h"
#include "perf/sched_probe.h"
#include "perf/switch_ring.h"
#include "pipeline/reorder_window.h"
#include "recording/block_stacks.h"
#include "recording/frame_walk.h"
#include "recording/kernel_returns.h"
#include "recording/live_options.h"
#include "recording/live_usdt.h"
#include "recording/live_user_events.h"
#include "recording/managed_frames.h"
#include "recording/memory_names.h"
#include "recording/process_table.h"
#include "recording/samples.h"
#include "recording/stack_unwinder.h"
#include "recording/switch_table.h"
#include "trace/spoor_payload.h"
#include "trace/switch_state.h"
#include "trace/trace.h"

/* of the kernel's stack, of the functions that call the program of sched_probe.h */
#define OWN_WORDS 64u

static uint32_t build_id_text(struct intake *intake, const uint8_t *id, size_t size)
{
	char text[2 * PERF_BUILD_ID_MAX];

	return strtab_add(&intake->trace->strings, text,
		text_put_hex(text, id, size < PERF_BUILD_ID_MAX ? size : PERF_BUILD_ID_MAX));
}

static void take_mapping(struct intake *intake, const struct perf_record *record)
{
	struct pending_mapping *side;

	if (record->type == PERF_TYPE_MMAP2 && !(record->protection & PERF_PROT_EXEC))
		return;
	if (record->misc & PERF_MISC_MMAP_DATA || record->pid == UINT32_MAX || !record->length)
		return;
	side = calloc(1, sizeof(*side));
	struct pending *item = side ? reorder_window_add(intake->window) : NULL;

	if (!item) {
		free(side);
		return;
	}
	bool deleted;
	size_t len = proc_strip_deleted(record->text, record->text_len, &deleted);

	side->begin = record->address;
	side->end = record->address + record->length;
	side->file_offset = record->file_offset;
	side->path = strtab_add(&intake->trace->strings, record->text, len);
	if (record->build_id_size) {
		side->build_id = build_id_text(intake, record->build_id, record->build_id_size);
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
	if (intake->usdt)
		live_usdt_note(intake->usdt, record->pid, side->path);
	if (intake->memory)
		memory_names_sign(intake->memory, record->pid,
			strtab_get(&intake->trace->strings, side->path));
}

static bool replace_frames(struct intake *intake, const struct perf_record *record,
	uint64_t *frames, struct perf_callchain *chain, enum unwind_end *ret_end)
{
	return stack_unwinder_replace(intake->unwinder, record, frames, chain->kernel_count,
		&chain->count, INTAKE_FRAMES_MAX, ret_end, &intake->stack_end);
}

/* Unwinds the sample as if its copy were small, into small_frames. Returns the number of frames. */
static uint32_t unwind_small(struct intake *intake, const struct perf_record *record,
	struct perf_callchain chain)
{
	struct perf_record small = *record;
	enum unwind_end end;

	if (small.user_stack_size > COPY_SIZE_SMALL)
		small.user_stack_size = COPY_SIZE_SMALL;
	memcpy(intake->small_frames, intake->frames, chain.count * sizeof(uint64_t));
	return replace_frames(intake, &small, intake->small_frames, &chain, &end) ? chain.count : 0;
}

static void choose_copies(struct intake *intake, bool missing)
{
	if (copy_size_note(&intake->copy_size, missing) &&
		!recorder_copy_small(intake->recorder, intake->copy_size.small))
		intake->copies_vary = false;
}

/*
 * Replaces the user frames of the chain by those found in the copy of the stack. Returns what
 * SAMPLES_END_SHIFT describes.
 */
static uint64_t unwind_chain(struct intake *intake, const struct perf_record *record,
	struct perf_callchain *chain)
{
	struct copy_size *size = &intake->copy_size;
	enum unwind_end end;

	if (!intake->unwinder)
		return 0;
	/* Copies of wakers have one size, those of known stacks the right one: they say nothing about the others. */
	bool varies = intake->copies_vary && !intake->copy_fixed;
	bool judged = varies && record->user_registers && copy_size_judges(size);
	uint32_t small_count = judged ? unwind_small(intake, record, *chain) : 0;
	if (!replace_frames(intake, record, intake->frames, chain, &end))
		return 0;
	if (judged)
		choose_copies(intake, small_count != chain->count ||
					      memcmp(intake->small_frames, intake->frames,
						      small_count * sizeof(uint64_t)) != 0);
	else if (varies && (size->small || size->wait))
		choose_copies(intake, size->small && end != UNWIND_START);
	chain->flags &= ~(uint32_t)(PERF_CHAIN_CUT | PERF_CHAIN_BROKEN);
	if (end == UNWIND_COPY || end == UNWIND_FRAMES || end == UNWIND_SWITCHED)
		chain->flags |= PERF_CHAIN_CUT;
	else if (end != UNWIND_START)
		chain->flags |= PERF_CHAIN_BROKEN;
	return (uint64_t)end + 1;
}

/* In a chain that the kernel has walked: marks callers that it has missed. */
static void mark_chain(struct intake *intake, uint32_t pid, struct perf_callchain *chain)
{
	uint32_t kernel_count = chain->kernel_count;

	if (!intake->managed || intake->unwinder || !intake->memory ||
		!memory_names_has(intake->memory, pid))
		return;
	chain->count = kernel_count +
		       managed_frames_mark(intake->managed, pid, intake->frames + kernel_count,
			       chain->count - kernel_count, INTAKE_FRAMES_MAX - kernel_count, true);
}

static struct perf_callchain flatten(struct intake *intake, const struct perf_record *record)
{
	return perf_callchain_flatten(record, intake->arch->kernel_begin,
		recorder_info(intake->recorder)->max_stack, intake->frames, INTAKE_FRAMES_MAX);
}

/*
 * Interns the flat chain; 0 if it is empty. *ret_end is what SAMPLES_END_SHIFT describes; may be
 * NULL.
 */
static uint32_t intern_chain(struct intake *intake, const struct perf_record *record,
	struct perf_callchain *chain, uint64_t *ret_end)
{
	uint64_t end = unwind_chain(intake, record, chain);

	mark_chain(intake, record->pid, chain);
	if (ret_end)
		*ret_end = end;
	return stack_table_intern(&intake->trace->stacks, intake->frames, chain->count);
}

static uint32_t take_chain(struct intake *intake, const struct perf_record *record,
	struct perf_callchain *ret_chain, uint64_t *ret_end)
{
	*ret_chain = flatten(intake, record);
	return intern_chain(intake, record, ret_chain, ret_end);
}

/* Unwinding a stack is expensive, so that other processes are recognized before. */
static bool is_foreign(struct intake *intake, uint32_t pid)
{
	return intake->unwinder && !stack_unwinder_knows(intake->unwinder, pid) &&
	       process_table_is_foreign(intake->table, pid);
}

static void take_sample(struct intake *intake, const struct perf_record *record)
{
	struct perf_callchain chain;

	/* the idle task, or a thread that has exited */
	if (!record->pid || record->pid == UINT32_MAX || is_foreign(intake, record->pid))
		return;
	uint64_t end;
	uint32_t stack_index = take_chain(intake, record, &chain, &end);

	/* Before the sample: the methods leave the window first. */
	if (intake->memory)
		memory_names_sample(intake->memory, record->pid, record->time_ns, intake->frames,
			chain.count);
	struct pending *item = reorder_window_add(intake->window);

	if (!item)
		return;
	item->kind = PENDING_SAMPLE;
	item->time_ns = record->time_ns;
	item->pid = record->pid;
	item->tid = record->tid;
	item->cpu = (int16_t)record->cpu;
	item->stack_index = stack_index;
	item->value = (chain.flags & PERF_CHAIN_CUT ? SAMPLE_STACK_CUT : 0u) |
		      (chain.flags & PERF_CHAIN_BROKEN ? SAMPLE_WALK_STOPPED : 0u) |
		      (chain.flags & PERF_CHAIN_GUEST ? SAMPLE_GUEST : 0u) |
		      end << SAMPLES_END_SHIFT;
}

static void take_simple(struct intake *intake, const struct perf_record *record,
	enum pending_kind kind, uint64_t value, bool flag)
{
	struct pending *item = reorder_window_add(intake->window);

	if (!item)
		return;
	item->kind = (uint8_t)kind;
	item->time_ns = record->has_time ? record->time_ns : clock_monotonic_ns();
	item->pid = record->pid;
	item->tid = record->tid;
	item->cpu = (int16_t)record->cpu;
	item->value = value;
	item->flag = flag;
}

static struct intake_blocks *blocks_of(struct intake *intake, uint32_t ring)
{
	while (intake->blocks.count <= ring)
		if (!vec_push(&intake->blocks))
			return NULL;
	return &intake->blocks.items[ring];
}

static void take_waking(struct intake *intake, const struct perf_record *record)
{
	const struct sched_events *sched = &recorder_info(intake->recorder)->sched;
	uint32_t woken = (uint32_t)sched_events_value(sched, SCHED_EVENT_WAKING, record);
	struct perf_callchain chain;

	if (!woken || pid_filter_has(&intake->other_threads, woken))
		return;
	intake->copy_fixed = true;
	uint32_t stack_index = sched->of[SCHED_EVENT_WAKING].no_stack || !record->pid
				       ? 0
				       : take_chain(intake, record, &chain, NULL);
	intake->copy_fixed = false;
	struct pending *item = reorder_window_add(intake->window);

	if (!item)
		return;
	item->kind = PENDING_WAKING;
	item->time_ns = record->time_ns;
	item->pid = record->pid;
	item->tid = record->tid;
	item->cpu = (int16_t)record->cpu;
	item->value = woken;
	item->stack_index = stack_index;
	item->flag = sched_events_in_interrupt(record);
}

/* What the chain of the user depends on; the whole of it becomes intake->frames. */
static bool trace_chain(struct intake *intake, const struct perf_record *record,
	struct perf_callchain *chain, struct unwind_registers *registers,
	struct unwind_trace *trace)
{
	uint64_t *user = intake->frames + chain->kernel_count;
	const uint64_t *frames;
	uint32_t count;

	if (!intake->unwinder)
		return frame_walk_trace(intake->arch, record, user,
			chain->count - chain->kernel_count, registers, trace);
	if (!stack_unwinder_trace(intake->unwinder, record, registers, trace, &frames, &count) ||
		count > INTAKE_FRAMES_MAX - chain->kernel_count)
		return false;
	memcpy(user, frames, count * sizeof(*frames));
	chain->count = chain->kernel_count + count;
	return true;
}

/* From the second time on, a block with a complete stack is worth being recognized. */
static void learn_block(struct intake *intake, const struct perf_record *record,
	const struct sched_probe_sample *sample, struct perf_callchain chain, uint32_t stack_index)
{
	struct kernel_stack kernel = { intake->frames, chain.kernel_count, sample->kernel_words,
		sample->kernel_count };
	struct kernel_places places;
	struct unwind_registers registers;
	struct unwind_trace trace;

	/* every sample teaches it */
	if (sample->kernel_count && !kernel_returns_learn(intake->kernel_returns, &kernel, &places))
		return;
	if (!block_stacks_wants(intake->block_stacks, record->tid, stack_index))
		return;
	if (!intake->unwinder && !sample->sized) {
		/* the next time with a copy */
		if (record->user_registers) {
			stack_unwinder_registers(intake->arch->unwind, record->user_registers,
				&registers);
			recorder_learn_stack(intake->recorder, false, record->tid,
				registers.values[intake->arch->unwind->stack_register] +
					KNOWN_BLOCK_SPAN);
		}
		return;
	}
	if (!trace_chain(intake, record, &chain, &registers, &trace)) {
		block_stacks_refuse(intake->block_stacks, record->tid, stack_index);
		return;
	}
	struct block_stack block = { .pid = record->pid,
		.tid = record->tid,
		.time_ns = intake->unwinder ? sample->time_ns : 0,
		.registers = &registers,
		.trace = &trace,
		.frames = intake->frames,
		.frame_count = chain.count,
		.kernel_places = sample->kernel_count ? &places : NULL };

	(void)block_stacks_add(intake->block_stacks, &block); /* at worst it stays unknown */
}

static void on_code_change(void *user, uint32_t pid)
{
	struct intake *intake = user;

	block_stacks_drop(intake->block_stacks, pid);
	struct pending *item = reorder_window_add(intake->window);

	if (!item)
		return;
	item->kind = PENDING_CODE_CHANGED;
	item->time_ns = intake->change_ns;
	item->pid = pid;
	item->cpu = -1;
}

void intake_read_frames(struct intake *intake)
{
	const struct live_options *options = intake->table->options;

	if (options->instead || options->kernel_only ||
		(options->no_dotnet && !options->names_from_memory) ||
		managed_frames_new(&intake->table->proc, intake->arch, &intake->managed) < 0)
		return;
	if (intake->unwinder)
		stack_unwinder_use(intake->unwinder, intake->managed);
}

int intake_recognize_blocks(struct intake *intake)
{
	struct known_block *rows = recorder_known_blocks(intake->recorder);

	if (!rows)
		return 0;
	int result = block_stacks_new(rows, intake->arch->unwind, &intake->block_stacks);
	if (result == 0)
		result = kernel_returns_new(&intake->kernel_returns);
	/* A chain by frame pointers does not depend on the code. */
	if (result == 0 && intake->unwinder)
		stack_unwinder_on_change(intake->unwinder, on_code_change, intake);
	return result;
}

/* The frames of the program itself: they were called below the kernel's stack that the sample has. */
static void drop_own_frames(struct intake *intake, const struct sched_probe_sample *sample,
	struct perf_callchain *chain)
{
	uint32_t words = sample->kernel_count < OWN_WORDS ? sample->kernel_count : OWN_WORDS;

	for (uint32_t own = 0; own < chain->kernel_count; own++)
		for (uint32_t i = 0; i < words; i++) {
			if (memcmp(&intake->frames[own], sample->kernel_words + (size_t)i * 8, 8) !=
				0)
				continue;
			chain->count -= own;
			chain->kernel_count -= own;
			memmove(intake->frames, intake->frames + own,
				chain->count * sizeof(intake->frames[0]));
			return;
		}
}

/* The stack of an unknown block, for its entry in the ring of switches. */
static void take_stack(struct intake *intake, const struct perf_record *record,
	struct intake_blocks *blocks)
{
	struct sched_probe_sample sample;

	if (!sched_probe_sample(record->raw, record->raw_size, &sample))
		return;
	struct perf_callchain chain = flatten(intake, record);

	drop_own_frames(intake, &sample, &chain);
	intake->stack_end = 0;
	intake->copy_fixed = sample.sized;
	struct intake_block block = { .tid = record->tid, .time_ns = sample.time_ns };

	block.stack_index = intern_chain(intake, record, &chain, NULL);
	intake->copy_fixed = false;
	/* with frame pointers a copy is only requested for one sample */
	if (intake->unwinder || sample.sized)
		recorder_learn_stack(intake->recorder, sample.sized, record->tid,
			intake->stack_end);
	/* without memory the block has no stack */
	(void)vec_add(&blocks->stacks, block);
	/* The walk itself has come to the start of the thread. */
	if (intake->block_stacks && (!intake->unwinder || intake->stack_end))
		learn_block(intake, record, &sample, chain, block.stack_index);
}

static void take_block(struct intake *intake, const struct perf_record *record,
	struct intake_block *ret_block)
{
	const struct sched_events *sched = &recorder_info(intake->recorder)->sched;
	uint64_t state = sched_events_value(sched, SCHED_EVENT_SWITCH, record);
	struct perf_callchain chain;

	*ret_block =
		(struct intake_block){ .tid = record->tid, .state = sched_events_state(state) };
	ret_block->stack_index = take_chain(intake, record, &chain, NULL);
}

/* Samples of the scheduler's tracepoints; false: it is a CPU sample. */
static bool take_sched(struct intake *intake, uint32_t ring, const struct perf_record *record)
{
	const struct sched_events *sched = &recorder_info(intake->recorder)->sched;
	enum sched_event which = sched_events_which(sched, record);

	if (which == SCHED_EVENT_WAKING) {
		take_waking(intake, record);
	} else if (which == SCHED_EVENT_SWITCH) {
		struct intake_blocks *blocks = blocks_of(intake, ring);
		if (!blocks || !record->pid || pid_filter_has(intake->filter, record->pid) ||
			is_foreign(intake, record->pid))
			return true;
		if (sched->of[which].by_probe)
			take_stack(intake, record, blocks);
		else
			take_block(intake, record, &blocks->last);
	}
	return which != SCHED_EVENT_COUNT;
}

/* The sample of a USDT probe or of user_events; false: it is one of another kind. */
static bool take_hit(struct intake *intake, const struct perf_record *record)
{
	bool is_usdt = intake->usdt && live_usdt_is_hit(record);
	struct perf_callchain chain;

	if (!is_usdt &&
		!(intake->user_events && live_user_events_is_hit(intake->user_events, record)))
		return false;
	if (!record->pid || record->pid == UINT32_MAX ||
		process_table_is_foreign(intake->table, record->pid))
		return true;
	intake->copy_fixed = true;
	uint32_t stack_index = take_chain(intake, record, &chain, NULL);
	intake->copy_fixed = false;
	/* what they cannot take they count */
	if (is_usdt)
		(void)live_usdt_take(intake->usdt, record, stack_index);
	else
		live_user_events_take(intake->user_events, record, stack_index);
	return true;
}

static void take_switch(struct intake *intake, uint32_t ring, const struct perf_record *record)
{
	struct intake_blocks *blocks = blocks_of(intake, ring);

	/* the idle task, or a thread that has exited; or the entries of the ring of switches have all of it */
	if (!blocks || !record->pid || record->tid == UINT32_MAX ||
		recorder_switches(intake->recorder, ring))
		return;
	struct intake_block *block = &blocks->last;
	struct pending *item = reorder_window_add(intake->window);

	if (!item)
		return;
	item->kind = PENDING_SWITCH;
	item->time_ns = record->time_ns;
	item->pid = record->pid;
	item->tid = record->tid;
	item->cpu = (int16_t)record->cpu;
	item->flag = record->switch_out;
	if (!record->switch_out)
		return;
	item->value = record->preempted ? SWITCH_PREEMPTED : SWITCH_UNKNOWN;
	if (block->tid == record->tid) {
		item->value = block->state;
		item->stack_index = block->stack_index;
	}
	block->tid = 0;
}

/* The stack of the entry's block; *ret_learned_ns is not 0 if it is that of an earlier block. */
static uint32_t stack_of(struct intake *intake, struct intake_blocks *blocks,
	const struct switch_entry *entry, uint64_t *ret_learned_ns)
{
	struct block_found found;

	if (entry->flags & SWITCH_ENTRY_KNOWN && intake->block_stacks &&
		block_stacks_find(intake->block_stacks, entry->row, entry->version, &found)) {
		*ret_learned_ns = found.learned_ns;
		if (!*found.stack_index)
			*found.stack_index = stack_table_intern(&intake->trace->stacks,
				found.frames, found.frame_count);
		return *found.stack_index;
	}
	while (entry->flags & SWITCH_ENTRY_SAMPLE && blocks->taken < blocks->stacks.count) {
		const struct intake_block *block = &blocks->stacks.items[blocks->taken];
		if (block->time_ns > entry->time_ns)
			break;
		blocks->taken++;
		if (block->time_ns == entry->time_ns && block->tid == entry->tid)
			return block->stack_index;
	}
	return 0;
}

static struct pending *add_switch(struct intake *intake, const struct switch_entry *entry,
	int32_t cpu)
{
	struct pending *item = reorder_window_add(intake->window);

	if (!item)
		return NULL;
	item->kind = PENDING_SWITCH;
	item->time_ns = entry->time_ns;
	item->cpu = (int16_t)cpu;
	return item;
}

/*
 * A thread that leaves came with the entry before. If that is missing (it was lost, or the kernel hides the thread that
 * ran between from tracing), the thread came at some time after the last entry.
 */
static bool repair_gap(struct intake *intake, const struct intake_blocks *blocks,
	const struct switch_entry *entry, int32_t cpu)
{
	if (!blocks->entry_ns || blocks->next_tid == entry->tid)
		return false;
	struct pending *item = add_switch(intake, entry, cpu);

	if (!item)
		return true;
	item->time_ns = blocks->entry_ns;
	item->pid = entry->pid;
	item->tid = entry->tid;
	return true;
}

/* One thread leaves the CPU, and another one comes. */
static void take_entry(struct intake *intake, struct intake_blocks *blocks,
	const struct switch_entry *entry, int32_t cpu)
{
	uint64_t learned_ns = 0;
	bool other = pid_filter_has(intake->filter, entry->pid);

	if (other && recorder_info(intake->recorder)->filter_by_pid)
		pid_filter_add(&intake->other_threads, entry->tid);
	if (entry->flags & SWITCH_ENTRY_OUT && !other && !sched_events_is_end(entry->state)) {
		uint32_t stack_index = stack_of(intake, blocks, entry, &learned_ns);
		bool unseen = repair_gap(intake, blocks, entry, cpu);
		struct pending *item = add_switch(intake, entry, cpu);
		if (!item)
			return;
		item->pid = entry->pid;
		item->tid = entry->tid;
		item->flag = true;
		item->stack_index = stack_index;
		item->value = sched_events_raw_state(entry->state) |
			      (unseen ? SWITCH_CAME_UNSEEN : 0u) |
			      (learned_ns & INTAKE_LEARNED_MASK);
	}
	if (!(entry->flags & SWITCH_ENTRY_IN) || pid_filter_has(intake->filter, entry->next_pid))
		return;
	struct pending *item = add_switch(intake, entry, cpu);

	if (!item)
		return;
	item->pid = entry->next_pid;
	item->tid = entry->next_tid;
}

/* After the ring of perf, which has the stacks. */
static void take_switches(struct intake *intake, uint32_t ring, struct switch_ring *switches,
	int32_t cpu)
{
	struct intake_blocks *blocks = blocks_of(intake, ring);
	struct switch_entry entry;
	uint64_t lost = switch_ring_lost(switches);

	while (blocks && switch_ring_next(switches, &entry)) {
		take_entry(intake, blocks, &entry, cpu);
		blocks->next_tid = entry.next_tid;
		blocks->entry_ns = entry.time_ns;
	}
	if (blocks && blocks->taken) {
		blocks->stacks.count -= blocks->taken;
		memmove(blocks->stacks.items, blocks->stacks.items + blocks->taken,
			blocks->stacks.count * sizeof(blocks->stacks.items[0]));
		blocks->taken = 0;
	}
	if (lost)
		take_simple(intake, &(struct perf_record){ .cpu = cpu }, PENDING_LOST, lost, false);
}

/* Follows which threads are not recorded; true: the record belongs to such a process. */
static bool sift(struct intake *intake, const struct perf_record *record)
{
	bool other = pid_filter_sift(intake->filter, record);

	if (record->type == PERF_TYPE_FORK)
		pid_filter_remove(&intake->other_threads, record->tid);
	else if (other && (record->type == PERF_TYPE_SWITCH_CPU_WIDE))
		pid_filter_add(&intake->other_threads, record->tid);
	return other;
}

/* The process will run another program, or is another one. */
static void note_program(struct managed_frames *managed, const struct perf_record *record)
{
	if ((record->type == PERF_TYPE_COMM && record->exec) ||
		(record->type == PERF_TYPE_FORK && record->pid != record->parent_pid) ||
		(record->type == PERF_TYPE_EXIT && record->pid == record->tid))
		managed_frames_forget(managed, record->pid);
}

static void take_record(struct intake *intake, uint32_t ring, const uint8_t *data, uint32_t size)
{
	struct perf_record record;

	if (perf_record_decode(&intake->layout, data, size, &record) < 0)
		return;
	/* Before the filter: a thread may be woken by a process that is not recorded. */
	if (record.raw_size && record.type == PERF_TYPE_SAMPLE && take_sched(intake, ring, &record))
		return;
	if (recorder_info(intake->recorder)->filter_by_pid && sift(intake, &record))
		return;
	if (intake->unwinder) {
		intake->change_ns = record.time_ns;
		stack_unwinder_note(intake->unwinder, &record);
		intake->change_ns = intake->pass_ns;
	}
	if (intake->managed)
		note_program(intake->managed, &record);
	if (record.raw_size && (intake->usdt || intake->user_events) &&
		record.type == PERF_TYPE_SAMPLE && take_hit(intake, &record))
		return;
	switch (record.type) {
	case PERF_TYPE_SAMPLE:
		take_sample(intake, &record);
		break;
	case PERF_TYPE_MMAP:
	case PERF_TYPE_MMAP2:
		take_mapping(intake, &record);
		break;
	case PERF_TYPE_COMM:
		if (record.exec && intake->memory)
			memory_names_exec(intake->memory, record.pid);
		take_simple(intake, &record, PENDING_COMM,
			strtab_add(&intake->trace->strings, record.text, record.text_len),
			record.exec);
		break;
	case PERF_TYPE_FORK:
		if (intake->usdt)
			live_usdt_fork(intake->usdt, record.parent_pid, record.pid);
		take_simple(intake, &record, PENDING_FORK,
			(uint64_t)record.parent_pid << 32 | record.parent_tid, false);
		break;
	case PERF_TYPE_EXIT:
		if (record.pid == record.tid && intake->usdt)
			live_usdt_exit(intake->usdt, record.pid);
		if (record.pid == record.tid && intake->memory)
			memory_names_exit(intake->memory, record.pid);
		take_simple(intake, &record, PENDING_EXIT, 0, false);
		break;
	case PERF_TYPE_LOST:
	case PERF_TYPE_LOST_SAMPLES:
		/* Of a mapping, perhaps. */
		if (record.lost && intake->block_stacks && intake->unwinder &&
			record.type == PERF_TYPE_LOST)
			block_stacks_drop_all(intake->block_stacks);
		if (record.lost)
			take_simple(intake, &record, PENDING_LOST, record.lost, false);
		break;
	case PERF_TYPE_THROTTLE:
		take_simple(intake, &record, PENDING_THROTTLE, 0, false);
		break;
	case PERF_TYPE_UNTHROTTLE:
		take_simple(intake, &record, PENDING_UNTHROTTLE, 0, false);
		break;
	case PERF_TYPE_SWITCH:
	case PERF_TYPE_SWITCH_CPU_WIDE:
		take_switch(intake, ring, &record);
		break;
	default:
		break;
	}
}

void intake_drain(struct intake *intake)
{
	uint32_t count = recorder_info(intake->recorder)->ring_count;
	uint64_t begin_ns = intake->block_stacks ? clock_monotonic_ns() : 0;

	for (uint32_t i = 0; i < count; i++) {
		struct ring *ring = recorder_ring(intake->recorder, i);
		struct switch_ring *switches = recorder_switches(intake->recorder, i);
		const uint8_t *data;
		uint32_t size;
		if (switches) /* before the ring of perf, which then has all their stacks */
			switch_ring_begin(switches);
		bool any = ring_begin(ring);
		while (any && ring_next(ring, &data, &size))
			take_record(intake, i, data, size);
		if (any)
			ring_end(ring);
		if (switches)
			take_switches(intake, i, switches, ring->cpu);
	}
	if (intake->unwinder)
		stack_unwinder_pass(intake->unwinder);
	if (intake->managed)
		managed_frames_pass(intake->managed);
	if (intake->memory)
		memory_names_pass(intake->memory);
	if (intake->block_stacks)
		block_stacks_pass(intake->block_stacks);
	intake->change_ns = intake->pass_ns = begin_ns;
}

static void free_blocks(struct intake *intake)
{
	vec_each(blocks, &intake->blocks)
		vec_done(&blocks->stacks);
	vec_done(&intake->blocks);
}

void intake_forget_stacks(struct intake *intake)
{
	free_blocks(intake);
	if (intake->block_stacks)
		block_stacks_forget(intake->block_stacks);
}

void intake_done(struct intake *intake)
{
	pid_filter_done(&intake->other_threads);
	free_blocks(intake);
	managed_frames_free(intake->managed);
	intake->managed = NULL;
	block_stacks_free(intake->block_stacks);
	intake->block_stacks = NULL;
	kernel_returns_free(intake->kernel_returns);
	intake->kernel_returns = NULL;
}
