/*
 * Which functions are the user's own: what a finding is about is named by the innermost of them,
 * because the framework below it only does as it is asked.
 */
#ifndef SPOOR_ANALYSIS_OWN_FUNCTION_H
#define SPOOR_ANALYSIS_OWN_FUNCTION_H

#include <stdbool.h>
#include <stdint.h>

struct symbolmap;

/* A managed method that has a source: not the framework's, and not generated at run time. */
bool own_function(const struct symbolmap *names, uint32_t function);

/* The same by the method's whole name and the file name of its module; "" is not own. */
bool own_method(const char *name, const char *module);

/* A mark in place of a caller that the walk has missed. That caller may be the user's own. */
bool own_function_is_missed(const struct symbolmap *names, uint32_t function);

#endif
