/*
 * Names as a file carries them: from (process, address, epoch) to a function.
 *
 * Built when a file has been read to its end, as names may follow their samples. Functions are
 * numbered: two addresses of one function give the same index. A method that the runtime compiled
 * several times has a function for each way (kind and tier); method_join() (trace/method_join.h)
 * makes one that represents all of them.
 */
#ifndef SPOOR_TRACE_SYMBOLMAP_H
#define SPOOR_TRACE_SYMBOLMAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"
#include "code/method_name.h"

struct line_frame;
struct line_place;
struct trace;

/* The origin of a function's code, which colours and columns show. */
enum function_kind {
	FUNCTION_UNKNOWN,
	FUNCTION_KERNEL,
	FUNCTION_NATIVE,
	FUNCTION_JIT,
	FUNCTION_READYTORUN,
	FUNCTION_STUB,
	FUNCTION_BLOCKED, /* no code: a mark for the wait in the frame below it */
	FUNCTION_KIND_COUNT,
};

/* How a method's code was compiled, as bits of a set; in the order in which they are shown. */
enum function_tier {
	FUNCTION_TIER_R2R,
	FUNCTION_TIER_MIN_OPT,
	FUNCTION_TIER_0,
	FUNCTION_TIER_0_INSTRUMENTED,
	FUNCTION_TIER_1_INSTRUMENTED,
	FUNCTION_TIER_1_OSR,
	FUNCTION_TIER_1,
	FUNCTION_TIER_OPTIMIZED,
	FUNCTION_TIER_COUNT, /* also: not known, or no managed code */
};

struct function {
	/* strtab: in the form of the map; "libcoreclr.so+0x1a2b3" without a symbol */
	uint32_t name;
	uint32_t full_name; /* strtab: in the long form, which differs between overloads */
	uint32_t module;    /* strtab: "libc.so.6", "Shop.dll", "kernel", "JIT" */
	uint32_t method;    /* the function that represents this one, or itself */
	uint8_t kind;       /* enum function_kind */
	uint8_t tier;       /* enum code_tier */
	bool named;         /* false: module and offset only */
	/* with a line, the function is one line of it: symbolmap_line() */
	bool inlined;
	uint32_t line;  /* 0: the whole function */
	uint32_t file;  /* strtab: path */
	uint32_t plain; /* strtab: its name without file and line */
};

struct symbolmap {
	struct trace *trace;
	enum method_name_form form;
	VEC(struct function) functions; /* item 0 unused */
	struct map function_index;
	uint32_t jit_module; /* strtab: that of methods whose module is not known */
	void *state;         /* sorted tables, private */
};

/* Sorts the trace's symbols and code ranges. Names are added to the trace's strings. */
int symbolmap_init(struct symbolmap *map, struct trace *trace, enum method_name_form form);

/* The function at `address` in `process` during `code_epoch`; never 0 unless memory ran out. */
uint32_t symbolmap_find(struct symbolmap *map, uint32_t process, uint64_t address,
	uint32_t code_epoch);

/*
 * For an address in the code of an ELF image: the index of its mapping, and one plus that of its
 * symbol (0 none). False for all other code: the kernel's, managed, generated.
 */
bool symbolmap_native(const struct symbolmap *map, uint32_t process, uint64_t address,
	uint32_t *ret_mapping, uint32_t *ret_symbol);

/*
 * The place of an address whose code may have source lines, for trace.lines. `caller`: a return
 * address; the place is the call before it. *ret_mapping: index in trace.mappings; *ret_code: index plus
 * one in process.codes, 0 for native code. False for other code, and for a call that is not in the
 * same function.
 */
bool symbolmap_place(const struct symbolmap *map, uint32_t process, uint64_t address,
	uint32_t code_epoch, bool caller, struct line_place *ret_place, uint32_t *ret_mapping,
	uint32_t *ret_code);

/*
 * One line of a function as a separate function, "Parse  Shop.cs:12"; or of a function that was
 * inlined into it. 0: no memory.
 */
uint32_t symbolmap_line(struct symbolmap *map, uint32_t function, const struct line_frame *frame);

/* For code without a symbol, whatever its address: "libcoreclr.so (no symbols)". 0: no memory. */
uint32_t symbolmap_unnamed(struct symbolmap *map, uint32_t module, enum function_kind kind);

/*
 * On-stack replacement, in a stack that was walked by frame pointers. The replacing code runs in a
 * new frame above the replaced code's, returns into it, but saves the frame pointer of the method's
 * caller. So the walk finds the method twice, and then the caller's caller. symbolmap_is_replaced()
 * is true for these two frames of the method, `upper` nearer to the leaf; symbolmap_lost_caller()
 * is what to show in place of the lower one (0 when there is no memory). Stacks that a runtime
 * walked have no such frames.
 */
bool symbolmap_is_replaced(const struct symbolmap *map, uint32_t upper, uint32_t lower);
uint32_t symbolmap_lost_caller(struct symbolmap *map);

/* A step of stacks that is no function: "[garbage collector]". 0: no memory. */
uint32_t symbolmap_label(struct symbolmap *map, const char *text, enum function_kind kind);

/* FUNCTION_TIER_COUNT when the tier is not known. */
enum function_tier function_tier(const struct function *function);
/* "R2R", "tier 1"; "" for FUNCTION_TIER_COUNT */
const char *function_tier_words(enum function_tier tier);

void symbolmap_done(struct symbolmap *map);

#endif
