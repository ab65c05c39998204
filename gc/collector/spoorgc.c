/*
 * libspoorgc.so: the reference collector as the runtime loads it. Two exports; the tables are
 * spoorgc_heap.c and spoorgc_handles.c.
 */
#include "gc/collector/spoorgc.h"

#include <string.h>

#include "gc/events.h"

/* A process has one runtime, which makes one collector. */
static struct collector the_collector;
static const struct gc_runtime *the_runtime;

/* Debuggers and createdump follow these pointers; zeros are an empty heap. */
static uint8_t empty_heap[4096];

void GC_VersionInfo(struct gc_version_info *version)
{
	const struct gc_runtime *runtime;
	bool is_accepted = gc_runtime_accept("libspoorgc", version->major, &runtime);

	the_runtime = runtime;
	/* A major version that is too low refuses the runtime. */
	version->major = is_accepted ? GC_ANSWER_MAJOR : 0;
	version->minor = runtime->answer_minor;
	version->build = 0;
	version->name = "spoorgc";
}

static void fill_dac(struct gc_dac_vars *dac, const struct gc_runtime *runtime)
{
	/*
	 * Words that this runtime's own collector sets; further ones do not belong to the
	 * collector.
	 */
	enum { POINTERS = 30, GENERATION_SIZE = 264 };

	dac->major = GC_DAC_MAJOR;
	dac->minor = runtime->dac_minor;
	dac->generation_size = GENERATION_SIZE;
	dac->generation_count = GENERATIONS_ALL;
	for (int i = 0; i < POINTERS; i++)
		dac->pointers[i] = empty_heap;
}

int32_t GC_Initialize(struct gc_to_clr *ee, struct gc_heap **ret_heap,
	struct gc_handle_manager **ret_handles, struct gc_dac_vars *dac)
{
	struct collector *c = &the_collector;

	if (!the_runtime)
		return GC_E_FAIL;
	gc_events_init(ee);
	int32_t result = collector_open(c, ee, the_runtime);
	if (result != GC_OK)
		return result;
	spoorgc_fill_heap(c);
	spoorgc_fill_handles(c);
	fill_dac(dac, the_runtime);
	*ret_heap = &c->border;
	*ret_handles = &c->manager;
	return GC_OK;
}
