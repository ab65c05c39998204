/* See hits.h. */
#include "recording/hits.h"

#include <stdlib.h>
#include <string.h>

#include "perf/perf_record.h"
#include "pipeline/session_writer.h"
#include "recording/process_table.h"
#include "symbolize/symbolizer.h"
#include "trace/event.h"

/* Attached to the item. */
struct waiting_hit {
	uint32_t schema_index;
	uint32_t payload_size;
	bool has_activity;
	uint8_t activity[EVENT_ACTIVITY_SIZE];
	uint8_t payload[];
};

struct pending *hits_put(struct hits *hits, struct reorder_window *window, enum pending_kind kind,
	const struct perf_record *record, uint32_t stack_index, const struct hit_event *event)
{
	struct waiting_hit *side = malloc(sizeof(*side) + event->payload_size);
	struct pending *item = side ? reorder_window_add(window) : NULL;

	if (!item) {
		free(side);
		hits->memory_lost++;
		return NULL;
	}
	side->schema_index = event->schema_index;
	side->payload_size = event->payload_size;
	if (event->payload_size)
		memcpy(side->payload, event->payload, event->payload_size);
	side->has_activity = event->activity != NULL;
	if (event->activity)
		memcpy(side->activity, event->activity, sizeof(side->activity));
	item->kind = (uint8_t)kind;
	item->time_ns = record->time_ns;
	item->pid = record->pid;
	item->tid = record->tid;
	item->cpu = (int16_t)record->cpu;
	item->stack_index = stack_index;
	item->side = side;
	return item;
}

bool hits_write(struct hits *hits, struct process_table *table, const struct pending *item,
	uint64_t late_ns)
{
	const struct waiting_hit *side = item->side;
	uint32_t process = process_table_is_before_exec(table, item)
				   ? 0
				   : process_table_owner(table, item->pid);
	uint32_t stack = item->stack_index;

	if (!process)
		return false; /* of another process than the recorded ones */
	if (session_writer_is_full(table->writer)) {
		hits->cut++;
		return false;
	}
	process_table_announce(table, process);
	process_table_adopt_mappings(table, process);
	if (stack)
		/* without memory the names are missing, and counted */
		(void)symbolizer_hit(table->symbolizer, process, stack, item->time_ns, &stack);
	session_writer_event(table->writer,
		&(struct event){ .time_ns = item->time_ns,
			.payload = side->payload,
			.payload_size = side->payload_size,
			.activity = side->has_activity ? side->activity : NULL,
			.thread_index = process_table_thread(table, process, item->pid,
				item->tid ? item->tid : item->pid),
			.stack_index = stack,
			.schema_index = side->schema_index,
			.late_ns = late_ns < UINT32_MAX ? (uint32_t)late_ns : UINT32_MAX,
			.cpu = item->cpu });
	hits->count++;
	hits->late += late_ns != 0;
	session_writer_relieve(table->writer);
	return true;
}

uint64_t hits_lost(const struct hits *hits)
{
	return hits->cut + hits->memory_lost;
}
