/*
 * IGCHeap: 89 functions that the runtime may call. Those with more than a few lines are in
 * collector.c, collector_walk.c and spoorgc_walks.c. Functions without a meaning for a collector without
 * generations, compaction or background threads return the value with which the runtime works, and
 * have a comment about that.
 */
#include <stdlib.h>

#include "gc/collector/collector_regions.h"
#include "gc/collector/spoorgc.h"
#include "gc/events.h"

static struct collector *of(struct gc_heap *self)
{
	return (struct collector *)self;
}

/* ---- settings of segments: there are none ---- */

static bool is_valid_size(struct gc_heap *self, size_t size)
{
	(void)self;
	(void)size;
	return true;
}

static size_t valid_segment_size(struct gc_heap *self, bool is_large)
{
	(void)self;
	(void)is_large;
	return REGION_SIZE;
}

static void ignore_size(struct gc_heap *self, size_t size)
{
	(void)self;
	(void)size;
}

/* ---- background collections: there are none ---- */

static void do_nothing(struct gc_heap *self)
{
	(void)self;
}

static bool say_false(struct gc_heap *self)
{
	(void)self;
	return false;
}

static int32_t wait_concurrent(struct gc_heap *self, int32_t timeout_ms)
{
	(void)self;
	(void)timeout_ms;
	return GC_OK;
}

/* ---- finalizers ---- */

static size_t number_of_finalizable(struct gc_heap *self)
{
	return finalizers_waiting(&of(self)->finalizers);
}

static struct gc_object *next_finalizable(struct gc_heap *self)
{
	return finalizers_next(&of(self)->finalizers);
}

static void set_finalization_run(struct gc_heap *self, struct gc_object *object)
{
	(void)self;
	__atomic_or_fetch(object_header(object), HEADER_FINALIZER_RUN, __ATOMIC_RELAXED);
}

static bool register_for_finalization(struct gc_heap *self, int32_t generation,
	struct gc_object *object)
{
	(void)generation;
	uint32_t *header = object_header(object);

	/* Suppressed, but still in the list: clearing the bit registers it again. */
	if (__atomic_load_n(header, __ATOMIC_RELAXED) & HEADER_FINALIZER_RUN) {
		__atomic_and_fetch(header, ~HEADER_FINALIZER_RUN, __ATOMIC_RELAXED);
		return true;
	}
	return finalizers_add(&of(self)->finalizers, object);
}

/* ---- what System.GC asks ---- */

/* The kind of collection that GetMemoryInfo() is called for. */
enum gc_kind { GC_KIND_ANY, GC_KIND_EPHEMERAL, GC_KIND_FULL_BLOCKING, GC_KIND_BACKGROUND };

static uint32_t pause_percent_100(const struct collector *c)
{
	int64_t run_ns = collector_now_ns() - c->started_ns;

	return run_ns > 0 ? (uint32_t)((__int128)c->paused_ns * 10000 / run_ns) : 0;
}

static void memory_info(struct gc_heap *self, uint64_t *high_load_threshold, uint64_t *available,
	uint64_t *load, uint64_t *heap_size, uint64_t *fragmentation, uint64_t *committed,
	uint64_t *promoted, uint64_t *pinned_count, uint64_t *finalization_pending, uint64_t *index,
	uint32_t *generation, uint32_t *pause_percent, bool *is_compacting, bool *is_concurrent,
	uint64_t *generations, uint64_t *pauses, int32_t kind)
{
	struct collector *c = of(self);
	/* All collections are full and blocking. */
	bool is_known = kind == GC_KIND_ANY || kind == GC_KIND_FULL_BLOCKING;
	struct collect_record none = { 0 };
	const struct collect_record *r = is_known ? &c->last : &none;
	uint64_t total = c->settings.hard_limit_bytes ? c->settings.hard_limit_bytes
						      : c->settings.physical_bytes;

	*high_load_threshold = total / 100 * c->settings.high_percent;
	*available = total;
	*load = c->settings.physical_bytes / 100 * r->memory_load;
	*heap_size = r->heap_bytes;
	*fragmentation = 0;
	for (int i = 0; i < GENERATIONS_ALL; i++) {
		*fragmentation += r->free_after[i];
		*generations++ = r->size_before[i];
		*generations++ = r->free_before[i];
		*generations++ = r->size_after[i];
		*generations++ = r->free_after[i];
	}
	*committed = r->committed_bytes;
	*promoted = r->live_bytes;
	*pinned_count = r->pinned_count;
	*finalization_pending = r->pending_count;
	*index = r->index;
	*generation = r->index ? GENERATION_OLDEST : 0;
	*pause_percent = pause_percent_100(c);
	*is_compacting = false;
	*is_concurrent = false;
	pauses[0] = (uint64_t)r->pause_ns / 100;
	pauses[1] = 0;
}

static uint32_t memory_load(struct gc_heap *self)
{
	return of(self)->last.memory_load;
}

enum { LATENCY_BATCH = 0, LATENCY_NO_GC = 4 };

static int32_t latency_mode(struct gc_heap *self)
{
	struct collector *c = of(self);

	return __atomic_load_n(&c->no_gc.is_active, __ATOMIC_RELAXED) ? LATENCY_NO_GC
								      : c->latency_mode;
}

static int32_t set_latency_mode(struct gc_heap *self, int32_t mode)
{
	enum { SET = 0, SET_NO_GC = 1 };

	if (__atomic_load_n(&of(self)->no_gc.is_active, __ATOMIC_RELAXED))
		return SET_NO_GC;
	of(self)->latency_mode = mode;
	return SET;
}

/* Stored and returned; the heap is never compacted. */
static int32_t compaction_mode(struct gc_heap *self)
{
	return of(self)->compaction_mode;
}

static void set_compaction_mode(struct gc_heap *self, int32_t mode)
{
	of(self)->compaction_mode = mode;
}

static bool register_for_notification(struct gc_heap *self, uint32_t gen2_percent,
	uint32_t large_percent)
{
	(void)self;
	(void)gen2_percent;
	(void)large_percent;
	return false;
}

static bool cancel_notification(struct gc_heap *self)
{
	(void)self;
	return true;
}

static int32_t wait_for_full(struct gc_heap *self, int32_t timeout_ms)
{
	enum { NOT_APPLICABLE = 4 };

	(void)self;
	(void)timeout_ms;
	return NOT_APPLICABLE;
}

static uint32_t which_generation(struct gc_heap *self, struct gc_object *object)
{
	return collector_generation(of(self), object);
}

static int32_t collection_count(struct gc_heap *self, int32_t generation,
	int32_t get_background_full_count)
{
	(void)generation;
	return get_background_full_count
		       ? 0
		       : (int32_t)__atomic_load_n(&of(self)->count, __ATOMIC_RELAXED);
}

static int32_t start_no_gc_region(struct gc_heap *self, uint64_t total_size, bool is_large_known,
	uint64_t large_size, bool disallow_full_blocking)
{
	(void)is_large_known;
	(void)large_size;
	(void)disallow_full_blocking;
	return collector_no_gc_begin(of(self), total_size);
}

static int32_t end_no_gc_region(struct gc_heap *self)
{
	return collector_no_gc_end(of(self));
}

static size_t total_bytes_in_use(struct gc_heap *self)
{
	struct collector *c = of(self);

	return __atomic_load_n(&c->live, __ATOMIC_RELAXED) +
	       __atomic_load_n(&c->heap.allocated, __ATOMIC_RELAXED);
}

static uint64_t total_allocated_bytes(struct gc_heap *self)
{
	struct collector *c = of(self);

	return __atomic_load_n(&c->heap.allocated_before, __ATOMIC_RELAXED) +
	       __atomic_load_n(&c->heap.allocated, __ATOMIC_RELAXED);
}

static int32_t garbage_collect(struct gc_heap *self, int32_t generation, bool low_memory,
	int32_t mode)
{
	struct collector *c = of(self);
	struct collect_request request = {
		.reason = COLLECT_INDUCED, .mode = (uint32_t)mode, .is_induced = true
	};

	(void)generation; /* all objects are of one generation */
	if (low_memory) {
		request.reason = COLLECT_LOW_MEMORY;
		request.mode |= COLLECT_AGGRESSIVE;
	} else if (mode & COLLECT_OPTIMIZED) {
		/*
		 * Only after a quarter of the budget was allocated: before, a collection would free
		 * little.
		 */
		if (__atomic_load_n(&c->heap.allocated, __ATOMIC_RELAXED) <
			__atomic_load_n(&c->budget, __ATOMIC_RELAXED) / 4)
			return GC_OK;
		request.reason = COLLECT_INDUCED_NOT_FORCED;
	} else if (mode & COLLECT_COMPACTING) {
		request.reason = COLLECT_INDUCED_COMPACTING;
	}
	collector_collect(c, request);
	return GC_OK;
}

static uint32_t max_generation(struct gc_heap *self)
{
	(void)self;
	return GENERATION_OLDEST;
}

static int32_t percent_time_in_gc(struct gc_heap *self)
{
	return (int32_t)(pause_percent_100(of(self)) / 100);
}

static size_t generation_size(struct gc_heap *self, int32_t generation)
{
	return generation >= 0 && generation < GENERATIONS_ALL
		       ? of(self)->last.size_after[generation]
		       : 0;
}

static int64_t total_pause_duration(struct gc_heap *self)
{
	return of(self)->paused_ns / 100;
}

static uint64_t generation_budget(struct gc_heap *self, int32_t generation)
{
	return generation == 0 ? __atomic_load_n(&of(self)->budget, __ATOMIC_RELAXED) : 0;
}

static size_t loh_threshold(struct gc_heap *self)
{
	(void)self;
	return LARGE_OBJECT_MIN;
}

static void enumerate_configuration(struct gc_heap *self, void *context, gc_configuration_fn *call)
{
	enum { TYPE_INT64 = 0, TYPE_BOOLEAN = 2 };
	struct settings *s = &of(self)->settings;

	for (int key = 0; key < SETTINGS; key++) {
		const struct setting_name *n = &setting_names[key];
		int64_t value = s->values[key];

		/* The effective limit, if it is higher than the configured one. */
		if (key == SETTING_HARD_LIMIT)
			value = (int64_t)s->hard_limit_bytes;
		else if (key == SETTING_REGION_RANGE)
			value = (int64_t)of(self)->heap.size;
		call(context, (void *)(uintptr_t)n->name, (void *)(uintptr_t)n->public_key,
			n->is_bool ? TYPE_BOOLEAN : TYPE_INT64, value);
	}
}

static int32_t refresh_memory_limit(struct gc_heap *self)
{
	enum { REFRESHED = 0, TOO_LOW = 1, INVALID = 2 };
	struct collector *c = of(self);
	struct settings fresh;
	char text[256];

	if (settings_read(&fresh, c->ee, text, sizeof(text)) != GC_OK)
		return INVALID;
	pthread_mutex_lock(&c->heap.lock);
	bool is_too_low = fresh.hard_limit_bytes && fresh.hard_limit_bytes < c->heap.committed;
	if (!is_too_low) {
		c->heap.commit_limit = fresh.hard_limit_bytes;
		c->settings.hard_limit_bytes = fresh.hard_limit_bytes;
		c->settings.is_limit_configured = fresh.is_limit_configured;
		c->settings.physical_bytes = fresh.physical_bytes;
	}
	pthread_mutex_unlock(&c->heap.lock);
	return is_too_low ? TOO_LOW : REFRESHED;
}

static int32_t enable_no_gc_callback(struct gc_heap *self, void *callback, uint64_t threshold)
{
	enum { NOT_STARTED = 1 };

	(void)self;
	(void)callback;
	(void)threshold;
	return NOT_STARTED;
}

static void *extra_finalization_work(struct gc_heap *self)
{
	(void)self;
	return NULL;
}

/* ---- what the rest of the runtime asks ---- */

static int32_t initialize(struct gc_heap *self)
{
	return collector_start(of(self));
}

static bool is_promoted(struct gc_heap *self, struct gc_object *object)
{
	struct collector *c = of(self);

	/*
	 * Called while all threads are suspended; at other times every object that the runtime can
	 * refer to is alive.
	 */
	return !c->is_stopped || marker_lives(&c->marker, object);
}

static bool is_heap_pointer(struct gc_heap *self, void *address, bool small_only)
{
	struct heap *h = &of(self)->heap;
	size_t at = heap_offset(h, address);

	if (at >= h->size || at >> REGION_SHIFT >= h->region_end)
		return false;
	enum region_kind kind =
		(enum region_kind)heap_region(h, (uint32_t)(at >> REGION_SHIFT))->kind;
	return kind == REGION_SMALL || kind == REGION_MEDIUM ||
	       (!small_only && kind != REGION_FREE);
}

static bool is_in_progress(struct gc_heap *self, bool consider_start)
{
	(void)consider_start;
	return __atomic_load_n(&of(self)->is_in_progress, __ATOMIC_ACQUIRE);
}

static uint32_t gc_count(struct gc_heap *self)
{
	return __atomic_load_n(&of(self)->count, __ATOMIC_RELAXED);
}

static bool uses_context_heap(struct gc_heap *self, struct gc_alloc_context *context,
	int32_t thread_number)
{
	(void)self;
	(void)context;
	(void)thread_number;
	return true; /* one heap; otherwise that thread's stack is not scanned */
}

static bool is_ephemeral(struct gc_heap *self, struct gc_object *object)
{
	(void)self;
	(void)object;
	return false;
}

static uint32_t wait_until_complete(struct gc_heap *self, bool consider_start)
{
	struct collector *c = of(self);

	(void)consider_start;
	if (!__atomic_load_n(&c->is_in_progress, __ATOMIC_ACQUIRE))
		return 0;
	pthread_mutex_lock(&c->gate.mutex);
	while (!c->gate.is_open)
		pthread_cond_wait(&c->gate.opened, &c->gate.mutex);
	pthread_mutex_unlock(&c->gate.mutex);
	return 0;
}

static void set_in_progress(struct gc_heap *self, bool in_progress)
{
	__atomic_store_n(&of(self)->is_in_progress, in_progress, __ATOMIC_RELEASE);
}

static void open_gate(struct gc_heap *self)
{
	struct gate *gate = &of(self)->gate;

	pthread_mutex_lock(&gate->mutex);
	gate->is_open = true;
	pthread_cond_broadcast(&gate->opened);
	pthread_mutex_unlock(&gate->mutex);
}

static void close_gate(struct gc_heap *self)
{
	struct gate *gate = &of(self)->gate;

	pthread_mutex_lock(&gate->mutex);
	gate->is_open = false;
	pthread_mutex_unlock(&gate->mutex);
}

static void fix_context(struct gc_heap *self, struct gc_alloc_context *context, void *argument,
	void *heap)
{
	(void)argument;
	(void)heap;
	collector_retire(of(self), context);
}

static bool structures_valid(struct gc_heap *self)
{
	(void)self;
	return true;
}

static void ignore_bool(struct gc_heap *self, bool value)
{
	(void)self;
	(void)value;
}

static void ignore_float(struct gc_heap *self, float value)
{
	(void)self;
	(void)value;
}

static size_t last_start(struct gc_heap *self, int32_t generation)
{
	(void)generation;
	return (size_t)of(self)->last.start_ns / 1000000;
}

static size_t last_duration(struct gc_heap *self, int32_t generation)
{
	(void)generation;
	return (size_t)of(self)->last.pause_ns / 1000000;
}

static size_t now(struct gc_heap *self)
{
	(void)self;
	return (size_t)collector_now_ns() / 1000000;
}

static struct gc_object *alloc(struct gc_heap *self, struct gc_alloc_context *context, size_t size,
	uint32_t flags)
{
	return collector_alloc(of(self), context, size, flags);
}

static void ignore_address(struct gc_heap *self, uint8_t *object)
{
	(void)self;
	(void)object;
}

static bool is_large(struct gc_heap *self, struct gc_object *object)
{
	(void)self;
	return object_size(object) >= LARGE_OBJECT_MIN;
}

static void ignore_object(struct gc_heap *self, struct gc_object *object)
{
	(void)self;
	(void)object;
}

static struct gc_object *next_object(struct gc_heap *self, struct gc_object *object)
{
	struct heap *h = &of(self)->heap;
	struct gc_object *next = (struct gc_object *)((uint8_t *)object + object_size(object));
	size_t at = heap_offset(h, object_cell(object)),
	       next_at = heap_offset(h, object_cell(next));

	/* Cells do not cross the border of a region. */
	if (at >= h->size || at >> REGION_SHIFT != next_at >> REGION_SHIFT ||
		heap_region(h, (uint32_t)(at >> REGION_SHIFT))->kind == REGION_HUGE)
		return NULL;
	return next;
}

static struct gc_object *containing_object(struct gc_heap *self, void *interior,
	bool collected_only)
{
	struct collector *c = of(self);

	(void)collected_only;
	return c->is_stopped ? heap_object_at(&c->heap, interior) : NULL;
}

/* ---- traces ---- */

/* The settings that a trace shows. */
struct trace_settings {
	size_t heap_hard_limit;
	size_t loh_threshold;
	size_t physical_memory_from_config;
	size_t gen0_min_budget_from_config;
	size_t gen0_max_budget_from_config;
	uint32_t high_mem_percent_from_config;
	bool is_concurrent;
	bool uses_large_pages;
	bool uses_frozen_segments;
	bool is_hard_limit_configured;
	bool no_affinitize;
};

static void trace_settings(struct gc_heap *self, void *settings)
{
	const struct settings *s = &of(self)->settings;

	*(struct trace_settings *)settings = (struct trace_settings){
		.heap_hard_limit = s->hard_limit_bytes,
		.loh_threshold = LARGE_OBJECT_MIN,
		.physical_memory_from_config = (size_t)s->values[SETTING_PHYSICAL_MEMORY],
		.gen0_min_budget_from_config = (size_t)s->values[SETTING_GEN0_SIZE],
		.gen0_max_budget_from_config = (size_t)s->values[SETTING_GEN0_MAX],
		.high_mem_percent_from_config = (uint32_t)s->values[SETTING_HIGH_PERCENT],
		.uses_frozen_segments = true,
		.is_hard_limit_configured = s->is_limit_configured,
		.no_affinitize = true,
	};
}

static bool stress_heap(struct gc_heap *self, struct gc_alloc_context *context)
{
	(void)self;
	(void)context;
	return false;
}

/* ---- frozen segments ---- */

static struct gc_segment *register_frozen(struct gc_heap *self, struct gc_segment_info *info)
{
	struct collector *c = of(self);
	struct gc_segment *segment = malloc(sizeof(*segment));

	if (!segment)
		return NULL; /* the runtime fails to start: out of memory */
	uint8_t *mem = info->mem;
	segment->begin = mem + info->first_object - CELL_HEADER;
	segment->end = mem + info->allocated - CELL_HEADER;
	segment->reserved = mem + info->reserved;
	pthread_mutex_lock(&c->frozen_lock);
	segment->next = c->frozen;
	__atomic_store_n(&c->frozen, segment, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&c->frozen_lock);
	return segment;
}

static void unregister_frozen(struct gc_heap *self, struct gc_segment *segment)
{
	struct collector *c = of(self);

	pthread_mutex_lock(&c->frozen_lock);
	struct gc_segment **link = &c->frozen;
	while (*link && *link != segment)
		link = &(*link)->next;
	if (*link)
		__atomic_store_n(link, segment->next, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&c->frozen_lock);
	/*
	 * Not freed: another thread may be reading the list without a lock. This occurs when code
	 * is unloaded, and loses 32 bytes.
	 */
}

static void update_frozen(struct gc_heap *self, struct gc_segment *segment, uint8_t *allocated,
	uint8_t *committed)
{
	(void)self;
	(void)committed;
	__atomic_store_n(&segment->end, allocated - CELL_HEADER, __ATOMIC_RELEASE);
}

static bool is_in_frozen(struct gc_heap *self, struct gc_object *object)
{
	struct collector *c = of(self);
	uint8_t *at = (uint8_t *)object;

	if (heap_has(&c->heap, object))
		return false;
	for (struct gc_segment *s = __atomic_load_n(&c->frozen, __ATOMIC_ACQUIRE); s;
		s = __atomic_load_n(&s->next, __ATOMIC_ACQUIRE)) {
		if (at >= s->begin && at < s->reserved)
			return true;
	}
	return false;
}

/* ---- events ---- */

static void control_events(struct gc_heap *self, int32_t keyword, int32_t level)
{
	(void)self;
	gc_events_control(GC_EVENT_DEFAULT, keyword, level);
}

static void control_private_events(struct gc_heap *self, int32_t keyword, int32_t level)
{
	(void)self;
	gc_events_control(GC_EVENT_PRIVATE, keyword, level);
}

static uint32_t generation_with_range(struct gc_heap *self, struct gc_object *object,
	uint8_t **begin, uint8_t **allocated, uint8_t **reserved)
{
	uint32_t generation = collector_generation_range(of(self), object, begin, allocated);

	*reserved = *allocated;
	return generation;
}

static void null_bridge_references(struct gc_heap *self, size_t length, void *references)
{
	/* Only for runtimes with a second collector, which do not exist on Linux. */
	(void)self;
	(void)length;
	(void)references;
}

/* For slots that later runtimes may call. */
static uint64_t nothing(void)
{
	return 0;
}

static union {
	struct gc_heap_table table;
	uint64_t (*slots[GC_HEAP_SPARE])(void);
} heap_table = {
	.table = {
		.IsValidSegmentSize = is_valid_size,
		.IsValidGen0MaxSize = is_valid_size,
		.GetValidSegmentSize = valid_segment_size,
		.SetReservedVMLimit = ignore_size,
		.WaitUntilConcurrentGCComplete = do_nothing,
		.IsConcurrentGCInProgress = say_false,
		.TemporaryEnableConcurrentGC = do_nothing,
		.TemporaryDisableConcurrentGC = do_nothing,
		.IsConcurrentGCEnabled = say_false,
		.WaitUntilConcurrentGCCompleteAsync = wait_concurrent,
		.GetNumberOfFinalizable = number_of_finalizable,
		.GetNextFinalizable = next_finalizable,
		.GetMemoryInfo = memory_info,
		.GetMemoryLoad = memory_load,
		.GetGcLatencyMode = latency_mode,
		.SetGcLatencyMode = set_latency_mode,
		.GetLOHCompactionMode = compaction_mode,
		.SetLOHCompactionMode = set_compaction_mode,
		.RegisterForFullGCNotification = register_for_notification,
		.CancelFullGCNotification = cancel_notification,
		.WaitForFullGCApproach = wait_for_full,
		.WaitForFullGCComplete = wait_for_full,
		.WhichGeneration = which_generation,
		.CollectionCount = collection_count,
		.StartNoGCRegion = start_no_gc_region,
		.EndNoGCRegion = end_no_gc_region,
		.GetTotalBytesInUse = total_bytes_in_use,
		.GetTotalAllocatedBytes = total_allocated_bytes,
		.GarbageCollect = garbage_collect,
		.GetMaxGeneration = max_generation,
		.SetFinalizationRun = set_finalization_run,
		.RegisterForFinalization = register_for_finalization,
		.GetLastGCPercentTimeInGC = percent_time_in_gc,
		.GetLastGCGenerationSize = generation_size,
		.Initialize = initialize,
		.IsPromoted = is_promoted,
		.IsHeapPointer = is_heap_pointer,
		.GetCondemnedGeneration = max_generation,
		.IsGCInProgressHelper = is_in_progress,
		.GetGcCount = gc_count,
		.IsThreadUsingAllocationContextHeap = uses_context_heap,
		.IsEphemeral = is_ephemeral,
		.WaitUntilGCComplete = wait_until_complete,
		.FixAllocContext = fix_context,
		.GetCurrentObjSize = total_bytes_in_use,
		.SetGCInProgress = set_in_progress,
		.RuntimeStructuresValid = structures_valid,
		.SetSuspensionPending = ignore_bool,
		.SetYieldProcessorScalingFactor = ignore_float,
		.Shutdown = do_nothing,
		.GetLastGCStartTime = last_start,
		.GetLastGCDuration = last_duration,
		.GetNow = now,
		.Alloc = alloc,
		.PublishObject = ignore_address,
		.SetWaitForGCEvent = open_gate,
		.ResetWaitForGCEvent = close_gate,
		.IsLargeObject = is_large,
		.ValidateObjectMember = ignore_object,
		.NextObj = next_object,
		.GetContainingObject = containing_object,
		.DiagGetGCSettings = trace_settings,
		.StressHeap = stress_heap,
		.RegisterFrozenSegment = register_frozen,
		.UnregisterFrozenSegment = unregister_frozen,
		.IsInFrozenSegment = is_in_frozen,
		.ControlEvents = control_events,
		.ControlPrivateEvents = control_private_events,
		.GetGenerationWithRange = generation_with_range,
		.GetTotalPauseDuration = total_pause_duration,
		.EnumerateConfigurationValues = enumerate_configuration,
		.UpdateFrozenSegment = update_frozen,
		.RefreshMemoryLimit = refresh_memory_limit,
		.EnableNoGCRegionCallback = enable_no_gc_callback,
		.GetExtraWorkForFinalization = extra_finalization_work,
		.GetGenerationBudget = generation_budget,
		.GetLOHThreshold = loh_threshold,
		.NullBridgeObjectsWeakRefs = null_bridge_references,
	},
};

void spoorgc_fill_heap(struct collector *c)
{
	for (int i = GC_HEAP_COUNT; i < GC_HEAP_SPARE; i++)
		heap_table.slots[i] = nothing;
	spoorgc_fill_walks(&heap_table.table);
	c->border.table = &heap_table.table;
}
