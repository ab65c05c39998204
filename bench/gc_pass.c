/*
 * The cost of a call through the proxy. One process calls a collector that does nothing
 * (libgcnull.so) directly and through the proxy.
 *
 *   gc_pass NULL-COLLECTOR PROXY ROUNDS     SPOOR_GC_COLLECTOR must name the same null collector. Prints "NAME NANOSECONDS", medians of CPU time.
 *
 * An allocation is one that reaches the collector (JIT-compiled code requests an allocation context
 * and uses it without calls). A handle is one creation and one destruction. A forwarder is any call
 * that the proxy forwards without other work.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "gc/interface.h"

#define CALLS      5000000u
#define ROUNDS_MAX 101

struct collector {
	struct gc_heap *heap;
	struct gc_handle_manager *handles;
	struct gc_handle_store *store;
};

static int64_t nothing(void)
{
	return 0;
}

static union {
	void *slots[64];
	struct gc_to_clr_table ee;
} ee_table;
static struct gc_to_clr ee = { &ee_table.ee };
static struct gc_sink sink;

static struct gc_sink *event_sink(struct gc_to_clr *self)
{
	(void)self;
	return &sink;
}

static bool load(const char *path, struct collector *ret_collector)
{
	static struct gc_dac_vars dac;
	struct gc_version_info version = { .major = 4 };
	void *library = dlopen(path, RTLD_NOW);

	if (!library) {
		fprintf(stderr, "cannot load the library: %s\n", dlerror());
		return false;
	}
	void (*ask)(struct gc_version_info *) =
		(void (*)(struct gc_version_info *))(uintptr_t)dlsym(library, "GC_VersionInfo");
	int32_t (*initialize)(struct gc_to_clr *, struct gc_heap **, struct gc_handle_manager **,
		struct gc_dac_vars *) =
		(int32_t(*)(struct gc_to_clr *, struct gc_heap **, struct gc_handle_manager **,
			struct gc_dac_vars *))(uintptr_t)dlsym(library, "GC_Initialize");
	ask(&version);
	if (initialize(&ee, &ret_collector->heap, &ret_collector->handles, &dac))
		return false;
	ret_collector->store =
		ret_collector->handles->table->GetGlobalHandleStore(ret_collector->handles);
	return true;
}

static double cpu_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); /* it cannot fail */
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double allocations(const struct collector *c)
{
	struct gc_alloc_context context = { 0 };
	double begin = cpu_ns();

	for (unsigned i = 0; i < CALLS; i++)
		(void)c->heap->table->Alloc(c->heap, &context, 32, 0);
	return (cpu_ns() - begin) / CALLS;
}

static double handles(const struct collector *c)
{
	double begin = cpu_ns();

	for (unsigned i = 0; i < CALLS; i++) {
		struct gc_object **handle =
			c->store->table->CreateHandleOfType(c->store, NULL, GC_HANDLE_STRONG);
		c->handles->table->DestroyHandleOfType(c->handles, handle, GC_HANDLE_STRONG);
	}
	return (cpu_ns() - begin) / CALLS;
}

static double forwarders(const struct collector *c)
{
	double begin = cpu_ns();

	for (unsigned i = 0; i < CALLS; i++)
		(void)c->heap->table->WhichGeneration(c->heap, NULL);
	return (cpu_ns() - begin) / CALLS;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		double (*of)(const struct collector *);
	} kinds[] = { { "allocation", allocations }, { "handle", handles },
		{ "forwarder", forwarders } };
	int rounds = argc == 4 ? atoi(argv[3]) : 0;
	struct collector direct, proxied;
	double added[ROUNDS_MAX];

	if (rounds < 1 || rounds > ROUNDS_MAX) {
		fprintf(stderr, "gc_pass NULL-COLLECTOR PROXY ROUNDS\n");
		return 2;
	}
	for (size_t i = 0; i < sizeof(ee_table.slots) / sizeof(*ee_table.slots); i++)
		ee_table.slots[i] = (void *)(uintptr_t)nothing;
	ee_table.ee.EventSink = event_sink;
	if (!load(argv[1], &direct) || !load(argv[2], &proxied))
		return 1;
	for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++) {
		for (int i = 0; i < rounds; i++)
			added[i] = -kinds[k].of(&direct) + kinds[k].of(&proxied);
		qsort(added, (size_t)rounds, sizeof(*added), by_value);
		printf("added_%s %.2f\n", kinds[k].name, added[rounds / 2]);
	}
	return 0;
}
