/*
 * The addresses that occurred in stacks. A rundown names only these, so that it stays small in a
 * program with a million functions.
 *
 * Loop thread only. The set exists while a session will end with a rundown. Addresses beyond
 * CODE_HITS_MAX are not stored and have no name.
 */
#ifndef SPOOR_LIB_SINK_CODE_HITS_H
#define SPOOR_LIB_SINK_CODE_HITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CODE_HITS_MAX (1u << 20)

/* Counts the sessions that end with a rundown. The last release empties the set. */
void code_hits_hold(void);
void code_hits_release(void);

/* Adds the addresses of a stack; called when a sink sees the stack for the first time. */
void code_hits_add(const uint64_t *frames, uint32_t count);

/* All addresses in ascending order, each once. The caller frees; NULL: none, or no memory. */
uint64_t *code_hits_sorted(size_t *ret_count);

/* In the child of fork(). */
void code_hits_forget(void);

#endif
