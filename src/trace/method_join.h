/* The functions of one method, in all its tiers, as one function. */
#ifndef SPOOR_TRACE_METHOD_JOIN_H
#define SPOOR_TRACE_METHOD_JOIN_H

#include <stdint.h>

struct symbolmap;

/*
 * Sets `method` of every function, once, after all lookups. A joined one has kind and tier of the
 * heaviest by `weights`, a number for each function; one of an unknown module joins a method of the
 * same name. 0 or -ENOMEM.
 */
int method_join(struct symbolmap *map, const uint64_t *weights);

#endif
