/*
 * The cost of an event for the collector that fires it: Spoor's library and the runtime's collector
 * (libclrgc.so) in one process with the same mock of a runtime, which only counts the events. This
 * measures the collector's part only: the enabled test and the call.
 *
 *   gc_fire COLLECTOR ROUNDS     prints "NAME NANOSECONDS" lines: medians of CPU time over ROUNDS, which alternate
 *
 * The event is DestroyGCHandle, which libclrgc fires for each destroyed handle. The cost is the time
 * with the event enabled minus the time with it disabled.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gc/events.h"

#define HANDLES    20000u
#define FIRES      20000000u
#define TESTS      400000000u
#define ROUNDS_MAX 101

static unsigned fired;

static void count_destroy(struct gc_sink *self, void *handle)
{
	(void)self;
	(void)handle;
	fired++;
}

static void count_dynamic(struct gc_sink *self, const char *name, void *data, uint32_t size)
{
	(void)self;
	(void)name;
	(void)data;
	fired += size & 1 ? 2 : 1;
}

static int64_t nothing(void)
{
	return 0;
}

/* Every slot returns 0, except those that need another value. */
union any_table {
	void *slots[64];
	struct gc_to_clr_table ee;
	struct gc_sink_table sink;
};
static union any_table ee_table, sink_table;
static struct gc_to_clr ee = { &ee_table.ee };
static struct gc_sink sink = { &sink_table.sink };

static struct gc_sink *event_sink(struct gc_to_clr *self)
{
	(void)self;
	return &sink;
}

static uint32_t two_cpus(struct gc_to_clr *self)
{
	(void)self;
	return 2;
}

static void *free_object_type(struct gc_to_clr *self)
{
	/* Flags and a base size of 24. */
	static const uint32_t method_table[32] = { 0, 24 };

	(void)self;
	return (void *)(uintptr_t)method_table;
}

static bool no_thread(struct gc_to_clr *self, gc_thread_fn *start, void *argument,
	bool is_suspendable, const char *name)
{
	(void)self;
	(void)start;
	(void)argument;
	(void)is_suspendable;
	(void)name;
	return true;
}

static double cpu_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); /* it cannot fail */
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(double *values, int count)
{
	qsort(values, (size_t)count, sizeof(*values), by_value);
	return values[count / 2];
}

/*
 * Not inlined, and the result depends on the test, so that the compiler generates the same code as
 * in a collector.
 */
__attribute__((noinline)) static unsigned test_many(unsigned count)
{
	unsigned on = 0;

	for (unsigned i = 0; i < count; i++) {
		if (gc_event_on_GCStart_V2())
			on++;
		__asm__ volatile("" ::: "memory");
	}
	return on;
}

__attribute__((noinline)) static unsigned test_nothing(unsigned count)
{
	unsigned on = 0;

	for (unsigned i = 0; i < count; i++)
		__asm__ volatile("" : "+r"(on)::"memory");
	return on;
}

__attribute__((noinline)) static void fire_known(unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		gc_event_DestroyGCHandle(&fired);
		__asm__ volatile("" ::: "memory");
	}
}

__attribute__((noinline)) static void fire_dynamic(unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		gc_event_SpoorBenchFour(i, i, i, i);
		__asm__ volatile("" ::: "memory");
	}
}

/* Nanoseconds for the destruction of one handle. */
static double destroy_ns(struct gc_handle_manager *handles, struct gc_handle_store *store,
	unsigned times)
{
	static struct gc_object **made[HANDLES];
	double spent = 0;

	for (unsigned n = 0; n < times; n++) {
		for (unsigned i = 0; i < HANDLES; i++)
			made[i] = store->table->CreateHandleOfType(store, NULL, GC_HANDLE_STRONG);
		double begin = cpu_ns();
		for (unsigned i = 0; i < HANDLES; i++)
			handles->table->DestroyHandleOfType(handles, made[i], GC_HANDLE_STRONG);
		spent += cpu_ns() - begin;
	}
	return spent / times / HANDLES;
}

static double of(void (*work)(unsigned), unsigned count)
{
	double begin = cpu_ns();

	work(count);
	return (cpu_ns() - begin) / count;
}

int main(int argc, char **argv)
{
	double theirs[ROUNDS_MAX], ours[ROUNDS_MAX], test[ROUNDS_MAX], loop[ROUNDS_MAX],
		dynamic_off[ROUNDS_MAX], dynamic_on[ROUNDS_MAX];
	int rounds = argc == 3 ? atoi(argv[2]) : 0;
	struct gc_version_info version = { .major = 4 };
	static struct gc_dac_vars dac;
	struct gc_heap *heap;
	struct gc_handle_manager *handles;

	if (rounds < 1 || rounds > ROUNDS_MAX) {
		fprintf(stderr, "gc_fire COLLECTOR ROUNDS\n");
		return 2;
	}
	for (size_t i = 0; i < sizeof(ee_table.slots) / sizeof(*ee_table.slots); i++)
		ee_table.slots[i] = sink_table.slots[i] = (void *)(uintptr_t)nothing;
	ee_table.ee.EventSink = event_sink;
	ee_table.ee.GetCurrentProcessCpuCount = two_cpus;
	ee_table.ee.GetFreeObjectMethodTable = free_object_type;
	ee_table.ee.CreateThread = no_thread;
	sink_table.sink.FireDestroyGCHandle = count_destroy;
	sink_table.sink.FireDynamicEvent = count_dynamic;

	void *library = dlopen(argv[1], RTLD_NOW);
	if (!library) {
		fprintf(stderr, "cannot load the collector: %s\n", dlerror());
		return 1;
	}
	void (*ask)(struct gc_version_info *) =
		(void (*)(struct gc_version_info *))(uintptr_t)dlsym(library, "GC_VersionInfo");
	int32_t (*initialize)(struct gc_to_clr *, struct gc_heap **, struct gc_handle_manager **,
		struct gc_dac_vars *) =
		(int32_t(*)(struct gc_to_clr *, struct gc_heap **, struct gc_handle_manager **,
			struct gc_dac_vars *))(uintptr_t)dlsym(library, "GC_Initialize");
	ask(&version);
	if (initialize(&ee, &heap, &handles, &dac) || !handles->table->Initialize(handles) ||
		heap->table->Initialize(heap)) {
		fprintf(stderr, "the collector does not start over the mock\n");
		return 1;
	}
	struct gc_handle_store *store = handles->table->GetGlobalHandleStore(handles);
	gc_events_init(&ee);

	for (int i = 0; i < rounds; i++) {
		heap->table->ControlEvents(heap, 0, 0);
		double off = destroy_ns(handles, store, 20);
		heap->table->ControlEvents(heap, 2, 4);
		fired = 0;
		double on = destroy_ns(handles, store, 20);
		if (fired != 20 * HANDLES) {
			fprintf(stderr, "libclrgc fired %u events for %u handles\n", fired,
				20 * HANDLES);
			return 1;
		}
		theirs[i] = on - off;

		gc_events_control(GC_EVENT_DEFAULT, 0, 0);
		off = of(fire_known, FIRES);
		dynamic_off[i] = of(fire_dynamic, FIRES);
		double begin = cpu_ns();
		if (test_many(TESTS))
			return 1;
		test[i] = (cpu_ns() - begin) / TESTS;
		begin = cpu_ns();
		if (test_nothing(TESTS))
			return 1;
		loop[i] = (cpu_ns() - begin) / TESTS;
		gc_events_control(GC_EVENT_DEFAULT, 3, 4);
		fired = 0;
		ours[i] = of(fire_known, FIRES) - off;
		if (fired != FIRES)
			return 1;
		dynamic_on[i] = of(fire_dynamic, FIRES);
	}
	printf("test_with_loop %.4f\nloop %.4f\nknown_theirs %.3f\nknown_ours %.3f\ndynamic_off "
	       "%.3f\ndynamic_serialized %.3f\n",
		median(test, rounds), median(loop, rounds), median(theirs, rounds),
		median(ours, rounds), median(dynamic_off, rounds), median(dynamic_on, rounds));
	return 0;
}
