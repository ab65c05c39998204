/* IGCHandleManager and IGCHandleStore: all stores are one object. */
#include <stddef.h>

#include "gc/collector/spoorgc.h"
#include "gc/events.h"

static struct collector *of_manager(struct gc_handle_manager *self)
{
	return (struct collector *)((uint8_t *)self - offsetof(struct collector, manager));
}

static struct collector *of_store(struct gc_handle_store *self)
{
	return (struct collector *)((uint8_t *)self - offsetof(struct collector, store));
}

static struct gc_object **make(struct collector *c, int32_t type, struct gc_object *object,
	uintptr_t extra)
{
	struct gc_object **handle = handle_new(&c->handles, type, object, extra);

	if (handle && object) {
		uint32_t generation = collector_generation(c, object);

		gc_event_SetGCHandle(handle, object, (uint32_t)type, generation);
		gc_event_PrvSetGCHandle(handle, object, (uint32_t)type, generation);
	}
	return handle;
}

static void destroy(struct collector *c, struct gc_object **handle)
{
	gc_event_DestroyGCHandle(handle);
	gc_event_PrvDestroyGCHandle(handle);
	handle_free(&c->handles, handle);
}

/* ---- the store ---- */

static void store_nothing(struct gc_handle_store *self)
{
	(void)self;
}

static bool store_contains(struct gc_handle_store *self, struct gc_object **handle)
{
	(void)self;
	return handle != NULL;
}

static struct gc_object **store_create(struct gc_handle_store *self, struct gc_object *object,
	int32_t type)
{
	return make(of_store(self), type, object, 0);
}

static struct gc_object **store_create_on_heap(struct gc_handle_store *self,
	struct gc_object *object, int32_t type, int32_t heap)
{
	(void)heap;
	return make(of_store(self), type, object, 0);
}

static struct gc_object **store_create_with_extra(struct gc_handle_store *self,
	struct gc_object *object, int32_t type, void *extra)
{
	return make(of_store(self), type, object, (uintptr_t)extra);
}

static struct gc_object **store_create_dependent(struct gc_handle_store *self,
	struct gc_object *primary, struct gc_object *secondary)
{
	return make(of_store(self), GC_HANDLE_DEPENDENT, primary, (uintptr_t)secondary);
}

static const struct gc_handle_store_table store_table = {
	.Uproot = store_nothing,
	.ContainsHandle = store_contains,
	.CreateHandleOfType = store_create,
	.CreateHandleOfTypeOnHeap = store_create_on_heap,
	.CreateHandleWithExtraInfo = store_create_with_extra,
	.CreateDependentHandle = store_create_dependent,
	.Destroy = store_nothing,
	.DestroyAndDelete = store_nothing,
};

/* ---- the manager ---- */

static bool manager_initialize(struct gc_handle_manager *self)
{
	(void)self;
	return true;
}

static void manager_shutdown(struct gc_handle_manager *self)
{
	(void)self;
}

static struct gc_handle_store *manager_store(struct gc_handle_manager *self)
{
	return &of_manager(self)->store;
}

static void manager_destroy_store(struct gc_handle_manager *self, struct gc_handle_store *store)
{
	(void)self;
	(void)store;
}

static struct gc_object **manager_create(struct gc_handle_manager *self, struct gc_object *object,
	int32_t type)
{
	return make(of_manager(self), type, object, 0);
}

static struct gc_object **manager_duplicate(struct gc_handle_manager *self,
	struct gc_object **handle)
{
	return make(of_manager(self), handle_type(handle), handle_load(handle),
		*handle_extra(handle));
}

static void manager_destroy(struct gc_handle_manager *self, struct gc_object **handle, int32_t type)
{
	(void)type;
	destroy(of_manager(self), handle);
}

static void manager_destroy_unknown(struct gc_handle_manager *self, struct gc_object **handle)
{
	destroy(of_manager(self), handle);
}

static void manager_set_extra(struct gc_handle_manager *self, struct gc_object **handle,
	int32_t type, void *extra)
{
	(void)self;
	(void)type;
	__atomic_store_n(handle_extra(handle), (uintptr_t)extra, __ATOMIC_RELEASE);
}

static void *manager_get_extra(struct gc_handle_manager *self, struct gc_object **handle)
{
	(void)self;
	return (void *)__atomic_load_n(handle_extra(handle), __ATOMIC_ACQUIRE);
}

static void note_store(struct collector *c, struct gc_object **handle, struct gc_object *object)
{
	uint32_t generation = object ? collector_generation(c, object) : 0;

	gc_event_SetGCHandle(handle, object, (uint32_t)handle_type(handle), generation);
	gc_event_PrvSetGCHandle(handle, object, (uint32_t)handle_type(handle), generation);
}

static void manager_store_object(struct gc_handle_manager *self, struct gc_object **handle,
	struct gc_object *object)
{
	note_store(of_manager(self), handle, object);
	__atomic_store_n(handle, object, __ATOMIC_RELEASE);
}

static struct gc_object *manager_exchange(struct gc_handle_manager *self, struct gc_object **handle,
	struct gc_object *object, struct gc_object *expected)
{
	if (__atomic_compare_exchange_n(handle, &expected, object, false, __ATOMIC_ACQ_REL,
		    __ATOMIC_ACQUIRE))
		note_store(of_manager(self), handle, object);
	return expected;
}

static bool manager_store_if_null(struct gc_handle_manager *self, struct gc_object **handle,
	struct gc_object *object)
{
	return manager_exchange(self, handle, object, NULL) == NULL;
}

static void manager_set_secondary(struct gc_handle_manager *self, struct gc_object **handle,
	struct gc_object *object)
{
	(void)self;
	__atomic_store_n(handle_extra(handle), (uintptr_t)object, __ATOMIC_RELEASE);
}

static struct gc_object *manager_get_secondary(struct gc_handle_manager *self,
	struct gc_object **handle)
{
	(void)self;
	return (struct gc_object *)__atomic_load_n(handle_extra(handle), __ATOMIC_ACQUIRE);
}

static int32_t manager_type(struct gc_handle_manager *self, struct gc_object **handle)
{
	(void)self;
	return handle_type(handle);
}

struct counted_call {
	gc_weak_scan_fn *call;
	uintptr_t first;
	uintptr_t second;
};

static void call_counted(void *context, struct gc_object **handle, struct gc_object *o)
{
	struct counted_call *call = context;

	(void)o;
	call->call(handle, handle_extra(handle), call->first, call->second);
}

static void manager_trace_counted(struct gc_handle_manager *self, void *call, uintptr_t first,
	uintptr_t second)
{
	struct counted_call counted = {
		.call = (gc_weak_scan_fn *)call, .first = first, .second = second
	};

	handles_each(&of_manager(self)->handles, GC_HANDLE_REFCOUNTED, call_counted, &counted);
}

/* For slots that later runtimes may call. */
static uint64_t nothing(void)
{
	return 0;
}

static union {
	struct gc_handle_manager_table table;
	uint64_t (*slots[GC_HANDLE_MANAGER_SPARE])(void);
} manager_table = {
	.table = {
		.Initialize = manager_initialize,
		.Shutdown = manager_shutdown,
		.GetGlobalHandleStore = manager_store,
		.CreateHandleStore = manager_store,
		.DestroyHandleStore = manager_destroy_store,
		.CreateGlobalHandleOfType = manager_create,
		.CreateDuplicateHandle = manager_duplicate,
		.DestroyHandleOfType = manager_destroy,
		.DestroyHandleOfUnknownType = manager_destroy_unknown,
		.SetExtraInfoForHandle = manager_set_extra,
		.GetExtraInfoFromHandle = manager_get_extra,
		.StoreObjectInHandle = manager_store_object,
		.StoreObjectInHandleIfNull = manager_store_if_null,
		.SetDependentHandleSecondary = manager_set_secondary,
		.GetDependentHandleSecondary = manager_get_secondary,
		.InterlockedCompareExchangeObjectInHandle = manager_exchange,
		.HandleFetchType = manager_type,
		.TraceRefCountedHandles = manager_trace_counted,
	},
};

void spoorgc_fill_handles(struct collector *c)
{
	for (int i = GC_HANDLE_MANAGER_COUNT; i < GC_HANDLE_MANAGER_SPARE; i++)
		manager_table.slots[i] = nothing;
	c->manager.table = &manager_table.table;
	c->store.table = &store_table;
}
