/* Blocks of handles: creating and destroying. */
#include "gc/collector/collector_handles.h"

#include <stdlib.h>
#include <string.h>

static_assert(sizeof(struct handle_block) <= HANDLE_BLOCK_SIZE,
	"a block is found by its alignment");

void handles_init(struct handles *hs)
{
	memset(hs, 0, sizeof(*hs));
	pthread_mutex_init(&hs->lock, NULL);
}

void handles_done(struct handles *hs)
{
	for (int32_t type = 0; type < GC_HANDLE_TYPES; type++) {
		struct handle_block *next;

		for (struct handle_block *b = hs->kinds[type].blocks; b; b = next) {
			next = b->next;
			free(b);
		}
	}
	pthread_mutex_destroy(&hs->lock);
}

/* A free word, or NULL. The lock is held. */
static struct gc_object **take_word(struct handle_kind *kind, int32_t type)
{
	struct gc_object **handle = kind->free;
	struct handle_block *b = kind->blocks;

	if (handle) {
		kind->free = (struct gc_object **)*handle_extra(handle);
		return handle;
	}
	if (!b || b->used_end == HANDLE_BLOCK_COUNT) {
		struct handle_block *made = aligned_alloc(HANDLE_BLOCK_SIZE, HANDLE_BLOCK_SIZE);
		if (!made)
			return NULL;
		memset(made, 0, sizeof(*made));
		made->type = type;
		made->next = b;
		__atomic_store_n(&kind->blocks, made, __ATOMIC_RELEASE);
		b = made;
	}
	handle = &b->words[b->used_end];
	__atomic_store_n(&b->used_end, b->used_end + 1, __ATOMIC_RELEASE);
	return handle;
}

struct gc_object **handle_new(struct handles *hs, int32_t type, struct gc_object *object,
	uintptr_t extra)
{
	if (type < 0 || type >= GC_HANDLE_TYPES)
		return NULL;
	pthread_mutex_lock(&hs->lock);
	struct gc_object **handle = take_word(&hs->kinds[type], type);
	if (handle)
		hs->kinds[type].count++;
	pthread_mutex_unlock(&hs->lock);
	if (!handle)
		return NULL;
	/* The extra word is set first: a dependent handle with an object is then complete. */
	__atomic_store_n(handle_extra(handle), extra, __ATOMIC_RELAXED);
	__atomic_store_n(handle, object, __ATOMIC_RELEASE);
	return handle;
}

void handle_free(struct handles *hs, struct gc_object **handle)
{
	struct handle_kind *kind = &hs->kinds[handle_type(handle)];

	__atomic_store_n(handle, NULL, __ATOMIC_RELAXED);
	pthread_mutex_lock(&hs->lock);
	__atomic_store_n(handle_extra(handle), (uintptr_t)kind->free, __ATOMIC_RELAXED);
	kind->free = handle;
	kind->count--;
	pthread_mutex_unlock(&hs->lock);
}

uint32_t handles_count(struct handles *hs)
{
	uint32_t count = 0;

	pthread_mutex_lock(&hs->lock);
	for (int32_t type = 0; type < GC_HANDLE_TYPES; type++)
		count += hs->kinds[type].count;
	pthread_mutex_unlock(&hs->lock);
	return count;
}
