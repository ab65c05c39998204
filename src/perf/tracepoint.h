/*
 * The kernel's description of a tracepoint: its id, and where its fields are in the raw data of a
 * sample. Tracefs has it; where tracefs is not mounted and the rights allow it, a private mount is
 * made, which no other process sees and which ends with the reading.
 */
#ifndef SPOOR_PERF_TRACEPOINT_H
#define SPOOR_PERF_TRACEPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tracepoint_field {
	const char *name; /* set by the caller */
	uint32_t offset;  /* in the raw data */
	uint32_t size;    /* 1, 2, 4 or 8 bytes */
};

struct tracepoint {
	uint16_t id; /* the first two bytes of the raw data */
};

/*
 * Reads the tracepoint `name` ("sched/sched_switch") and fills its `count` fields. -EACCES: tracefs
 * cannot be read. -ENOENT: this kernel has no such tracepoint, or tracefs is not mounted. -EBADMSG:
 * the description lacks a field.
 */
int tracepoint_read(const char *name, struct tracepoint_field *fields, size_t count,
	struct tracepoint *ret_tracepoint);

/* The second half of tracepoint_read(): `text` is the content of the format file. */
int tracepoint_parse(const char *text, struct tracepoint_field *fields, size_t count,
	struct tracepoint *ret_tracepoint);

/* The value of a field, not sign-extended; 0 if the raw data is too short. */
uint64_t tracepoint_value(const struct tracepoint_field *field, const uint8_t *raw, size_t size);

#endif
