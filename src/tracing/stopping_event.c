/* See stopping_event.h. */
#include "tracing/stopping_event.h"

#include <string.h>

#include "base/text.h"
#include "render/event_text.h"
#include "trace/event.h"
#include "trace/schema.h"
#include "trace/trace.h"

static bool payload_fits(struct stopping_event *stop, const struct trace *trace,
	const struct event *event)
{
	const char *at = stop->payload;

	while (at && *at) {
		size_t len = strcspn(at, ",");
		const char *colon = memchr(at, ':', len);
		char field[128];
		if (!colon)
			return false;
		/* no event has a field with a longer name */
		text_set(field, "%.*s", (int)(colon - at), at);
		bytes_reset(&stop->text);
		size_t value_len = len - (size_t)(colon + 1 - at);
		if (!event_text_field(&stop->text, trace, event, field) ||
			stop->text.len != value_len ||
			memcmp(bytes_z(&stop->text), colon + 1, value_len) != 0)
			return false;
		at += len;
		at += *at == ',';
	}
	return true;
}

static bool name_fits(struct stopping_event *stop, const struct trace *trace,
	const struct event *event)
{
	size_t provider_len = strlen(stop->provider) + 1;

	bytes_reset(&stop->text);
	event_text_name(&stop->text, trace, event);
	return stop->text.len >= provider_len &&
	       strcmp(bytes_z(&stop->text) + provider_len, stop->event) == 0;
}

bool stopping_event_fits(struct stopping_event *stop, const struct trace *trace,
	const struct event *event)
{
	const struct schema *schema = &trace->schemas.items[event->schema_index];

	return stop->provider && strcmp(trace_text(trace, schema->provider), stop->provider) == 0 &&
	       (!stop->event || name_fits(stop, trace, event)) && payload_fits(stop, trace, event);
}

void stopping_event_done(struct stopping_event *stop)
{
	bytes_done(&stop->text);
}
