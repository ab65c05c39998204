/*
 * Decodes the dynamic events of a garbage collector, by name and field.
 *
 * A collector that is its own library (gc/) sends events that the runtime does not know as the
 * runtime's event 39, GCDynamicEvent, with a name and packed bytes inside. The table here is made
 * from the list that fires them, gc/gc_events.def. Use:
 *
 *   struct gc_dynamic e;
 *   if (gc_dynamic_open(payload, size, &e) == 0)
 *           while (gc_dynamic_next(&e, &field) > 0)
 *                   ... field.name, gc_dynamic_value(&field, i, text)
 *
 * A name that is not in the table has only its bytes (e.data). A version older than the table's has
 * fewer fields, a newer one bytes left over (e.rest). All pointers go into the payload.
 */
#ifndef SPOOR_TRACE_GC_DYNAMIC_H
#define SPOOR_TRACE_GC_DYNAMIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cursor.h"
#include "trace/schema.h"

struct bytes;

struct gc_dynamic_event {
	const char *name;
	uint16_t version;
	const char *what;   /* one sentence: the contents of the event */
	const char *fields; /* "(u32, Collection), (u64, PauseNs)" */
};

extern const struct gc_dynamic_event gc_dynamic_events[];
extern const size_t gc_dynamic_event_count;

#define GC_DYNAMIC_NAME_MAX 768u /* 254 UTF-16 units as UTF-8 */

struct gc_dynamic {
	char name[GC_DYNAMIC_NAME_MAX];       /* as it was fired, cut to this size */
	const struct gc_dynamic_event *event; /* NULL: not in the table */
	const uint8_t *data;
	size_t size;
	uint16_t version; /* 0 when there are not even two bytes */
	size_t rest;      /* bytes after the last field, once gc_dynamic_next() has returned 0 */
	struct cursor at;
	const char *next_field;
};

struct gc_dynamic_field {
	const char *name; /* not NUL-terminated */
	size_t name_len;
	enum field_type type; /* of each value; FIELD_TEXT16 for texts */
	bool is_array;
	size_t count;          /* values of an array, UTF-16 units of a text, else 1 */
	size_t value_size;     /* bytes of one */
	const uint8_t *values; /* not aligned */
};

/* The payload of event 39. -EBADMSG when it ends too early. */
int gc_dynamic_open(const uint8_t *payload, size_t size, struct gc_dynamic *ret_event);

/* The same for a name and its bytes, as they were fired. */
void gc_dynamic_open_named(const char *name, size_t name_len, const uint8_t *data, size_t size,
	struct gc_dynamic *ret_event);

/* The next field: 1, or 0 after the last, or -EBADMSG where the bytes end within a field. */
int gc_dynamic_next(struct gc_dynamic *event, struct gc_dynamic_field *ret_field);

/* Appends a field's value: a number, a text in quotes, [1,2,3]. */
void gc_dynamic_value(const struct gc_dynamic_field *field, struct bytes *out);

#endif
