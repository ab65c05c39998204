/*
 * The whole collector under a minimal runtime: threads in C that allocate, link and drop objects
 * while others collect; finalizers; handles; limits. This is the test for the thread sanitizer: a
 * running thread holds a lock for reading, and suspending all threads takes it for writing.
 */
#include "unit/test.h"

#include <pthread.h>

#include "gc/collector/collector.h"
#include "gc/events.h"
#include "made_types.h"

enum { THREADS = 3, ROOTS = 32 };

struct mutator {
	struct gc_alloc_context context;
	struct gc_object *roots[ROOTS];
	uint32_t seed;
	const char *wrong;
};

static struct runtime {
	struct gc_to_clr ee;
	struct gc_sink sink;
	struct collector collector;
	pthread_rwlock_t running;
	struct mutator mutators[THREADS + 1];
	int64_t hard_limit;
	int64_t gen0_size;
	int64_t range;
	char message[400];
	int finalizations;
	uint32_t starts, ends;
	struct gc_object *eager;
} rt;

static _Thread_local bool is_cooperative;
static _Thread_local bool is_stopper;

static void suspend(struct gc_to_clr *self, int32_t reason)
{
	(void)self;
	(void)reason;
	pthread_rwlock_wrlock(&rt.running);
	is_stopper = true;
}

static void restart(struct gc_to_clr *self, bool finished)
{
	(void)self;
	(void)finished;
	is_stopper = false;
	pthread_rwlock_unlock(&rt.running);
	if (is_cooperative)
		pthread_rwlock_rdlock(&rt.running);
}

static bool enable_preemptive(struct gc_to_clr *self)
{
	(void)self;
	if (!is_cooperative)
		return false;
	is_cooperative = false;
	pthread_rwlock_unlock(&rt.running);
	return true;
}

static void disable_preemptive(struct gc_to_clr *self)
{
	(void)self;
	is_cooperative = true;
	/*
	 * The thread that has suspended the others holds it already; restart() takes it for
	 * reading.
	 */
	if (!is_stopper)
		pthread_rwlock_rdlock(&rt.running);
}

static void scan_roots(struct gc_to_clr *self, gc_promote_fn *promote, int32_t condemned,
	int32_t max_generation, struct gc_scan_context *context)
{
	(void)self;
	assert_int_equal(condemned, max_generation);
	assert_true(context->promotion);
	for (int t = 0; t <= THREADS; t++) {
		for (int i = 0; i < ROOTS; i++) {
			struct gc_object *o = rt.mutators[t].roots[i];
			/* Some roots are pointers into the middle of the object. */
			struct gc_object *inside = (struct gc_object *)((uint8_t *)o + 12);

			if (o && i % 4 == 3)
				promote(&inside, context,
					i % 8 == 7 ? GC_ROOT_INTERIOR | GC_ROOT_PINNED
						   : GC_ROOT_INTERIOR);
			else
				promote(&rt.mutators[t].roots[i], context,
					i % 8 == 5 ? GC_ROOT_PINNED : 0);
		}
	}
}

static void each_context(struct gc_to_clr *self, gc_context_fn *call, void *argument)
{
	(void)self;
	for (int t = 0; t <= THREADS; t++)
		call(&rt.mutators[t].context, argument);
}

static void nothing_2(struct gc_to_clr *self, int32_t a, int32_t b)
{
	(void)self;
	(void)a;
	(void)b;
}

static void nothing_1(struct gc_to_clr *self, int32_t a)
{
	(void)self;
	(void)a;
}

static void nothing_0(struct gc_to_clr *self)
{
	(void)self;
}

static void before_roots(struct gc_to_clr *self, int32_t a, bool b, bool c)
{
	(void)self;
	(void)a;
	(void)b;
	(void)c;
}

static void after_roots(struct gc_to_clr *self, int32_t a, int32_t b,
	struct gc_scan_context *context)
{
	(void)self;
	(void)a;
	(void)b;
	(void)context;
}

static void sync_blocks(struct gc_to_clr *self, gc_weak_scan_fn *scan, uintptr_t first,
	uintptr_t second)
{
	(void)self;
	(void)scan;
	(void)first;
	(void)second;
}

static uint32_t sync_block_count(struct gc_to_clr *self)
{
	(void)self;
	return 0;
}

static void diag_start(struct gc_to_clr *self, int32_t generation, bool induced)
{
	(void)self;
	(void)generation;
	(void)induced;
}

static void diag_end(struct gc_to_clr *self, size_t index, int32_t generation, int32_t reason,
	bool concurrent)
{
	(void)self;
	(void)index;
	(void)generation;
	(void)reason;
	(void)concurrent;
}

static void diag_reachable(struct gc_to_clr *self, void *context)
{
	(void)self;
	(void)context;
}

static void stomp(struct gc_to_clr *self, struct gc_write_barrier *barrier)
{
	(void)self;
	/* Like a server barrier, at either end of an object. */
	((uint8_t *)barrier
			->card_bundle_table)[(uintptr_t)barrier->lowest_address >> BUNDLE_SHIFT] =
		0xFF;
	((uint8_t *)barrier->card_bundle_table)[(uintptr_t)(barrier->highest_address - 1) >>
						BUNDLE_SHIFT] = 0xFF;
}

static void enable_finalization(struct gc_to_clr *self, bool has_work)
{
	(void)self;
	if (has_work)
		__atomic_add_fetch(&rt.finalizations, 1, __ATOMIC_RELAXED);
}

static bool eager(struct gc_to_clr *self, struct gc_object *o)
{
	(void)self;
	return o == rt.eager;
}

static void *free_type(struct gc_to_clr *self)
{
	(void)self;
	return types.free;
}

static bool get_bool(struct gc_to_clr *self, const char *key, const char *public_key, bool *value)
{
	(void)self;
	(void)key;
	(void)public_key;
	(void)value;
	return false;
}

static bool get_int(struct gc_to_clr *self, const char *key, const char *public_key, int64_t *value)
{
	(void)self;
	(void)public_key;
	int64_t set = strcmp(key, "GCHeapHardLimit") == 0 ? rt.hard_limit
		      : strcmp(key, "GCgen0size") == 0    ? rt.gen0_size
		      : strcmp(key, "GCRegionRange") == 0 ? rt.range
							  : 0;
	if (set)
		*value = set;
	return set != 0;
}

static struct gc_sink *sink(struct gc_to_clr *self)
{
	(void)self;
	return &rt.sink;
}

static void update_status(struct gc_to_clr *self, int32_t a, int32_t b, int32_t c, int32_t d)
{
	(void)self;
	(void)a;
	(void)b;
	(void)c;
	(void)d;
}

static void log_error(struct gc_to_clr *self, const char *text)
{
	(void)self;
	snprintf(rt.message, sizeof(rt.message), "%s", text);
}

static bool counted(struct gc_to_clr *self, struct gc_object *o)
{
	(void)self;
	return ((struct pair *)o)->number == 1;
}

static const struct gc_to_clr_table ee_table = {
	.SuspendEE = suspend,
	.RestartEE = restart,
	.GcScanRoots = scan_roots,
	.GcStartWork = nothing_2,
	.BeforeGcScanRoots = before_roots,
	.AfterGcScanRoots = after_roots,
	.GcDone = nothing_1,
	.RefCountedHandleCallbacks = counted,
	.SyncBlockCacheWeakPtrScan = sync_blocks,
	.SyncBlockCachePromotionsGranted = nothing_1,
	.GetActiveSyncBlockCount = sync_block_count,
	.EnablePreemptiveGC = enable_preemptive,
	.DisablePreemptiveGC = disable_preemptive,
	.GcEnumAllocContexts = each_context,
	.DiagGCStart = diag_start,
	.DiagUpdateGenerationBounds = nothing_0,
	.DiagGCEnd = diag_end,
	.DiagWalkFReachableObjects = diag_reachable,
	.StompWriteBarrier = stomp,
	.EnableFinalization = enable_finalization,
	.EagerFinalized = eager,
	.GetFreeObjectMethodTable = free_type,
	.GetBooleanConfigValue = get_bool,
	.GetIntConfigValue = get_int,
	.EventSink = sink,
	.UpdateGCEventStatus = update_status,
	.LogErrorToHost = log_error,
};

/* Counts starts and ends; other events only have to arrive. */
static void fire_start(struct gc_sink *self, uint32_t count, uint32_t depth, uint32_t reason,
	uint32_t type)
{
	(void)self;
	(void)depth;
	(void)reason;
	(void)type;
	assert_int_equal(count, ++rt.starts);
}

static void fire_end(struct gc_sink *self, uint32_t count, uint32_t depth)
{
	(void)self;
	(void)depth;
	assert_int_equal(count, ++rt.ends);
}

static void fire_any(void)
{
}

static union {
	struct gc_sink_table table;
	void (*slots[GC_SINK_COUNT])(void);
} sink_table;

static void open_runtime(int64_t gen0_size, int64_t hard_limit)
{
	bool known;

	memset(&rt, 0, sizeof(rt));
	types_make();
	rt.ee.table = &ee_table;
	for (int i = 0; i < GC_SINK_COUNT; i++)
		sink_table.slots[i] = fire_any;
	sink_table.table.FireGCStart_V2 = fire_start;
	sink_table.table.FireGCEnd_V1 = fire_end;
	rt.sink.table = &sink_table.table;
	rt.gen0_size = gen0_size;
	rt.hard_limit = hard_limit;
	rt.range = (int64_t)1 << 30;
	pthread_rwlockattr_t attribute;
	pthread_rwlockattr_init(&attribute);
	/* Otherwise running threads could delay a collecting one without end. */
	pthread_rwlockattr_setkind_np(&attribute, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(&rt.running, &attribute);
	pthread_rwlockattr_destroy(&attribute);
	gc_events_init(&rt.ee);
	gc_events_control(GC_EVENT_DEFAULT, 1, 5);
	assert_int_equal(collector_open(&rt.collector, &rt.ee, gc_runtime_of(4, &known)), GC_OK);
	assert_int_equal(collector_start(&rt.collector), GC_OK);
	disable_preemptive(&rt.ee);
}

static void close_runtime(void)
{
	enable_preemptive(&rt.ee);
	collector_close(&rt.collector);
	pthread_rwlock_destroy(&rt.running);
}

static void collect(void)
{
	collector_collect(&rt.collector,
		(struct collect_request){ .reason = COLLECT_INDUCED, .is_induced = true });
}

/* Like `new`: from the context, as code of the JIT does, or by Alloc(). */
static struct gc_object *allocate(struct mutator *m, struct method_table *type, uint32_t count,
	uint32_t flags)
{
	struct gc_object probe = { .type = type, .count = count };
	size_t size = object_size_of(&probe, type);
	struct gc_object *o;

	if (!flags && m->context.ptr && (size_t)(m->context.limit - m->context.ptr) >= size) {
		o = (struct gc_object *)m->context.ptr;
		m->context.ptr += size;
	} else {
		o = collector_alloc(&rt.collector, &m->context, size, flags);
	}
	if (!o)
		return NULL;
	if (*(uint64_t *)((uint8_t *)o - 8) || o->type || o->count)
		m->wrong = "a new object is not zero";
	o->type = type;
	if (type != types.pair)
		o->count = count;
	return o;
}

static struct mutator *me(void)
{
	return &rt.mutators[THREADS];
}

/* Checks a chain whose numbers decrease; returns the error. */
static const char *check_chain(const struct pair *p)
{
	for (uint64_t expected = p->number; p; p = (const struct pair *)p->left, expected--) {
		if (p->type != types.pair)
			return "a link of another type";
		if (p->number != expected)
			return "a link of another chain";
		if (p->right &&
			(p->right->type != types.bytes || p->right->count != expected % 300))
			return "bytes of another link";
	}
	return NULL;
}

static uint32_t random_of(struct mutator *m, uint32_t below)
{
	m->seed = m->seed * 1664525 + 1013904223;
	return (m->seed >> 8) % below;
}

static void *mutate(void *argument)
{
	struct mutator *m = argument;

	disable_preemptive(&rt.ee);
	for (int step = 0; step < 20000 && !m->wrong; step++) {
		uint32_t at = random_of(m, ROOTS);
		struct pair *old = (struct pair *)m->roots[at];

		if (old && !m->wrong)
			m->wrong = check_chain(old);
		/* The new link becomes a root before the next collection. */
		struct pair *link = (struct pair *)allocate(m, types.pair, 0, 0);
		if (!link) {
			m->wrong = "no memory";
			break;
		}
		link->number = old && old->number < 40 ? old->number + 1 : 0;
		link->left = link->number ? (struct gc_object *)old : NULL;
		m->roots[at] = (struct gc_object *)link;
		uint32_t flags = step % 500 == 0   ? GC_ALLOC_LARGE
				 : step % 300 == 0 ? GC_ALLOC_PINNED
				 : step % 100 == 0 ? GC_ALLOC_FINALIZE
						   : 0u;
		((struct pair *)m->roots[at])->right =
			allocate(m, types.bytes, (uint32_t)(link->number % 300), flags);
		if (step % 1000 == 0)
			collect();
		/* A safe point, where the thread may be suspended. */
		if (enable_preemptive(&rt.ee))
			disable_preemptive(&rt.ee);
	}
	/* As the runtime does when a thread ends. */
	collector_retire(&rt.collector, &m->context);
	enable_preemptive(&rt.ee);
	return NULL;
}

static void threads_and_collections(void **state)
{
	pthread_t threads[THREADS];

	(void)state;
	open_runtime(256 << 10, 0);
	enable_preemptive(&rt.ee);
	for (int t = 0; t < THREADS; t++) {
		rt.mutators[t].seed = (uint32_t)t + 1;
		assert_int_equal(pthread_create(&threads[t], NULL, mutate, &rt.mutators[t]), 0);
	}
	/* A finalizer thread. */
	for (int i = 0; i < 200; i++) {
		disable_preemptive(&rt.ee);
		while (finalizers_next(&rt.collector.finalizers))
			continue;
		enable_preemptive(&rt.ee);
		sched_yield();
	}
	for (int t = 0; t < THREADS; t++) {
		pthread_join(threads[t], NULL);
		if (rt.mutators[t].wrong)
			fail_msg("thread %d: %s", t, rt.mutators[t].wrong);
	}
	disable_preemptive(&rt.ee);
	/* At least twenty collections by each thread. */
	assert_true(rt.collector.count >= 20 * THREADS);
	assert_int_equal(rt.starts, rt.collector.count);
	assert_int_equal(rt.ends, rt.collector.count);
	close_runtime();
}

static void handles_of_every_kind(void **state)
{
	struct mutator *m = me();
	struct handles *hs = &rt.collector.handles;

	(void)state;
	open_runtime(0, 0);
	struct gc_object *made[10];
	struct gc_object **handles[10];
	static const int32_t kinds[10] = { GC_HANDLE_WEAK_SHORT, GC_HANDLE_WEAK_LONG,
		GC_HANDLE_STRONG, GC_HANDLE_PINNED, GC_HANDLE_REFCOUNTED, GC_HANDLE_REFCOUNTED,
		GC_HANDLE_SIZED_REF, GC_HANDLE_WEAK_NATIVE, GC_HANDLE_WEAK_INTERIOR,
		GC_HANDLE_CROSS_REFERENCE };
	static const bool keeps[10] = { false, false, true, true, true, false, true, false, false,
		true };

	for (int i = 0; i < 10; i++) {
		made[i] = allocate(m, types.pair, 0, 0);
		((struct pair *)made[i])->number = i == 4;
		handles[i] = handle_new(hs, kinds[i], made[i], 0);
	}
	collect();
	for (int i = 0; i < 10; i++)
		assert_ptr_equal(handle_load(handles[i]), keeps[i] ? made[i] : NULL);
	/* Only handles refer to these objects: without the handles they are dead. */
	for (int i = 0; i < 10; i++)
		handle_free(hs, handles[i]);
	collect();
	assert_true(rt.collector.last.live_bytes == 0);

	/*
	 * Dependent handles: a chain in an order that needs one round for each link; a pair to
	 * which only its own handle refers.
	 */
	struct gc_object *chain[50];
	struct gc_object **links[50];
	for (int i = 0; i < 50; i++)
		chain[i] = allocate(m, types.bytes, (uint32_t)i, 0);
	for (int i = 48; i >= 0; i--)
		links[i] = handle_new(hs, GC_HANDLE_DEPENDENT, chain[i], (uintptr_t)chain[i + 1]);
	struct pair *value = (struct pair *)allocate(m, types.pair, 0, 0);
	value->left = allocate(m, types.bytes, 3, 0);
	struct gc_object **orphan =
		handle_new(hs, GC_HANDLE_DEPENDENT, value->left, (uintptr_t)value);
	m->roots[0] = chain[0];
	collect();
	for (int i = 0; i < 49; i++) {
		assert_ptr_equal(handle_load(links[i]), chain[i]);
		assert_int_equal(*handle_extra(links[i]), (uintptr_t)chain[i + 1]);
	}
	assert_null(handle_load(orphan));
	assert_int_equal(*handle_extra(orphan), 0);
	close_runtime();
}

static void finalizers_in_their_order(void **state)
{
	static struct made_type critical;
	struct mutator *m = me();
	struct finalizers *f = &rt.collector.finalizers;

	(void)state;
	open_runtime(0, 0);
	critical.table = (struct method_table){ TYPE_CRITICAL_FINALIZER, CELL_MIN };
	struct gc_object *last = allocate(m, &critical.table, 0, GC_ALLOC_FINALIZE);
	struct pair *first = (struct pair *)allocate(m, types.pair, 0, GC_ALLOC_FINALIZE);
	struct gc_object *inner = allocate(m, types.bytes, 9, GC_ALLOC_FINALIZE);
	first->left = inner;
	struct gc_object *suppressed = allocate(m, types.bytes, 1, GC_ALLOC_FINALIZE);
	*object_header(suppressed) |= HEADER_FINALIZER_RUN;
	rt.eager = allocate(m, types.bytes, 2, GC_ALLOC_FINALIZE);
	struct gc_object *alive = m->roots[0] = allocate(m, types.bytes, 3, GC_ALLOC_FINALIZE);
	struct gc_object **short_weak =
		handle_new(&rt.collector.handles, GC_HANDLE_WEAK_SHORT, inner, 0);
	struct gc_object **long_weak =
		handle_new(&rt.collector.handles, GC_HANDLE_WEAK_LONG, inner, 0);

	collect();
	assert_null(handle_load(short_weak));
	assert_ptr_equal(handle_load(long_weak), inner);
	assert_int_equal(rt.finalizations, 1);
	assert_int_equal(finalizers_waiting(f), 3);
	/* Objects that wait for their finalizer survive further collections. */
	collect();
	assert_int_equal(finalizers_waiting(f), 3);
	assert_ptr_equal(finalizers_next(f), (struct gc_object *)first);
	assert_ptr_equal(first->left, inner);
	assert_int_equal(inner->count, 9);
	assert_ptr_equal(finalizers_next(f), inner);
	assert_ptr_equal(finalizers_next(f), last);
	assert_null(finalizers_next(f));
	collect();
	assert_null(handle_load(long_weak));
	/* Registered again. */
	assert_true(finalizers_add(f, alive));
	m->roots[0] = NULL;
	collect();
	assert_int_equal(finalizers_waiting(f), 2);
	close_runtime();
}

static void limits(void **state)
{
	struct mutator *m = me();
	uint32_t count = 0;

	(void)state;
	open_runtime(0, 20 << 20);
	/* Dead objects are reused without end. */
	for (int i = 0; i < 2000; i++)
		assert_non_null(allocate(m, types.bytes, 100000, 0));
	/* Live objects are not. */
	while (count < 10000) {
		struct pair *p = (struct pair *)allocate(m, types.pair, 0, 0);
		if (!p)
			break;
		p->left = m->roots[0];
		m->roots[0] = (struct gc_object *)p;
		p->right = allocate(m, types.bytes, 50000, 0);
		if (!((struct pair *)m->roots[0])->right)
			break;
		count++;
	}
	assert_in_range(count, 200, 420);
	assert_true(rt.collector.heap.committed <= (20 << 20));
	assert_null(allocate(m, types.bytes, 30 << 20, 0));
	m->roots[0] = NULL;
	assert_non_null(allocate(m, types.bytes, 15 << 20, 0));
	close_runtime();
}

static void a_region_without_collections(void **state)
{
	struct mutator *m = me();
	struct collector *c = &rt.collector;

	(void)state;
	open_runtime(1 << 20, 0);
	assert_int_equal(collector_no_gc_end(c), 1);
	assert_int_equal(collector_no_gc_begin(c, (uint64_t)2 << 30), 2);
	assert_int_equal(collector_no_gc_begin(c, 8 << 20), 0);
	assert_int_equal(collector_no_gc_begin(c, 1), 3);
	uint32_t count = c->count;
	for (int i = 0; i < 7 << 10; i++)
		assert_non_null(allocate(m, types.bytes, 900, 0));
	assert_int_equal(c->count, count);
	assert_int_equal(collector_no_gc_end(c), 0);
	assert_int_equal(collector_no_gc_begin(c, 1 << 20), 0);
	for (int i = 0; i < 4 << 10; i++)
		assert_non_null(allocate(m, types.bytes, 900, 0));
	assert_int_equal(collector_no_gc_end(c), 3);
	assert_int_equal(collector_no_gc_begin(c, 1 << 20), 0);
	collect();
	assert_int_equal(collector_no_gc_end(c), 2);
	close_runtime();
}

static bool count_one(struct gc_object *o, void *context)
{
	(void)o;
	(*(uint32_t *)context)++;
	return true;
}

static void walks(void **state)
{
	struct mutator *m = me();
	struct collector *c = &rt.collector;
	uint32_t count = 0;

	(void)state;
	open_runtime(0, 0);
	struct pair *p = (struct pair *)allocate(m, types.pair, 0, 0);
	m->roots[0] = (struct gc_object *)p;
	p->left = allocate(m, types.bytes, 10, 0);
	p->right = allocate(m, types.bytes, 700000, 0);
	for (int i = 0; i < 1000; i++)
		allocate(m, types.bytes, 100, 0);
	/* Frozen objects are walked, too. */
	static uint64_t frozen[8];
	((struct gc_object *)(frozen + 1))->type = types.bytes;
	struct gc_segment segment = { .begin = (uint8_t *)frozen,
		.end = (uint8_t *)(frozen + 3),
		.reserved = (uint8_t *)(frozen + 8) };
	c->frozen = &segment;
	collect();
	collector_walk_heap(c, count_one, &count, true);
	assert_int_equal(count, 4);
	count = 0;
	collector_walk_heap(c, count_one, &count, false);
	assert_int_equal(count, 3);
	count = 0;
	collector_walk_references((struct gc_object *)p, count_one, &count);
	assert_int_equal(count, 2);
	uint8_t *begin, *end;
	assert_int_equal(collector_generation_range(c, p->right, &begin, &end), GENERATION_LARGE);
	assert_int_equal(collector_generation_range(c, (struct gc_object *)p, &begin, &end),
		GENERATION_OLDEST);
	assert_int_equal(collector_generation(c, (struct gc_object *)(frozen + 1)),
		GENERATION_NONE);
	c->frozen = NULL;
	close_runtime();
}

static void a_range_that_cannot_be_reserved_is_named(void **state)
{
	struct collector c = { 0 };
	bool known;

	(void)state;
	open_runtime(0, 0);
	rt.range = (int64_t)1 << 60;
	assert_int_equal(collector_open(&c, &rt.ee, gc_runtime_of(4, &known)), GC_E_OUTOFMEMORY);
	assert_non_null(strstr(rt.message, "cannot reserve"));
	assert_non_null(strstr(rt.message, "DOTNET_GCRegionRange"));
	close_runtime();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_and_collections),
		cmocka_unit_test(handles_of_every_kind),
		cmocka_unit_test(finalizers_in_their_order),
		cmocka_unit_test(limits),
		cmocka_unit_test(a_region_without_collections),
		cmocka_unit_test(walks),
		cmocka_unit_test(a_range_that_cannot_be_reserved_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
