/* See record_run.h. */
#include "lib/pipe/record_run.h"

#include <string.h>

#include "lib/event/thread_ring.h"

static inline const struct record *first_of(const struct record_run *run)
{
	return (const struct record *)(const void *)run->records;
}

static inline uint32_t size_of(const struct record *record)
{
	return (record->sizes & RECORD_UNITS_MAX) * RECORD_UNIT;
}

static inline uint64_t ns_at(const struct record_run *run, uint64_t stamp)
{
	uint64_t ns = clock_segment_ns(&run->clock, stamp);

	return ns < run->floor_ns ? run->floor_ns : ns;
}

uint64_t record_run_first_ns(const struct record_run *run)
{
	return ns_at(run, first_of(run)->stamp);
}

uint64_t record_run_last_ns(const struct record_run *run)
{
	return ns_at(run, run->last_stamp);
}

bool record_run_plain(struct record_run *run, struct run_record *ret_record)
{
	const struct record *record = first_of(run);

	if (!run->count || record->sizes >> RECORD_FLAG_SHIFT)
		return false;
	if (record->event != run->entry_index) {
		run->entry = registry_entry(record->event);
		run->entry_index = record->event;
	}
	uint32_t size = size_of(record);
	*ret_record = (struct run_record){
		.entry = run->entry,
		.time_ns = ns_at(run, record->stamp),
		.payload = run->records + RECORD_HEADER,
		.payload_size = size - RECORD_HEADER - (record->sizes >> RECORD_PADDING_SHIFT & 7),
		.size = size,
	};
	return true;
}

void record_run_skip(struct record_run *run, const struct run_record *record)
{
	run->floor_ns = record->time_ns;
	run->records += record->size;
	run->bytes -= record->size;
	run->count--;
	run->sequence++;
	run->lost_before = 0;
	run->run_start = false;
}

bool record_run_next(struct record_run *run, struct pipe_event *ret_event)
{
	if (!run->count)
		return false;

	const struct record *record = first_of(run);
	uint32_t size = size_of(record);
	uint32_t flags = record->sizes >> RECORD_FLAG_SHIFT;
	const uint8_t *at = run->records + RECORD_HEADER;
	const uint8_t *end = run->records + size - (record->sizes >> RECORD_PADDING_SHIFT & 7);

	if (record->event != run->entry_index) {
		run->entry = registry_entry(record->event);
		run->entry_index = record->event;
	}
	run->floor_ns = ns_at(run, record->stamp);
	*ret_event = (struct pipe_event){
		.entry = run->entry,
		.time_ns = run->floor_ns,
		.thread_id = run->thread_id,
		.capture_thread_id = run->thread_id,
		.sequence = run->sequence,
		.lost_before = run->lost_before,
		.run_start = run->run_start,
		.sorted = record->stamp <= run->next_stamp,
	};
	if (flags & RECORD_ACTIVITY) {
		ret_event->activity_id = at;
		ret_event->related_activity_id = at + 16;
		at += 32;
	}
	if (flags & RECORD_STACK) {
		uint64_t count;
		memcpy(&count, at, sizeof(count));
		if (run->stacks) {
			ret_event->stack = (const uint64_t *)(const void *)(at + 8);
			ret_event->stack_count = (uint32_t)count;
		}
		at += 8 + 8 * count;
	}
	ret_event->payload = at;
	ret_event->payload_size = (uint32_t)(end - at);

	run->records += size;
	run->bytes -= size;
	run->count--;
	run->sequence++;
	run->lost_before = 0;
	run->run_start = false;
	return true;
}

bool record_run_take(struct record_run *run, size_t room, struct record_run *ret_head)
{
	struct record_run head = *run;

	if (run->bytes > room) {
		head.bytes = head.count = 0;
		for (;;) {
			const struct record *record =
				(const struct record *)(const void *)(run->records + head.bytes);
			if (size_of(record) > room - head.bytes)
				break;
			head.bytes += size_of(record);
			head.count++;
			head.last_stamp = record->stamp;
		}
	}
	if (!head.count)
		return false;
	run->records += head.bytes;
	run->bytes -= head.bytes;
	run->count -= head.count;
	run->floor_ns = record_run_last_ns(&head);
	run->sequence += head.count;
	run->lost_before = 0;
	run->run_start = false;
	*ret_head = head;
	return true;
}
