/*
 * A payload and a schema that need not fit each other. The first byte is the event id; the upper
 * three bits of the second select its provider, the lower ones are the number of fields. Each field
 * takes three bytes (type, element, depth). The payload follows. Lines must have no control
 * characters, and JSON must be valid.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "render/event_line.h"
#include "render/event_text.h"
#include "trace/event.h"
#include "trace/schema.h"
#include "trace/trace.h"
#include "unit/json_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct trace trace;
	struct bytes out = { 0 };

	if (size < 2 || trace_init(&trace) < 0)
		return 0;
	struct schema *schema = vec_push(&trace.schemas);
	static const enum provider_kind providers[] = { PROVIDER_CLR, PROVIDER_UNIVERSAL_SYSTEM,
		PROVIDER_UNIVERSAL_EVENTS, PROVIDER_CLR_RUNDOWN, PROVIDER_CLR_STRESS,
		PROVIDER_CLR_PRIVATE, PROVIDER_MONO_PROFILER, PROVIDER_SAMPLE };
	size_t count = data[1] % 32;

	if (!schema)
		abort();
	schema->provider_kind = (uint8_t)providers[data[1] >> 5];
	schema->provider =
		trace_add_text(&trace, provider_name((enum provider_kind)schema->provider_kind));
	schema->event_id = data[0];
	schema->version = UINT8_MAX; /* the newest one in the list */
	data += 2;
	size -= 2;
	for (size_t i = 0; i < count && size >= 3; i++, data += 3, size -= 3) {
		struct field *field = vec_push(&schema->fields);
		if (!field)
			abort();
		field->name = trace_add_text(&trace, i % 2 ? "field"
							   : "fi\"e\x01l\xff"
							     "d");
		field->type = data[0] % 28;
		field->element = data[1] % 28;
		field->depth = (uint16_t)(i ? data[2] % 8 : 0);
		field->count = data[2];
	}
	uint64_t data_time = size ? (uint64_t)data[0] << 56 : 0;
	uint8_t *exact = malloc(size + 1);
	const struct event event = {
		.schema_index = trace.schemas.count - 1,
		.time_ns = data_time,
		.payload = exact,
		.payload_size = (uint32_t)size,
	};

	if (exact && size)
		memcpy(exact, data, size);
	if (exact) {
		event_line(&out, &trace, &event, (int64_t)data_time);
		for (size_t i = 0; i + 1 < out.len; i++)
			if (out.data[i] < 0x20 || out.data[i] == 0x7f)
				abort();
		bytes_reset(&out);
		event_line_json(&out, &trace, &event, (int64_t)data_time, NULL);
		if (!out.failed && !json_is_valid((const char *)out.data, out.len - 1))
			abort();
		event_text_name(&out, &trace, &event);
		event_text_fields(&out, &trace, &event);
		(void)event_text_field(&out, &trace, &event, "field");
		(void)event_text_field(&out, &trace, &event, "Count");
	}
	free(exact);
	bytes_done(&out);
	trace_done(&trace);
	return 0;
}
