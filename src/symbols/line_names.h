/*
 * Source lines of sampled addresses, from the debug files of this machine: the symbol cache, the
 * machine's own store, the images themselves and the debug files beside them.
 *
 *   struct line_names lines = { .trace = &trace, .names = &names };
 *   line_names_add(&lines, process, stack, epoch) ...      each stack whose lines are wanted
 *   line_names_find(&lines, &names, &cache)                fills trace.lines, for native code
 *   managed_lines_find(&lines, &cache)                            the same for managed code
 *   line_names_done(&lines)
 *
 * A file is used only if it has the build id that the recording has, and its code at the same
 * address. Lines that the recording has already are not looked up again.
 */
#ifndef SPOOR_SYMBOLS_LINE_NAMES_H
#define SPOOR_SYMBOLS_LINE_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"
#include "trace/line_table.h"

struct event;
struct symbol_cache;
struct symbolmap;
struct trace;

struct line_stack {
	uint32_t process;
	uint32_t stack;
	uint32_t epoch;
};

/* An address without lines. */
struct line_missing {
	struct line_place place;
	uint64_t vaddr; /* of native code: as the image numbers it */
	uint32_t process;
	uint32_t mapping; /* index in trace.mappings */
	uint32_t code;    /* index plus one in process.codes; 0: native code */
	uint32_t image;   /* strtab: build id; 0 unknown */
};

struct line_names {
	struct trace *trace;
	VEC(struct line_stack) stacks;
	struct map stack_index;
	VEC(struct line_missing) missing; /* by image */
	struct map seen;
	/* after line_names_find() */
	uint32_t first;         /* lines that were found: trace.lines.entries from here on */
	uint32_t asked;         /* addresses that could have lines */
	uint32_t answered;      /* of these: have lines now */
	uint32_t image_count;   /* images of native code */
	uint32_t without;       /* of these: without debug information here */
	uint32_t first_without; /* strtab: path of one of them */
};

/* False: no memory. */
bool line_names_add(struct line_names *lines, uint32_t process, uint32_t stack, uint32_t epoch);

/* Takes an event that may have a stack; `context` is the line_names. 0, or -ENOMEM. */
int line_names_event(void *context, const struct event *event);

/* 0, or -ENOMEM. Adds texts to the trace. */
int line_names_find(struct line_names *lines, const struct symbolmap *names,
	const struct symbol_cache *cache);

void line_names_done(struct line_names *lines);

#endif
