/* How good the stacks of a recording are, as sentences for summaries. */
#ifndef SPOOR_RENDER_UNWIND_LABEL_H
#define SPOOR_RENDER_UNWIND_LABEL_H

#include <stdint.h>

struct bytes;

/* "95.4 % of 2,143 frames of samples": those that have a name; `of`: " of samples", or "". */
void label_names(struct bytes *out, uint64_t named, uint64_t frames, const char *of);

/* "99.8 % of 1,000 stacks reach the start of their thread; 0.2 % ..."; by enum unwind_end. */
void label_unwinding(struct bytes *out, uint64_t stacks, const uint64_t *ends);

#endif
