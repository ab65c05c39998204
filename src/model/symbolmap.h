/*
 * Names as a file carries them: from (process, address, epoch) to a function.
 *
 * Built once, when a file has been read to its end (names may stand behind the samples they name); then each address of each distinct
 * stack is looked up once. Functions are numbered: two addresses of one function give the same index.
 */
#ifndef SPOOR_MODEL_SYMBOLMAP_H
#define SPOOR_MODEL_SYMBOLMAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"

struct trace;

/* Where a function's code comes from: what colours and columns show. */
enum function_kind {
	FUNCTION_UNKNOWN,
	FUNCTION_KERNEL,
	FUNCTION_NATIVE,
	FUNCTION_JIT,
	FUNCTION_READYTORUN,
	FUNCTION_STUB,
};

struct function {
	uint32_t name;     /* strtab: readable; "libcoreclr.so+0x1a2b3" when there is no symbol */
	uint32_t module;   /* strtab: "libc.so.6", "Shop.dll", "kernel", "JIT" */
	uint8_t kind;      /* enum function_kind */
	uint8_t tier;      /* enum code_tier */
	bool named;        /* false: module and offset only */
};

struct symbolmap {
	struct trace *trace;
	bool raw_names;
	VEC(struct function) functions;  /* item 0 unused */
	struct map function_index;
	void *state;                     /* sorted tables, private */
};

/* Sorts the trace's symbols and code ranges. Names of functions are added to the trace's strings. */
int symbolmap_init(struct symbolmap *map, struct trace *trace, bool raw_names);

/* The function at `address` in `process` during `code_epoch`; never 0 unless memory ran out. */
uint32_t symbolmap_find(struct symbolmap *map, uint32_t process, uint64_t address,
	uint32_t code_epoch);

void symbolmap_done(struct symbolmap *map);

#endif
