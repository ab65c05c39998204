/*
 * Names of the managed code of one .NET process, read from its memory while it runs: without a
 * diagnostics session, and without stopping it. Supported: .NET 8 to 10 on x86-64.
 *
 *   clr_names_open(read, context, &sources, images, pages, &names)
 *   clr_names_find(names, address, &found)       for each sampled address, at the time of the sample
 *   clr_names_pass(names)                        after each group of samples
 *   clr_names_close(names)
 *
 * The memory changes while it is read. Each step is checked, the header of the code is read again
 * after the name, and what does not agree has no name. A name of code that may be freed is true at the
 * time of the call only. Not thread-safe.
 */
#ifndef SPOOR_CODE_CLR_NAMES_H
#define SPOOR_CODE_CLR_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "code/clr_layout.h"
#include "code/clr_memory.h"

struct clr_code;
struct clr_images;
struct clr_names;

/* An executable mapping of the image that exports the runtime's description. */
struct clr_source {
	uint64_t mapping_begin;
	uint64_t file_offset;
};

struct clr_found {
	uint64_t begin;
	uint64_t end; /* exclusive */
	uint64_t method_id;
	uint64_t module_id;
	const char *name_space; /* borrowed until the next call, as are the other texts */
	const char *name;
	const char *signature;
	const char *module_path;
	uint8_t kind; /* enum code_kind */
	uint8_t tier; /* enum code_tier */
	bool lasts;   /* false: another method may be at this address at any time */
};

/*
 * `images` and `pages` are shared by the processes of the caller, and outlive this; so does `context`.
 * -ENODATA: no supported runtime is there, or it does not run yet. -ENOMEM.
 */
int clr_names_open(clr_memory_read_fn *read, void *context, const struct clr_source *source,
	struct clr_images *images, struct clr_pages *pages, struct clr_names **ret_names);

/* False: no managed method is known to be there. */
bool clr_names_find(struct clr_names *names, uint64_t address, struct clr_found *ret_found);

/* Whether a method may be placed at the address later: it is in a heap of compiled code. */
bool clr_names_may_come(struct clr_names *names, uint64_t address);

/* Forgets what may change. */
void clr_names_pass(struct clr_names *names);

const struct clr_layout *clr_names_layout(const struct clr_names *names);
struct clr_memory *clr_names_memory(struct clr_names *names);
struct clr_code *clr_names_code(struct clr_names *names);

/* True once names and metadata did not agree where the layout is not described: no more names. */
bool clr_names_distrusts(const struct clr_names *names);

void clr_names_close(struct clr_names *names);

#endif
