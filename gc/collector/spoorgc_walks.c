/*
 * The functions of IGCHeap with which profilers and debuggers walk over objects, handles and
 * segments. collector_walk.c walks.
 */
#include "gc/collector/spoorgc.h"
#include "gc/events.h"

static struct collector *of(struct gc_heap *self)
{
	return (struct collector *)self;
}

static void walk_object(struct gc_heap *self, struct gc_object *object, gc_walk_object_fn *walk,
	void *context)
{
	(void)self;
	collector_walk_references(object, walk, context);
}

static void walk_object2(struct gc_heap *self, struct gc_object *object, gc_walk_object2_fn *walk,
	void *context)
{
	(void)self;
	collector_walk_slots(object, walk, context);
}

static void walk_heap(struct gc_heap *self, gc_walk_object_fn *walk, void *context,
	int32_t generation, bool walk_large)
{
	/* All small objects are of the oldest generation. */
	if (generation >= 0 && generation < GENERATION_OLDEST)
		return;
	collector_walk_heap(of(self), walk, context, walk_large);
}

static void retire_for_walk(struct gc_alloc_context *context, void *argument)
{
	collector_retire(argument, context);
}

static void walk_heap_outside(struct gc_heap *self, gc_walk_object_fn *walk, void *context,
	int32_t generation, bool walk_large)
{
	struct collector *c = of(self);

	c->ee->table->GcEnumAllocContexts(c->ee, retire_for_walk, c);
	walk_heap(self, walk, context, generation, walk_large);
}

static void walk_survivors(struct gc_heap *self, void *gc_context, void *record, void *diagnostics,
	int32_t type, int32_t generation)
{
	/* Profilers read the new addresses of survivors: none has moved. */
	(void)self;
	(void)gc_context;
	(void)record;
	(void)diagnostics;
	(void)type;
	(void)generation;
}

static void walk_finalize_queue(struct gc_heap *self, void *gc_context, gc_walk_finalizer_fn *walk)
{
	(void)gc_context;
	collector_walk_ready_kinds(of(self), walk);
}

static void scan_finalize_queue(struct gc_heap *self, gc_scan_finalizer_fn *scan,
	struct gc_scan_context *context)
{
	/* Called as a promote function: slot, context, flags. */
	collector_walk_ready(of(self), (gc_promote_fn *)(void *)scan, context);
}

static void scan_handles(struct gc_heap *self, gc_scan_handle_fn *scan, int32_t generation,
	struct gc_scan_context *context)
{
	(void)generation;
	collector_walk_handles(of(self), scan, context, false);
}

static void scan_dependent_handles(struct gc_heap *self, gc_scan_handle_fn *scan,
	int32_t generation, struct gc_scan_context *context)
{
	(void)generation;
	collector_walk_handles(of(self), scan, context, true);
}

static void describe_generations(struct gc_heap *self, gc_generation_fn *describe, void *context)
{
	collector_describe(of(self), describe, context);
}

static void trace_segment(void *context, int32_t generation, uint8_t *begin, uint8_t *end,
	uint8_t *reserved)
{
	enum { SEGMENT_SMALL = 0, SEGMENT_LARGE = 1, SEGMENT_PINNED = 3 };

	(void)context;
	(void)end;
	gc_event_GCCreateSegment_V1(begin, (size_t)(reserved - begin),
		generation == GENERATION_LARGE    ? SEGMENT_LARGE
		: generation == GENERATION_PINNED ? SEGMENT_PINNED
						  : SEGMENT_SMALL);
}

static void trace_segments(struct gc_heap *self)
{
	if (gc_event_on_GCCreateSegment_V1())
		collector_describe(of(self), trace_segment, NULL);
}

void spoorgc_fill_walks(struct gc_heap_table *table)
{
	table->DiagWalkObject = walk_object;
	table->DiagWalkObject2 = walk_object2;
	table->DiagWalkHeap = walk_heap;
	table->DiagWalkSurvivorsWithType = walk_survivors;
	table->DiagWalkFinalizeQueue = walk_finalize_queue;
	table->DiagScanFinalizeQueue = scan_finalize_queue;
	table->DiagScanHandles = scan_handles;
	table->DiagScanDependentHandles = scan_dependent_handles;
	table->DiagDescrGenerations = describe_generations;
	table->DiagTraceGCSegments = trace_segments;
	table->DiagWalkHeapWithACHandling = walk_heap_outside;
}
