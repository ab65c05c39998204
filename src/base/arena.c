/* See arena.h. */
#include "base/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef SPOOR_HOSTILE
#define BLOCK_MIN 64u
#define BLOCK_MAX 256u
#else
#define BLOCK_MIN (4u << 10)
#define BLOCK_MAX (1u << 20)
#endif

struct arena_block {
	struct arena_block *next; /* the block filled before this one */
	size_t size;              /* bytes of `data` */
	unsigned char data[] __attribute__((aligned(16)));
};

static int add_block(struct arena *arena, size_t need)
{
	size_t size = arena->block ? arena->block->size * 2 : BLOCK_MIN;

	if (size > BLOCK_MAX)
		size = BLOCK_MAX;
	if (size < need)
		size = need;
	if (size > SIZE_MAX - sizeof(struct arena_block))
		return -1;
	struct arena_block *block = malloc(sizeof(*block) + size);
	if (!block)
		return -1;
	block->next = arena->block;
	block->size = size;
	arena->block = block;
	arena->used = 0;
	arena->total_bytes += size + sizeof(*block);
	return 0;
}

void *arena_alloc(struct arena *arena, size_t size)
{
	if (size > SIZE_MAX - 7)
		return NULL;
	size = (size + 7) & ~(size_t)7;
	if ((!arena->block || arena->block->size - arena->used < size) &&
		add_block(arena, size) < 0)
		return NULL;
	void *piece = arena->block->data + arena->used;
	arena->used += size;
	return piece;
}

void *arena_copy(struct arena *arena, const void *data, size_t size)
{
	void *piece = arena_alloc(arena, size);

	if (piece && size)
		memcpy(piece, data, size);
	return piece;
}

void arena_done(struct arena *arena)
{
	for (struct arena_block *block = arena->block; block;) {
		struct arena_block *next = block->next;
		free(block);
		block = next;
	}
	*arena = (struct arena){ 0 };
}
