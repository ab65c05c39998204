/* See intake.h. */
#include "recording/intake.h"

#include <stdlib.h>
#include <sys/sysmacros.h>

#include "base/clocks.h"
#include "base/text.h"
#include "code/arch.h"
#include "perf/perf_record.h"
#include "perf/recorder.h"
#include "perf/ring.h"
#include "pipeline/reorder_window.h"
#include "recording/pid_filter.h"
#include "recording/process_table.h"
#include "recording/samples.h"
#include "recording/stack_unwinder.h"
#include "trace/spoor_payload.h"
#include "trace/trace.h"

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
}

/*
 * Replaces the user frames of the chain by those found in the copy of the stack. Returns what
 * SAMPLES_END_SHIFT describes.
 */
static uint64_t unwind_chain(struct intake *intake, const struct perf_record *record,
	struct perf_callchain *chain)
{
	enum unwind_end end;

	if (!intake->unwinder ||
		!stack_unwinder_replace(intake->unwinder, record, intake->frames,
			chain->kernel_count, &chain->count, INTAKE_FRAMES_MAX, &end))
		return 0;
	chain->flags &= ~(uint32_t)(PERF_CHAIN_CUT | PERF_CHAIN_BROKEN);
	if (end == UNWIND_COPY || end == UNWIND_FRAMES || end == UNWIND_SWITCHED)
		chain->flags |= PERF_CHAIN_CUT;
	else if (end != UNWIND_START)
		chain->flags |= PERF_CHAIN_BROKEN;
	return (uint64_t)end + 1;
}

static void take_sample(struct intake *intake, const struct perf_record *record)
{
	const struct recorder_info *info = recorder_info(intake->recorder);

	/* the idle task, or a thread that has exited */
	if (!record->pid || record->pid == UINT32_MAX)
		return;
	struct perf_callchain chain = perf_callchain_flatten(record, intake->arch->kernel_begin,
		info->max_stack, intake->frames, INTAKE_FRAMES_MAX);
	uint64_t end = unwind_chain(intake, record, &chain);
	struct pending *item = reorder_window_add(intake->window);

	if (!item)
		return;
	item->kind = PENDING_SAMPLE;
	item->time_ns = record->time_ns;
	item->pid = record->pid;
	item->tid = record->tid;
	item->cpu = (int16_t)record->cpu;
	item->stack_index = stack_table_intern(&intake->trace->stacks, intake->frames, chain.count);
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

static void take_record(struct intake *intake, const uint8_t *data, uint32_t size)
{
	struct perf_record record;

	if (perf_record_decode(&intake->layout, data, size, &record) < 0)
		return;
	if (recorder_info(intake->recorder)->filter_by_pid &&
		pid_filter_sift(intake->filter, &record))
		return;
	if (intake->unwinder)
		stack_unwinder_note(intake->unwinder, &record);
	switch (record.type) {
	case PERF_TYPE_SAMPLE:
		take_sample(intake, &record);
		break;
	case PERF_TYPE_MMAP:
	case PERF_TYPE_MMAP2:
		take_mapping(intake, &record);
		break;
	case PERF_TYPE_COMM:
		take_simple(intake, &record, PENDING_COMM,
			strtab_add(&intake->trace->strings, record.text, record.text_len),
			record.exec);
		break;
	case PERF_TYPE_FORK:
		take_simple(intake, &record, PENDING_FORK,
			(uint64_t)record.parent_pid << 32 | record.parent_tid, false);
		break;
	case PERF_TYPE_EXIT:
		take_simple(intake, &record, PENDING_EXIT, 0, false);
		break;
	case PERF_TYPE_LOST:
	case PERF_TYPE_LOST_SAMPLES:
		if (record.lost)
			take_simple(intake, &record, PENDING_LOST, record.lost, false);
		break;
	case PERF_TYPE_THROTTLE:
		take_simple(intake, &record, PENDING_THROTTLE, 0, false);
		break;
	case PERF_TYPE_UNTHROTTLE:
		take_simple(intake, &record, PENDING_UNTHROTTLE, 0, false);
		break;
	default:
		break;
	}
}

void intake_drain(struct intake *intake)
{
	uint32_t count = recorder_info(intake->recorder)->ring_count;

	for (uint32_t i = 0; i < count; i++) {
		struct ring *ring = recorder_ring(intake->recorder, i);
		const uint8_t *data;
		uint32_t size;
		if (!ring_begin(ring))
			continue;
		while (ring_next(ring, &data, &size))
			take_record(intake, data, size);
		ring_end(ring);
	}
	if (intake->unwinder)
		stack_unwinder_pass(intake->unwinder);
}
