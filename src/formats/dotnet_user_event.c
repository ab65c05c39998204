/* See dotnet_user_event.h. */
#include "formats/dotnet_user_event.h"

#include <string.h>

#include "base/cursor.h"
#include "formats/tracepoint_format.h"

#define VERSION   1u
#define ITEMS_MAX 3u
#define GUID_SIZE 16u

enum { FIELD_VERSION, FIELD_ID, FIELD_EXTENSION, FIELD_PAYLOAD, FIELD_COUNT };

enum { ITEM_METADATA = 1, ITEM_ACTIVITY = 2, ITEM_RELATED = 3 };

bool dotnet_user_event_is(const struct tracepoint_format *format)
{
	static const char *const names[FIELD_COUNT] = { "version", "event_id", "extension",
		"payload" };
	static const uint8_t sizes[FIELD_COUNT] = { 1, 2, 4, 4 };

	for (unsigned i = 0; i < FIELD_COUNT; i++)
		if (!tracepoint_format_has(format, i, names[i]) ||
			format->fields[i].size != sizes[i] ||
			(i >= FIELD_EXTENSION && format->fields[i].place != TRACEPOINT_REL_LOC))
			return false;
	return true;
}

static void read_extension(struct cursor c, struct dotnet_user_event *event)
{
	for (unsigned i = 0; i < ITEMS_MAX && cursor_left(&c); i++) {
		const uint8_t *item;
		size_t size;
		switch (cursor_u8(&c)) {
		case ITEM_METADATA:
			size = cursor_u32(&c);
			item = cursor_take(&c, size);
			if (item) {
				event->metadata = item;
				event->metadata_size = size;
			}
			break;
		case ITEM_ACTIVITY:
			item = cursor_take(&c, GUID_SIZE);
			if (item) {
				event->has_activity = true;
				memcpy(event->activity, item, GUID_SIZE);
			}
			break;
		case ITEM_RELATED:
			item = cursor_take(&c, GUID_SIZE);
			if (item) {
				event->has_activity = true;
				memcpy(event->activity + GUID_SIZE, item, GUID_SIZE);
			}
			break;
		default:
			return; /* of unknown length: what follows cannot be found */
		}
	}
}

bool dotnet_user_event_read(const struct format_field *fields, const uint8_t *raw, size_t size,
	struct dotnet_user_event *ret_event)
{
	struct dotnet_user_event event = { 0 };
	const uint8_t *at[FIELD_COUNT];
	size_t sizes[FIELD_COUNT];

	for (unsigned i = 0; i < FIELD_COUNT; i++) {
		at[i] = format_field_bytes(&fields[i], raw, size, &sizes[i]);
		if (!at[i])
			return false;
	}
	if (at[FIELD_VERSION][0] != VERSION || sizes[FIELD_PAYLOAD] > EVENT_PAYLOAD_MAX)
		return false;
	event.id = (uint16_t)(at[FIELD_ID][0] | at[FIELD_ID][1] << 8);
	event.payload = at[FIELD_PAYLOAD];
	event.payload_size = sizes[FIELD_PAYLOAD];
	read_extension(cursor_of(at[FIELD_EXTENSION], sizes[FIELD_EXTENSION]), &event);
	*ret_event = event;
	return true;
}

const uint8_t *dotnet_user_event_record(const struct dotnet_user_event *event, size_t *ret_size)
{
	struct cursor c = cursor_of(event->metadata, event->metadata_size);
	size_t units;

	if (!event->metadata)
		return NULL;
	(void)cursor_utf16z(&c, &units); /* the provider's name, which the tracepoint says */
	for (unsigned without = 0; without < 2; without++) {
		*ret_size = cursor_left(&c);
		const uint8_t *at = c.at;
		if (cursor_u32(&c) == event->id && !c.short_read)
			return at;
		c = cursor_of(event->metadata, event->metadata_size);
	}
	return NULL;
}
