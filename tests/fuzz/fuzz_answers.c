/*
 * Payloads of runtime events for all analyses. Each event takes a head of four bytes (id, low byte;
 * version in the upper half of the second, whose lowest bit is bit 8 of the id, and whose next one
 * is set for events of an event source, whose number is then in place of the version; milliseconds,
 * with bits of the stack and the activity; payload size), then its payload. Reports must be made, and
 * JSON must be valid.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "analysis/profile.h"
#include "base/bytes.h"
#include "base/cursor.h"
#include "report/answer_report.h"
#include "report/answer_summary.h"
#include "trace/event.h"
#include "trace/provider_kind.h"
#include "trace/report.h"
#include "trace/source_event.h"
#include "trace/symbolmap.h"
#include "trace/trace.h"
#include "unit/json_check.h"

#define NS_PER_MS  1000000u
#define IS_REQUEST 2u

static const char *const sources[] = { PROVIDER_KESTREL_NAME, PROVIDER_HOSTING_NAME,
	PROVIDER_HTTP_NAME, PROVIDER_NAME_RESOLUTION_NAME, PROVIDER_SECURITY_NAME,
	PROVIDER_SOCKETS_NAME, PROVIDER_TASKS_NAME };

#define SOURCES (sizeof(sources) / sizeof(sources[0]))

static void pass(struct trace *trace, struct answers *answers, struct cursor *c)
{
	uint8_t low = cursor_u8(c);
	uint8_t high = cursor_u8(c);
	uint8_t at_ms = cursor_u8(c);
	uint8_t size = cursor_u8(c);
	struct schema *schema = vec_push(&trace->schemas);

	if (!schema)
		abort();
	schema->provider_kind = high & IS_REQUEST ? PROVIDER_OTHER : PROVIDER_CLR;
	schema->provider = trace_add_text(trace, sources[(high >> 4) % SOURCES]);
	schema->name = trace_add_text(trace,
		low == SOURCE_ID_HOSTING_REQUEST_START ? "RequestStart" : "RequestStop");
	schema->event_id = low | (high & 1u) << 8;
	schema->version = high & IS_REQUEST ? 0 : high >> 4;
	const uint8_t activity[EVENT_ACTIVITY_SIZE] = { 1, at_ms & 4u };
	if (size > cursor_left(c))
		size = (uint8_t)cursor_left(c);
	const struct event event = { .time_ns = NS_PER_MS * (1u + at_ms),
		.thread_index = trace_thread(trace, 4711, 4711 + (at_ms & 1u)),
		.stack_index =
			at_ms & 2u ? stack_table_intern(&trace->stacks, (uint64_t[]){ at_ms }, 1)
				   : 0,
		.schema_index = trace->schemas.count - 1,
		.activity = high & IS_REQUEST && at_ms & 8u ? activity : NULL,
		.payload = cursor_take(c, size),
		.payload_size = size };

	if (answers_event(answers, &event) < 0)
		abort();
}

static void write_reports(const struct answers *answers, const struct report *report)
{
	struct bytes out = { 0 };

	for (unsigned i = 0; i < ANSWER_COUNT; i++) {
		bytes_reset(&out);
		if (answer_report_text((enum answer)i, answers, report, 3, &out) < 0 || !out.len)
			abort();
		bytes_reset(&out);
		if (answer_report_json((enum answer)i, answers, report, &out) < 0 ||
			!json_is_valid((const char *)out.data, out.len - 1))
			abort();
	}
	bytes_reset(&out);
	answer_summary(answers, report, &out);
	bytes_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct trace trace;
	struct symbolmap names;
	struct profile profile = { .trace = &trace };
	struct answers answers = {
		.trace = &trace, .filter = &profile.filter, .wanted = ANSWERS_ALL
	};
	struct report report = { .trace = &trace, .names = &names };
	struct cursor c = cursor_of(data, size);

	if (trace_init(&trace) < 0)
		return 0;
	trace.recording.sync_ns = NS_PER_MS;
	while (cursor_left(&c))
		pass(&trace, &answers, &c);
	if (symbolmap_init(&names, &trace, METHOD_NAME_SHORT) < 0 ||
		answers_find(&answers, &names) < 0 || profile_name(&profile, &names) < 0 ||
		answers_finish(&answers, &profile, &names, 200 * NS_PER_MS) < 0)
		abort();
	write_reports(&answers, &report);
	answers_done(&answers);
	report_done(&report);
	symbolmap_done(&names);
	profile_done(&profile);
	trace_done(&trace);
	return 0;
}
