/* The description of an event in a nettrace file of version 6: its name, its fields and their types. */
#ifndef SPOOR_NETTRACE_METADATA_ROW_H
#define SPOOR_NETTRACE_METADATA_ROW_H

#include <stdbool.h>
#include <stdint.h>

struct bytes;
struct schema;
struct trace;

struct metadata_row {
	const struct schema *schema;
	/* the one whose row was the first of its provider and event id; it may be the same */
	const struct schema *first;
	uint32_t id;
	bool byte_bools; /* its Booleans are written as bytes */
};

/* Whether the row can say that the schema's Booleans, of which there are some, are bytes. */
bool metadata_row_can_have_byte_bools(const struct schema *schema);

void metadata_row_put(struct bytes *out, const struct trace *trace, const struct metadata_row *row);

#endif
