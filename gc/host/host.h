/*
 * A host for a standalone collector, without .NET: the runtime's side of the interface, in C. A
 * program in C allocates objects, links them, drops them and collects; the collector under test is
 * any library that a .NET runtime could load (libclrgc.so, libspoorgc.so, one of your own). Its
 * events reach libspoor, so dotnet-trace, TraceEvent and spoor read them as those of a .NET
 * process.
 *
 *   struct gc_host_options options = { .collector = "./libmine.so" };
 *   spoor_start(NULL);
 *   gc_host_open(&options, &host, error, sizeof(error));
 *   thread = gc_host_attach(host, 64);
 *   node = gc_host_type_new(host, &(struct gc_host_type_info){ .name = "Node", .size = 16,
 *           .references = (const uint32_t[]){ 0 }, .reference_count = 1 });
 *   struct gc_object **root = gc_host_root(thread);
 *   *root = gc_host_new(thread, node, 0);
 *   gc_host_collect(host, 2);
 *   gc_host_detach(thread);
 *   gc_host_close(host);
 *
 * Modes. A thread is attached to allocate and to touch objects. From then on a collection waits for
 * it, until it calls a function below that says "polls", or gc_host_leave() before it waits for
 * something. At these points a collection may run and objects may move, so an object that is
 * needed afterwards must be in a root, a handle or another object.
 *
 * A process opens one host, once: collectors are made for one runtime and cannot be unloaded.
 *
 * Unless it says otherwise, a function is called by the thread that it is passed, or by any
 * attached thread for functions with `host`. Functions return 0 or a negative errno, or NULL.
 */
#ifndef SPOOR_GC_HOST_H
#define SPOOR_GC_HOST_H

#include "gc/interface.h"

#ifdef __cplusplus
extern "C" {
#endif

struct gc_host;
struct gc_host_thread;
struct gc_host_type;

/*
 * A setting as the collector asks for it, without "DOTNET_": { "GCgen0size", 0x40000 }. Those that
 * are not listed have no value, except gcServer and gcConcurrent, which are 0: this host has the
 * write barrier of a workstation collector that stops the program.
 */
struct gc_host_setting {
	const char *name;
	int64_t value;
};

struct gc_host_options {
	const char *collector; /* path of the library, as for dlopen() */
	/* the version of .NET whose runtime the host claims to be: 8, 9 or 10; 0: 10 */
	uint32_t dotnet;
	const struct gc_host_setting *settings;
	size_t setting_count;
	/*
	 * The destination of events; NULL: the providers Microsoft-Windows-DotNETRuntime and
	 * Microsoft-Windows-DotNETRuntimePrivate of libspoor
	 */
	struct gc_sink *sink;
};

/*
 * Loads and starts the collector. On failure a sentence is in `error`. -ELIBACC: the library cannot
 * be loaded. -ENOEXEC: it is no collector. -ENOTSUP: it refused its start. -EBUSY: the process has
 * had a host. Called by any thread.
 */
int gc_host_open(const struct gc_host_options *options, struct gc_host **ret_host, char *error,
	size_t error_size);

/* Runs the remaining finalizers, then ends. All threads have been detached. NULL is harmless. */
void gc_host_close(struct gc_host *host);

/* The collector's objects, for whatever this header has no function for. */
struct gc_heap *gc_host_heap(struct gc_host *host);
struct gc_handle_manager *gc_host_handles(struct gc_host *host);

/* ---- threads ---- */

/* Attaches the calling thread, with room for `root_max` roots. NULL: no memory. Polls. */
struct gc_host_thread *gc_host_attach(struct gc_host *host, size_t root_max);
void gc_host_detach(struct gc_host_thread *thread);

/* Lets a collection that is waiting run. In loops that do not allocate. */
void gc_host_poll(struct gc_host_thread *thread);

/*
 * Between the two a collection does not wait for the thread, which must not touch objects. Enter
 * polls.
 */
void gc_host_leave(struct gc_host_thread *thread);
void gc_host_enter(struct gc_host_thread *thread);

/*
 * A new root of this thread, which holds NULL: the collector keeps its object alive and updates it
 * when it moves. NULL: `root_max` roots are in use. Roots end in reverse order: gc_host_unroot()
 * ends the last `count`.
 */
struct gc_object **gc_host_root(struct gc_host_thread *thread);
void gc_host_unroot(struct gc_host_thread *thread, size_t count);

/* ---- types ---- */

/*
 * Called by the host's own thread, which is attached. `object` is alive during the call only,
 * unless it is stored somewhere. May poll; then it continues with *object.
 */
typedef void gc_host_finalize_function(struct gc_host_thread *thread, struct gc_object **object,
	void *context);

struct gc_host_type_info {
	const char *name; /* copied; the type's name in events */
	/* bytes of its fields; of an array: 0 */
	uint32_t size;
	/* bytes of an element of an array: 1 to 65,535; 0: it is no array */
	uint32_t element_size;
	/* ascending offsets of references in the fields, or in each element; multiples of 8 */
	const uint32_t *references;
	uint32_t reference_count;
	gc_host_finalize_function *finalize; /* or NULL */
	void *finalize_context;
};

/*
 * Lives as long as the host. NULL: no memory, or the description is invalid (an offset that is not
 * aligned, outside or not ascending; a finalizer of an array).
 */
const struct gc_host_type *gc_host_type_new(struct gc_host *host,
	const struct gc_host_type_info *info);

const struct gc_host_type *gc_host_type_of(const struct gc_object *object);
const char *gc_host_type_name(const struct gc_host_type *type);

/* ---- objects ---- */

/*
 * A new object, all zero; of an array with `length` elements. NULL: the collector has no memory for
 * it. Polls.
 */
struct gc_object *gc_host_new(struct gc_host_thread *thread, const struct gc_host_type *type,
	uint32_t length);

/* The fields of an object, or the elements of an array, until the next poll. */
void *gc_host_fields(struct gc_object *object);
/* Number of elements of an array. */
uint32_t gc_host_length(const struct gc_object *object);

/*
 * Stores a reference into an object, with the collector's write barrier. `place` is in the fields
 * or elements of an object.
 */
void gc_host_store(struct gc_host *host, struct gc_object **place, struct gc_object *value);

/* Collects this generation and the younger ones; waits for it. Polls. */
void gc_host_collect(struct gc_host *host, int32_t generation);

/* Waits until the finalizers of all objects found dead so far have run. Polls. */
void gc_host_wait_for_finalizers(struct gc_host_thread *thread);

#ifdef __cplusplus
}
#endif

#endif
