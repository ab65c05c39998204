/*
 * Names for code that a recording has no symbols for, from the symbol cache and the machine's store.
 *
 *   missing_symbols_find(&missing, &names);
 *   symbol_names_find(&found, &trace, &missing, &cache);
 *   symbol_names_use(&found, &trace);          and a new symbolmap; or symbol_apply() into a file
 *   symbol_names_done(&found);
 *
 * A name is used only if the file has the build id that the recording has, and its code at the
 * address that the recording has.
 */
#ifndef SPOOR_SYMBOLS_SYMBOL_NAMES_H
#define SPOOR_SYMBOLS_SYMBOL_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

struct missing_symbols;
struct symbol_cache;
struct trace;

struct symbol_name {
	/* one plus the index of the symbol with bounds only that it replaces; 0: it is new */
	uint32_t replaced;
	uint32_t name;       /* strtab */
	uint64_t mapping_id; /* in the file */
	uint64_t begin;
	uint64_t end; /* exclusive */
};

/* The symbol file of one image. */
enum symbol_state {
	SYMBOLS_ABSENT, /* in no store */
	SYMBOLS_NO_ID,  /* the recording has no build id of the image, so no file can be checked */
	SYMBOLS_WRONG,  /* a file in a store has another content than its name says */
	SYMBOLS_UNSUITABLE, /* its code is at another address than in the recorded image */
	SYMBOLS_USED,
};

struct symbol_names {
	VEC(struct symbol_name) names;
	VEC(uint8_t) states;    /* enum symbol_state, by missing_image */
	VEC(uint64_t) by_image; /* frames that get a name, by missing_image */
	uint64_t frames;        /* sum of `by_image` */
};

/* Whether a store has a file for any image of the recording: false is quick. */
bool symbol_names_possible(const struct trace *trace, const struct symbol_cache *cache);

/* 0, or -ENOMEM. Adds texts to the trace. */
int symbol_names_find(struct symbol_names *found, struct trace *trace,
	const struct missing_symbols *missing, const struct symbol_cache *cache);

/* Puts the names into the trace's symbols. False: no memory, and some are missing. */
bool symbol_names_use(const struct symbol_names *found, struct trace *trace);

void symbol_names_done(struct symbol_names *found);

#endif
