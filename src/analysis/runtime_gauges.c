/*
 * See runtime_gauges.h.
 *
 * The payload of a level, in UTF-16 with a NUL and little-endian; what follows is not read:
 *
 *   text  Name           "gc-committed"
 *   text  DisplayName
 *   f64   Mean
 */
#include "analysis/runtime_gauges.h"

#include <errno.h>
#include <string.h>

#include "base/cursor.h"
#include "trace/event.h"
#include "trace/provider_kind.h"
#include "trace/trace.h"

#define NAME_MAX_UNITS 64u

static const char *const gauge_names[GAUGE_COUNT] = {
	[GAUGE_COMMITTED] = "gc-committed",
	[GAUGE_HEAP] = "gc-heap-size",
	[GAUGE_QUEUE] = "threadpool-queue-length",
};

static bool is_text(const struct trace *trace, uint32_t text, const char *of)
{
	return strcmp(trace_text(trace, text), of) == 0;
}

/* Whether the schema has the fields of a level: those of a rate have no Mean. */
bool runtime_gauges_takes(const struct trace *trace, const struct schema *schema)
{
	static const char *const fields[] = { "Name", "DisplayName", "Mean" };
	uint32_t at = 0;

	if (!is_text(trace, schema->provider, PROVIDER_SYSTEM_RUNTIME_NAME) ||
		!is_text(trace, schema->name, EVENT_COUNTERS_NAME))
		return false;
	while (at < schema->fields.count &&
		!is_text(trace, schema->fields.items[at].name, fields[0]))
		at++;
	for (uint32_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (at + i >= schema->fields.count ||
			!is_text(trace, schema->fields.items[at + i].name, fields[i]))
			return false;
	return true;
}

/* Reads a text of up to NAME_MAX_UNITS ASCII characters; others become '?', longer ones are cut. */
static void read_name(struct cursor *c, char name[NAME_MAX_UNITS])
{
	uint32_t len = 0;

	for (uint16_t unit; (unit = cursor_u16(c)) != 0 && !c->short_read;)
		if (len < NAME_MAX_UNITS - 1)
			name[len++] = unit < 0x80 ? (char)unit : '?';
	name[len] = '\0';
}

static double read_double(struct cursor *c)
{
	uint64_t bits = cursor_u64(c);
	double value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static struct process_gauges *row_of(struct runtime_gauges *gauges, uint32_t process)
{
	for (uint32_t i = 0; i < gauges->processes.count; i++)
		if (gauges->processes.items[i].process == process)
			return &gauges->processes.items[i];
	struct process_gauges *row = vec_push(&gauges->processes);
	if (row)
		row->process = process;
	return row;
}

int runtime_gauges_event(void *context, const struct event *event)
{
	struct runtime_gauges *gauges = context;
	const struct trace *trace = gauges->trace;
	char name[NAME_MAX_UNITS];
	char display[NAME_MAX_UNITS];

	if (event->schema_index >= trace->schemas.count || !event->thread_index ||
		event->thread_index >= trace->threads.count ||
		!runtime_gauges_takes(trace, &trace->schemas.items[event->schema_index]))
		return 0;
	struct cursor c = cursor_of(event->payload, event->payload_size);
	read_name(&c, name);
	read_name(&c, display);
	double value = read_double(&c);
	for (uint32_t i = 0; i < GAUGE_COUNT && !c.short_read; i++) {
		if (strcmp(name, gauge_names[i]) != 0)
			continue;
		struct process_gauges *row =
			row_of(gauges, trace->threads.items[event->thread_index].process);
		if (!row)
			return -ENOMEM;
		struct runtime_gauge *gauge = &row->gauges[i];
		if (!gauge->count++)
			gauge->first = gauge->most = value;
		gauge->last = value;
		if (value > gauge->most)
			gauge->most = value;
	}
	return 0;
}

void runtime_gauges_done(struct runtime_gauges *gauges)
{
	vec_done(&gauges->processes);
}
