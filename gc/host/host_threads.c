#include "gc/host/host_threads.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_rwlock_t running;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct gc_host_thread *first;
static bool is_stopping; /* atomic: cooperative threads poll it */

static _Thread_local struct gc_host_thread *current;
static _Thread_local bool is_stopper;
static _Thread_local bool is_collectors;

static void make_lock(void)
{
	pthread_rwlockattr_t attribute;

	(void)pthread_rwlockattr_init(&attribute);
	/* Otherwise running threads could delay a collection without end. */
	(void)pthread_rwlockattr_setkind_np(&attribute,
		PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	(void)pthread_rwlock_init(&running, &attribute);
	(void)pthread_rwlockattr_destroy(&attribute);
}

struct gc_host_thread *host_thread_current(void)
{
	return current;
}

struct gc_host_thread *host_threads_first(void)
{
	return first;
}

bool host_thread_is_cooperative(void)
{
	return current && current->is_cooperative;
}

bool host_thread_leave(void)
{
	if (!host_thread_is_cooperative())
		return false;
	current->is_cooperative = false;
	/* The thread that has stopped the others holds the lock for writing. */
	if (!is_stopper)
		(void)pthread_rwlock_unlock(&running);
	return true;
}

void host_thread_enter(void)
{
	if (!current || current->is_cooperative)
		return;
	if (!is_stopper)
		(void)pthread_rwlock_rdlock(&running);
	current->is_cooperative = true;
}

void host_threads_stop(void)
{
	bool was_cooperative = host_thread_leave();

	(void)pthread_once(&once, make_lock);
	__atomic_store_n(&is_stopping, true, __ATOMIC_RELAXED);
	(void)pthread_rwlock_wrlock(&running);
	__atomic_store_n(&is_stopping, false, __ATOMIC_RELAXED);
	is_stopper = true;
	if (was_cooperative)
		host_thread_enter();
}

void host_threads_continue(void)
{
	is_stopper = false;
	(void)pthread_rwlock_unlock(&running);
	if (host_thread_is_cooperative())
		(void)pthread_rwlock_rdlock(&running);
}

struct gc_host_thread *gc_host_attach(struct gc_host *host, size_t root_max)
{
	struct gc_host_thread *thread = calloc(1, sizeof(*thread));

	if (current || !thread || !(thread->roots = calloc(root_max + 1, sizeof(*thread->roots)))) {
		free(thread);
		return NULL;
	}
	(void)pthread_once(&once, make_lock);
	thread->host = host;
	thread->root_max = root_max;
	thread->os_thread_id = (uint64_t)syscall(SYS_gettid);
	current = thread;
	host_thread_enter();
	/* Cooperative, so no collection reads the list now. */
	(void)pthread_mutex_lock(&list_lock);
	thread->next = first;
	first = thread;
	(void)pthread_mutex_unlock(&list_lock);
	return thread;
}

void gc_host_detach(struct gc_host_thread *thread)
{
	struct gc_heap *heap = gc_host_heap(thread->host);

	heap->table->FixAllocContext(heap, &thread->context, NULL, NULL);
	(void)pthread_mutex_lock(&list_lock);
	struct gc_host_thread **at = &first;
	while (*at != thread)
		at = &(*at)->next;
	*at = thread->next;
	(void)pthread_mutex_unlock(&list_lock);
	(void)host_thread_leave();
	current = NULL;
	free(thread->roots);
	free(thread);
}

void gc_host_poll(struct gc_host_thread *thread)
{
	(void)thread;
	if (!__atomic_load_n(&is_stopping, __ATOMIC_RELAXED))
		return;
	(void)host_thread_leave();
	host_thread_enter();
}

void gc_host_leave(struct gc_host_thread *thread)
{
	(void)thread;
	(void)host_thread_leave();
}

void gc_host_enter(struct gc_host_thread *thread)
{
	(void)thread;
	host_thread_enter();
}

struct gc_object **gc_host_root(struct gc_host_thread *thread)
{
	if (thread->root_count == thread->root_max)
		return NULL;
	struct gc_object **root = &thread->roots[thread->root_count++];
	*root = NULL;
	return root;
}

void gc_host_unroot(struct gc_host_thread *thread, size_t count)
{
	thread->root_count -= count < thread->root_count ? count : thread->root_count;
}

/* ---- threads of the collector ---- */

struct start {
	gc_thread_fn *run;
	void *argument;
	char name[16]; /* the kernel's limit */
};

static void *collector_main(void *argument)
{
	struct start start = *(struct start *)argument;

	free(argument);
	is_collectors = true;
	(void)pthread_setname_np(pthread_self(), start.name);
	start.run(start.argument);
	return NULL;
}

bool host_threads_start_collector(gc_thread_fn *run, void *argument, const char *name)
{
	struct start *start = calloc(1, sizeof(*start));
	pthread_t thread;

	if (!start)
		return false;
	start->run = run;
	start->argument = argument;
	(void)strncpy(start->name, name ? name : "collector", sizeof(start->name) - 1);
	if (pthread_create(&thread, NULL, collector_main, start)) {
		free(start);
		return false;
	}
	(void)pthread_detach(thread);
	return true;
}

bool host_thread_is_collectors(void)
{
	return is_collectors;
}
