/* See event_line.h. */
#include "render/event_line.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/bytes.h"
#include "base/json.h"
#include "base/text.h"
#include "render/event_text.h"
#include "render/event_value.h"
#include "trace/event.h"
#include "trace/schema.h"
#include "trace/symbolmap.h"
#include "trace/trace.h"

#define NS_PER_S 1000000000u

enum { OPCODE_START = 1, OPCODE_STOP = 2 };

/* Any 64 bits are a time here: a foreign file may say so. */
static struct tm utc_of(const struct event *event, int64_t utc_offset_ns, unsigned *ret_ns)
{
	uint64_t utc_ns = event->time_ns + (uint64_t)utc_offset_ns;
	time_t seconds = (time_t)(utc_ns / NS_PER_S);
	struct tm utc = { 0 };

	*ret_ns = (unsigned)(utc_ns % NS_PER_S);
	(void)gmtime_r(&seconds, &utc); /* 584 years from 1970 on */
	return utc;
}

/* NULL: of no thread. */
static const struct thread *thread_of(const struct trace *trace, const struct event *event)
{
	return event->thread_index ? &trace->threads.items[event->thread_index] : NULL;
}

/* "17:56:35." */
static void add_time(struct bytes *out, const struct tm *utc)
{
	bytes_decimal(out, (unsigned)utc->tm_hour, 2);
	bytes_u8(out, ':');
	bytes_decimal(out, (unsigned)utc->tm_min, 2);
	bytes_u8(out, ':');
	bytes_decimal(out, (unsigned)utc->tm_sec, 2);
	bytes_u8(out, '.');
}

static void begin_line(struct bytes *out, const struct trace *trace, const struct event *event,
	int64_t utc_offset_ns)
{
	const struct thread *thread = thread_of(trace, event);
	unsigned ns;
	struct tm utc = utc_of(event, utc_offset_ns, &ns);

	add_time(out, &utc);
	bytes_decimal(out, ns / 1000, 6);
	bytes_text(out, "  ");
	if (!thread)
		return;
	bytes_decimal(out, trace->processes.items[thread->process].pid, 1);
	bytes_u8(out, '/');
	bytes_decimal(out, thread->tid, 1);
	bytes_text(out, "  ");
}

void event_line(struct bytes *out, const struct trace *trace, const struct event *event,
	int64_t utc_offset_ns)
{
	begin_line(out, trace, event, utc_offset_ns);
	event_text_name(out, trace, event);
	bytes_text(out, "  ");
	event_text_fields(out, trace, event);
	event_text_labels(out, event);
	bytes_text(out, "\n");
}

void event_line_lost(struct bytes *out, const struct trace *trace, const struct event *event,
	int64_t utc_offset_ns)
{
	begin_line(out, trace, event, utc_offset_ns);
	bytes_printf(out, "-- %" PRIu32 " %s lost before this --\n", event->lost_before,
		event->lost_before == 1 ? "event was" : "events were");
}

static void begin_json(struct json *j, const struct trace *trace, const struct event *event,
	int64_t utc_offset_ns)
{
	const struct thread *thread = thread_of(trace, event);
	struct bytes time = { 0 };
	unsigned ns;
	struct tm utc = utc_of(event, utc_offset_ns, &ns);

	bytes_decimal(&time, (unsigned)(utc.tm_year + 1900), 4);
	bytes_u8(&time, '-');
	bytes_decimal(&time, (unsigned)(utc.tm_mon + 1), 2);
	bytes_u8(&time, '-');
	bytes_decimal(&time, (unsigned)utc.tm_mday, 2);
	bytes_u8(&time, 'T');
	add_time(&time, &utc);
	bytes_decimal(&time, ns, 9);
	bytes_u8(&time, 'Z');
	json_object(j, NULL);
	json_text(j, "time", bytes_z(&time), time.len);
	j->out->failed |= time.failed;
	bytes_done(&time);
	if (thread) {
		json_u64(j, "pid", trace->processes.items[thread->process].pid);
		json_u64(j, "tid", thread->tid);
	}
	if (event->cpu != EVENT_CPU_UNKNOWN)
		json_i64(j, "cpu", event->cpu);
}

/*
 * Events without a description have opcode 0. The names of the runtime's events end with the
 * opcode, if it is one that all providers share. -1: not known.
 */
static int opcode_of(const struct trace *trace, const struct schema *schema, const char *name)
{
	const char *last = strrchr(name, '/');

	if (schema->opcode || *trace_text(trace, schema->name))
		return schema->opcode;
	if (!last)
		return -1;
	return strcmp(last, "/Start") == 0  ? OPCODE_START
	       : strcmp(last, "/Stop") == 0 ? OPCODE_STOP
					    : -1;
}

/* Level, keywords, opcode: of the schema, but where the event has its own. */
static void add_attributes(struct json *j, const struct schema *schema,
	const struct event_labels *labels, int opcode)
{
	static const struct event_labels none;
	const struct event_labels *own = labels ? labels : &none;
	char keywords[24];

	json_u64(j, "version", own->which & EVENT_LABEL_VERSION ? own->version : schema->version);
	json_u64(j, "level", own->which & EVENT_LABEL_LEVEL ? own->level : schema->level);
	text_set(keywords, "0x%" PRIx64,
		own->which & EVENT_LABEL_KEYWORDS ? own->keywords : schema->keywords);
	json_z(j, "keywords", keywords);
	if (own->which & EVENT_LABEL_OPCODE)
		opcode = own->opcode;
	if (opcode >= 0)
		json_i64(j, "opcode", opcode);
}

/* A guid that is all zero is none. */
static void add_activity(struct json *j, const char *name, const uint8_t *guid)
{
	static const uint8_t none[16];
	struct bytes text = { 0 };

	if (memcmp(guid, none, sizeof(none)) == 0)
		return;
	event_value_guid(&text, guid);
	json_text(j, name, bytes_z(&text), text.len);
	j->out->failed |= text.failed;
	bytes_done(&text);
}

/* `function` is NULL where nothing is known. */
static void add_frame(void *context, const struct trace *trace, const struct function *function,
	uint64_t address)
{
	struct json *j = context;
	char text[24];

	json_object(j, NULL);
	if (function && (function->named || function->module))
		json_text(j, "function", trace_text(trace, function->name),
			strtab_len(&trace->strings, function->name));
	if (function && function->module)
		json_text(j, "module", trace_text(trace, function->module),
			strtab_len(&trace->strings, function->module));
	if (!function || !function->named) {
		text_set(text, "0x%" PRIx64, address);
		json_z(j, "address", text);
	}
	json_end(j);
}

/* Calls `each` for the frames of the event's stack, the innermost first. */
static void for_each_frame(const struct trace *trace, const struct event *event,
	const struct event_frames *frames,
	void (*each)(void *context, const struct trace *trace, const struct function *function,
		uint64_t address),
	void *context)
{
	const struct thread *thread = thread_of(trace, event);
	uint32_t count;
	const uint64_t *addresses = stack_table_get(&trace->stacks, event->stack_index, &count);

	/* less when the file has grown since */
	bool named = frames && thread && thread->process < frames->names->trace->processes.count;

	const struct trace *trace_of_names = named ? frames->names->trace : trace;

	bool by_frame_pointers = event->kind == EVENT_SAMPLE &&
				 trace->recording.session.sampling != SESSION_THREAD_CLOCKS;
	uint32_t above = 0;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t function = named ? symbolmap_find(frames->names, thread->process,
						    addresses[i], frames->code_epoch)
					  : 0;
		if (by_frame_pointers && above && function &&
			symbolmap_is_replaced(frames->names, above, function))
			function = symbolmap_lost_caller(frames->names);
		above = function;
		each(context, trace_of_names,
			function ? &frames->names->functions.items[function] : NULL, addresses[i]);
	}
}

static bool has_stack(const struct trace *trace, const struct event *event)
{
	uint32_t count;

	(void)stack_table_get(&trace->stacks, event->stack_index, &count);
	return event->stack_index && count;
}

static void add_frame_line(void *context, const struct trace *trace,
	const struct function *function, uint64_t address)
{
	struct bytes *out = context;

	bytes_text(out, "    ");
	if (function && (function->named || function->module))
		text_add_safe(out, trace_text(trace, function->name),
			strtab_len(&trace->strings, function->name));
	else
		bytes_printf(out, "0x%" PRIx64, address);
	if (function && function->named && function->module) {
		bytes_text(out, "  ");
		text_add_safe(out, trace_text(trace, function->module),
			strtab_len(&trace->strings, function->module));
	}
	bytes_text(out, "\n");
}

void event_line_stack(struct bytes *out, const struct trace *trace, const struct event *event,
	const struct event_frames *frames)
{
	for_each_frame(trace, event, frames, add_frame_line, out);
}

void event_line_json(struct bytes *out, const struct trace *trace, const struct event *event,
	int64_t utc_offset_ns, const struct event_frames *frames)
{
	const struct schema *schema = &trace->schemas.items[event->schema_index];
	struct json j = { .out = out };
	struct bytes name = { 0 };

	begin_json(&j, trace, event, utc_offset_ns);
	event_text_bare_name(&name, trace, event);
	json_z(&j, "provider", trace_text(trace, schema->provider));
	json_text(&j, "event", bytes_z(&name), name.len);
	json_u64(&j, "id", schema->event_id);
	add_attributes(&j, schema, event->labels, opcode_of(trace, schema, bytes_z(&name)));
	if (event->activity) {
		add_activity(&j, "activity", event->activity);
		add_activity(&j, "related_activity", event->activity + 16);
	}
	event_text_labels_json(&j, event);
	json_u64(&j, "bytes", event->payload_size);
	if (!event_text_json(&j, trace, event))
		json_bool(&j, "broken", true);
	if (has_stack(trace, event)) {
		json_array(&j, "stack");
		for_each_frame(trace, event, frames, add_frame, &j);
		json_end(&j);
	}
	json_end(&j);
	bytes_text(out, "\n");
	out->failed |= name.failed;
	bytes_done(&name);
}

void event_line_lost_json(struct bytes *out, const struct trace *trace, const struct event *event,
	int64_t utc_offset_ns)
{
	struct json j = { .out = out };

	begin_json(&j, trace, event, utc_offset_ns);
	json_u64(&j, "lost", event->lost_before);
	json_end(&j);
	bytes_text(out, "\n");
}
