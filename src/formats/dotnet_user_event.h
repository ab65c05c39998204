/*
 * The raw data of an event that .NET 10 writes into the kernel's user_events: the fields of its tracepoint are
 *
 *   u8 version; u16 event_id; __rel_loc u8[] extension; __rel_loc u8[] payload
 *
 * with version 1. The payload is that of an EventPipe event. The extension has items:
 *
 *   u8 1, u32 size, a metadata record of EventPipe without its number: with the first event of each kind
 *   u8 2, the activity's id as a guid, 16 bytes
 *   u8 3, the related activity's, likewise
 */
#ifndef SPOOR_FORMATS_DOTNET_USER_EVENT_H
#define SPOOR_FORMATS_DOTNET_USER_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/event.h"

struct format_field;
struct tracepoint_format;

/* An event in place; the pointers are borrowed from the raw data. */
struct dotnet_user_event {
	uint16_t id;
	bool has_activity;
	uint8_t activity[EVENT_ACTIVITY_SIZE];
	const uint8_t *metadata; /* NULL: none */
	size_t metadata_size;
	const uint8_t *payload;
	size_t payload_size;
};

/* Whether a tracepoint has these fields. */
bool dotnet_user_event_is(const struct tracepoint_format *format);

/* Decodes the raw data of a sample with these fields. False: malformed, or of another version. */
bool dotnet_user_event_read(const struct format_field *fields, const uint8_t *raw, size_t size,
	struct dotnet_user_event *ret_event);

/*
 * The part of a metadata record after the provider's name, which some runtimes leave out: from the event's id on.
 * NULL: it is the record of no event with this id.
 */
const uint8_t *dotnet_user_event_record(const struct dotnet_user_event *event, size_t *ret_size);

#endif
