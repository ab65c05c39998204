/* Why objects of a type are alive: the shortest ways from the roots to them, as lists of types. */
#ifndef SPOOR_HEAP_HEAP_PATHS_H
#define SPOOR_HEAP_HEAP_PATHS_H

#include <stdint.h>

struct heap_order;
struct heap_report;

/*
 * Fills report->paths for all types whose name fits (a name, its last part, or a pattern with * and
 * ?): most bytes first. *ret_matches is the number of types that fit. -ENOMEM.
 */
int heap_paths_find(struct heap_report *report, const struct heap_order *order,
	const char *type_name, uint32_t *ret_matches);

#endif
