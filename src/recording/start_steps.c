/* See start_steps.h. */
#include "recording/start_steps.h"

#include "pipeline/session_writer.h"
#include "recording/process_table.h"
#include "trace/spoor_payload.h"
#include "trace/start_step.h"
#include "trace/trace.h"

static void write_start_step(struct process_table *table, uint32_t index, enum start_step step,
	uint64_t time_ns)
{
	struct live_process *own = &table->rows.items[index];

	if (own->start_steps & 1u << step || session_writer_is_full(table->writer))
		return;
	own->start_steps |= 1u << step;
	process_table_announce(table, index);
	payload_start_step(&table->writer->payload,
		&(struct payload_start_step){ .step = start_step_name(step), .at_ns = time_ns });
	session_writer_emit_about(table->writer, SPOOR_START_STEP, index);
}

void start_steps_note_exec(struct process_table *table, uint32_t index)
{
	if (index < table->rows.count && table->rows.items[index].exec_ns)
		write_start_step(table, index, START_STEP_EXEC, table->rows.items[index].exec_ns);
}

void start_steps_note_image(struct process_table *table, uint32_t index, const char *path,
	uint64_t time_ns)
{
	enum start_step step = start_step_of_image(path);

	/* a process that ran before the recording may load a runtime, but that is not its start */
	if (!step || index >= table->rows.count || !table->rows.items[index].exec_ns)
		return;
	start_steps_note_exec(table, index);
	write_start_step(table, index, step, time_ns);
}
