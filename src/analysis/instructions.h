/*
 * CPU time of one function by instruction: of each body of machine code that it has. A method has a
 * body for each time that it was compiled; a native function is one body in all processes.
 *
 *   instructions_count(&instructions, &profile, &names, "Shop.Parse")       profile without lines
 *   ... instructions.bodies ...
 *   instructions_done(&instructions)
 *
 * Only self time: an address in a caller is a return address, not an instruction that ran.
 */
#ifndef SPOOR_ANALYSIS_INSTRUCTIONS_H
#define SPOOR_ANALYSIS_INSTRUCTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"
#include "trace/line_table.h"

struct profile;
struct symbolmap;
struct trace;

/* The samples at one address of a body. */
struct instruction_hits {
	uint32_t body;   /* index */
	uint32_t offset; /* from its begin */
	uint64_t ns;
	uint64_t count;
};

struct instruction_body {
	uint32_t process;  /* index; of native code, of the process that was sampled first */
	uint32_t mapping;  /* index in trace.mappings */
	uint32_t code;     /* index plus one in process.codes; 0: native code */
	uint32_t function; /* in names.functions: the body as it was compiled */
	uint64_t begin;    /* in that process */
	uint64_t end;      /* exclusive */
	uint64_t self_ns;
	uint64_t self_count;
	uint32_t hits_at; /* first of its hits; they are sorted by offset */
	uint32_t hit_count;
};

struct instructions {
	VEC(struct instruction_body) bodies; /* most self time first */
	VEC(struct instruction_hits) hits;
	VEC(uint32_t) functions; /* strtab: names of the functions that the pattern means */
	struct map body_index;
	struct map hit_index;
	uint64_t self_ns;
	uint64_t self_count;
	uint64_t without_body_ns; /* of these: code whose bounds are not known */
};

/* As annotation_count(). */
int instructions_count(struct instructions *instructions, const struct profile *profile,
	const struct symbolmap *names, const char *pattern);

/* The place of an offset in a body, for trace.lines. */
struct line_place instructions_place(const struct trace *trace, const struct instruction_body *body,
	uint32_t offset);

void instructions_done(struct instructions *instructions);

#endif
