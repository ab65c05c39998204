/*
 * The three interfaces between the stock .NET runtime and a collector in a library of its own, in
 * C.
 *
 * The runtime (the "EE") loads such a library, passes it an object with which it calls the runtime
 * (struct gc_to_clr), and gets two back (struct gc_heap, struct gc_handle_manager). On Linux these
 * are C++ objects of the Itanium ABI: a pointer to an object whose first word points to its table
 * of functions; the object is the first argument of each. Here each table is one list, written out
 * below: number, name, result, arguments. The list makes the table's struct, with typed members, an
 * enum of its slot numbers, and an assertion that each member is at its slot. A call reads
 *
 *   ee->table->SuspendEE(ee, GC_SUSPEND_FOR_GC);
 *
 * Names of slots are the runtime's. From .NET 8 to 10 tables only grew at their ends, so the newest
 * serves all; struct gc_runtime has the sizes for a runtime of a given major version. Never call a
 * slot of the EE beyond that.
 *
 * Compiles as C11 and as C++11; needs only the compiler. 64-bit, little-endian.
 */
#ifndef SPOOR_GC_INTERFACE_H
#define SPOOR_GC_INTERFACE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

static_assert(sizeof(void *) == 8, "the layouts here are those of 64-bit processes");

/* HRESULTs that GC_Initialize() may return; the runtime prints them. */
#define GC_OK              0
#define GC_E_FAIL          ((int32_t)0x80004005) /* also for a refused major version */
#define GC_E_OUTOFMEMORY   ((int32_t)0x8007000e)
#define GC_E_MOD_NOT_FOUND ((int32_t)0x8007007e)

enum gc_suspend_reason { GC_SUSPEND_FOR_GC = 1, GC_SUSPEND_FOR_GC_PREP = 6 };

/* The kind of a root, for a promote function. */
enum gc_root_flag { GC_ROOT_INTERIOR = 1, GC_ROOT_PINNED = 2 };

/* Flags of Alloc(). */
enum gc_alloc_flag {
	GC_ALLOC_FINALIZE = 1,
	GC_ALLOC_CONTAINS_REF = 2,
	GC_ALLOC_ZEROING_OPTIONAL = 16,
	GC_ALLOC_LARGE = 32,
	GC_ALLOC_PINNED = 64,
};

enum gc_handle_type {
	GC_HANDLE_WEAK_SHORT = 0,
	GC_HANDLE_WEAK_LONG = 1,
	GC_HANDLE_STRONG = 2,
	GC_HANDLE_PINNED = 3,
	GC_HANDLE_REFCOUNTED = 5,
	GC_HANDLE_DEPENDENT = 6,
	GC_HANDLE_ASYNC_PINNED = 7,
	GC_HANDLE_SIZED_REF = 8,
	GC_HANDLE_WEAK_NATIVE = 9,
	GC_HANDLE_WEAK_INTERIOR = 10,
	GC_HANDLE_CROSS_REFERENCE = 11, /* .NET 10 */
	GC_HANDLE_TYPES = 12,
};

enum gc_barrier_operation {
	GC_BARRIER_STOMP_RESIZE = 0,
	GC_BARRIER_STOMP_EPHEMERAL = 1,
	GC_BARRIER_INITIALIZE = 2,
};

/* ---- types that are passed ---- */

/*
 * An object: its first word is the method table; a handle is the address of a word that holds an
 * object, hence struct gc_object **.
 */
struct gc_object;
/* A heap segment, to which the EE only has pointers: defined by the collector. */
struct gc_segment;

/* A thread's piece of memory. Code of the JIT advances `ptr` up to `limit` without a call. */
struct gc_alloc_context {
	uint8_t *ptr;
	uint8_t *limit;
	int64_t bytes;     /* total size of the pieces that this context has received */
	int64_t bytes_uoh; /* of large and pinned objects */
	void *reserved[2];
	int32_t count;
	int32_t padding;
};

struct gc_scan_context {
	void *thread; /* the thread whose roots are being scanned; NULL otherwise */
	int32_t thread_number;
	int32_t thread_count;
	uintptr_t stack_limit;
	/* true: the scan marks; false: the scan updates roots of moved objects */
	bool promotion;
	bool concurrent;
	uint8_t padding[6];
	void *reserved[2];
	int32_t root_kind;
	int32_t padding_end;
};

struct gc_write_barrier {
	int32_t operation; /* enum gc_barrier_operation */
	bool is_runtime_suspended;
	bool requires_upper_bounds_check;
	uint8_t padding[2];
	void *card_table;
	void *card_bundle_table;
	uint8_t *lowest_address;
	uint8_t *highest_address;
	uint8_t *ephemeral_low;
	uint8_t *ephemeral_high;
	void *write_watch_table;
	void *region_to_generation_table;
	uint8_t region_shift;
	bool region_use_bitwise;
	uint8_t padding_end[6];
};

/* A frozen segment; offsets are from `mem`. */
struct gc_segment_info {
	void *mem;
	size_t first_object;
	size_t allocated;
	size_t committed;
	size_t reserved;
};

/* Input and output of GC_VersionInfo(). */
struct gc_version_info {
	uint32_t major;
	uint32_t minor;
	uint32_t build;
	const char *name;
};

/*
 * Variables that debuggers and createdump read; if they stay NULL, createdump crashes without a
 * dump.
 */
#define GC_DAC_POINTERS 39
struct gc_dac_vars {
	uint8_t major;
	uint8_t minor;
	uint8_t padding[6];
	uint64_t generation_size;
	uint64_t generation_count;
	void *pointers[GC_DAC_POINTERS]; /* to 0x150 */
};

#define GC_AT(type, member, at) \
	static_assert(offsetof(struct type, member) == (at), #type "." #member " lies at " #at)
GC_AT(gc_alloc_context, limit, 8);
GC_AT(gc_alloc_context, bytes, 16);
GC_AT(gc_alloc_context, bytes_uoh, 24);
GC_AT(gc_alloc_context, reserved, 32);
GC_AT(gc_alloc_context, count, 48);
static_assert(sizeof(struct gc_alloc_context) == 56, "gc_alloc_context has 56 bytes");
GC_AT(gc_scan_context, thread_number, 8);
GC_AT(gc_scan_context, thread_count, 12);
GC_AT(gc_scan_context, stack_limit, 16);
GC_AT(gc_scan_context, promotion, 24);
GC_AT(gc_scan_context, concurrent, 25);
GC_AT(gc_scan_context, reserved, 32);
GC_AT(gc_scan_context, root_kind, 48);
static_assert(sizeof(struct gc_scan_context) == 56, "gc_scan_context has 56 bytes");
GC_AT(gc_write_barrier, is_runtime_suspended, 4);
GC_AT(gc_write_barrier, requires_upper_bounds_check, 5);
GC_AT(gc_write_barrier, card_table, 8);
GC_AT(gc_write_barrier, card_bundle_table, 16);
GC_AT(gc_write_barrier, lowest_address, 24);
GC_AT(gc_write_barrier, highest_address, 32);
GC_AT(gc_write_barrier, ephemeral_low, 40);
GC_AT(gc_write_barrier, ephemeral_high, 48);
GC_AT(gc_write_barrier, write_watch_table, 56);
GC_AT(gc_write_barrier, region_to_generation_table, 64);
GC_AT(gc_write_barrier, region_shift, 72);
GC_AT(gc_write_barrier, region_use_bitwise, 73);
static_assert(sizeof(struct gc_write_barrier) == 80, "gc_write_barrier has 80 bytes");
GC_AT(gc_segment_info, reserved, 32);
static_assert(sizeof(struct gc_segment_info) == 40, "gc_segment_info has 40 bytes");
GC_AT(gc_version_info, name, 16);
GC_AT(gc_dac_vars, generation_size, 0x08);
GC_AT(gc_dac_vars, pointers, 0x18);
static_assert(sizeof(struct gc_dac_vars) == 0x150, "gc_dac_vars ends at 0x150");

/* ---- functions that travel through the tables ---- */

typedef void gc_promote_fn(struct gc_object **slot, struct gc_scan_context *context,
	uint32_t flags);
typedef void gc_context_fn(struct gc_alloc_context *context, void *argument);
typedef void gc_thread_fn(void *argument);
/* For scans of weak pointers of sync blocks: sets *slot to NULL if its object is dead. */
typedef void gc_weak_scan_fn(struct gc_object **slot, uintptr_t *extra, uintptr_t first,
	uintptr_t second);
/* For walks: false ends the walk. */
typedef bool gc_walk_object_fn(struct gc_object *object, void *context);
typedef bool gc_walk_object2_fn(struct gc_object *object, uint8_t **slot, void *context);
typedef void gc_scan_finalizer_fn(struct gc_scan_context *context, struct gc_object *object);
typedef void gc_walk_finalizer_fn(bool critical, void *object);
typedef void gc_scan_handle_fn(struct gc_object **handle, struct gc_object *object, uint32_t flags,
	struct gc_scan_context *context, bool is_dependent);
typedef void gc_generation_fn(void *context, int32_t generation, uint8_t *begin, uint8_t *end,
	uint8_t *end_reserved);
typedef void gc_configuration_fn(void *context, void *name, void *public_key, int32_t type,
	int64_t value);

/* ---- the tables ---- */

#define GC_SLOT_MEMBER(number, name, result, self, ...) \
	result (*name)(struct self * self_object __VA_OPT__(, ) __VA_ARGS__);
#define GC_SLOT_ASSERT(number, name, result, self, ...)                    \
	static_assert(offsetof(struct self##_table, name) == 8 * (number), \
		#self ": " #name " is slot " #number);
#define GC_TABLE(self, slots)                     \
	struct self;                              \
	struct self##_table {                     \
		slots(GC_SLOT_MEMBER, self)       \
	};                                        \
	slots(GC_SLOT_ASSERT, self) struct self { \
		const struct self##_table *table; \
	}

/*
 * IGCToCLREventSink: a slot for each known event, and slot 0 for dynamic ones. Implemented by the
 * EE. 38 slots.
 */
#define GC_SINK_SLOTS(S, self)                                                                     \
	S(0, FireDynamicEvent, void, self, const char *name, void *data, uint32_t size)            \
	S(1, FireGCStart_V2, void, self, uint32_t count, uint32_t depth, uint32_t reason,          \
		uint32_t type)                                                                     \
	S(2, FireGCEnd_V1, void, self, uint32_t count, uint32_t depth)                             \
	S(3, FireGCGenerationRange, void, self, uint8_t generation, void *begin, uint64_t used,    \
		uint64_t reserved)                                                                 \
	S(4, FireGCHeapStats_V2, void, self, uint64_t size_0, uint64_t promoted_0,                 \
		uint64_t size_1, uint64_t promoted_1, uint64_t size_2, uint64_t promoted_2,        \
		uint64_t size_3, uint64_t promoted_3, uint64_t size_4, uint64_t promoted_4,        \
		uint64_t finalization_bytes, uint64_t finalization_count, uint32_t pinned_objects, \
		uint32_t sync_blocks, uint32_t handles)                                            \
	S(5, FireGCCreateSegment_V1, void, self, void *address, size_t size, uint32_t type)        \
	S(6, FireGCFreeSegment_V1, void, self, void *address)                                      \
	S(7, FireGCCreateConcurrentThread_V1, void, self)                                          \
	S(8, FireGCTerminateConcurrentThread_V1, void, self)                                       \
	S(9, FireGCTriggered, void, self, uint32_t reason)                                         \
	S(10, FireGCMarkWithType, void, self, uint32_t heap, uint32_t kind, uint64_t bytes)        \
	S(11, FireGCJoin_V2, void, self, uint32_t heap, uint32_t time, uint32_t type, uint32_t id) \
	S(12, FireGCGlobalHeapHistory_V4, void, self, uint64_t final_youngest_desired,             \
		int32_t heaps, uint32_t condemned_generation, uint32_t gen0_reduction_count,       \
		uint32_t reason, uint32_t global_mechanisms, uint32_t pause_mode,                  \
		uint32_t memory_pressure, uint32_t condemn_reasons_0, uint32_t condemn_reasons_1,  \
		uint32_t count, uint32_t value_size, void *values)                                 \
	S(13, FireGCAllocationTick_V1, void, self, uint32_t amount, uint32_t kind)                 \
	S(14, FireGCAllocationTick_V4, void, self, uint64_t amount, uint32_t kind, uint32_t heap,  \
		void *object, uint64_t object_size)                                                \
	S(15, FirePinObjectAtGCTime, void, self, void *object, void *slot)                         \
	S(16, FirePinPlugAtGCTime, void, self, void *begin, void *end, void *gap_before)           \
	S(17, FireGCPerHeapHistory_V3, void, self, void *free_list_allocated,                      \
		void *free_list_rejected, void *end_of_segment_allocated,                          \
		void *condemned_allocated, void *pinned_allocated, void *pinned_allocated_advance, \
		uint32_t running_free_list_efficiency, uint32_t condemn_reasons_0,                 \
		uint32_t condemn_reasons_1, uint32_t compact_mechanisms,                           \
		uint32_t expand_mechanisms, uint32_t heap, void *extra_gen0_commit,                \
		uint32_t count, uint32_t value_size, void *values)                                 \
	S(18, FireGCLOHCompact, void, self, uint16_t count, uint32_t value_size, void *values)     \
	S(19, FireGCFitBucketInfo, void, self, uint16_t kind, size_t size, uint16_t count,         \
		uint32_t value_size, void *values)                                                 \
	S(20, FireBGCBegin, void, self)                                                            \
	S(21, FireBGC1stNonConEnd, void, self)                                                     \
	S(22, FireBGC1stConEnd, void, self)                                                        \
	S(23, FireBGC1stSweepEnd, void, self, uint32_t generation)                                 \
	S(24, FireBGC2ndNonConBegin, void, self)                                                   \
	S(25, FireBGC2ndNonConEnd, void, self)                                                     \
	S(26, FireBGC2ndConBegin, void, self)                                                      \
	S(27, FireBGC2ndConEnd, void, self)                                                        \
	S(28, FireBGCDrainMark, void, self, uint64_t objects)                                      \
	S(29, FireBGCRevisit, void, self, uint64_t pages, uint64_t objects, uint32_t is_large)     \
	S(30, FireBGCOverflow_V1, void, self, uint64_t min, uint64_t max, uint64_t objects,        \
		uint32_t is_large, uint32_t generation)                                            \
	S(31, FireBGCAllocWaitBegin, void, self, uint32_t reason)                                  \
	S(32, FireBGCAllocWaitEnd, void, self, uint32_t reason)                                    \
	S(33, FireGCFullNotify_V1, void, self, uint32_t generation, uint32_t is_alloc)             \
	S(34, FireSetGCHandle, void, self, void *handle, void *object, uint32_t kind,              \
		uint32_t generation)                                                               \
	S(35, FirePrvSetGCHandle, void, self, void *handle, void *object, uint32_t kind,           \
		uint32_t generation)                                                               \
	S(36, FireDestroyGCHandle, void, self, void *handle)                                       \
	S(37, FirePrvDestroyGCHandle, void, self, void *handle)
GC_TABLE(gc_sink, GC_SINK_SLOTS);
#define GC_SINK_COUNT 38

/*
 * IGCToCLR: services of the EE for a collector. Implemented by the EE. 52 slots; .NET 8 and 9 have
 * 50.
 */
#define GC_TO_CLR_SLOTS(S, self)                                                                  \
	S(0, SuspendEE, void, self, int32_t reason)                                               \
	S(1, RestartEE, void, self, bool finished_gc)                                             \
	S(2, GcScanRoots, void, self, gc_promote_fn *promote, int32_t condemned,                  \
		int32_t max_generation, struct gc_scan_context *context)                          \
	S(3, GcStartWork, void, self, int32_t condemned, int32_t max_generation)                  \
	S(4, BeforeGcScanRoots, void, self, int32_t condemned, bool is_background,                \
		bool is_concurrent)                                                               \
	S(5, AfterGcScanRoots, void, self, int32_t condemned, int32_t max_generation,             \
		struct gc_scan_context *context)                                                  \
	S(6, GcDone, void, self, int32_t condemned)                                               \
	S(7, RefCountedHandleCallbacks, bool, self, struct gc_object *object)                     \
	S(8, SyncBlockCacheWeakPtrScan, void, self, gc_weak_scan_fn *scan, uintptr_t first,       \
		uintptr_t second)                                                                 \
	S(9, SyncBlockCacheDemote, void, self, int32_t max_generation)                            \
	S(10, SyncBlockCachePromotionsGranted, void, self, int32_t max_generation)                \
	S(11, GetActiveSyncBlockCount, uint32_t, self)                                            \
	S(12, IsPreemptiveGCDisabled, bool, self)                                                 \
	S(13, EnablePreemptiveGC, bool, self)                                                     \
	S(14, DisablePreemptiveGC, void, self)                                                    \
	S(15, GetThread, void *, self)                                                            \
	S(16, GetAllocContext, struct gc_alloc_context *, self)                                   \
	S(17, GcEnumAllocContexts, void, self, gc_context_fn *call, void *argument)               \
	S(18, GetLoaderAllocatorObjectForGC, struct gc_object *, self, struct gc_object *object)  \
	S(19, CreateThread, bool, self, gc_thread_fn *start, void *argument, bool is_suspendable, \
		const char *name)                                                                 \
	S(20, DiagGCStart, void, self, int32_t generation, bool is_induced)                       \
	S(21, DiagUpdateGenerationBounds, void, self)                                             \
	S(22, DiagGCEnd, void, self, size_t index, int32_t generation, int32_t reason,            \
		bool is_concurrent)                                                               \
	S(23, DiagWalkFReachableObjects, void, self, void *context)                               \
	S(24, DiagWalkSurvivors, void, self, void *context, bool is_compacting)                   \
	S(25, DiagWalkUOHSurvivors, void, self, void *context, int32_t generation)                \
	S(26, DiagWalkBGCSurvivors, void, self, void *context)                                    \
	S(27, StompWriteBarrier, void, self, struct gc_write_barrier *parameters)                 \
	S(28, EnableFinalization, void, self, bool has_work)                                      \
	S(29, HandleFatalError, void, self, uint32_t exit_code)                                   \
	S(30, EagerFinalized, bool, self, struct gc_object *object)                               \
	S(31, GetFreeObjectMethodTable, void *, self)                                             \
	S(32, GetBooleanConfigValue, bool, self, const char *private_key, const char *public_key, \
		bool *value)                                                                      \
	S(33, GetIntConfigValue, bool, self, const char *private_key, const char *public_key,     \
		int64_t *value)                                                                   \
	S(34, GetStringConfigValue, bool, self, const char *private_key, const char *public_key,  \
		const char **value)                                                               \
	S(35, FreeStringConfigValue, void, self, const char *value)                               \
	S(36, IsGCThread, bool, self)                                                             \
	S(37, WasCurrentThreadCreatedByGC, bool, self)                                            \
	S(38, WalkAsyncPinnedForPromotion, void, self, struct gc_object *object,                  \
		struct gc_scan_context *context, gc_promote_fn *promote)                          \
	S(39, WalkAsyncPinned, void, self, struct gc_object *object, void *context, void *call)   \
	S(40, EventSink, struct gc_sink *, self)                                                  \
	S(41, GetTotalNumSizedRefHandles, uint32_t, self)                                         \
	S(42, AnalyzeSurvivorsRequested, bool, self, int32_t condemned)                           \
	S(43, AnalyzeSurvivorsFinished, void, self, size_t index, int32_t condemned,              \
		uint64_t promoted, void *report)                                                  \
	S(44, VerifySyncTableEntry, void, self)                                                   \
	S(45, UpdateGCEventStatus, void, self, int32_t level, int32_t keyword,                    \
		int32_t private_level, int32_t private_keyword)                                   \
	S(46, LogStressMsg, void, self, uint32_t level, uint32_t facility, void *message)         \
	S(47, GetCurrentProcessCpuCount, uint32_t, self)                                          \
	S(48, DiagAddNewRegion, void, self, int32_t generation, uint8_t *begin, uint8_t *end,     \
		uint8_t *reserved)                                                                \
	S(49, LogErrorToHost, void, self, const char *message)                                    \
	S(50, GetThreadOSThreadId, uint64_t, self, void *thread)                                  \
	S(51, TriggerClientBridgeProcessing, void, self, void *arguments)
GC_TABLE(gc_to_clr, GC_TO_CLR_SLOTS);
#define GC_TO_CLR_COUNT 52

/*
 * IGCHeap: implemented by the collector. 89 slots in .NET 10; the spare ones up to GC_HEAP_SPARE
 * get a function that returns 0.
 */
#define GC_HEAP_SLOTS(S, self)                                                                     \
	S(0, IsValidSegmentSize, bool, self, size_t size)                                          \
	S(1, IsValidGen0MaxSize, bool, self, size_t size)                                          \
	S(2, GetValidSegmentSize, size_t, self, bool is_large)                                     \
	S(3, SetReservedVMLimit, void, self, size_t limit)                                         \
	S(4, WaitUntilConcurrentGCComplete, void, self)                                            \
	S(5, IsConcurrentGCInProgress, bool, self)                                                 \
	S(6, TemporaryEnableConcurrentGC, void, self)                                              \
	S(7, TemporaryDisableConcurrentGC, void, self)                                             \
	S(8, IsConcurrentGCEnabled, bool, self)                                                    \
	S(9, WaitUntilConcurrentGCCompleteAsync, int32_t, self, int32_t timeout_ms)                \
	S(10, GetNumberOfFinalizable, size_t, self)                                                \
	S(11, GetNextFinalizable, struct gc_object *, self)                                        \
	S(12, GetMemoryInfo, void, self, uint64_t *high_load_threshold, uint64_t *available,       \
		uint64_t *load, uint64_t *heap_size, uint64_t *fragmentation, uint64_t *committed, \
		uint64_t *promoted, uint64_t *pinned_count, uint64_t *finalization_pending,        \
		uint64_t *index, uint32_t *generation, uint32_t *pause_percent,                    \
		bool *is_compacting, bool *is_concurrent, uint64_t *generations, uint64_t *pauses, \
		int32_t kind)                                                                      \
	S(13, GetMemoryLoad, uint32_t, self)                                                       \
	S(14, GetGcLatencyMode, int32_t, self)                                                     \
	S(15, SetGcLatencyMode, int32_t, self, int32_t mode)                                       \
	S(16, GetLOHCompactionMode, int32_t, self)                                                 \
	S(17, SetLOHCompactionMode, void, self, int32_t mode)                                      \
	S(18, RegisterForFullGCNotification, bool, self, uint32_t gen2_percent,                    \
		uint32_t large_percent)                                                            \
	S(19, CancelFullGCNotification, bool, self)                                                \
	S(20, WaitForFullGCApproach, int32_t, self, int32_t timeout_ms)                            \
	S(21, WaitForFullGCComplete, int32_t, self, int32_t timeout_ms)                            \
	S(22, WhichGeneration, uint32_t, self, struct gc_object *object)                           \
	S(23, CollectionCount, int32_t, self, int32_t generation,                                  \
		int32_t get_background_full_count)                                                 \
	S(24, StartNoGCRegion, int32_t, self, uint64_t total_size, bool is_large_known,            \
		uint64_t large_size, bool disallow_full_blocking)                                  \
	S(25, EndNoGCRegion, int32_t, self)                                                        \
	S(26, GetTotalBytesInUse, size_t, self)                                                    \
	S(27, GetTotalAllocatedBytes, uint64_t, self)                                              \
	S(28, GarbageCollect, int32_t, self, int32_t generation, bool low_memory, int32_t mode)    \
	S(29, GetMaxGeneration, uint32_t, self)                                                    \
	S(30, SetFinalizationRun, void, self, struct gc_object *object)                            \
	S(31, RegisterForFinalization, bool, self, int32_t generation, struct gc_object *object)   \
	S(32, GetLastGCPercentTimeInGC, int32_t, self)                                             \
	S(33, GetLastGCGenerationSize, size_t, self, int32_t generation)                           \
	S(34, Initialize, int32_t, self)                                                           \
	S(35, IsPromoted, bool, self, struct gc_object *object)                                    \
	S(36, IsHeapPointer, bool, self, void *address, bool small_only)                           \
	S(37, GetCondemnedGeneration, uint32_t, self)                                              \
	S(38, IsGCInProgressHelper, bool, self, bool consider_start)                               \
	S(39, GetGcCount, uint32_t, self)                                                          \
	S(40, IsThreadUsingAllocationContextHeap, bool, self, struct gc_alloc_context *context,    \
		int32_t thread_number)                                                             \
	S(41, IsEphemeral, bool, self, struct gc_object *object)                                   \
	S(42, WaitUntilGCComplete, uint32_t, self, bool consider_start)                            \
	S(43, FixAllocContext, void, self, struct gc_alloc_context *context, void *argument,       \
		void *heap)                                                                        \
	S(44, GetCurrentObjSize, size_t, self)                                                     \
	S(45, SetGCInProgress, void, self, bool in_progress)                                       \
	S(46, RuntimeStructuresValid, bool, self)                                                  \
	S(47, SetSuspensionPending, void, self, bool is_pending)                                   \
	S(48, SetYieldProcessorScalingFactor, void, self, float factor)                            \
	S(49, Shutdown, void, self)                                                                \
	S(50, GetLastGCStartTime, size_t, self, int32_t generation)                                \
	S(51, GetLastGCDuration, size_t, self, int32_t generation)                                 \
	S(52, GetNow, size_t, self)                                                                \
	S(53, Alloc, struct gc_object *, self, struct gc_alloc_context *context, size_t size,      \
		uint32_t flags)                                                                    \
	S(54, PublishObject, void, self, uint8_t *object)                                          \
	S(55, SetWaitForGCEvent, void, self)                                                       \
	S(56, ResetWaitForGCEvent, void, self)                                                     \
	S(57, IsLargeObject, bool, self, struct gc_object *object)                                 \
	S(58, ValidateObjectMember, void, self, struct gc_object *object)                          \
	S(59, NextObj, struct gc_object *, self, struct gc_object *object)                         \
	S(60, GetContainingObject, struct gc_object *, self, void *interior, bool collected_only)  \
	S(61, DiagWalkObject, void, self, struct gc_object *object, gc_walk_object_fn *walk,       \
		void *context)                                                                     \
	S(62, DiagWalkObject2, void, self, struct gc_object *object, gc_walk_object2_fn *walk,     \
		void *context)                                                                     \
	S(63, DiagWalkHeap, void, self, gc_walk_object_fn *walk, void *context,                    \
		int32_t generation, bool walk_large)                                               \
	S(64, DiagWalkSurvivorsWithType, void, self, void *gc_context, void *record,               \
		void *diagnostics, int32_t type, int32_t generation)                               \
	S(65, DiagWalkFinalizeQueue, void, self, void *gc_context, gc_walk_finalizer_fn *walk)     \
	S(66, DiagScanFinalizeQueue, void, self, gc_scan_finalizer_fn *scan,                       \
		struct gc_scan_context *context)                                                   \
	S(67, DiagScanHandles, void, self, gc_scan_handle_fn *scan, int32_t generation,            \
		struct gc_scan_context *context)                                                   \
	S(68, DiagScanDependentHandles, void, self, gc_scan_handle_fn *scan, int32_t generation,   \
		struct gc_scan_context *context)                                                   \
	S(69, DiagDescrGenerations, void, self, gc_generation_fn *describe, void *context)         \
	S(70, DiagTraceGCSegments, void, self)                                                     \
	S(71, DiagGetGCSettings, void, self, void *settings)                                       \
	S(72, StressHeap, bool, self, struct gc_alloc_context *context)                            \
	S(73, RegisterFrozenSegment, struct gc_segment *, self, struct gc_segment_info *info)      \
	S(74, UnregisterFrozenSegment, void, self, struct gc_segment *segment)                     \
	S(75, IsInFrozenSegment, bool, self, struct gc_object *object)                             \
	S(76, ControlEvents, void, self, int32_t keyword, int32_t level)                           \
	S(77, ControlPrivateEvents, void, self, int32_t keyword, int32_t level)                    \
	S(78, GetGenerationWithRange, uint32_t, self, struct gc_object *object, uint8_t **begin,   \
		uint8_t **allocated, uint8_t **reserved)                                           \
	S(79, GetTotalPauseDuration, int64_t, self)                                                \
	S(80, EnumerateConfigurationValues, void, self, void *context, gc_configuration_fn *call)  \
	S(81, UpdateFrozenSegment, void, self, struct gc_segment *segment, uint8_t *allocated,     \
		uint8_t *committed)                                                                \
	S(82, RefreshMemoryLimit, int32_t, self)                                                   \
	S(83, EnableNoGCRegionCallback, int32_t, self, void *callback, uint64_t threshold)         \
	S(84, GetExtraWorkForFinalization, void *, self)                                           \
	S(85, GetGenerationBudget, uint64_t, self, int32_t generation)                             \
	S(86, GetLOHThreshold, size_t, self)                                                       \
	S(87, DiagWalkHeapWithACHandling, void, self, gc_walk_object_fn *walk, void *context,      \
		int32_t generation, bool walk_large)                                               \
	S(88, NullBridgeObjectsWeakRefs, void, self, size_t length, void *references)
GC_TABLE(gc_heap, GC_HEAP_SLOTS);
#define GC_HEAP_COUNT 89
#define GC_HEAP_SPARE 128

/*
 * IGCHandleStore: implemented by the collector. 8 slots; the last two are one virtual destructor.
 */
#define GC_HANDLE_STORE_SLOTS(S, self)                                                       \
	S(0, Uproot, void, self)                                                             \
	S(1, ContainsHandle, bool, self, struct gc_object **handle)                          \
	S(2, CreateHandleOfType, struct gc_object **, self, struct gc_object *object,        \
		int32_t type)                                                                \
	S(3, CreateHandleOfTypeOnHeap, struct gc_object **, self, struct gc_object *object,  \
		int32_t type, int32_t heap)                                                  \
	S(4, CreateHandleWithExtraInfo, struct gc_object **, self, struct gc_object *object, \
		int32_t type, void *extra)                                                   \
	S(5, CreateDependentHandle, struct gc_object **, self, struct gc_object *primary,    \
		struct gc_object *secondary)                                                 \
	S(6, Destroy, void, self)                                                            \
	S(7, DestroyAndDelete, void, self)
GC_TABLE(gc_handle_store, GC_HANDLE_STORE_SLOTS);
#define GC_HANDLE_STORE_COUNT 8
#define GC_HANDLE_STORE_SPARE 16

/* IGCHandleManager: implemented by the collector. 18 slots. */
#define GC_HANDLE_MANAGER_SLOTS(S, self)                                                         \
	S(0, Initialize, bool, self)                                                             \
	S(1, Shutdown, void, self)                                                               \
	S(2, GetGlobalHandleStore, struct gc_handle_store *, self)                               \
	S(3, CreateHandleStore, struct gc_handle_store *, self)                                  \
	S(4, DestroyHandleStore, void, self, struct gc_handle_store *store)                      \
	S(5, CreateGlobalHandleOfType, struct gc_object **, self, struct gc_object *object,      \
		int32_t type)                                                                    \
	S(6, CreateDuplicateHandle, struct gc_object **, self, struct gc_object **handle)        \
	S(7, DestroyHandleOfType, void, self, struct gc_object **handle, int32_t type)           \
	S(8, DestroyHandleOfUnknownType, void, self, struct gc_object **handle)                  \
	S(9, SetExtraInfoForHandle, void, self, struct gc_object **handle, int32_t type,         \
		void *extra)                                                                     \
	S(10, GetExtraInfoFromHandle, void *, self, struct gc_object **handle)                   \
	S(11, StoreObjectInHandle, void, self, struct gc_object **handle,                        \
		struct gc_object *object)                                                        \
	S(12, StoreObjectInHandleIfNull, bool, self, struct gc_object **handle,                  \
		struct gc_object *object)                                                        \
	S(13, SetDependentHandleSecondary, void, self, struct gc_object **handle,                \
		struct gc_object *object)                                                        \
	S(14, GetDependentHandleSecondary, struct gc_object *, self, struct gc_object **handle)  \
	S(15, InterlockedCompareExchangeObjectInHandle, struct gc_object *, self,                \
		struct gc_object **handle, struct gc_object *object, struct gc_object *expected) \
	S(16, HandleFetchType, int32_t, self, struct gc_object **handle)                         \
	S(17, TraceRefCountedHandles, void, self, void *call, uintptr_t first, uintptr_t second)
GC_TABLE(gc_handle_manager, GC_HANDLE_MANAGER_SLOTS);
#define GC_HANDLE_MANAGER_COUNT 18
#define GC_HANDLE_MANAGER_SPARE 32

static_assert(sizeof(struct gc_sink_table) == 8 * GC_SINK_COUNT, "the sink has 38 slots");
static_assert(sizeof(struct gc_to_clr_table) == 8 * GC_TO_CLR_COUNT, "IGCToCLR has 52 slots");
static_assert(sizeof(struct gc_heap_table) == 8 * GC_HEAP_COUNT, "IGCHeap has 89 slots");
static_assert(sizeof(struct gc_handle_store_table) == 8 * GC_HANDLE_STORE_COUNT, "8 slots");
static_assert(sizeof(struct gc_handle_manager_table) == 8 * GC_HANDLE_MANAGER_COUNT, "18 slots");

/* The slots by number, for example GC_SLOT_gc_heap_Alloc == 53. */
#define GC_SLOT_NUMBER(number, name, result, self, ...) GC_SLOT_##self##_##name = (number),
enum gc_sink_slot { GC_SINK_SLOTS(GC_SLOT_NUMBER, gc_sink) };
enum gc_to_clr_slot { GC_TO_CLR_SLOTS(GC_SLOT_NUMBER, gc_to_clr) };
enum gc_heap_slot { GC_HEAP_SLOTS(GC_SLOT_NUMBER, gc_heap) };
enum gc_handle_store_slot { GC_HANDLE_STORE_SLOTS(GC_SLOT_NUMBER, gc_handle_store) };
enum gc_handle_manager_slot { GC_HANDLE_MANAGER_SLOTS(GC_SLOT_NUMBER, gc_handle_manager) };

/* ---- versions ---- */

/* Properties of a runtime, by its EE-side major version (`major` in GC_VersionInfo() on entry). */
struct gc_runtime {
	uint32_t major;
	uint32_t dotnet;       /* 8, 9, 10 */
	uint32_t to_clr_count; /* number of slots of IGCToCLR */
	uint32_t sink_count;
	uint32_t heap_count; /* number of slots of IGCHeap that it may call */
	/* the minor version that the runtime's own collector returns: 5.answer_minor */
	uint8_t answer_minor;
	uint8_t dac_minor;         /* the version of the DAC variables to set: 2.dac_minor */
	uint32_t collectible_flag; /* flag of a method table */
};

#define GC_ANSWER_MAJOR 5u
#define GC_DAC_MAJOR    2u

/*
 * The record of this major version. For an unknown version the newest record, and *ret_known is
 * false (gc_runtime_accept() decides).
 */
const struct gc_runtime *gc_runtime_of(uint32_t ee_major, bool *ret_known);

/*
 * Accepts or refuses a runtime of this major version, and returns its record. Known versions are
 * accepted. For others the environment variable SPOOR_GC_UNKNOWN decides: "warn" (the default)
 * accepts it with the newest layout, "refuse" refuses it; both print a message to stderr, in which
 * `library` is named.
 */
bool gc_runtime_accept(const char *library, uint32_t ee_major,
	const struct gc_runtime **ret_runtime);

/* The two exported functions. */
__attribute__((visibility("default"))) void GC_VersionInfo(struct gc_version_info *version);
__attribute__((visibility("default"))) int32_t GC_Initialize(struct gc_to_clr *ee,
	struct gc_heap **ret_heap, struct gc_handle_manager **ret_handles, struct gc_dac_vars *dac);

#ifdef __cplusplus
}
#endif

#endif
