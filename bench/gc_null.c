/*
 * libgcnull.so: a collector that does nothing. A call through the proxy to it takes only the time of
 * the proxy.
 */
#include "gc/interface.h"

static int64_t nothing(void)
{
	return 0;
}

static union {
	void *slots[GC_HEAP_SPARE];
	struct gc_heap_table heap;
	struct gc_handle_manager_table handles;
	struct gc_handle_store_table store;
} tables[3];

static struct gc_object *object;
static struct gc_heap heap = { &tables[0].heap };
static struct gc_handle_manager handles = { &tables[1].handles };
static struct gc_handle_store store = { &tables[2].store };

static struct gc_handle_store *global_store(struct gc_handle_manager *self)
{
	(void)self;
	return &store;
}

static struct gc_object **create(struct gc_handle_store *self, struct gc_object *of, int32_t type)
{
	(void)self;
	(void)of;
	(void)type;
	return &object;
}

void GC_VersionInfo(struct gc_version_info *version)
{
	*version =
		(struct gc_version_info){ .major = GC_ANSWER_MAJOR, .minor = 5, .name = "nothing" };
}

int32_t GC_Initialize(struct gc_to_clr *ee, struct gc_heap **ret_heap,
	struct gc_handle_manager **ret_handles, struct gc_dac_vars *dac)
{
	(void)ee;
	(void)dac;
	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++) {
		for (size_t k = 0; k < GC_HEAP_SPARE; k++)
			tables[i].slots[k] = (void *)(uintptr_t)nothing;
	}
	tables[1].handles.GetGlobalHandleStore = global_store;
	tables[2].store.CreateHandleOfType = create;
	*ret_heap = &heap;
	*ret_handles = &handles;
	return GC_OK;
}
