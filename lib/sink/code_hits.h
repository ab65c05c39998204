/*
 * Which addresses occurred in stacks: a rundown names those and no others, so that it stays small in a program with a million functions.
 *
 * Loop thread only. Kept while somebody will want a rundown. Beyond CODE_HITS_MAX addresses further ones are not noted, and stay nameless.
 */
#ifndef SPOOR_LIB_SINK_CODE_HITS_H
#define SPOOR_LIB_SINK_CODE_HITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CODE_HITS_MAX (1u << 20)

/* One more, one fewer session that ends with a rundown. The last one forgets all. */
void code_hits_hold(void);
void code_hits_release(void);

/* Every stack, when a sink sees it for the first time. */
void code_hits_add(const uint64_t *frames, uint32_t count);

/* All of them, sorted, each once. The caller frees; NULL when there are none or no memory. */
uint64_t *code_hits_sorted(size_t *ret_count);

/* In the child of a fork. */
void code_hits_forget(void);

#endif
