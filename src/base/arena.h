/*
 * Memory for many small pieces that are freed together; used by one thread at a time.
 *
 * All zero is an empty arena. Blocks double in size up to 1 MiB. Pieces are aligned to 8 bytes and
 * never move.
 */
#ifndef SPOOR_BASE_ARENA_H
#define SPOOR_BASE_ARENA_H

#include <stddef.h>

struct arena_block;

struct arena {
	struct arena_block *block; /* the block being filled, the head of the list of blocks */
	size_t used;               /* bytes used in `block` */
	size_t total_bytes;        /* of all blocks */
};

/* Not initialised; NULL when there is no memory. */
void *arena_alloc(struct arena *arena, size_t size);

/* NULL when there is no memory. */
void *arena_copy(struct arena *arena, const void *data, size_t size);

void arena_done(struct arena *arena);

#endif
