/*
 * What a schema leaves open about the bytes of its payloads.
 *
 * Runtimes describe two kinds of Boolean as one type up to version 4 of the format, and two kinds
 * of byte arrays. The layout that uses a payload up to its last byte is the right one. An
 * EventSource with a manifest writes an enum of one or two bytes as an int32, and describes it by
 * its own size: such a field is wide.
 */
#ifndef SPOOR_TRACE_PAYLOAD_LAYOUT_H
#define SPOOR_TRACE_PAYLOAD_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAYLOAD_DEPTH_MAX \
	12u /* objects and arrays within one another; twice that, with those around, is below JSON_DEPTH_MAX */
#define PAYLOAD_WIDE_MAX 6u /* integers of one and two bytes, in payloads where some are wide */
/* padding bytes of a tracepoint's record, after the elements at an offset */
#define PAYLOAD_PAD_MAX 7u
#define PAYLOAD_LOCATED_MAX \
	(256u << 10) /* bytes of one event that are reached through offsets: many may lead to the same */

struct schema;

struct payload_layout {
	/* FIELD_BOOL has one byte, not four: self-describing and native sources */
	bool byte_bools;
	uint64_t wide; /* bit i: field i has four bytes */
	/* byte arrays have a count of four bytes, not two: EventSources with a manifest */
	bool counted_by_4;
};

/* Whether fields up to `end`, and elements up to `located` (NULL: none), use the whole payload. */
bool payload_is_used_up(const uint8_t *end, const uint8_t *located, const uint8_t *payload_end);

/* Bytes of a value of this type (enum field_type); 0: its values differ in size. */
size_t payload_fixed_size(unsigned type, struct payload_layout layout);

bool payload_is_wide(struct payload_layout layout, const struct schema *schema, uint32_t i);

/* Whether the payload has all fields in this layout, and nothing else. */
bool payload_layout_fits(const struct schema *schema, struct payload_layout layout,
	const uint8_t *payload, uint32_t size);

/*
 * The first one that fits; else the only one with wide fields that fits; else the one of the
 * format's page: Booleans of four bytes, counts of two.
 */
struct payload_layout payload_layout_of(const struct schema *schema, const uint8_t *payload,
	uint32_t size);

#endif
