/* Writing a buffer to a descriptor. */
#ifndef SPOOR_BASE_WRITE_ALL_H
#define SPOOR_BASE_WRITE_ALL_H

#include <stddef.h>

/*
 * Writes `size` bytes at the descriptor's position, in as many calls as it takes. 0 or a negative errno; then a part of
 * them may have been written. -EIO: the descriptor takes nothing.
 */
int write_all(int fd, const void *data, size_t size);

#endif
