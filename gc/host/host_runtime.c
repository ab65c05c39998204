/* The runtime that a collector sees, and the life of a host (host.h). */
#include "gc/host/host.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gc/host/host_events.h"
#include "gc/host/host_threads.h"
#include "gc/host/host_types.h"

/* The cards of a workstation collector: a byte for 2 KB of the heap, and one for 2 MB. */
#define CARD_SHIFT   11
#define BUNDLE_SHIFT 21
#define IS_DIRTY     0xff

/* Modes of GarbageCollect(). */
#define COLLECT_BLOCKING 2

typedef void version_info_fn(struct gc_version_info *version);
typedef int32_t initialize_fn(struct gc_to_clr *ee, struct gc_heap **ret_heap,
	struct gc_handle_manager **ret_handles, struct gc_dac_vars *dac);

struct gc_host {
	struct gc_to_clr ee;
	struct gc_heap *heap;
	struct gc_handle_manager *handles;
	struct gc_sink *sink;
	bool has_own_sink;
	uint32_t dotnet;
	struct gc_host_setting *settings;
	size_t setting_count;
	char message[400]; /* what the collector said before it refused its start */

	struct gc_write_barrier barrier;
	struct gc_event_status status[GC_EVENT_PROVIDERS];

	pthread_mutex_t type_lock;
	struct gc_host_type *types;
	struct gc_host_type *free_space;

	/* Finalizers. `asked` counts requests; `answered` is the last one that was served. */
	pthread_t finalizer;
	pthread_mutex_t finalizer_lock;
	pthread_cond_t finalizer_changed;
	uint64_t asked;
	uint64_t answered;
	bool is_closing;
};

/* Not freed after close: threads of the collector may still call. */
static struct gc_host *the_host;
static bool was_opened;

struct gc_heap *gc_host_heap(struct gc_host *host)
{
	return host->heap;
}

struct gc_handle_manager *gc_host_handles(struct gc_host *host)
{
	return host->handles;
}

/* ---- the table that the collector calls ---- */

static struct gc_host *host_of(struct gc_to_clr *self)
{
	return (struct gc_host *)self;
}

static void suspend_ee(struct gc_to_clr *self, int32_t reason)
{
	struct gc_heap *heap = host_of(self)->heap;

	if (!host_of(self)->has_own_sink)
		host_events_suspend_begin((uint32_t)reason, heap->table->GetGcCount(heap));
	heap->table->SetSuspensionPending(heap, true);
	heap->table->ResetWaitForGCEvent(heap);
	heap->table->SetGCInProgress(heap, true);
	host_threads_stop();
	heap->table->SetSuspensionPending(heap, false);
	if (!host_of(self)->has_own_sink)
		host_events_suspend_end();
}

static void restart_ee(struct gc_to_clr *self, bool finished)
{
	struct gc_heap *heap = host_of(self)->heap;

	(void)finished;
	if (!host_of(self)->has_own_sink)
		host_events_restart_begin();
	heap->table->SetGCInProgress(heap, false);
	heap->table->SetWaitForGCEvent(heap);
	host_threads_continue();
	if (!host_of(self)->has_own_sink)
		host_events_restart_end();
}

static void scan_roots(struct gc_to_clr *self, gc_promote_fn *promote, int32_t condemned,
	int32_t max_generation, struct gc_scan_context *context)
{
	struct gc_heap *heap = host_of(self)->heap;

	(void)condemned;
	(void)max_generation;
	for (struct gc_host_thread *t = host_threads_first(); t; t = t->next) {
		if (!heap->table->IsThreadUsingAllocationContextHeap(heap, &t->context,
			    context->thread_number))
			continue;
		context->thread = t;
		for (size_t i = 0; i < t->root_count; i++)
			promote(&t->roots[i], context, 0);
	}
	context->thread = NULL;
}

static void each_context(struct gc_to_clr *self, gc_context_fn *call, void *argument)
{
	(void)self;
	for (struct gc_host_thread *t = host_threads_first(); t; t = t->next)
		call(&t->context, argument);
}

static bool enable_preemptive(struct gc_to_clr *self)
{
	(void)self;
	return host_thread_leave();
}

static void disable_preemptive(struct gc_to_clr *self)
{
	(void)self;
	host_thread_enter();
}

static bool is_preemptive_disabled(struct gc_to_clr *self)
{
	(void)self;
	return host_thread_is_cooperative();
}

static void *get_thread(struct gc_to_clr *self)
{
	(void)self;
	return host_thread_current();
}

static struct gc_alloc_context *get_context(struct gc_to_clr *self)
{
	(void)self;
	return host_thread_current() ? &host_thread_current()->context : NULL;
}

static bool create_thread(struct gc_to_clr *self, gc_thread_fn *start, void *argument,
	bool is_suspendable, const char *name)
{
	(void)self;
	(void)is_suspendable;
	return host_threads_start_collector(start, argument, name);
}

static bool is_gc_thread(struct gc_to_clr *self)
{
	(void)self;
	return host_thread_is_collectors();
}

static uint64_t thread_os_id(struct gc_to_clr *self, void *thread)
{
	(void)self;
	return thread ? ((struct gc_host_thread *)thread)->os_thread_id : 0;
}

/* Each operation sets those of the members that it is about. */
static void stomp_barrier(struct gc_to_clr *self, struct gc_write_barrier *parameters)
{
	struct gc_write_barrier *barrier = &host_of(self)->barrier;

	if (parameters->operation == GC_BARRIER_STOMP_RESIZE ||
		parameters->operation == GC_BARRIER_INITIALIZE) {
		barrier->card_table = parameters->card_table;
		barrier->card_bundle_table = parameters->card_bundle_table;
		barrier->lowest_address = parameters->lowest_address;
		barrier->highest_address = parameters->highest_address;
	}
}

void gc_host_store(struct gc_host *host, struct gc_object **place, struct gc_object *value)
{
	const struct gc_write_barrier *barrier = &host->barrier;
	const uint8_t *at = (const uint8_t *)place;

	__atomic_store_n(place, value, __ATOMIC_RELEASE);
	/*
	 * The barrier of a runtime marks fewer cards, by the generation of the value. More are
	 * harmless: the collector looks at what it finds there.
	 */
	if (!value || !barrier->card_table || at < barrier->lowest_address ||
		at >= barrier->highest_address)
		return;
	__atomic_store_n((uint8_t *)barrier->card_table + ((uintptr_t)place >> CARD_SHIFT),
		IS_DIRTY, __ATOMIC_RELAXED);
	if (barrier->card_bundle_table)
		__atomic_store_n((uint8_t *)barrier->card_bundle_table +
					 ((uintptr_t)place >> BUNDLE_SHIFT),
			IS_DIRTY, __ATOMIC_RELAXED);
}

static void *free_object_table(struct gc_to_clr *self)
{
	return host_of(self)->free_space->table;
}

static const struct gc_host_setting *setting_of(const struct gc_host *host, const char *key)
{
	static const struct gc_host_setting off[] = { { "gcServer", 0 }, { "gcConcurrent", 0 } };

	for (size_t i = 0; key && i < host->setting_count; i++)
		if (strcmp(host->settings[i].name, key) == 0)
			return &host->settings[i];
	for (size_t i = 0; key && i < sizeof(off) / sizeof(*off); i++)
		if (strcmp(off[i].name, key) == 0)
			return &off[i];
	return NULL;
}

static bool get_bool(struct gc_to_clr *self, const char *key, const char *public_key, bool *value)
{
	const struct gc_host_setting *setting = setting_of(host_of(self), key);

	(void)public_key;
	if (setting)
		*value = setting->value != 0;
	return setting != NULL;
}

static bool get_int(struct gc_to_clr *self, const char *key, const char *public_key, int64_t *value)
{
	const struct gc_host_setting *setting = setting_of(host_of(self), key);

	(void)public_key;
	if (setting)
		*value = setting->value;
	return setting != NULL;
}

static bool get_string(struct gc_to_clr *self, const char *key, const char *public_key,
	const char **value)
{
	(void)self;
	(void)key;
	(void)public_key;
	(void)value;
	return false;
}

static struct gc_sink *event_sink(struct gc_to_clr *self)
{
	return host_of(self)->sink;
}

/* A runtime recomputes the status here, and tells the collector what differs. */
static void update_status(struct gc_to_clr *self, int32_t level, int32_t keyword,
	int32_t private_level, int32_t private_keyword)
{
	struct gc_host *host = host_of(self);
	struct gc_event_status status = {
		.level = __atomic_load_n(&host->status[GC_EVENT_DEFAULT].level, __ATOMIC_RELAXED),
		.keyword =
			__atomic_load_n(&host->status[GC_EVENT_DEFAULT].keyword, __ATOMIC_RELAXED),
	};
	struct gc_event_status of_private = {
		.level = __atomic_load_n(&host->status[GC_EVENT_PRIVATE].level, __ATOMIC_RELAXED),
		.keyword =
			__atomic_load_n(&host->status[GC_EVENT_PRIVATE].keyword, __ATOMIC_RELAXED),
	};

	if (status.level != level || status.keyword != keyword)
		host->heap->table->ControlEvents(host->heap, status.keyword, status.level);
	if (of_private.level != private_level || of_private.keyword != private_keyword)
		host->heap->table->ControlPrivateEvents(host->heap, of_private.keyword,
			of_private.level);
}

static void status_changed(enum gc_event_provider provider, struct gc_event_status status)
{
	struct gc_host *host = the_host;
	struct gc_heap *heap = host->heap;

	__atomic_store_n(&host->status[provider].keyword, status.keyword, __ATOMIC_RELAXED);
	__atomic_store_n(&host->status[provider].level, status.level, __ATOMIC_RELAXED);
	if (!heap)
		return; /* gc_host_open() passes it on */
	if (provider == GC_EVENT_DEFAULT)
		heap->table->ControlEvents(heap, status.keyword, status.level);
	else
		heap->table->ControlPrivateEvents(heap, status.keyword, status.level);
}

static void ask_finalizer(struct gc_host *host)
{
	(void)pthread_mutex_lock(&host->finalizer_lock);
	host->asked++;
	(void)pthread_cond_broadcast(&host->finalizer_changed);
	(void)pthread_mutex_unlock(&host->finalizer_lock);
}

static void enable_finalization(struct gc_to_clr *self, bool has_work)
{
	if (has_work)
		ask_finalizer(host_of(self));
}

static void fatal_error(struct gc_to_clr *self, uint32_t exit_code)
{
	(void)self;
	(void)fprintf(stderr, "the collector has met a fatal error: 0x%x\n", exit_code);
	abort();
}

static void log_error(struct gc_to_clr *self, const char *message)
{
	struct gc_host *host = host_of(self);

	(void)snprintf(host->message, sizeof(host->message), "%s", message);
}

static uint32_t cpu_count(struct gc_to_clr *self)
{
	long count = sysconf(_SC_NPROCESSORS_ONLN);

	(void)self;
	return count > 0 ? (uint32_t)count : 1;
}

/*
 * What this host has none of: sync blocks, types that can be unloaded, reference-counted and
 * asynchronously pinned handles, profilers. Such a slot does nothing and returns false, 0 or NULL.
 */
static uintptr_t nothing(void)
{
	return 0;
}

/* clang-format off */
#define NOTHING(slot) .slot = (void *)(uintptr_t)nothing
static const struct gc_to_clr_table ee_table = {
	.SuspendEE = suspend_ee,
	.RestartEE = restart_ee,
	.GcScanRoots = scan_roots,
	NOTHING(GcStartWork),
	NOTHING(BeforeGcScanRoots),
	NOTHING(AfterGcScanRoots),
	NOTHING(GcDone),
	NOTHING(RefCountedHandleCallbacks),
	NOTHING(SyncBlockCacheWeakPtrScan),
	NOTHING(SyncBlockCacheDemote),
	NOTHING(SyncBlockCachePromotionsGranted),
	NOTHING(GetActiveSyncBlockCount),
	.IsPreemptiveGCDisabled = is_preemptive_disabled,
	.EnablePreemptiveGC = enable_preemptive,
	.DisablePreemptiveGC = disable_preemptive,
	.GetThread = get_thread,
	.GetAllocContext = get_context,
	.GcEnumAllocContexts = each_context,
	NOTHING(GetLoaderAllocatorObjectForGC),
	.CreateThread = create_thread,
	NOTHING(DiagGCStart),
	NOTHING(DiagUpdateGenerationBounds),
	NOTHING(DiagGCEnd),
	NOTHING(DiagWalkFReachableObjects),
	NOTHING(DiagWalkSurvivors),
	NOTHING(DiagWalkUOHSurvivors),
	NOTHING(DiagWalkBGCSurvivors),
	.StompWriteBarrier = stomp_barrier,
	.EnableFinalization = enable_finalization,
	.HandleFatalError = fatal_error,
	NOTHING(EagerFinalized),
	.GetFreeObjectMethodTable = free_object_table,
	.GetBooleanConfigValue = get_bool,
	.GetIntConfigValue = get_int,
	.GetStringConfigValue = get_string,
	NOTHING(FreeStringConfigValue),
	.IsGCThread = is_gc_thread,
	.WasCurrentThreadCreatedByGC = is_gc_thread,
	NOTHING(WalkAsyncPinnedForPromotion),
	NOTHING(WalkAsyncPinned),
	.EventSink = event_sink,
	NOTHING(GetTotalNumSizedRefHandles),
	NOTHING(AnalyzeSurvivorsRequested),
	NOTHING(AnalyzeSurvivorsFinished),
	NOTHING(VerifySyncTableEntry),
	.UpdateGCEventStatus = update_status,
	NOTHING(LogStressMsg),
	.GetCurrentProcessCpuCount = cpu_count,
	NOTHING(DiagAddNewRegion),
	.LogErrorToHost = log_error,
	.GetThreadOSThreadId = thread_os_id,
	NOTHING(TriggerClientBridgeProcessing),
};
/* clang-format on */

/* ---- types and objects ---- */

const struct gc_host_type *gc_host_type_new(struct gc_host *host,
	const struct gc_host_type_info *info)
{
	struct gc_host_type *type = host_type_make(info);

	if (type) {
		(void)pthread_mutex_lock(&host->type_lock);
		type->next = host->types;
		host->types = type;
		(void)pthread_mutex_unlock(&host->type_lock);
	}
	return type;
}

struct gc_object *gc_host_new(struct gc_host_thread *thread, const struct gc_host_type *type,
	uint32_t length)
{
	struct gc_heap *heap = thread->host->heap;
	size_t size = host_type_bytes(type, length);
	uint32_t flags =
		(type->finalize ? (uint32_t)GC_ALLOC_FINALIZE : 0) |
		(type->table->flags & HOST_TYPE_HAS_REFERENCES ? (uint32_t)GC_ALLOC_CONTAINS_REF
							       : 0);
	bool is_large = size >= heap->table->GetLOHThreshold(heap);
	struct gc_object *object;

	gc_host_poll(thread);
	if (!size)
		return NULL;
	if (!is_large && !type->finalize && thread->context.ptr &&
		(size_t)(thread->context.limit - thread->context.ptr) >= size) {
		/* as the JIT's code does */
		object = (struct gc_object *)thread->context.ptr;
		thread->context.ptr += size;
	} else {
		thread->allocating = type;
		object = heap->table->Alloc(heap, &thread->context, size,
			flags | (is_large ? (uint32_t)GC_ALLOC_LARGE : 0));
		thread->allocating = NULL;
		if (!object)
			return NULL;
	}
	host_object_begin(object, type, length);
	if (is_large)
		heap->table->PublishObject(heap, (uint8_t *)object);
	return object;
}

void gc_host_collect(struct gc_host *host, int32_t generation)
{
	(void)host->heap->table->GarbageCollect(host->heap, generation, false, COLLECT_BLOCKING);
}

/* ---- finalizers ---- */

/* Runs the finalizers of all objects that are known to be dead. */
static void run_finalizers(struct gc_host_thread *thread)
{
	struct gc_host *host = thread->host;
	struct gc_object **root = gc_host_root(thread);
	uint32_t count = 0;

	if (!host->has_own_sink)
		host_events_finalizers_begin();
	while ((*root = host->heap->table->GetNextFinalizable(host->heap))) {
		const struct gc_host_type *type = gc_host_type_of(*root);
		type->finalize(thread, root, type->finalize_context);
		gc_host_unroot(thread, thread->root_count - 1);
		gc_host_poll(thread);
		count++;
	}
	gc_host_unroot(thread, 1);
	if (!host->has_own_sink)
		host_events_finalizers_end(count);
}

enum { FINALIZER_ROOTS = 1024 };

static void *finalizer_main(void *argument)
{
	struct gc_host *host = argument;
	struct gc_host_thread *thread = gc_host_attach(host, FINALIZER_ROOTS);

	(void)pthread_setname_np(pthread_self(), "finalizer");
	while (thread) {
		gc_host_leave(thread);
		(void)pthread_mutex_lock(&host->finalizer_lock);
		while (host->asked == host->answered && !host->is_closing)
			(void)pthread_cond_wait(&host->finalizer_changed, &host->finalizer_lock);
		uint64_t asked = host->asked;
		bool is_last = asked == host->answered;
		(void)pthread_mutex_unlock(&host->finalizer_lock);
		gc_host_enter(thread);
		if (is_last)
			break;
		run_finalizers(thread);
		(void)pthread_mutex_lock(&host->finalizer_lock);
		host->answered = asked;
		(void)pthread_cond_broadcast(&host->finalizer_changed);
		(void)pthread_mutex_unlock(&host->finalizer_lock);
	}
	if (thread)
		gc_host_detach(thread);
	return NULL;
}

void gc_host_wait_for_finalizers(struct gc_host_thread *thread)
{
	struct gc_host *host = thread->host;

	gc_host_leave(thread);
	(void)pthread_mutex_lock(&host->finalizer_lock);
	uint64_t asked = ++host->asked;
	(void)pthread_cond_broadcast(&host->finalizer_changed);
	while (host->answered < asked)
		(void)pthread_cond_wait(&host->finalizer_changed, &host->finalizer_lock);
	(void)pthread_mutex_unlock(&host->finalizer_lock);
	gc_host_enter(thread);
}

/* ---- open and close ---- */

static int copy_settings(struct gc_host *host, const struct gc_host_options *options)
{
	host->settings = calloc(options->setting_count + 1, sizeof(*host->settings));
	if (!host->settings)
		return -ENOMEM;
	for (size_t i = 0; i < options->setting_count; i++) {
		char *name = strdup(options->settings[i].name);
		if (!name)
			return -ENOMEM;
		host->settings[host->setting_count++] =
			(struct gc_host_setting){ name, options->settings[i].value };
	}
	return 0;
}

static uint32_t major_of(uint32_t dotnet)
{
	bool known;

	for (uint32_t major = 1; major < 16; major++) {
		const struct gc_runtime *runtime = gc_runtime_of(major, &known);
		if (known && runtime->dotnet == dotnet)
			return major;
	}
	return 0;
}

static int load(struct gc_host *host, const char *path, initialize_fn **ret_initialize, char *error,
	size_t error_size)
{
	struct gc_version_info version = { .major = major_of(host->dotnet) };
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (!library) {
		(void)snprintf(error, error_size, "cannot load the collector: %s", dlerror());
		return -ELIBACC;
	}
	version_info_fn *version_info =
		(version_info_fn *)(uintptr_t)dlsym(library, "GC_VersionInfo");
	initialize_fn *initialize = (initialize_fn *)(uintptr_t)dlsym(library, "GC_Initialize");
	if (!version_info || !initialize) {
		(void)snprintf(error, error_size,
			"'%s' is no collector: it lacks GC_VersionInfo or GC_Initialize", path);
		return -ENOEXEC;
	}
	version_info(&version);
	if (version.major < GC_ANSWER_MAJOR) {
		(void)snprintf(error, error_size,
			"'%s' has version %u.%u of the interface; a runtime needs %u or later",
			path, version.major, version.minor, GC_ANSWER_MAJOR);
		return -ENOTSUP;
	}
	*ret_initialize = initialize;
	return 0;
}

static int refused(const struct gc_host *host, const char *what, int32_t code, char *error,
	size_t error_size)
{
	(void)snprintf(error, error_size, "the collector failed in %s: 0x%08x%s%s", what,
		(unsigned)code, *host->message ? ": " : "", host->message);
	return -ENOTSUP;
}

static int start(struct gc_host *host, initialize_fn *initialize, char *error, size_t error_size)
{
	bool known;
	const struct gc_runtime *runtime = gc_runtime_of(major_of(host->dotnet), &known);
	static struct gc_dac_vars dac; /* the collector may keep a pointer to it */
	struct gc_heap *heap;

	dac = (struct gc_dac_vars){ .major = GC_ANSWER_MAJOR, .minor = runtime->answer_minor };
	int32_t code = initialize(&host->ee, &heap, &host->handles, &dac);
	if (code != GC_OK)
		return refused(host, "GC_Initialize", code, error, error_size);
	__atomic_store_n(&host->heap, heap, __ATOMIC_RELEASE);
	heap->table->ControlEvents(heap, host->status[GC_EVENT_DEFAULT].keyword,
		host->status[GC_EVENT_DEFAULT].level);
	heap->table->ControlPrivateEvents(heap, host->status[GC_EVENT_PRIVATE].keyword,
		host->status[GC_EVENT_PRIVATE].level);
	if (!host->handles->table->Initialize(host->handles))
		return refused(host, "IGCHandleManager::Initialize", GC_E_FAIL, error, error_size);
	code = heap->table->Initialize(heap);
	if (code != GC_OK)
		return refused(host, "IGCHeap::Initialize", code, error, error_size);
	return 0;
}

static void free_host(struct gc_host *host)
{
	while (host->types) {
		struct gc_host_type *type = host->types;
		host->types = type->next;
		host_type_delete(type);
	}
	host_type_delete(host->free_space);
	for (size_t i = 0; i < host->setting_count; i++)
		free((void *)(uintptr_t)host->settings[i].name);
	free(host->settings);
	free(host);
}

int gc_host_open(const struct gc_host_options *options, struct gc_host **ret_host, char *error,
	size_t error_size)
{
	initialize_fn *initialize;
	int r;

	if (__atomic_exchange_n(&was_opened, true, __ATOMIC_RELAXED)) {
		(void)snprintf(error, error_size, "this process has had a collector already");
		return -EBUSY;
	}
	struct gc_host *host = calloc(1, sizeof(*host));
	if (!host || copy_settings(host, options) < 0 ||
		!(host->free_space = host_type_free_space())) {
		(void)snprintf(error, error_size, "no memory for the host");
		if (host)
			free_host(host);
		return -ENOMEM;
	}
	host->ee.table = &ee_table;
	host->dotnet = options->dotnet ? options->dotnet : 10;
	host->has_own_sink = options->sink != NULL;
	host->sink = options->sink ? options->sink : host_events_sink();
	(void)pthread_mutex_init(&host->type_lock, NULL);
	(void)pthread_mutex_init(&host->finalizer_lock, NULL);
	(void)pthread_cond_init(&host->finalizer_changed, NULL);
	the_host = host;
	if (!major_of(host->dotnet)) {
		(void)snprintf(error, error_size, ".NET %u is not known: 8, 9 and 10 are",
			host->dotnet);
		r = -EINVAL;
	} else {
		r = load(host, options->collector, &initialize, error, error_size);
	}
	if (r == 0 && !host->has_own_sink && (r = host_events_open(status_changed)) < 0)
		(void)snprintf(error, error_size, "libspoor refuses the events: %s", strerror(-r));
	if (r < 0) {
		/* The collector has not run, so nothing points to the host. */
		free_host(host);
		return r;
	}
	r = start(host, initialize, error, error_size);
	if (r == 0 && (r = -pthread_create(&host->finalizer, NULL, finalizer_main, host)) < 0)
		(void)snprintf(error, error_size, "cannot start the finalizer's thread: %s",
			strerror(-r));
	if (r < 0) {
		if (!host->has_own_sink)
			host_events_close();
		return r;
	}
	*ret_host = host;
	return 0;
}

void gc_host_close(struct gc_host *host)
{
	if (!host)
		return;
	(void)pthread_mutex_lock(&host->finalizer_lock);
	host->is_closing = true;
	(void)pthread_cond_broadcast(&host->finalizer_changed);
	(void)pthread_mutex_unlock(&host->finalizer_lock);
	(void)pthread_join(host->finalizer, NULL);
	if (!host->has_own_sink)
		host_events_close();
}
