/*
 * How LTTng sees the fields of an event, and how a payload becomes what LTTng records.
 *
 * Each type has an alignment of one byte, so the record is the payload, except: texts have no
 * length in front and are UTF-8; an array of texts is a count and one string of lines; an array of
 * structs or GUIDs is an array of bytes. Elements of float arrays are shown as their bits, because
 * LTTng has arrays of integers only.
 */
#ifndef SPOOR_LIB_LOGGER_LTTNG_FIELDS_H
#define SPOOR_LIB_LOGGER_LTTNG_FIELDS_H

#include "lib/event/provider.h"
#include "lib/logger/lttng_abi.h"

/*
 * Makes the description of an event's fields; it is never freed. 0, -ENOMEM, or -E2BIG: more than
 * LTTNG_FIELDS_MAX.
 */
#define LTTNG_FIELDS_MAX 256u
int lttng_fields_make(const struct event_entry *entry, const struct lttng_field *const **ret_fields,
	size_t *ret_count);

/* What LTTng records of a payload. */
struct lttng_record {
	size_t size;
	const uint8_t *bytes; /* NULL: more than the buffer takes; the payload is converted again */
	uint8_t buffer[1024];
};
/* -EBADMSG: the payload does not match the fields. */
int lttng_record_make(const struct event_entry *entry, const uint8_t *payload, size_t payload_size,
	struct lttng_record *ret_record);
void lttng_record_write(const struct lttng_record *record, const struct event_entry *entry,
	const uint8_t *payload, size_t payload_size, struct lttng_buffer_context *context,
	const struct lttng_buffer_ops *ops);

/*
 * The fields that filters compare: 8 bytes for a number (floats as double), an address for a text,
 * the count and the address for an array. Texts that have to be converted are in `texts`.
 */
#define LTTNG_STACK_TEXTS 2048u
struct lttng_stack {
	uint64_t values[2 * LTTNG_FIELDS_MAX];
	unsigned count;
	size_t text_size;
	bool whole;
	char texts[LTTNG_STACK_TEXTS];
};
/* `whole`: also those that filters do not compare, as LTTng-UST 2.12 counts them. */
void lttng_stack_make(const struct event_entry *entry, const uint8_t *payload, size_t payload_size,
	bool whole, struct lttng_stack *ret_stack);

#endif
