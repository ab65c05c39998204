/*
 * The description of a tracepoint in tracefs, events/GROUP/NAME/format: its id, and the place and type of each field in
 * the raw data of its samples.
 *
 *   name: order
 *   ID: 1874
 *   format:
 *           field:unsigned short common_type;       offset:0;       size:2; signed:0;
 *
 *           field:u32 count;        offset:8;       size:4; signed:0;
 *           field:__rel_loc char[] product; offset:12;      size:4; signed:1;
 *
 *   print fmt: ...
 *
 * A field of type __rel_loc or __data_loc is a number that says where its elements are: their offset in the lower 16
 * bits, counted from the end of the number or from the begin of the raw data, and their bytes in the upper 16.
 */
#ifndef SPOOR_FORMATS_TRACEPOINT_FORMAT_H
#define SPOOR_FORMATS_TRACEPOINT_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct diag;

#define TRACEPOINT_FORMAT_MAX (16u << 10) /* bytes of a description; a larger one is refused */
#define TRACEPOINT_FIELDS_MAX 256u

enum tracepoint_place {
	TRACEPOINT_INLINE,   /* the field has its value or its elements */
	TRACEPOINT_REL_LOC,  /* __rel_loc */
	TRACEPOINT_DATA_LOC, /* __data_loc */
};

struct format_field {
	const char *name; /* in the text of the description, without a NUL; borrowed */
	uint32_t name_len;
	uint32_t offset; /* in the raw data; offset + size is at most UINT16_MAX */
	uint32_t size;
	uint8_t place;         /* enum tracepoint_place */
	uint8_t element_bytes; /* of an array's elements, 1, 2, 4 or 8; 0: a single value */
	bool is_signed;        /* the value, or the elements */
	bool is_text;          /* the elements are characters */
	bool is_bool;
};

/* Fields in the order of the description, without those that all tracepoints have (common_*). */
struct tracepoint_format {
	uint16_t id; /* the first two bytes of the raw data */
	uint32_t count;
	struct format_field fields[TRACEPOINT_FIELDS_MAX];
};

/*
 * Parses `size` bytes of a description. -EFBIG: more than TRACEPOINT_FORMAT_MAX bytes. -E2BIG: more than
 * TRACEPOINT_FIELDS_MAX fields. -EBADMSG: malformed. The diag has a sentence.
 */
int tracepoint_format_parse(const char *text, size_t size, struct tracepoint_format *ret_format,
	struct diag *diag);

/* Whether the format has a field of this name at this index. */
bool tracepoint_format_has(const struct tracepoint_format *format, uint32_t index,
	const char *name);

/*
 * The bytes of a field in the raw data: its value, its elements, or the elements that it leads to. NULL: the raw data
 * does not have them.
 */
const uint8_t *format_field_bytes(const struct format_field *field, const uint8_t *raw, size_t size,
	size_t *ret_size);

#endif
