/*
 * Events of user_events. Input: the name of a tracepoint and a line end, its format file and a NUL; then for each sample u16 size and raw
 * data.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cursor.h"
#include "base/json.h"
#include "recording/user_event_table.h"
#include "render/event_text.h"
#include "trace/event.h"
#include "trace/trace.h"

static void decode(struct user_event_table *table, struct cursor *c)
{
	struct user_event found;
	struct bytes out = { 0 };
	struct json j = { .out = &out };
	size_t size = cursor_u16(c);
	const uint8_t *raw = cursor_take(c, size);
	uint8_t *exact = raw && size ? malloc(size) : NULL;

	if (!exact)
		return;
	memcpy(exact, raw, size);
	if (user_event_table_decode(table, 1, exact, size, &found)) {
		const struct event event = { .schema_index = found.schema_index,
			.payload = found.payload,
			.payload_size = found.payload_size };
		if (!found.schema_index || found.schema_index >= table->trace->schemas.count ||
			found.payload_size > EVENT_PAYLOAD_MAX)
			__builtin_trap();
		json_object(&j, NULL);
		(void)event_text_json(&j, table->trace, &event); /* any text */
		json_end(&j);
	}
	bytes_done(&out);
	free(exact);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct tracepoint_format format;
	struct cursor c = cursor_of(data, size);
	struct user_event_table table;
	struct trace trace;
	size_t len;
	const char *text = cursor_stringz(&c, &len);
	const char *end = text ? memchr(text, '\n', len) : NULL;

	if (!end || trace_init(&trace) < 0)
		return 0;
	char *name = strndup(text, (size_t)(end - text));
	size_t rest = len - (size_t)(end + 1 - text);
	char *exact = malloc(rest + 1);

	user_event_table_init(&table, &trace);
	if (name && exact) {
		memcpy(exact, end + 1, rest);
		if (tracepoint_format_parse(exact, rest, &format, NULL) == 0 &&
			user_event_table_add(&table, name, NULL, &format) == 0)
			while (cursor_left(&c))
				decode(&table, &c);
	}
	user_event_table_done(&table);
	trace_done(&trace);
	free(exact);
	free(name);
	return 0;
}
