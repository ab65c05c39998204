/* How far unwound stacks reach, as a sentence for summaries. */
#ifndef SPOOR_RENDER_UNWIND_LABEL_H
#define SPOOR_RENDER_UNWIND_LABEL_H

#include <stdint.h>

struct bytes;

/* "99.8 % of 1,000 stacks reach the start of their thread; 0.2 % ..."; by enum unwind_end. */
void label_unwinding(struct bytes *out, uint64_t stacks, const uint64_t *ends);

#endif
