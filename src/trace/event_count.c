/* See event_count.h. */
#include "trace/event_count.h"

#include <string.h>

#include "base/bytes.h"
#include "base/cursor.h"
#include "base/text.h"
#include "trace/event.h"
#include "trace/schema.h"
#include "trace/trace.h"

/* The newest schema of this id and provider; 0: none. */
static uint32_t find_schema(const struct trace *trace, const char *provider, uint64_t event_id)
{
	for (uint32_t i = trace->schemas.count; i-- > 1;)
		if (trace->schemas.items[i].event_id == event_id &&
			strcmp(trace_text(trace, trace->schemas.items[i].provider), provider) == 0)
			return i;
	return 0;
}

static bool is_estimate(const uint8_t *units, size_t unit_count)
{
	static const char word[] = EVENT_COUNT_ESTIMATE;

	if (unit_count != sizeof(word) - 1)
		return false;
	for (size_t i = 0; i < unit_count; i++)
		if (units[2 * i] != (uint8_t)word[i] || units[2 * i + 1])
			return false;
	return true;
}

bool event_count_read(const struct trace *trace, const struct event *event, struct event *ret_event,
	struct event_counted *ret_counted)
{
	const struct schema *schema = event->schema_index < trace->schemas.count
					      ? &trace->schemas.items[event->schema_index]
					      : NULL;
	struct cursor c = cursor_of(event->payload, event->payload_size);
	struct bytes provider = { 0 };
	size_t unit_count;
	size_t source_units;

	if (!schema || schema->provider_kind != PROVIDER_SPOOR ||
		schema->event_id != ID_SPOOR_EVENT_COUNT)
		return false;
	(void)cursor_utf16z(&c, &unit_count); /* a cut text shows in the cursor */
	const uint32_t type_size = (uint32_t)(unit_count + 1) * 2;
	const uint8_t *units = cursor_utf16z(&c, &unit_count);
	uint64_t event_id = cursor_varuint(&c);
	struct event_counted counted = { .count = cursor_varuint(&c) };

	counted.first_ns = cursor_u64(&c);
	counted.last_ns = cursor_u64(&c);

	if (c.short_read)
		return false;
	/* earlier files end here */
	const uint8_t *source = cursor_utf16z(&c, &source_units);
	counted.unseen = source && source_units;
	counted.estimated = counted.unseen && is_estimate(source, source_units);
	text_add_utf16(&provider, units, unit_count);
	uint32_t index = provider.failed ? 0 : find_schema(trace, bytes_z(&provider), event_id);

	bytes_done(&provider);
	if (!index)
		return false;
	*ret_event = *event;
	ret_event->schema_index = index;
	ret_event->kind = trace->schemas.items[index].kind;
	ret_event->payload_size = type_size;
	/* it is written after the last of them, so other times are damage */
	if (counted.last_ns > event->time_ns)
		counted.last_ns = event->time_ns;
	if (counted.first_ns > counted.last_ns)
		counted.first_ns = counted.last_ns;
	ret_event->time_ns = counted.last_ns;
	*ret_counted = counted;
	return true;
}
