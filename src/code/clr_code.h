/*
 * From an address to the managed method whose code contains it, in the memory of a .NET process: by
 * the runtime's map of code ranges, the nibble maps of its code heaps, and the tables of precompiled
 * images.
 *
 * Sections of code that is never freed are remembered; those of collectible code are looked up each
 * time. Each value that leads to the next read is checked, and torn or freed data gives no answer.
 */
#ifndef SPOOR_CODE_CLR_CODE_H
#define SPOOR_CODE_CLR_CODE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

struct clr_layout;
struct clr_memory;

/* A range of addresses with one kind of code. */
struct clr_section {
	uint64_t begin;
	uint64_t end; /* exclusive */
	uint64_t flags;
	uint64_t heap_base;    /* JIT heap: the address of the nibble map's first unit */
	uint64_t heap_nibbles; /* 0: no JIT heap */
	uint64_t functions;    /* precompiled image: its functions, sorted; 0: none */
	uint32_t function_count;
	uint64_t entries; /* hash map from entry points to methods */
	uint32_t *firsts; /* begin of every PAGE_FUNCTIONS-th function; NULL until they are read */
	bool precompiled;
	/* precompiled image: the same functions, found by its headers, which every version has */
	uint64_t table;
	uint32_t table_count;
};

struct clr_code {
	struct clr_memory *memory; /* borrowed, as is layout */
	const struct clr_layout *layout;
	VEC(struct clr_section) sections; /* lasting ones */
};

struct clr_body {
	uint64_t begin;
	uint64_t end;     /* exclusive; with the funclets */
	uint64_t method;  /* MethodDesc */
	uint64_t header;  /* of JIT code: what the u64 before it holds; else 0 */
	bool collectible; /* it may be freed */
	bool precompiled;
};

/* A method without its funclets, or one of them: a range with one frame layout. */
struct clr_function {
	uint64_t begin;
	uint64_t end;     /* exclusive */
	uint64_t unwind;  /* address of its unwind information */
	bool collectible; /* it may be freed */
};

/* False: no function of managed code was found there, or it cannot be read. */
bool clr_code_function(struct clr_code *code, uint64_t address, struct clr_function *ret_function);

/* False: no managed method was found there, or it cannot be read. */
bool clr_code_find(struct clr_code *code, uint64_t address, struct clr_body *ret_body);

/* Whether the address is in a heap of JIT code, or in other code that may be freed. */
bool clr_code_in_heap(struct clr_code *code, uint64_t address);

/*
 * Reads the header of JIT code again; of code that is never freed only its address. False: the block now
 * holds another method, or none.
 */
bool clr_code_stands(struct clr_code *code, const struct clr_body *body, bool lasts);

void clr_code_done(struct clr_code *code);

#endif
