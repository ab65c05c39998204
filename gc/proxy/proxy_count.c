/*
 * Counts allocations and handles.
 *
 * Counts are distributed over shards in separate cache lines, so that threads do not contend; each
 * thread uses one shard. They are summed up once per pause.
 */
#include "gc/proxy/proxy.h"

#include <string.h>

#define SHARDS 64u

struct shard {
	struct proxy_counts counts;
} __attribute__((aligned(64)));

static struct shard shards[SHARDS];
static unsigned next_shard;
/*
 * 0 before the thread's first count. The library is loaded at the start of the process, so static
 * thread-local memory is available.
 */
static _Thread_local unsigned own_shard __attribute__((tls_model("initial-exec")));

static struct proxy_counts *own(void)
{
	if (__builtin_expect(!own_shard, 0))
		own_shard = 1 + __atomic_fetch_add(&next_shard, 1, __ATOMIC_RELAXED) % SHARDS;
	return &shards[own_shard - 1].counts;
}

static void add(uint64_t *count, uint64_t n)
{
	__atomic_fetch_add(count, n, __ATOMIC_RELAXED);
}

void proxy_counts(struct proxy_counts *ret_counts)
{
	const size_t words = sizeof(struct proxy_counts) / sizeof(uint64_t);
	uint64_t *sum = (uint64_t *)(void *)ret_counts;

	static_assert(sizeof(struct proxy_counts) % sizeof(uint64_t) == 0, "nothing but counts");
	memset(ret_counts, 0, sizeof(*ret_counts));
	for (size_t i = 0; i < SHARDS; i++) {
		const uint64_t *count = (const uint64_t *)(const void *)&shards[i].counts;
		for (size_t k = 0; k < words; k++)
			sum[k] += __atomic_load_n(&count[k], __ATOMIC_RELAXED);
	}
}

void proxy_count_allocation(size_t size, uint32_t flags)
{
	struct proxy_counts *counts = own();

	add(&counts->refills, 1);
	if (__builtin_expect(flags & (GC_ALLOC_LARGE | GC_ALLOC_PINNED), 0)) {
		bool pinned = flags & GC_ALLOC_PINNED;
		add(pinned ? &counts->pinned_objects : &counts->large_objects, 1);
		add(pinned ? &counts->pinned_bytes : &counts->large_bytes, size);
	}
}

static struct gc_object **created(struct gc_object **handle, int32_t type)
{
	if (handle && (uint32_t)type < GC_HANDLE_TYPES)
		add(&own()->handles_created[type], 1);
	return handle;
}

static void destroyed(int32_t type)
{
	if ((uint32_t)type < GC_HANDLE_TYPES)
		add(&own()->handles_destroyed[type], 1);
}

/* ---- the handle manager ---- */

static struct gc_object **manager_create(struct gc_handle_manager *self, struct gc_object *object,
	int32_t type)
{
	(void)self;
	return created(proxy.handles->table->CreateGlobalHandleOfType(proxy.handles, object, type),
		type);
}

static struct gc_object **manager_duplicate(struct gc_handle_manager *self,
	struct gc_object **handle)
{
	(void)self;
	return created(proxy.handles->table->CreateDuplicateHandle(proxy.handles, handle),
		proxy.handles->table->HandleFetchType(proxy.handles, handle));
}

static void manager_destroy(struct gc_handle_manager *self, struct gc_object **handle, int32_t type)
{
	(void)self;
	destroyed(type);
	proxy.handles->table->DestroyHandleOfType(proxy.handles, handle, type);
}

static void manager_destroy_unknown(struct gc_handle_manager *self, struct gc_object **handle)
{
	(void)self;
	destroyed(proxy.handles->table->HandleFetchType(proxy.handles, handle));
	proxy.handles->table->DestroyHandleOfUnknownType(proxy.handles, handle);
}

void proxy_count_watch_handles(struct gc_handle_manager_table *table)
{
	table->CreateGlobalHandleOfType = manager_create;
	table->CreateDuplicateHandle = manager_duplicate;
	table->DestroyHandleOfType = manager_destroy;
	table->DestroyHandleOfUnknownType = manager_destroy_unknown;
}

/* ---- a handle store ---- */

static struct gc_object **store_create(struct gc_handle_store *self, struct gc_object *object,
	int32_t type)
{
	struct gc_handle_store *store = proxy_store_behind(self);

	return created(store->table->CreateHandleOfType(store, object, type), type);
}

static struct gc_object **store_create_on_heap(struct gc_handle_store *self,
	struct gc_object *object, int32_t type, int32_t heap)
{
	struct gc_handle_store *store = proxy_store_behind(self);

	return created(store->table->CreateHandleOfTypeOnHeap(store, object, type, heap), type);
}

static struct gc_object **store_create_with_extra(struct gc_handle_store *self,
	struct gc_object *object, int32_t type, void *extra)
{
	struct gc_handle_store *store = proxy_store_behind(self);

	return created(store->table->CreateHandleWithExtraInfo(store, object, type, extra), type);
}

static struct gc_object **store_create_dependent(struct gc_handle_store *self,
	struct gc_object *primary, struct gc_object *secondary)
{
	struct gc_handle_store *store = proxy_store_behind(self);

	return created(store->table->CreateDependentHandle(store, primary, secondary),
		GC_HANDLE_DEPENDENT);
}

void proxy_count_watch_store(struct gc_handle_store_table *table)
{
	table->CreateHandleOfType = store_create;
	table->CreateHandleOfTypeOnHeap = store_create_on_heap;
	table->CreateHandleWithExtraInfo = store_create_with_extra;
	table->CreateDependentHandle = store_create_dependent;
}
