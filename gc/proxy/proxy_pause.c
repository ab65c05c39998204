/*
 * One pause: from the collector's request to suspend all threads until they run again.
 *
 * Its phases are derived from the collector's calls into the runtime, with a time stamp at each:
 *
 *   SuspendEE called          | suspend    until all threads are suspended
 *   SuspendEE returned        | prepare    the collector's own beginning, up to the first root
 *   first GcScanRoots called  | roots      stacks and registers; with several collecting threads, the last one's end counts
 *   last GcScanRoots returned | mark       objects reachable from roots: handles, objects, finalization, weak references
 *   SyncBlockCacheWeakPtrScan | reclaim    planning and sweeping or compacting; roots are scanned once more when objects moved
 *   GcDone                    | finish     the collector's own end
 *   RestartEE called
 *
 * If a call does not occur, its phase is 0 and its time belongs to the next one. Pauses never
 * overlap: the runtime lets one thread suspend it. Between two pauses no thread uses `now`; inside
 * one the collecting threads do, and several may write milestones.
 */
#include "gc/proxy/proxy.h"

#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "gc/events.h"

/* Not a reason of GCStart. */
#define REASON_UNKNOWN 255u
/* An object of this size is large unless GCLOHThreshold is set; only used to name the trigger. */
#define LARGE_BYTES 85000u

struct trigger {
	uint64_t bytes;
	enum proxy_trigger kind;
};

/* The allocation that this thread currently requests of the collector. */
static _Thread_local struct trigger asked __attribute__((tls_model("initial-exec")));

/*
 * The trigger for which GCTriggered is fired: on the triggering thread, if another thread collects
 * (server GC).
 */
static struct {
	uint64_t bytes;
	uint32_t thread;
	uint32_t kind;
} announced;

static struct {
	uint64_t begin_ns;
	uint64_t suspended_ns;
	uint64_t roots_begin_ns;
	uint64_t roots_end_ns;
	uint64_t marked_ns;
	uint64_t done_ns;
	uint64_t context_bytes;
	uint32_t contexts;
	uint32_t threads;
	uint32_t generation;
	uint32_t reason;
	uint32_t moved;
	uint32_t background;
	uint64_t roots;
	uint64_t interior_roots;
	uint64_t pinned_roots;
	struct trigger trigger;
	uint32_t trigger_thread;
} now;

/* At the end of the previous pause. */
static struct proxy_counts counted;

static uint64_t clock_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t); /* it cannot fail */
	return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

static uint32_t thread_id(void)
{
	return (uint32_t)syscall(SYS_gettid);
}

static void first(uint64_t *milestone)
{
	uint64_t none = 0;

	__atomic_compare_exchange_n(milestone, &none, clock_ns(), false, __ATOMIC_RELAXED,
		__ATOMIC_RELAXED);
}

static void last(uint64_t *milestone)
{
	uint64_t at = clock_ns(), before = __atomic_load_n(milestone, __ATOMIC_RELAXED);

	while (before < at && !__atomic_compare_exchange_n(milestone, &before, at, true,
				      __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

static void set(uint32_t *word, uint32_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELAXED);
}

static void add(uint64_t *count, uint64_t n)
{
	__atomic_fetch_add(count, n, __ATOMIC_RELAXED);
}

/* ---- why ---- */

static struct gc_object *heap_alloc(struct gc_heap *self, struct gc_alloc_context *context,
	size_t size, uint32_t flags)
{
	(void)self;
	struct trigger before = asked;
	asked = (struct trigger){ .bytes = size,
		.kind = flags & GC_ALLOC_PINNED                         ? TRIGGER_PINNED_ALLOCATION
			: flags & GC_ALLOC_LARGE || size >= LARGE_BYTES ? TRIGGER_LARGE_ALLOCATION
									: TRIGGER_ALLOCATION };
	proxy_count_allocation(size, flags);
	struct gc_object *object = proxy.heap->table->Alloc(proxy.heap, context, size, flags);
	asked = before;
	return object;
}

static int32_t heap_collect(struct gc_heap *self, int32_t generation, bool low_memory, int32_t mode)
{
	(void)self;
	struct trigger before = asked;
	asked = (struct trigger){ .kind = low_memory ? TRIGGER_LOW_MEMORY : TRIGGER_INDUCED };
	int32_t result =
		proxy.heap->table->GarbageCollect(proxy.heap, generation, low_memory, mode);
	asked = before;
	return result;
}

static void sink_triggered(struct gc_sink *self, uint32_t reason)
{
	(void)self;
	__atomic_store_n(&announced.bytes, asked.bytes, __ATOMIC_RELAXED);
	set(&announced.thread, thread_id());
	set(&announced.kind, asked.kind);
	proxy.sink->table->FireGCTriggered(proxy.sink, reason);
}

static void sink_start(struct gc_sink *self, uint32_t count, uint32_t depth, uint32_t reason,
	uint32_t type)
{
	(void)self;
	set(&now.reason, reason < REASON_UNKNOWN ? reason : REASON_UNKNOWN - 1);
	proxy.sink->table->FireGCStart_V2(proxy.sink, count, depth, reason, type);
}

/* ---- its phases ---- */

static void ee_suspend(struct gc_to_clr *self, int32_t reason)
{
	(void)self;
	uint64_t begin_ns = clock_ns();
	proxy.ee->table->SuspendEE(proxy.ee, reason);
	/* From here on no other thread may be in a pause. */
	memset(&now, 0, sizeof(now));
	now.begin_ns = begin_ns;
	now.suspended_ns = clock_ns();
	now.reason = REASON_UNKNOWN;
	now.generation = UINT32_MAX;
	now.background = reason == GC_SUSPEND_FOR_GC_PREP;
	now.trigger = asked;
	now.trigger_thread = asked.kind ? thread_id() : 0;
	if (now.background && !asked.kind) {
		now.trigger.kind = TRIGGER_BACKGROUND;
	} else if (!asked.kind && __atomic_load_n(&announced.kind, __ATOMIC_RELAXED)) {
		now.trigger.kind =
			(enum proxy_trigger)__atomic_load_n(&announced.kind, __ATOMIC_RELAXED);
		now.trigger.bytes = __atomic_load_n(&announced.bytes, __ATOMIC_RELAXED);
		now.trigger_thread = __atomic_load_n(&announced.thread, __ATOMIC_RELAXED);
	}
	set(&announced.kind, TRIGGER_UNKNOWN);
}

/*
 * If another thread collects than the one that requested it, and no session enables GCTriggered,
 * only this is known.
 */
static void ee_diag_start(struct gc_to_clr *self, int32_t generation, bool is_induced)
{
	(void)self;
	if (now.trigger.kind == TRIGGER_UNKNOWN)
		now.trigger.kind = is_induced ? TRIGGER_INDUCED : TRIGGER_ALLOCATION;
	proxy.ee->table->DiagGCStart(proxy.ee, generation, is_induced);
}

static void ee_start_work(struct gc_to_clr *self, int32_t condemned, int32_t max_generation)
{
	(void)self;
	set(&now.generation, (uint32_t)condemned);
	proxy.ee->table->GcStartWork(proxy.ee, condemned, max_generation);
}

static void ee_before_roots(struct gc_to_clr *self, int32_t condemned, bool is_background,
	bool is_concurrent)
{
	(void)self;
	if (is_background || is_concurrent)
		set(&now.background, 1);
	set(&now.generation, (uint32_t)condemned);
	proxy.ee->table->BeforeGcScanRoots(proxy.ee, condemned, is_background, is_concurrent);
}

/* The collector's promote function for which this thread is scanning, while roots are counted. */
static _Thread_local gc_promote_fn *promote_behind __attribute__((tls_model("initial-exec")));
static _Thread_local struct {
	uint64_t roots;
	uint64_t interior;
	uint64_t pinned;
} scanned __attribute__((tls_model("initial-exec")));

static void promote_counted(struct gc_object **slot, struct gc_scan_context *context,
	uint32_t flags)
{
	scanned.roots++;
	scanned.interior += flags & GC_ROOT_INTERIOR ? 1 : 0;
	scanned.pinned += flags & GC_ROOT_PINNED ? 1 : 0;
	promote_behind(slot, context, flags);
}

static void ee_scan_roots(struct gc_to_clr *self, gc_promote_fn *promote, int32_t condemned,
	int32_t max_generation, struct gc_scan_context *context)
{
	(void)self;
	if (!context->promotion) {
		/* Everything is marked by now, and objects are being moved. */
		set(&now.moved, 1);
		proxy.ee->table->GcScanRoots(proxy.ee, promote, condemned, max_generation, context);
		return;
	}
	bool counted_roots = gc_event_on_SpoorGCRoots();
	first(&now.roots_begin_ns);
	if (counted_roots) {
		promote_behind = promote;
		memset(&scanned, 0, sizeof(scanned));
	}
	proxy.ee->table->GcScanRoots(proxy.ee, counted_roots ? promote_counted : promote, condemned,
		max_generation, context);
	if (counted_roots) {
		add(&now.roots, scanned.roots);
		add(&now.interior_roots, scanned.interior);
		add(&now.pinned_roots, scanned.pinned);
	}
	last(&now.roots_end_ns);
}

static bool heap_uses_context(struct gc_heap *self, struct gc_alloc_context *context,
	int32_t thread_number)
{
	(void)self;
	bool uses = proxy.heap->table->IsThreadUsingAllocationContextHeap(proxy.heap, context,
		thread_number);

	/* Called once for each thread and scan; scans after moving are not counted. */
	if (uses && !__atomic_load_n(&now.marked_ns, __ATOMIC_RELAXED))
		__atomic_fetch_add(&now.threads, 1, __ATOMIC_RELAXED);
	return uses;
}

static void ee_weak_scan(struct gc_to_clr *self, gc_weak_scan_fn *scan, uintptr_t one,
	uintptr_t two)
{
	(void)self;
	proxy.ee->table->SyncBlockCacheWeakPtrScan(proxy.ee, scan, one, two);
	/* After moving, roots are scanned again. */
	if (!__atomic_load_n(&now.moved, __ATOMIC_RELAXED))
		last(&now.marked_ns);
}

static void ee_done(struct gc_to_clr *self, int32_t condemned)
{
	(void)self;
	last(&now.done_ns);
	proxy.ee->table->GcDone(proxy.ee, condemned);
}

struct context_walk {
	gc_context_fn *call;
	void *argument;
	uint32_t contexts;
	uint64_t bytes;
};

static void context_seen(struct gc_alloc_context *context, void *argument)
{
	struct context_walk *walk = argument;

	if (context->ptr) {
		walk->contexts++;
		/* during a background collection its thread may be using it */
		if (context->limit > context->ptr)
			walk->bytes += (uint64_t)(context->limit - context->ptr);
	}
	walk->call(context, walk->argument);
}

static void ee_enum_contexts(struct gc_to_clr *self, gc_context_fn *call, void *argument)
{
	struct context_walk walk = { .call = call, .argument = argument };

	(void)self;
	proxy.ee->table->GcEnumAllocContexts(proxy.ee, context_seen, &walk);
	/*
	 * The walk that finds contexts in use also retires them; later walks of the pause find them
	 * empty.
	 */
	__atomic_fetch_add(&now.contexts, walk.contexts, __ATOMIC_RELAXED);
	add(&now.context_bytes, walk.bytes);
}

/* ---- its end ---- */

static uint64_t up_to(uint64_t *from_ns, uint64_t milestone_ns)
{
	if (milestone_ns < *from_ns)
		return 0;
	uint64_t took_ns = milestone_ns - *from_ns;
	*from_ns = milestone_ns;
	return took_ns;
}

/* Sums up `now`. `end_ns` is the time at which RestartEE was called. */
static void pause_of(struct proxy_pause *ret_pause, uint64_t end_ns)
{
	struct proxy_counts counts;
	uint64_t at_ns = now.begin_ns;

	memset(ret_pause, 0, sizeof(*ret_pause));
	ret_pause->collection = proxy.heap->table->GetGcCount(proxy.heap);
	ret_pause->generation =
		(uint8_t)(now.generation == UINT32_MAX ? UINT8_MAX : now.generation);
	ret_pause->background = now.background;
	ret_pause->moved = now.moved;
	ret_pause->threads = now.threads;
	ret_pause->contexts = now.contexts;
	ret_pause->context_bytes = now.context_bytes;
	ret_pause->trigger = (uint8_t)now.trigger.kind;
	ret_pause->trigger_bytes = now.trigger.bytes;
	ret_pause->trigger_thread = now.trigger_thread;
	ret_pause->reason = (uint8_t)now.reason;
	ret_pause->pause_ns = end_ns - now.begin_ns;
	ret_pause->suspend_ns = up_to(&at_ns, now.suspended_ns);
	ret_pause->prepare_ns = up_to(&at_ns, now.roots_begin_ns);
	ret_pause->roots_ns = up_to(&at_ns, now.roots_end_ns);
	ret_pause->mark_ns = up_to(&at_ns, now.marked_ns);
	ret_pause->reclaim_ns = up_to(&at_ns, now.done_ns);
	ret_pause->finish_ns = up_to(&at_ns, end_ns);

	proxy_counts(&counts);
	const uint64_t *sums = (const uint64_t *)(const void *)&counts;
	uint64_t *before = (uint64_t *)(void *)&counted,
		 *since = (uint64_t *)(void *)&ret_pause->since;
	for (size_t i = 0; i < sizeof(counts) / sizeof(uint64_t); i++)
		since[i] = sums[i] - before[i];
	for (size_t i = 0; i < GC_HANDLE_TYPES; i++)
		ret_pause->handles_live[i] =
			counts.handles_created[i] - counts.handles_destroyed[i];
	counted = counts;
}

static void narrow(uint32_t *to, const uint64_t *from)
{
	for (size_t i = 0; i < GC_HANDLE_TYPES; i++)
		to[i] = from[i] < UINT32_MAX ? (uint32_t)from[i] : UINT32_MAX;
}

static void fire(const struct proxy_pause *pause)
{
	gc_event_SpoorGCPause(pause->collection, pause->generation, pause->background,
		pause->trigger, pause->reason, pause->moved, pause->trigger_thread,
		pause->trigger_bytes, pause->threads, pause->pause_ns, pause->suspend_ns,
		pause->prepare_ns, pause->roots_ns, pause->mark_ns, pause->reclaim_ns,
		pause->finish_ns);
	gc_event_SpoorGCAllocContexts(pause->collection, pause->contexts, pause->context_bytes,
		pause->since.refills, pause->since.large_objects, pause->since.large_bytes,
		pause->since.pinned_objects, pause->since.pinned_bytes);
	if (gc_event_on_SpoorGCHandles()) {
		uint32_t live[GC_HANDLE_TYPES], created[GC_HANDLE_TYPES],
			destroyed[GC_HANDLE_TYPES];
		narrow(live, pause->handles_live);
		narrow(created, pause->since.handles_created);
		narrow(destroyed, pause->since.handles_destroyed);
		gc_event_SpoorGCHandles(pause->collection, live, GC_HANDLE_TYPES, created,
			GC_HANDLE_TYPES, destroyed, GC_HANDLE_TYPES);
	}
	gc_event_SpoorGCRoots(pause->collection, pause->threads, now.roots, now.interior_roots,
		now.pinned_roots,
		pause->handles_live[GC_HANDLE_PINNED] +
			pause->handles_live[GC_HANDLE_ASYNC_PINNED]);
	gc_events_tell_lost();
}

static void ee_restart(struct gc_to_clr *self, bool finished_gc)
{
	(void)self;
	bool logged = proxy_log_on();
	struct proxy_pause pause;

	if (!logged && !gc_event_wanted(GC_EVENT_DEFAULT, 4, 1)) {
		proxy.ee->table->RestartEE(proxy.ee, finished_gc);
		return;
	}
	uint64_t end_ns = clock_ns();
	pause_of(&pause, end_ns);
	fire(&pause);
	uint64_t restart_ns = clock_ns();
	proxy.ee->table->RestartEE(proxy.ee, finished_gc);
	if (logged) {
		pause.restart_ns = clock_ns() - restart_ns;
		proxy_log_pause(&pause);
	}
}

/* ---- the status ---- */

/*
 * Two threads may set the status at the same time (see events.c). The collector behind the proxy
 * must have the same status as the proxy: it polls with its own, so the runtime would not correct
 * the proxy's.
 */
static bool status_writer;

static void tell_begin(void)
{
	while (__atomic_test_and_set(&status_writer, __ATOMIC_ACQUIRE))
		(void)sched_yield(); /* the other thread stores a few words */
}

static void tell_end(void)
{
	__atomic_clear(&status_writer, __ATOMIC_RELEASE);
}

static void heap_control(struct gc_heap *self, int32_t keyword, int32_t level)
{
	(void)self;
	tell_begin();
	gc_events_control(GC_EVENT_DEFAULT, keyword, level);
	proxy.heap->table->ControlEvents(proxy.heap, keyword, level);
	tell_end();
}

static void heap_control_private(struct gc_heap *self, int32_t keyword, int32_t level)
{
	(void)self;
	tell_begin();
	gc_events_control(GC_EVENT_PRIVATE, keyword, level);
	proxy.heap->table->ControlPrivateEvents(proxy.heap, keyword, level);
	tell_end();
}

void proxy_pause_watch_ee(struct gc_to_clr_table *table)
{
	table->SuspendEE = ee_suspend;
	table->RestartEE = ee_restart;
	table->DiagGCStart = ee_diag_start;
	table->GcStartWork = ee_start_work;
	table->BeforeGcScanRoots = ee_before_roots;
	table->GcScanRoots = ee_scan_roots;
	table->SyncBlockCacheWeakPtrScan = ee_weak_scan;
	table->GcDone = ee_done;
	table->GcEnumAllocContexts = ee_enum_contexts;
}

void proxy_pause_watch_sink(struct gc_sink_table *table)
{
	table->FireGCStart_V2 = sink_start;
	table->FireGCTriggered = sink_triggered;
}

void proxy_pause_watch_heap(struct gc_heap_table *table)
{
	table->Alloc = heap_alloc;
	table->GarbageCollect = heap_collect;
	table->IsThreadUsingAllocationContextHeap = heap_uses_context;
	table->ControlEvents = heap_control;
	table->ControlPrivateEvents = heap_control_private;
}
