/* A value of an event's payload: read, and printed into a line or into JSON. */
#ifndef SPOOR_RENDER_EVENT_VALUE_H
#define SPOOR_RENDER_EVENT_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bytes;
struct cursor;
struct json;

enum value_kind {
	VALUE_NONE,
	VALUE_BOOL,
	VALUE_I64,
	VALUE_U64,
	VALUE_HEX,
	VALUE_F32,
	VALUE_F64,
	VALUE_TIME,
	VALUE_GUID,
	VALUE_TEXT16,
	VALUE_TEXT8
};

struct event_value {
	enum value_kind kind;
	union {
		uint64_t u;
		int64_t i;
		double f;
		float f32;
	};
	const uint8_t *bytes; /* of a guid or a text */
	size_t count;         /* UTF-16 units, or bytes */
};

/*
 * Reads a value of a type that has neither fields nor elements. False: the type's length is not
 * known, so that no field after it can be read. A payload that is too short shows in c->short_read.
 */
bool event_value_read(unsigned type, struct cursor *c, struct event_value *ret_value);

/* `bare`: texts whole and without quotes, for the comparison with text from the command line. */
void event_value_add(struct bytes *out, const struct event_value *value, bool bare);

/* `name` NULL: an element. */
void event_value_json(struct json *j, const char *name, const struct event_value *value);

/* "00112233-4455-...": 16 bytes as a file has them. */
void event_value_guid(struct bytes *out, const uint8_t *guid);

#endif
