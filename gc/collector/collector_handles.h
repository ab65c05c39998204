/*
 * Handles: words outside of the heap that refer to an object. The kind of a handle determines what
 * a collection does with it.
 *
 * A handle is the address of its word; code of the runtime reads and writes the word directly.
 * Words are in blocks of one kind, and the block of a handle is found by its alignment. Each word
 * has an extra word: the secondary of a dependent handle, data of the runtime, or the next free
 * word while it is free. Blocks are never freed.
 *
 * Creating and destroying takes a lock; scanning takes none: a handle may be destroyed during a
 * collection (by a thread that runs native code, or by the runtime). So words are read once, and a
 * word that becomes NULL is skipped.
 */
#ifndef SPOOR_GC_COLLECTOR_COLLECTOR_HANDLES_H
#define SPOOR_GC_COLLECTOR_COLLECTOR_HANDLES_H

#include <pthread.h>

#include "gc/interface.h"

enum {
	HANDLE_BLOCK_SIZE = 32 << 10,
	HANDLE_BLOCK_HEADER = 64,
	HANDLE_BLOCK_COUNT = (HANDLE_BLOCK_SIZE - HANDLE_BLOCK_HEADER) / 16,
};

struct handle_block {
	struct handle_block *next; /* next block of the same kind */
	int32_t type;              /* enum gc_handle_type */
	uint32_t used_end;         /* words from here on were never used */
	uint8_t padding[HANDLE_BLOCK_HEADER - 16];
	struct gc_object *words[HANDLE_BLOCK_COUNT];
	uintptr_t extra[HANDLE_BLOCK_COUNT];
};

struct handle_kind {
	struct handle_block *blocks; /* newest first */
	struct gc_object **free;     /* linked through the extra words */
	uint32_t count;              /* number of handles that exist */
};

struct handles {
	pthread_mutex_t lock;
	struct handle_kind kinds[GC_HANDLE_TYPES];
};

void handles_init(struct handles *hs);
void handles_done(struct handles *hs);

/* NULL: no memory, or no such kind. */
struct gc_object **handle_new(struct handles *hs, int32_t type, struct gc_object *object,
	uintptr_t extra);
void handle_free(struct handles *hs, struct gc_object **handle);

uint32_t handles_count(struct handles *hs);

static inline struct handle_block *handle_block_of(struct gc_object **handle)
{
	return (struct handle_block *)((uintptr_t)handle & ~(uintptr_t)(HANDLE_BLOCK_SIZE - 1));
}

static inline uintptr_t *handle_extra(struct gc_object **handle)
{
	struct handle_block *block = handle_block_of(handle);

	return &block->extra[handle - block->words];
}

static inline int32_t handle_type(struct gc_object **handle)
{
	return handle_block_of(handle)->type;
}

static inline struct gc_object *handle_load(struct gc_object **handle)
{
	return __atomic_load_n(handle, __ATOMIC_RELAXED);
}

/* Calls visit(context, handle, its object) for every handle of a kind that is not NULL. */
static inline void handles_each(struct handles *hs, int32_t type,
	void (*visit)(void *context, struct gc_object **handle, struct gc_object *object),
	void *context)
{
	for (struct handle_block *b = __atomic_load_n(&hs->kinds[type].blocks, __ATOMIC_ACQUIRE); b;
		b = b->next) {
		uint32_t end = __atomic_load_n(&b->used_end, __ATOMIC_ACQUIRE);

		for (uint32_t i = 0; i < end; i++) {
			struct gc_object *o = handle_load(&b->words[i]);
			if (o)
				visit(context, &b->words[i], o);
		}
	}
}

#endif
