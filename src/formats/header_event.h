/*
 * EventHeader: events that describe themselves, as libspoor, TraceLogging and other libraries write them into the
 * kernel's user_events. A tracepoint Provider_L4K1 has the events of one provider, level and set of keywords.
 *
 *   offset  size  field
 *   0       1     flags     1 pointers of 64 bits, 2 little-endian, 4 an extension follows
 *   1       1     version
 *   2       2     id        0: none
 *   4       2     tag
 *   6       1     opcode
 *   7       1     level
 *   8             extensions: u16 size, u16 kind (0x8000: another one follows), `size` bytes
 *                   kind 1: the description: name and zero byte; for each field name and zero byte, u8 encoding,
 *                     u8 format (if the encoding has 0x80), u16 tag (if the format has 0x80),
 *                     u16 count (if the encoding has 0x20)
 *                   kind 2: the activity's id in network byte order, and the related one's or nothing
 *                 the payload: the fields without padding
 *
 *   header_event_read(raw, size, &event);
 *   header_layout_make(&event, provider, keywords, trace, &layout);   for each new description
 *   header_layout_payload(&layout, &event, &payload);                 in the layout of its schema
 *   header_layout_done(&layout);
 *
 * Texts become UTF-16, uuids guids, and arrays arrays with a count. Bytes after the last field are left out.
 */
#ifndef SPOOR_FORMATS_HEADER_EVENT_H
#define SPOOR_FORMATS_HEADER_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "trace/event.h"

struct bytes;
struct trace;

#define HEADER_EVENT_SIZE       8u
#define HEADER_EVENT_FIELDS_MAX 1024u
#define HEADER_EVENT_DEPTH_MAX  8u /* of structs in structs */

/* An event in place; all pointers are borrowed from the raw data. */
struct header_event {
	uint16_t id;
	uint16_t tag;
	uint8_t version;
	uint8_t opcode;
	uint8_t level;
	const uint8_t *description; /* NULL: none */
	size_t description_size;
	const uint8_t *activity; /* 16 bytes, 32 with the related one; NULL: none */
	size_t activity_size;
	const uint8_t *payload;
	size_t payload_size;
};

/* One field of a description. A struct's fields follow it. */
struct header_step {
	uint8_t encoding; /* without flags */
	uint8_t format;   /* without flags; of a struct: 0 */
	uint8_t type;     /* enum field_type of a value, or of each element */
	bool is_array;    /* of `count` elements */
	uint16_t count;   /* 0: the payload has the count */
	uint16_t end;     /* index after its last step */
};

struct header_layout {
	uint32_t schema_index;
	bool has_description; /* else the payload is one array of bytes */
	VEC(struct header_step) steps;
};

/*
 * Decodes header and extensions of `size` bytes. False: they are malformed, or big-endian. Extensions of other kinds
 * are skipped.
 */
bool header_event_read(const uint8_t *data, size_t size, struct header_event *ret_event);

/*
 * The schema of the event in `trace`, and how to decode its payload. `provider` is an index of the trace's texts.
 * -EBADMSG: the description is malformed, or beyond the limits above. -ENOMEM.
 */
int header_layout_make(const struct header_event *event, uint32_t provider, uint64_t keywords,
	struct trace *trace, struct header_layout *ret_layout);

/* Appends the payload. False: the event is shorter than its description says, or larger than EVENT_PAYLOAD_MAX. */
bool header_layout_payload(const struct header_layout *layout, const struct header_event *event,
	struct bytes *payload);

/* The activities as guids of a file, EVENT_ACTIVITY_SIZE bytes. False: the event has none. */
bool header_event_activity(const struct header_event *event,
	uint8_t ret_activity[EVENT_ACTIVITY_SIZE]);

void header_layout_done(struct header_layout *layout);

/*
 * Provider and keywords of the name "Provider_L4K1Ggroup". Returns the length of the provider's name; 0: it is no such
 * name.
 */
size_t header_event_name(const char *tracepoint, uint8_t *ret_level, uint64_t *ret_keywords);

#endif
