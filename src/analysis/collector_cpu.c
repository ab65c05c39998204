/* See collector_cpu.h. */
#include "analysis/collector_cpu.h"

#include <errno.h>

#include "analysis/runtime_event.h"
#include "analysis/thread_role.h"
#include "trace/clr_event.h"
#include "trace/event.h"
#include "trace/schema.h"
#include "trace/trace.h"

static struct collector_cpu_process *row_of(struct collector_cpu *cpu, uint32_t process)
{
	for (uint32_t i = 0; i < cpu->processes.count; i++)
		if (cpu->processes.items[i].process == process)
			return &cpu->processes.items[i];
	struct collector_cpu_process *fresh = vec_push(&cpu->processes);
	if (fresh)
		fresh->process = process;
	return fresh;
}

static bool is_collector(const struct trace *trace, uint32_t thread)
{
	return thread_role_of(trace_text(trace, trace->threads.items[thread].name)) ==
	       THREAD_COLLECTOR;
}

int collector_cpu_event(struct collector_cpu *cpu, const struct runtime_event *event,
	const struct trace *trace)
{
	struct collector_cpu_process *row = row_of(cpu, event->process);

	if (!row)
		return -ENOMEM;
	if (event->schema->kind == EVENT_SAMPLE) {
		if (!event->is_selected)
			return 0;
		row->all_ns += event->event->value;
		if (row->is_stopped)
			row->pauses_ns += event->event->value;
		else if (is_collector(trace, event->event->thread_index))
			row->threads_ns += event->event->value;
	} else if (event->schema->event_id == CLR_ID_GCSuspendEEEnd) {
		row->is_stopped = true;
	} else if (event->schema->event_id == CLR_ID_GCRestartEEEnd) {
		row->is_stopped = false;
	}
	return 0;
}

const struct collector_cpu_process *collector_cpu_of(const struct collector_cpu *cpu,
	uint32_t process)
{
	for (uint32_t i = 0; i < cpu->processes.count; i++)
		if (cpu->processes.items[i].process == process && cpu->processes.items[i].all_ns)
			return &cpu->processes.items[i];
	return NULL;
}

void collector_cpu_done(struct collector_cpu *cpu)
{
	vec_done(&cpu->processes);
}
