/*
 * Walks over the heap while all threads are suspended, for heap snapshots, profilers and the
 * runtime.
 */
#include "gc/collector/collector.h"

/* The kind of a root in the snapshot's events. */
enum root_flag { ROOT_PINNING = 1, ROOT_WEAK = 2, ROOT_REF_COUNTED = 8 };

/* Walks consecutive cells; false: `walk` has ended the walk. */
static bool walk_cells(struct collector *c, uint8_t *begin, uint8_t *end, gc_walk_object_fn *walk,
	void *context)
{
	for (uint8_t *cell = begin; cell < end;) {
		struct gc_object *o = cell_object(cell);
		size_t size = object_size(o);

		/* Free cells are shown as objects too, like in the stock collector. */
		if (!heap_is_free_cell(&c->heap, o) && !walk(o, context))
			return false;
		cell += size;
	}
	return true;
}

void collector_walk_heap(struct collector *c, gc_walk_object_fn *walk, void *context,
	bool walk_large)
{
	struct heap *h = &c->heap;
	enum region_kind kind;
	uint8_t *begin, *end;

	heap_make_walkable(h);
	for (uint32_t at = 0; heap_stretch(h, &at, &kind, &begin, &end);) {
		if (!walk_large && (kind == REGION_LARGE || kind == REGION_PINNED))
			continue;
		if (h->regions[heap_offset(h, begin) >> REGION_SHIFT].kind == REGION_HUGE) {
			if (!walk(cell_object(begin), context))
				return;
		} else if (!walk_cells(c, begin, end, walk, context)) {
			return;
		}
	}
	/* Frozen segments belong to the oldest generation. */
	for (struct gc_segment *s = c->frozen; s; s = s->next) {
		if (!walk_cells(c, s->begin, __atomic_load_n(&s->end, __ATOMIC_ACQUIRE), walk,
			    context))
			return;
	}
}

struct reference_call {
	gc_walk_object_fn *walk;
	gc_walk_object2_fn *walk_slots;
	struct gc_object *object;
	void *context;
};

static bool call_walk(void *context, struct gc_object **slot)
{
	struct reference_call *call = context;

	return !*slot || call->walk(*slot, call->context);
}

static bool call_walk_slots(void *context, struct gc_object **slot)
{
	struct reference_call *call = context;

	return !*slot || call->walk_slots(call->object, (uint8_t **)slot, call->context);
}

void collector_walk_references(struct gc_object *o, gc_walk_object_fn *walk, void *context)
{
	struct reference_call call = { .walk = walk, .context = context };

	if (o->type->flags & TYPE_HAS_REFERENCES)
		object_each_reference(o, o->type, object_size(o), call_walk, &call);
}

void collector_walk_slots(struct gc_object *o, gc_walk_object2_fn *walk, void *context)
{
	struct reference_call call = { .walk_slots = walk, .object = o, .context = context };

	if (o->type->flags & TYPE_HAS_REFERENCES)
		object_each_reference(o, o->type, object_size(o), call_walk_slots, &call);
}

struct handle_call {
	struct collector *collector;
	gc_scan_handle_fn *scan;
	struct gc_scan_context *context;
	uint32_t flags;
};

static void call_scan(void *context, struct gc_object **handle, struct gc_object *o)
{
	struct handle_call *call = context;
	uint32_t flags = call->flags;

	if (flags & ROOT_REF_COUNTED)
		flags |= call->collector->ee->table->RefCountedHandleCallbacks(call->collector->ee,
				 o)
				 ? 0
				 : ROOT_WEAK;
	call->scan(handle, NULL, flags, call->context, false);
}

static void call_scan_dependent(void *context, struct gc_object **handle, struct gc_object *o)
{
	struct handle_call *call = context;
	struct gc_object *secondary = (struct gc_object *)*handle_extra(handle);

	(void)o;
	if (secondary)
		call->scan(handle, secondary, 0, call->context, true);
}

void collector_walk_handles(struct collector *c, gc_scan_handle_fn *scan,
	struct gc_scan_context *context, bool is_dependent)
{
	static const uint32_t flags[GC_HANDLE_TYPES] = {
		[GC_HANDLE_WEAK_SHORT] = ROOT_WEAK,
		[GC_HANDLE_WEAK_LONG] = ROOT_WEAK,
		[GC_HANDLE_WEAK_NATIVE] = ROOT_WEAK,
		[GC_HANDLE_WEAK_INTERIOR] = ROOT_WEAK,
		[GC_HANDLE_PINNED] = ROOT_PINNING,
		[GC_HANDLE_ASYNC_PINNED] = ROOT_PINNING,
		[GC_HANDLE_REFCOUNTED] = ROOT_REF_COUNTED,
	};
	struct handle_call call = { .collector = c, .scan = scan, .context = context };

	if (is_dependent) {
		handles_each(&c->handles, GC_HANDLE_DEPENDENT, call_scan_dependent, &call);
		return;
	}
	for (int32_t type = 0; type < GC_HANDLE_TYPES; type++) {
		call.flags = flags[type];
		if (type != GC_HANDLE_DEPENDENT)
			handles_each(&c->handles, type, call_scan, &call);
	}
}

void collector_walk_ready(struct collector *c, gc_promote_fn *scan, struct gc_scan_context *context)
{
	struct object_list *lists[] = { &c->finalizers.ready, &c->finalizers.ready_critical };

	for (int l = 0; l < 2; l++) {
		for (size_t i = lists[l]->taken; i < lists[l]->count; i++)
			scan(&lists[l]->items[i], context, 0);
	}
}

void collector_walk_ready_kinds(struct collector *c, gc_walk_finalizer_fn *walk)
{
	struct object_list *lists[] = { &c->finalizers.ready, &c->finalizers.ready_critical };

	for (int l = 0; l < 2; l++) {
		for (size_t i = lists[l]->taken; i < lists[l]->count; i++)
			walk(l == 1, lists[l]->items[i]);
	}
}

static int32_t generation_of(enum region_kind kind)
{
	return kind == REGION_LARGE    ? GENERATION_LARGE
	       : kind == REGION_PINNED ? GENERATION_PINNED
				       : GENERATION_OLDEST;
}

void collector_describe(struct collector *c, gc_generation_fn *describe, void *context)
{
	enum region_kind kind;
	uint8_t *begin, *end;

	for (uint32_t at = 0; heap_stretch(&c->heap, &at, &kind, &begin, &end);)
		describe(context, generation_of(kind), begin, end, end);
	for (struct gc_segment *s = c->frozen; s; s = s->next)
		describe(context, GENERATION_OLDEST, s->begin, s->end, s->reserved);
}

uint32_t collector_generation_range(struct collector *c, struct gc_object *o, uint8_t **ret_begin,
	uint8_t **ret_end)
{
	enum region_kind kind;
	uint8_t *begin, *end;

	for (uint32_t at = 0; heap_stretch(&c->heap, &at, &kind, &begin, &end);) {
		if ((uint8_t *)o < begin || (uint8_t *)o >= end)
			continue;
		*ret_begin = begin;
		*ret_end = end;
		return (uint32_t)generation_of(kind);
	}
	return GENERATION_NONE;
}
