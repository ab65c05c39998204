/*
 * A payload and the schema that claims to describe it, both foreign: the first byte says which event of the runtime it is (or that fields follow), then a count of
 * fields of three bytes each (type, element, depth), then the payload.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "export/event_text.h"
#include "model/event.h"
#include "model/schema.h"
#include "model/trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct trace trace;
	struct bytes out = { 0 };

	if (size < 2 || trace_init(&trace) < 0)
		return 0;
	struct schema *schema = vec_push(&trace.schemas);
	size_t count = data[1] % 32;

	if (!schema)
		abort();
	schema->provider = trace_add_text(&trace, "Microsoft-Windows-DotNETRuntime");
	schema->provider_kind = PROVIDER_CLR;
	schema->event_id = data[0];
	data += 2;
	size -= 2;
	for (size_t i = 0; i < count && size >= 3; i++, data += 3, size -= 3) {
		struct field *field = vec_push(&schema->fields);
		if (!field)
			abort();
		field->name = trace_add_text(&trace, "field");
		field->type = data[0] % 28;
		field->element = data[1] % 28;
		field->depth = (uint16_t)(i ? data[2] % 8 : 0);
		field->count = data[2];
	}
	uint8_t *exact = malloc(size + 1);
	const struct event event = {
		.schema_index = trace.schemas.count - 1,
		.payload = exact,
		.payload_size = (uint32_t)size,
	};

	if (exact && size)
		memcpy(exact, data, size);
	if (exact) {
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
