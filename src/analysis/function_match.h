/* The functions that a name or pattern of the command line means. */
#ifndef SPOOR_ANALYSIS_FUNCTION_MATCH_H
#define SPOOR_ANALYSIS_FUNCTION_MATCH_H

#include <stdint.h>

struct symbolmap;

/*
 * Which of names.functions `pattern` means (tree_name_matches()), one byte each; the caller frees it.
 * Their names, each once, are added to a VEC(uint32_t) as indexes of the trace's texts. NULL: no memory.
 */
uint8_t *function_match(const struct symbolmap *names, const char *pattern, void *vec_of_u32);

#endif
