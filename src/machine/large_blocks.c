/* See large_blocks.h. */
#include "machine/large_blocks.h"

#include <malloc.h>

#define LARGE_BLOCK_BYTES (128 << 10)

void large_blocks_keep_apart(void)
{
#ifdef __GLIBC__
	/* a hint: the heap is only larger without it */
	(void)mallopt(M_MMAP_THRESHOLD, LARGE_BLOCK_BYTES);
	(void)mallopt(M_TRIM_THRESHOLD, 2 * LARGE_BLOCK_BYTES); /* as for M_MMAP_THRESHOLD */
#endif
}
