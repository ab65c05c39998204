/*
 * Reads the values of a CTF packet by their types. Bounded by the packet: what does not fit sets
 * `short_read`, and further values are 0.
 */
#ifndef SPOOR_FORMATS_CTF_DECODE_H
#define SPOOR_FORMATS_CTF_DECODE_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/ctf_types.h"

struct bytes;

#define CTF_STEPS_MAX (1u << 20)

struct ctf_decoder {
	const struct ctf_metadata *metadata;
	uint64_t *slots; /* CTF_SLOTS_MAX values, borrowed */
	uint32_t *tags;  /* by slot: the type of the enumeration that was last decoded; borrowed */
	const uint8_t *data;
	uint64_t at;  /* bits */
	uint64_t end; /* bits */
	uint64_t clock;
	unsigned depth;
	uint32_t
		steps_left; /* CTF_STEPS_MAX at the begin of an event: empty values take no bytes */
	bool short_read;
};

/* Moves to the alignment of a type. */
void ctf_align(struct ctf_decoder *d, uint32_t align);

/* The value of a CTF_INTEGER, CTF_ENUM or CTF_FLOAT (its bits), sign-extended. */
uint64_t ctf_read_number(struct ctf_decoder *d, const struct ctf_type *type);

/* The next bytes in place, after the alignment to a whole byte; NULL: none, or they do not fit. */
const uint8_t *ctf_take_bytes(struct ctf_decoder *d, uint32_t size_bytes);

/* A text in place, without its NUL; NULL: it does not end. */
const char *ctf_read_string(struct ctf_decoder *d, size_t *ret_len);

/* The number of elements of an array or sequence, which must fit the packet. */
uint32_t ctf_element_count(struct ctf_decoder *d, const struct ctf_type *type);

/* The field of a variant that its tag selects; NULL: none. */
const struct ctf_field *ctf_select(struct ctf_decoder *d, const struct ctf_type *variant);

/* Keeps a number in the field's slot, if it has one. */
void ctf_keep(struct ctf_decoder *d, const struct ctf_field *field, const struct ctf_type *type,
	uint64_t value);

/* Reads a field's value into its slot, without another use. */
void ctf_skip_field(struct ctf_decoder *d, const struct ctf_field *field);
void ctf_skip(struct ctf_decoder *d, uint32_t type);

/* The value as text for a person: {"a": 1}, [1, 2], "text". */
void ctf_add_text(struct ctf_decoder *d, uint32_t type, struct bytes *out);

#endif
