/*
 * Opening, allocating, collecting. collector_heap.h has the memory, collector_mark.h finds the live
 * objects.
 */
#include "gc/collector/collector.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gc/events.h"

enum {
	MIB = 1 << 20,
	/*
	 * The minimum allocated between two collections, so that a small heap is not collected all
	 * the time.
	 */
	BUDGET_LEAST = 32 * MIB,
	RANGE_LEAST = 128 * MIB,
	TICK_BYTES =
		100
		<< 10, /* between two GCAllocationTick events, as in the runtime's own collector */
	TRIM_IDLE = 6, /* a region is kept for so many collections after it became free */
	ALLOC_TRIES = 4,
	LOAD_INTERVAL_NS = 1000000000,
};

int64_t collector_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static uint64_t budget_after(const struct collector *c, uint64_t live, uint32_t load)
{
	const struct settings *s = &c->settings;
	/* Half of the live bytes: then marking costs a little less than allocating. */
	uint64_t budget = live + live / 2;

	if (s->values[SETTING_GEN0_SIZE] > 0)
		return (uint64_t)s->values[SETTING_GEN0_SIZE];
	if (s->values[SETTING_CONSERVE] > 0 && s->values[SETTING_CONSERVE] <= 9)
		budget = budget / 10 * (uint64_t)(10 - s->values[SETTING_CONSERVE]);
	if (budget < BUDGET_LEAST || load >= s->high_percent)
		budget = BUDGET_LEAST;
	if (s->values[SETTING_GEN0_MAX] > 0 && budget > (uint64_t)s->values[SETTING_GEN0_MAX])
		budget = (uint64_t)s->values[SETTING_GEN0_MAX];
	return budget;
}

/* ---- opening ---- */

static void tell_host(struct gc_to_clr *ee, const char *text)
{
	ee->table->LogErrorToHost(ee, text);
}

static int open_size(struct collector *c, size_t size)
{
	if (heap_open(&c->heap, size, c->settings.hard_limit_bytes) < 0)
		return -ENOMEM;
	if (marker_open(&c->marker, &c->heap, c->ee, c->runtime->collectible_flag,
		    c->settings.mark_stack_bytes) == 0)
		return 0;
	heap_close(&c->heap);
	return -ENOMEM;
}

/*
 * Opens heap and marker. A range that was configured is used or fails; otherwise a smaller one will
 * do, and half of the maximum leaves address space for the runtime.
 */
static int open_range(struct collector *c)
{
	size_t size = c->settings.range_bytes;

	if (open_size(c, size) == 0)
		return 0;
	if (c->settings.is_range_configured)
		return -ENOMEM;
	while ((size /= 2) >= RANGE_LEAST) {
		if (open_size(c, size) < 0)
			continue;
		if (size / 2 < RANGE_LEAST)
			return 0;
		marker_close(&c->marker);
		heap_close(&c->heap);
		return open_size(c, size / 2);
	}
	return -ENOMEM;
}

int32_t collector_open(struct collector *c, struct gc_to_clr *ee, const struct gc_runtime *runtime)
{
	char text[256], sentence[300];

	c->ee = ee;
	c->runtime = runtime;
	c->critical_flag =
		runtime->dotnet == 8 ? TYPE_CRITICAL_FINALIZER_8 : TYPE_CRITICAL_FINALIZER;
	int32_t result = settings_read(&c->settings, ee, text, sizeof(text));
	if (result != GC_OK) {
		snprintf(sentence, sizeof(sentence), "libspoorgc: %s", text);
		tell_host(ee, sentence);
		return result;
	}
	const struct settings *s = &c->settings;
	if (open_range(c) < 0) {
		snprintf(sentence, sizeof(sentence),
			"libspoorgc: cannot reserve %llu MB of address space for the heap and the "
			"stack of marking. Raise the limit on address space "
			"(ulimit -v) or set DOTNET_GCRegionRange to less.",
			(unsigned long long)(s->is_range_configured ? s->range_bytes / MIB
								    : RANGE_LEAST / MIB));
		tell_host(ee, sentence);
		return GC_E_OUTOFMEMORY;
	}
	handles_init(&c->handles);
	finalizers_init(&c->finalizers);
	pthread_mutex_init(&c->frozen_lock, NULL);
	pthread_mutex_init(&c->collecting, NULL);
	pthread_mutex_init(&c->gate.mutex, NULL);
	pthread_cond_init(&c->gate.opened, NULL);
	c->gate.is_open = true;
	c->budget = budget_after(c, 0, 0);
	c->started_ns = collector_now_ns();
	return GC_OK;
}

int32_t collector_start(struct collector *c)
{
	struct heap *h = &c->heap;
	/*
	 * The cards are not read, but the write barrier of System.GC.Server writes them at each
	 * store. No address is ephemeral, so the other barriers write none.
	 */
	struct gc_write_barrier barrier = {
		.operation = GC_BARRIER_INITIALIZE,
		.is_runtime_suspended = true,
		.card_table = h->cards - ((uintptr_t)h->base >> CARD_SHIFT),
		.card_bundle_table = h->bundles - ((uintptr_t)h->base >> BUNDLE_SHIFT),
		.lowest_address = h->base,
		.highest_address = h->base + h->size,
		.ephemeral_low = (uint8_t *)UINTPTR_MAX,
		.ephemeral_high = (uint8_t *)UINTPTR_MAX,
	};

	c->ee->table->StompWriteBarrier(c->ee, &barrier);
	h->free_type = c->ee->table->GetFreeObjectMethodTable(c->ee);
	gc_events_poll();
	return GC_OK;
}

void collector_close(struct collector *c)
{
	struct gc_segment *next;

	for (struct gc_segment *s = c->frozen; s; s = next) {
		next = s->next;
		free(s);
	}
	marker_close(&c->marker);
	heap_close(&c->heap);
	handles_done(&c->handles);
	finalizers_done(&c->finalizers);
	pthread_mutex_destroy(&c->frozen_lock);
	pthread_mutex_destroy(&c->collecting);
	pthread_mutex_destroy(&c->gate.mutex);
	pthread_cond_destroy(&c->gate.opened);
}

/* ---- allocating ---- */

void collector_retire(struct collector *c, struct gc_alloc_context *context)
{
	if (context->ptr) {
		heap_fill(&c->heap, context->ptr - CELL_HEADER,
			context->limit + PIECE_RESERVE - CELL_HEADER);
		context->bytes -= context->limit - context->ptr;
	}
	context->ptr = NULL;
	context->limit = NULL;
}

/*
 * A new piece for the context. If it follows the old one directly, it is added to that, but no cell
 * crosses the border of a region.
 */
static void give_piece(struct collector *c, struct gc_alloc_context *context, struct run piece)
{
	uint8_t *limit = piece.end - PIECE_RESERVE + CELL_HEADER;

	bool is_region_begin = (heap_offset(&c->heap, piece.at) & (REGION_SIZE - 1)) == 0;

	if (context->ptr && context->limit + PIECE_RESERVE - CELL_HEADER == piece.at &&
		!is_region_begin) {
		context->bytes += limit - context->limit;
	} else {
		collector_retire(c, context);
		context->ptr = piece.at + CELL_HEADER;
		context->bytes += limit - context->ptr;
	}
	context->limit = limit;
	heap_note_begin(&c->heap, context->ptr - CELL_HEADER);
}

static uint8_t *bump(struct gc_alloc_context *context, size_t size)
{
	uint8_t *o = context->ptr;

	if (!o || (size_t)(context->limit - o) < size)
		return NULL;
	context->ptr += size;
	return o;
}

static bool budget_is_used_up(struct collector *c)
{
	uint64_t allocated = __atomic_load_n(&c->heap.allocated, __ATOMIC_RELAXED);

	if (__atomic_load_n(&c->no_gc.is_active, __ATOMIC_ACQUIRE)) {
		if (allocated <= c->no_gc.bytes)
			return false;
		/*
		 * More was allocated than requested: the no-GC region is over, which
		 * EndNoGCRegion() will report.
		 */
		__atomic_store_n(&c->no_gc.ended_by, 3, __ATOMIC_RELAXED);
		__atomic_store_n(&c->no_gc.is_active, false, __ATOMIC_RELEASE);
	}
	return allocated > __atomic_load_n(&c->budget, __ATOMIC_RELAXED);
}

static void count_tick(struct collector *c, uint32_t kind, uint64_t bytes, void *o, size_t size)
{
	uint64_t *tick = &c->ticks[kind];
	uint64_t now = __atomic_add_fetch(tick, bytes, __ATOMIC_RELAXED);

	if (now < TICK_BYTES)
		return;
	__atomic_store_n(tick, 0, __ATOMIC_RELAXED);
	gc_event_GCAllocationTick_V4(now, kind, 0, o, size);
}

struct gc_object *collector_alloc(struct collector *c, struct gc_alloc_context *context,
	size_t size, uint32_t flags)
{
	enum heap_shortage shortage;
	struct run taken;
	uint8_t *o = NULL;

	size = (size + CELL_ALIGN - 1) & ~(size_t)(CELL_ALIGN - 1);
	if (size < CELL_MIN)
		size = CELL_MIN;
	bool is_pinned = flags & GC_ALLOC_PINNED;
	bool is_large = !is_pinned && ((flags & GC_ALLOC_LARGE) || size >= LARGE_OBJECT_MIN);
	enum region_kind kind = is_pinned ? REGION_PINNED : is_large ? REGION_LARGE : REGION_SMALL;
	uint64_t bytes = 0;

	if (kind == REGION_SMALL)
		o = bump(context, size);
	for (int tries = 0; !o && tries < ALLOC_TRIES; tries++) {
		uint32_t count = __atomic_load_n(&c->count, __ATOMIC_ACQUIRE);

		if (tries == 0 && budget_is_used_up(c))
			collector_collect(c,
				(struct collect_request){ .reason = is_large ? COLLECT_ALLOC_LARGE
									     : COLLECT_ALLOC_SMALL,
					.only_if_count = true,
					.count = count });
		count = __atomic_load_n(&c->count, __ATOMIC_ACQUIRE);
		heap_take(&c->heap, size, kind, flags & GC_ALLOC_ZEROING_OPTIONAL, &taken,
			&shortage);
		if (shortage == HEAP_ENOUGH) {
			bytes = (uint64_t)(taken.end - taken.at);
			if (kind == REGION_SMALL && bytes >= size + PIECE_RESERVE) {
				give_piece(c, context, taken);
				o = bump(context, size);
			} else {
				o = taken.at + CELL_HEADER;
				*(kind == REGION_SMALL ? &context->bytes : &context->bytes_uoh) +=
					(int64_t)size;
			}
			break;
		}
		/*
		 * No memory is left: dead objects must be freed. A second collection directly after
		 * one of this thread would find no more.
		 */
		if (tries == ALLOC_TRIES - 1)
			return NULL;
		collector_collect(c,
			(struct collect_request){ .reason = is_large ? COLLECT_OUT_OF_SPACE_LARGE
								     : COLLECT_OUT_OF_SPACE_SMALL,
				.mode = COLLECT_AGGRESSIVE,
				.only_if_count = true,
				.count = count });
		if (__atomic_load_n(&c->count, __ATOMIC_ACQUIRE) == count + 1)
			tries = ALLOC_TRIES - 2;
	}
	if (!o)
		return NULL;
	struct gc_object *object = (struct gc_object *)(void *)o;
	if ((flags & GC_ALLOC_FINALIZE) && !finalizers_add(&c->finalizers, object)) {
		/* The object will not be made, and cells must be consecutive. */
		heap_fill(&c->heap, object_cell(object), object_cell(object) + size);
		return NULL;
	}
	if (bytes)
		count_tick(c, is_pinned ? 2 : is_large ? 1 : 0, bytes, o, size);
	return object;
}

int32_t collector_no_gc_begin(struct collector *c, uint64_t bytes)
{
	uint64_t most = c->settings.hard_limit_bytes ? c->settings.hard_limit_bytes : c->heap.size;

	if (__atomic_load_n(&c->no_gc.is_active, __ATOMIC_ACQUIRE))
		return 3;
	if (bytes > most)
		return 2;
	collector_collect(c,
		(struct collect_request){
			.reason = COLLECT_INDUCED, .mode = COLLECT_BLOCKING, .is_induced = true });
	if (!heap_commit_ahead(&c->heap, bytes))
		return 1;
	c->no_gc.bytes = __atomic_load_n(&c->heap.allocated, __ATOMIC_RELAXED) + bytes;
	__atomic_store_n(&c->no_gc.ended_by, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&c->no_gc.is_active, true, __ATOMIC_RELEASE);
	return 0;
}

int32_t collector_no_gc_end(struct collector *c)
{
	int32_t ended_by = __atomic_exchange_n(&c->no_gc.ended_by, 0, __ATOMIC_RELAXED);

	if (__atomic_exchange_n(&c->no_gc.is_active, false, __ATOMIC_ACQ_REL))
		return 0;
	return ended_by ? ended_by : 1;
}

uint32_t collector_generation(const struct collector *c, const struct gc_object *o)
{
	return heap_has(&c->heap, o) ? GENERATION_OLDEST : GENERATION_NONE;
}

/* ---- collecting ---- */

/* A scan of roots: the runtime passes the context to promote(). */
struct root_scan {
	struct gc_scan_context context;
	struct collector *collector;
};

static void promote(struct gc_object **slot, struct gc_scan_context *context, uint32_t flags)
{
	struct collector *c = ((struct root_scan *)context)->collector;
	struct gc_object *o = *slot;

	if (!o)
		return;
	if (flags & GC_ROOT_PINNED) {
		if (flags & GC_ROOT_INTERIOR) {
			o = heap_object_at(&c->heap, o);
			if (!o)
				return;
			flags &= ~(uint32_t)GC_ROOT_INTERIOR;
		}
		c->pinned_count++;
		gc_event_PinObjectAtGCTime(o, slot);
	}
	if (flags & GC_ROOT_INTERIOR)
		marker_pointer(&c->marker, o);
	else
		marker_root(&c->marker, o);
}

static void mark_strong(void *context, struct gc_object **handle, struct gc_object *o)
{
	(void)handle;
	marker_root(&((struct collector *)context)->marker, o);
}

static void mark_pinned(void *context, struct gc_object **handle, struct gc_object *o)
{
	struct collector *c = context;

	c->pinned_count++;
	gc_event_PinObjectAtGCTime(o, handle);
	marker_root(&c->marker, o);
}

static void mark_async_pinned(void *context, struct gc_object **handle, struct gc_object *o)
{
	struct root_scan *scan = context;

	mark_pinned(scan->collector, handle, o);
	scan->collector->ee->table->WalkAsyncPinnedForPromotion(scan->collector->ee, o,
		&scan->context, promote);
}

static void mark_counted(void *context, struct gc_object **handle, struct gc_object *o)
{
	struct collector *c = context;

	(void)handle;
	if (!marker_lives(&c->marker, o) && c->ee->table->RefCountedHandleCallbacks(c->ee, o))
		marker_root(&c->marker, o);
}

struct dependent_scan {
	struct collector *collector;
	bool is_new; /* an object was marked: another round may mark more */
};

static void mark_dependent(void *context, struct gc_object **handle, struct gc_object *o)
{
	struct dependent_scan *scan = context;
	struct marker *m = &scan->collector->marker;
	struct gc_object *secondary = (struct gc_object *)*handle_extra(handle);

	if (!secondary || !marker_lives(m, o) || marker_lives(m, secondary))
		return;
	marker_root(m, secondary);
	scan->is_new = true;
}

static void mark_dependents(struct collector *c)
{
	struct dependent_scan scan = { .collector = c, .is_new = true };

	while (scan.is_new) {
		scan.is_new = false;
		handles_each(&c->handles, GC_HANDLE_DEPENDENT, mark_dependent, &scan);
	}
}

static void clear_dead(void *context, struct gc_object **handle, struct gc_object *o)
{
	if (!marker_lives(&((struct collector *)context)->marker, o))
		__atomic_store_n(handle, NULL, __ATOMIC_RELAXED);
}

static void clear_dependent(void *context, struct gc_object **handle, struct gc_object *o)
{
	if (marker_lives(&((struct collector *)context)->marker, o))
		return;
	__atomic_store_n(handle_extra(handle), 0, __ATOMIC_RELAXED);
	__atomic_store_n(handle, NULL, __ATOMIC_RELAXED);
}

static void clear_sync_block(struct gc_object **slot, uintptr_t *extra, uintptr_t first,
	uintptr_t second)
{
	struct collector *c = (struct collector *)first;

	(void)extra;
	(void)second;
	if (*slot && !marker_lives(&c->marker, *slot))
		*slot = NULL;
}

static void retire(struct gc_alloc_context *context, void *argument)
{
	collector_retire(argument, context);
}

/* The end time of each part of a collection. */
struct course {
	int64_t begin, stopped, roots, short_weak, finalization, long_weak, swept, end;
};

static uint32_t microseconds(int64_t from_ns, int64_t to_ns)
{
	return (uint32_t)((to_ns - from_ns) / 1000);
}

static void mark_all(struct collector *c, struct course *course)
{
	struct gc_to_clr *ee = c->ee;
	struct marker *m = &c->marker;
	struct root_scan scan = {
		.context = { .thread_number = 0, .thread_count = 1, .promotion = true },
		.collector = c
	};
	uint64_t before = 0;

	c->pinned_count = 0;
	marker_begin(m);
	ee->table->BeforeGcScanRoots(ee, GENERATION_OLDEST, false, false);
	ee->table->GcScanRoots(ee, promote, GENERATION_OLDEST, GENERATION_OLDEST, &scan.context);
	gc_event_GCMarkWithType(0, 0, m->sums.bytes - before);
	before = m->sums.bytes;
	finalizers_mark_ready(&c->finalizers, m);
	gc_event_GCMarkWithType(0, 1, m->sums.bytes - before);
	before = m->sums.bytes;
	handles_each(&c->handles, GC_HANDLE_STRONG, mark_strong, c);
	handles_each(&c->handles, GC_HANDLE_SIZED_REF, mark_strong, c);
	handles_each(&c->handles, GC_HANDLE_CROSS_REFERENCE, mark_strong, c);
	handles_each(&c->handles, GC_HANDLE_PINNED, mark_pinned, c);
	handles_each(&c->handles, GC_HANDLE_ASYNC_PINNED, mark_async_pinned, &scan);
	handles_each(&c->handles, GC_HANDLE_REFCOUNTED, mark_counted, c);
	gc_event_GCMarkWithType(0, 2, m->sums.bytes - before);
	ee->table->AfterGcScanRoots(ee, GENERATION_OLDEST, GENERATION_OLDEST, &scan.context);
	mark_dependents(c);
	course->roots = collector_now_ns();

	handles_each(&c->handles, GC_HANDLE_WEAK_SHORT, clear_dead, c);
	handles_each(&c->handles, GC_HANDLE_WEAK_NATIVE, clear_dead, c);
	course->short_weak = collector_now_ns();

	finalizers_find_dead(&c->finalizers, m, c->critical_flag);
	mark_dependents(c);
	course->finalization = collector_now_ns();

	handles_each(&c->handles, GC_HANDLE_WEAK_LONG, clear_dead, c);
	handles_each(&c->handles, GC_HANDLE_REFCOUNTED, clear_dead, c);
	handles_each(&c->handles, GC_HANDLE_WEAK_INTERIOR, clear_dead, c);
	handles_each(&c->handles, GC_HANDLE_DEPENDENT, clear_dependent, c);
	ee->table->SyncBlockCacheWeakPtrScan(ee, clear_sync_block, (uintptr_t)c, 0);
	ee->table->SyncBlockCachePromotionsGranted(ee, GENERATION_OLDEST);
	marker_end(m);
	course->long_weak = collector_now_ns();
}

/* Bytes of regions in use, by the generation under which they are reported. */
static void measure(struct collector *c, uint64_t sizes[GENERATIONS_ALL])
{
	static const uint8_t generation_of[REGION_KINDS] = {
		[REGION_SMALL] = GENERATION_OLDEST,
		[REGION_MEDIUM] = GENERATION_OLDEST,
		[REGION_LARGE] = GENERATION_LARGE,
		[REGION_PINNED] = GENERATION_PINNED,
	};
	enum region_kind kind;
	uint8_t *begin, *end;

	memset(sizes, 0, GENERATIONS_ALL * sizeof(*sizes));
	for (uint32_t region = 0; heap_stretch(&c->heap, &region, &kind, &begin, &end);)
		sizes[generation_of[kind]] += (uint64_t)(end - begin);
}

static void note_sizes(struct collector *c, struct collect_record *r)
{
	const uint64_t *live = c->marker.sums.bytes_of_kind;
	uint64_t live_of[GENERATIONS_ALL] = {
		[GENERATION_OLDEST] = live[REGION_SMALL] + live[REGION_MEDIUM],
		[GENERATION_LARGE] = live[REGION_LARGE] + live[REGION_HUGE],
		[GENERATION_PINNED] = live[REGION_PINNED],
	};

	measure(c, r->size_after);
	r->heap_bytes = 0;
	for (int i = 0; i < GENERATIONS_ALL; i++) {
		r->heap_bytes += r->size_after[i];
		r->free_after[i] =
			r->size_after[i] > live_of[i] ? r->size_after[i] - live_of[i] : 0;
	}
}

static void tell_memory_load(struct collector *c, struct collect_record *r, int64_t now_ns)
{
	/* Reading the load costs more than a small collection. */
	if (c->load_at_ns && now_ns - c->load_at_ns < LOAD_INTERVAL_NS)
		return;
	c->load_at_ns = now_ns;
	r->memory_load = settings_memory_load(&c->settings);
}

static void fire_end(struct collector *c, const struct course *course,
	const struct collect_request *request, const struct sweep_sums *swept)
{
	const struct collect_record *r = &c->last;
	const struct mark_sums *marked = &c->marker.sums;
	uint32_t index = (uint32_t)r->index;

	if (gc_event_on_GCGlobalHeapHistory_V4()) {
		/*
		 * Mechanisms: 4, all live objects are promoted. Times: nothing, then roots to
		 * sweeping.
		 */
		uint32_t times[7] = {
			0,
			microseconds(course->stopped, course->roots),
			microseconds(course->roots, course->short_weak),
			microseconds(course->short_weak, course->finalization),
			microseconds(course->finalization, course->long_weak),
			0,
			microseconds(course->long_weak, course->swept),
		};
		gc_event_GCGlobalHeapHistory_V4(c->budget, 1, GENERATION_OLDEST, 0,
			(uint32_t)request->reason, 4, (uint32_t)c->latency_mode, r->memory_load, 0,
			0, 7, sizeof(*times), times);
	}
	gc_event_GCEnd_V1(index, GENERATION_OLDEST);
	if (gc_event_on_GCHeapStats_V2()) {
		const uint64_t *live = marked->bytes_of_kind;

		gc_event_GCHeapStats_V2(0, 0, 0, 0, r->size_after[GENERATION_OLDEST],
			live[REGION_SMALL] + live[REGION_MEDIUM], r->size_after[GENERATION_LARGE],
			live[REGION_LARGE] + live[REGION_HUGE], r->size_after[GENERATION_PINNED],
			live[REGION_PINNED], c->finalizers.promoted_bytes,
			c->finalizers.promoted_count, (uint32_t)c->pinned_count,
			c->ee->table->GetActiveSyncBlockCount(c->ee), handles_count(&c->handles));
	}
	gc_event_SpoorMarkAndSweep(index, marked->objects, marked->bytes, marked->stack_most,
		marked->overflows, (uint64_t)(course->stopped - course->begin),
		(uint64_t)(course->end - course->stopped), swept->regions_lazy,
		swept->regions_in_pause, swept->runs, swept->free_bytes);
}

static void fire_regions(struct collector *c)
{
	uint32_t of[REGION_KINDS] = { 0 };

	if (!gc_event_on_SpoorHeapRegions())
		return;
	for (uint32_t i = 0; i < c->heap.region_end; i++) {
		const struct region *r = &c->heap.regions[i];

		if (r->kind != REGION_FREE || r->is_committed)
			of[r->kind]++;
	}
	gc_event_SpoorHeapRegions((uint32_t)c->last.index, of[REGION_SMALL], of[REGION_MEDIUM],
		of[REGION_LARGE], of[REGION_PINNED], of[REGION_HUGE] + of[REGION_TAIL],
		of[REGION_FREE], c->heap.committed, c->heap.commit_limit, c->budget);
}

static void fire_generation_range(void *context, int32_t generation, uint8_t *begin, uint8_t *end,
	uint8_t *reserved)
{
	(void)context;
	gc_event_GCGenerationRange((uint8_t)generation, begin, (uint64_t)(end - begin),
		(uint64_t)(reserved - begin));
}

/* All threads are suspended. */
static void collect_stopped(struct collector *c, struct collect_request *request,
	struct course *course)
{
	struct gc_to_clr *ee = c->ee;
	struct heap *h = &c->heap;
	struct collect_record *r = &c->last;

	gc_events_poll();
	r->index = __atomic_add_fetch(&c->count, 1, __ATOMIC_RELEASE);
	ee->table->GcStartWork(ee, GENERATION_OLDEST, GENERATION_OLDEST);
	gc_event_GCStart_V2((uint32_t)r->index, GENERATION_OLDEST, (uint32_t)request->reason, 0);
	ee->table->DiagGCStart(ee, GENERATION_OLDEST, request->is_induced);
	memcpy(r->free_before, r->free_after, sizeof(r->free_before));
	measure(c, r->size_before);
	ee->table->GcEnumAllocContexts(ee, retire, c);
	heap_make_walkable(h);
	struct sweep_sums swept = h->sums;
	h->sums = (struct sweep_sums){ 0 };

	mark_all(c, course);
	heap_release(h);
	heap_trim(h, request->mode & COLLECT_AGGRESSIVE ? 0 : TRIM_IDLE);
	course->swept = collector_now_ns();

	r->live_bytes = c->marker.sums.bytes;
	__atomic_store_n(&c->live, r->live_bytes, __ATOMIC_RELAXED);
	r->committed_bytes = h->committed;
	r->pinned_count = c->pinned_count;
	r->pending_count = finalizers_waiting(&c->finalizers);
	note_sizes(c, r);
	tell_memory_load(c, r, course->swept);
	__atomic_store_n(&c->budget, budget_after(c, r->live_bytes, r->memory_load),
		__ATOMIC_RELAXED);
	if (gc_event_on_GCGenerationRange())
		collector_describe(c, fire_generation_range, NULL);

	ee->table->DiagWalkFReachableObjects(ee, NULL);
	ee->table->DiagUpdateGenerationBounds(ee);
	ee->table->DiagGCEnd(ee, r->index, GENERATION_OLDEST, (int32_t)request->reason, false);
	ee->table->GcDone(ee, GENERATION_OLDEST);
	course->end = collector_now_ns();
	r->start_ns = course->begin;
	r->pause_ns = course->end - course->begin;
	c->paused_ns += r->pause_ns;
	fire_end(c, course, request, &swept);
	fire_regions(c);
}

void collector_collect(struct collector *c, struct collect_request request)
{
	struct gc_to_clr *ee = c->ee;
	struct course course = { 0 };
	/*
	 * A thread that waits for the lock must not prevent a collection from suspending all
	 * threads.
	 */
	bool was_cooperative = ee->table->EnablePreemptiveGC(ee);

	pthread_mutex_lock(&c->collecting);
	if (request.only_if_count &&
		request.count != __atomic_load_n(&c->count, __ATOMIC_ACQUIRE)) {
		pthread_mutex_unlock(&c->collecting);
		if (was_cooperative)
			ee->table->DisablePreemptiveGC(ee);
		return;
	}
	gc_event_GCTriggered((uint32_t)request.reason);
	course.begin = collector_now_ns();
	ee->table->SuspendEE(ee, GC_SUSPEND_FOR_GC);
	if (was_cooperative)
		ee->table->DisablePreemptiveGC(ee);
	course.stopped = collector_now_ns();
	if (request.is_induced && __atomic_exchange_n(&c->no_gc.is_active, false, __ATOMIC_ACQ_REL))
		__atomic_store_n(&c->no_gc.ended_by, 2, __ATOMIC_RELAXED);
	c->is_stopped = true;
	collect_stopped(c, &request, &course);
	c->is_stopped = false;
	bool has_finalizers = c->last.pending_count > 0;
	ee->table->RestartEE(ee, true);
	pthread_mutex_unlock(&c->collecting);
	/* Called in both cases: the runtime may have other work for that thread. */
	ee->table->EnableFinalization(ee, has_finalizers);
}
