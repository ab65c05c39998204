/* A row of numbers as a row of bars. */
#ifndef SPOOR_RENDER_SPARKLINE_H
#define SPOOR_RENDER_SPARKLINE_H

#include <stdint.h>

struct bytes;

/* One character a number, of eight heights up to the largest number; 0 is a blank. */
void sparkline_add(struct bytes *out, const uint64_t *numbers, uint32_t count);

#endif
