/*
 * Which method was at an address that may be freed and used again, from reads of the memory.
 *
 * A read finds the method of the time of the read, not of the time of a sample before it. So a
 * sample has a name only if it lies in an interval in which no other code can have been there:
 * - between two reads that found the same method, or
 * - between a time from which on the runtime has freed no code (passing_read.quiet_ns) and the read.
 * Before, between and after these intervals the address has no name. This is reported as changes, in
 * order for each address: the samples from a change to the next one belong to its method, or to none.
 *
 *   passing_code_read(code, read, each, context)     for each address that was sampled since the last read
 *   passing_code_end(code, each, context)            the process has ended, or samples were not read
 *
 * Pure: no clock and no process. Not thread-safe.
 */
#ifndef SPOOR_RECORDING_PASSING_CODE_H
#define SPOOR_RECORDING_PASSING_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

struct clr_found;

struct passing_read {
	uint64_t address;
	uint64_t sampled_ns; /* not later than the first sample since the last read */
	uint64_t before_ns;  /* the memory was read after this time */
	uint64_t after_ns;   /* the memory was read before this time */
	/* the runtime has freed no code from then to the read; 0: unknown */
	uint64_t quiet_ns;
	const struct clr_found *found; /* NULL: no method */
};

struct passing_change {
	uint64_t at_ns; /* samples from this time on: to be reported before them */
	uint64_t begin;
	uint64_t end;
	const struct clr_found *found; /* NULL: from then on it is unknown; else borrowed */
};

typedef void passing_change_fn(void *context, const struct passing_change *change);

/* A method that was read last at its place. No two overlap. */
struct passing_slot {
	uint64_t begin;
	uint64_t end;
	uint64_t mark;         /* hash of all that was read of it */
	uint64_t first_ns;     /* the end of the first read */
	uint64_t confirmed_ns; /* the begin of the last read that found it */
	bool open;             /* its begin was reported */
};

struct passing_code {
	VEC(struct passing_slot) slots; /* sorted by begin */
	uint64_t replaced_ns;           /* when a slot was last found to be new or replaced */
};

/* Whether a method was at the address when it was read last. */
bool passing_code_has(const struct passing_code *code, uint64_t address);

/* Whether a method that is found there is one that no earlier read has found. */
bool passing_code_is_new(const struct passing_code *code, const struct clr_found *found);

void passing_code_read(struct passing_code *code, const struct passing_read *read,
	passing_change_fn *each, void *context);

/* Every method ends when it was last confirmed. */
void passing_code_end(struct passing_code *code, passing_change_fn *each, void *context);

size_t passing_code_size_bytes(const struct passing_code *code);
void passing_code_done(struct passing_code *code);

#endif
