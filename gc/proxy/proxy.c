/*
 * Loads the runtime's own collector, and makes the objects through which runtime and collector call
 * each other: tables of forwarders, in which observed slots have functions of their own.
 *
 * Settings: SPOOR_GC_COLLECTOR names the collector (a file in the folder of libcoreclr.so, or a
 * path); libclrgc.so if it is not set. SPOOR_GC_UNKNOWN: interface.h. SPOOR_GC_LOG: proxy_log.c.
 */
#include "gc/proxy/proxy.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gc/events.h"
#include "gc/proxy/proxy_forward.h"

#define COLLECTOR "libclrgc.so"

struct proxy proxy;

typedef void version_info_fn(struct gc_version_info *version);
typedef int32_t initialize_fn(struct gc_to_clr *ee, struct gc_heap **heap,
	struct gc_handle_manager **handles, struct gc_dac_vars *dac);

static initialize_fn *collector_initialize;

/* A forwarding table that is also a typed one; the assertions check that it is long enough. */
union gc_any_table {
	void *slots[GC_FORWARD_SLOTS];
	struct gc_to_clr_table ee;
	struct gc_sink_table sink;
	struct gc_heap_table heap;
	struct gc_handle_manager_table handles;
	struct gc_handle_store_table store;
};
static_assert(sizeof(union gc_any_table) == sizeof(void *) * GC_FORWARD_SLOTS,
	"no table is longer than a forwarding one");

static union gc_any_table ee_table, sink_table, heap_table, handles_table, store_table;
static struct gc_forward ee_front, sink_front, heap_front, handles_front;

/* ---- handle stores: one proxy object for each of the collector's ---- */

static struct gc_forward global_store;

struct gc_handle_store *proxy_store_behind(struct gc_handle_store *store)
{
	return ((struct gc_forward *)(void *)store)->behind;
}

static struct gc_handle_store *store_front(struct gc_forward *store, struct gc_handle_store *behind)
{
	store->behind = behind;
	store->table = store_table.slots;
	return (struct gc_handle_store *)(void *)store;
}

static struct gc_handle_store *handles_global_store(struct gc_handle_manager *self)
{
	(void)self;
	struct gc_handle_store *behind = proxy.handles->table->GetGlobalHandleStore(proxy.handles);

	/* It is always the same store, so storing it again changes nothing. */
	return behind ? store_front(&global_store, behind) : NULL;
}

static struct gc_handle_store *handles_create_store(struct gc_handle_manager *self)
{
	(void)self;
	struct gc_forward *store = calloc(1, sizeof(*store));
	struct gc_handle_store *behind =
		store ? proxy.handles->table->CreateHandleStore(proxy.handles) : NULL;

	if (!behind) {
		free(store);
		return NULL;
	}
	return store_front(store, behind);
}

static void handles_destroy_store(struct gc_handle_manager *self, struct gc_handle_store *front)
{
	(void)self;
	proxy.handles->table->DestroyHandleStore(proxy.handles, proxy_store_behind(front));
	if ((void *)front != (void *)&global_store)
		free(front);
}

static struct gc_sink *ee_event_sink(struct gc_to_clr *self)
{
	(void)self;
	return (struct gc_sink *)(void *)&sink_front;
}

/* ---- loading ---- */

static int find_coreclr(struct dl_phdr_info *info, size_t size, void *context)
{
	const char **path = context;
	const char *slash = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;

	(void)size;
	if (!slash || strcmp(slash + 1, "libcoreclr.so") != 0)
		return 0;
	*path = info->dlpi_name;
	return 1;
}

/*
 * The collector's path: unchanged if it has a slash, else in the folder of the runtime, which in a
 * single-file program is the program.
 */
static void collector_path(char *path, size_t size, const void *called_from)
{
	const char *name = getenv("SPOOR_GC_COLLECTOR");
	const char *runtime = NULL;
	Dl_info info;

	if (!name || !*name)
		name = COLLECTOR;
	if (strchr(name, '/')) {
		(void)snprintf(path, size, "%s", name);
		return;
	}
	if (!dl_iterate_phdr(find_coreclr, &runtime) && dladdr(called_from, &info))
		runtime = info.dli_fname;
	const char *slash = runtime ? strrchr(runtime, '/') : NULL;
	(void)snprintf(path, size, "%.*s%s", slash ? (int)(slash + 1 - runtime) : 0,
		runtime ? runtime : "", name);
}

static version_info_fn *load_collector(const void *called_from)
{
	collector_path(proxy.collector, sizeof(proxy.collector), called_from);
	void *library = dlopen(proxy.collector, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		(void)fprintf(stderr,
			"libspoorgcproxy: cannot load the collector: %s. Name one with "
			"SPOOR_GC_COLLECTOR, or unset DOTNET_GCName and DOTNET_GCPath.\n",
			dlerror());
		return NULL;
	}
	version_info_fn *version = (version_info_fn *)(uintptr_t)dlsym(library, "GC_VersionInfo");
	collector_initialize = (initialize_fn *)(uintptr_t)dlsym(library, "GC_Initialize");
	if (!version || !collector_initialize || collector_initialize == GC_Initialize) {
		(void)fprintf(stderr,
			"libspoorgcproxy: '%s' is %s. Name the runtime's own collector with "
			"SPOOR_GC_COLLECTOR, or leave it unset.\n",
			proxy.collector,
			collector_initialize == GC_Initialize
				? "this proxy itself"
				: "no collector: it lacks GC_VersionInfo or GC_Initialize");
		collector_initialize = NULL;
		return NULL;
	}
	return version;
}

/*
 * Called first, with the runtime's version. Errors are printed here, and returned by
 * GC_Initialize().
 */
void GC_VersionInfo(struct gc_version_info *version)
{
	version_info_fn *collector_version = load_collector(__builtin_return_address(0));
	struct gc_version_info answer = *version;

	if (!gc_runtime_accept("libspoorgcproxy", version->major, &proxy.runtime)) {
		/* A version that the runtime does not accept: it ends with 0x80004005. */
		*version = (struct gc_version_info){ .major = 0, .name = "Spoor GC proxy" };
		return;
	}
	if (collector_version)
		collector_version(&answer);
	else
		answer.major = GC_ANSWER_MAJOR;
	if (answer.major < GC_ANSWER_MAJOR)
		(void)fprintf(stderr,
			"libspoorgcproxy: '%s' speaks version %u.%u, which this runtime does not "
			"take. Use the collector that came with the runtime.\n",
			proxy.collector, answer.major, answer.minor);
	answer.name = "Spoor GC proxy";
	*version = answer;
}

int32_t GC_Initialize(struct gc_to_clr *ee, struct gc_heap **ret_heap,
	struct gc_handle_manager **ret_handles, struct gc_dac_vars *dac)
{
	union gc_any_table *const tables[] = { &ee_table, &sink_table, &heap_table, &handles_table,
		&store_table };

	if (!collector_initialize || !proxy.runtime)
		return GC_E_MOD_NOT_FOUND;
	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++)
		gc_forward_fill(tables[i]->slots);

	proxy.ee = ee;
	proxy.sink = ee->table->EventSink(ee);
	gc_events_init(ee);
	proxy_log_open();

	proxy_pause_watch_ee(&ee_table.ee);
	ee_table.ee.EventSink = ee_event_sink;
	proxy_pause_watch_sink(&sink_table.sink);
	proxy_pause_watch_heap(&heap_table.heap);
	proxy_count_watch_handles(&handles_table.handles);
	handles_table.handles.GetGlobalHandleStore = handles_global_store;
	handles_table.handles.CreateHandleStore = handles_create_store;
	handles_table.handles.DestroyHandleStore = handles_destroy_store;
	proxy_count_watch_store(&store_table.store);

	ee_front = (struct gc_forward){ .table = ee_table.slots, .behind = ee };
	sink_front = (struct gc_forward){ .table = sink_table.slots, .behind = proxy.sink };
	int32_t result = collector_initialize((struct gc_to_clr *)(void *)&ee_front, &proxy.heap,
		&proxy.handles, dac);
	if (result != GC_OK) {
		(void)fprintf(stderr,
			"libspoorgcproxy: the collector '%s' could not start: 0x%08x. The same "
			"setting without the proxy (DOTNET_GCName=" COLLECTOR
			") shows whether it is the collector's own.\n",
			proxy.collector, (unsigned)result);
		return result;
	}
	heap_front = (struct gc_forward){ .table = heap_table.slots, .behind = proxy.heap };
	handles_front =
		(struct gc_forward){ .table = handles_table.slots, .behind = proxy.handles };
	*ret_heap = (struct gc_heap *)(void *)&heap_front;
	*ret_handles = (struct gc_handle_manager *)(void *)&handles_front;
	return GC_OK;
}
