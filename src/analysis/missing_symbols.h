/*
 * Which ELF images have sampled code without a symbol: what `spoor symbols` completes.
 *
 *   struct missing_symbols missing = { .trace = &trace };
 *   saved_read(path, &trace, missing_symbols_event, &missing, &diag);      or missing_symbols_add()
 *   symbolmap_init(&names, &trace, METHOD_NAME_SHORT);
 *   missing_symbols_find(&missing, &names);
 *   ... missing.images ...
 *   missing_symbols_done(&missing);
 */
#ifndef SPOOR_ANALYSIS_MISSING_SYMBOLS_H
#define SPOOR_ANALYSIS_MISSING_SYMBOLS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"

struct event;
struct symbolmap;
struct trace;

/* The same file in all processes that map it. */
struct missing_image {
	uint32_t build_id; /* strtab; 0: unknown, so no symbol file can be checked against it */
	uint32_t path;     /* strtab */
	uint64_t text_vaddr;
	uint64_t text_offset;
	uint64_t frames;     /* without a symbol */
	uint32_t functions;  /* distinct ones, by bounds or, where the image has none, by address */
	uint32_t address_at; /* its addresses: items[address_at] and those after it */
	uint32_t address_count;
};

struct missing_address {
	uint64_t address;
	uint32_t mapping; /* index in trace.mappings */
	uint32_t symbol;  /* one plus the index of the symbol that gives bounds only; 0 none */
	uint32_t image;   /* index in images */
	uint64_t frames;
};

/* A call chain of a process, and the number of its events. */
struct missing_stack {
	uint32_t process;
	uint32_t stack;
	uint64_t count;
};

struct missing_symbols {
	const struct trace *trace;
	VEC(struct missing_stack) stacks;
	struct map stack_index;
	VEC(struct missing_image) images; /* most frames first */
	VEC(struct missing_address) addresses;
	uint64_t frames;         /* of all stacks */
	uint64_t missing_frames; /* those in `images` */
};

/* Takes an event that may have a stack; `context` is the missing_symbols. 0, or -ENOMEM. */
int missing_symbols_event(void *context, const struct event *event);

/* False: no memory. */
bool missing_symbols_add(struct missing_symbols *missing, uint32_t process, uint32_t stack,
	uint64_t count);

/* Fills images, addresses and frames. 0, or -ENOMEM. */
int missing_symbols_find(struct missing_symbols *missing, const struct symbolmap *names);

void missing_symbols_done(struct missing_symbols *missing);

#endif
