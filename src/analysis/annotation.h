/*
 * CPU time of one function by source line.
 *
 *   profile_add_lines(&profile, &names);
 *   annotation_count(&annotation, &profile, &names, "Shop.Parse");
 *   ... annotation.lines ...
 *   annotation_done(&annotation);
 *
 * Time in functions that were inlined into it counts at the line that calls them. Of an inlined
 * function, all places where it was inlined are added up.
 */
#ifndef SPOOR_ANALYSIS_ANNOTATION_H
#define SPOOR_ANALYSIS_ANNOTATION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"

struct profile;
struct symbolmap;

struct annotated_line {
	uint32_t file; /* strtab: path; 0: the line is not known */
	uint32_t line; /* 0 likewise */
	uint64_t self_ns;
	uint64_t total_ns; /* with callees; a stack counts once */
	uint64_t self_count;
	uint64_t total_count;
	uint32_t stack_mark; /* the last stack that counted towards total, plus one */
};

struct annotation {
	VEC(struct annotated_line) lines; /* by path, then line */
	struct map index;
	VEC(uint32_t) functions; /* strtab: names of the functions that the pattern means */
	uint64_t self_ns;
	uint64_t total_ns;
	uint64_t self_count;
	uint64_t total_count;
};

/*
 * `pattern` as in tree_name_matches(). Without a matching function `functions` is empty. 0 or
 * -ENOMEM; annotation_done() in any case.
 */
int annotation_count(struct annotation *annotation, const struct profile *profile,
	const struct symbolmap *names, const char *pattern);

void annotation_done(struct annotation *annotation);

#endif
