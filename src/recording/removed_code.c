/* See removed_code.h. */
#include "recording/removed_code.h"

#include "pipeline/reorder_window.h"
#include "pipeline/session_writer.h"
#include "recording/process_table.h"
#include "symbolize/symbolizer.h"
#include "trace/clr.h"
#include "trace/event.h"
#include "trace/spoor_payload.h"
#include "trace/trace.h"

struct removal {
	struct process_table *table;
	uint32_t process; /* its removals take effect now; 0: none do */
};

void removed_code_write(struct process_table *table, const struct pending *item)
{
	struct session_writer *writer = table->writer;
	uint32_t process = item->pid;
	const struct code *code =
		symbolizer_end_code(table->symbolizer, process, item->stack_index, item->value);

	if (!code)
		return;
	payload_code_removed(&writer->payload,
		&(struct payload_code_removed){ .begin = code->begin, .end = code->end });
	session_writer_emit_about(writer, SPOOR_CODE_REMOVED, process);
	clr_method_unload_payload(code, &writer->payload);
	session_writer_emit_about(writer, CLR_METHOD_UNLOAD_VERBOSE, process);
	table->trace->processes.items[process].code_epoch++;
}

static void on_removed(void *context, uint32_t process, uint32_t code, const struct code *body)
{
	const struct removal *removal = context;
	struct pending now = { .kind = PENDING_CODE_REMOVED };
	struct pending *item = &now;

	if (process != removal->process)
		item = reorder_window_add(removal->table->writer->window);
	if (!item)
		/* the names of the removed code stay: wrong only if other code is placed there */
		return;
	item->kind = PENDING_CODE_REMOVED;
	item->time_ns = body->until_ns;
	item->pid = process;
	item->stack_index = code;
	item->value = body->begin;
	item->cpu = EVENT_CPU_UNKNOWN;
	if (item == &now)
		removed_code_write(removal->table, item);
}

void removed_code_queue(struct process_table *table)
{
	symbolizer_removed_codes(table->symbolizer, on_removed,
		&(struct removal){ .table = table });
}

void removed_code_end(struct process_table *table, uint32_t process)
{
	symbolizer_removed_codes(table->symbolizer, on_removed,
		&(struct removal){ .table = table, .process = process });
}
