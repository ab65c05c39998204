/*
 * The library as a whole: starting, stopping, fork(), exit().
 *
 * fork(): the handlers hold the locks of the registry and of the sessions, so that the child's
 * copies are consistent. The child then forgets sessions, fds and the loop thread, which it does
 * not have. exit(): sessions end as with spoor_stop().
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <spoor/spoor.h>

#include "lib/event/provider.h"
#include "lib/event/thread_ring.h"
#include "lib/logger/loggers.h"
#include "lib/pipe/own_events.h"
#include "lib/pipe/pipe.h"
#include "lib/pipe/pipe_session.h"
#include "lib/pipe/session_pass.h"
#include "lib/platform/loop.h"
#include "lib/platform/platform.h"
#include "lib/recover/recover_file.h"
#include "lib/start/modules.h"

#define RING_BYTES   (UINT64_C(4) << 20)
#define FIRST_BYTES  (UINT64_C(256) << 10)
#define RING_MAX     (UINT64_C(1) << 30)
#define MEMORY_BYTES (UINT64_C(512) << 20)

static struct {
	pthread_mutex_t lock;
	bool started;
	bool handlers;
	bool stopping;
	bool recoverable; /* the rings are in a file; it exists as long as the rings do */
} library = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void before_fork(void)
{
	loggers_fork_before();
	pthread_mutex_lock(&library.lock);
	event_sources_lock();
	sessions_lock();
	registry_lock();
}

static void after_fork_parent(void)
{
	registry_unlock();
	sessions_unlock();
	event_sources_unlock();
	pthread_mutex_unlock(&library.lock);
	loggers_fork_parent();
}

static void after_fork_child(void)
{
	pthread_mutex_init(&library.lock, NULL);
	registry_lock_reset();
	event_sources_lock_reset();
	if (!library.started)
		goto sessions_only;
	library.started = false;
	rings_child();
	registry_forget_sessions();
	for (size_t i = 0; modules[i]; i++)
		if (modules[i]->child)
			modules[i]->child();
	loop_forget();
	pipe_child();
	recover_file_done();
	library.recoverable = false;
sessions_only:
	sessions_child();
	loggers_fork_child();
}

static void at_exit(void)
{
	spoor_stop();
}

/* Flags that exist, sizes that the header allows, and memory for one thread at least. */
static bool options_valid(const struct spoor_options *options)
{
	const uint32_t flags = SPOOR_START_NO_SERVER | SPOOR_START_RECOVERABLE | SPOOR_START_RAISED;
	size_t ring = options->ring_bytes;
	size_t least = (ring ? ring : RING_BYTES_MIN) + RING_NESTED_BYTES;

	if ((options->flags & ~flags) || options->clock > SPOOR_CLOCK_COUNTER)
		return false;
	if (options->recover_path && !(options->flags & SPOOR_START_RECOVERABLE))
		return false;
	if (ring && (ring < RING_BYTES_MIN || ring > RING_MAX || (ring & (ring - 1))))
		return false;
	return !options->memory_bytes || options->memory_bytes >= least;
}

static int start_parts(const struct spoor_options *options)
{
	bool trusted = platform_counter_is_clock();
	struct ring_settings settings = {
		.first_bytes = options->ring_bytes ? options->ring_bytes : RING_BYTES,
		.memory_bytes = options->memory_bytes ? options->memory_bytes : MEMORY_BYTES,
	};
	size_t started = 0;
	int r;

	if (!options_valid(options))
		return -EINVAL;
	if (options->clock == SPOOR_CLOCK_COUNTER && !trusted)
		return -ENOTSUP;
	sessions_set_up();
	if ((options->flags & SPOOR_START_RECOVERABLE) && !library.recoverable) {
		/* Rings of threads that have fired already are in private memory. */
		if (thread_state_first())
			return -EBUSY;
		r = recover_file_make(options->recover_path);
		if (r)
			return r;
		library.recoverable = true;
		registry_record_entries(recover_file_entry);
	}
	settings.map_in_file = library.recoverable ? recover_file_ring : NULL;
	if (!options->ring_bytes && !library.recoverable) {
		settings.first_bytes = FIRST_BYTES;
		settings.large_bytes = RING_BYTES;
	}
	pipe_hot.counter = trusted && options->clock != SPOOR_CLOCK_MONOTONIC;
	platform_raise_threads((options->flags & SPOOR_START_RAISED) != 0);
	r = rings_set_up(&settings);
	if (r == 0)
		r = pipe_set_up(pipe_hot.counter, library.recoverable ? recover_file_clock : NULL);
	if (r == 0)
		r = own_events_register();
	if (r == 0)
		r = loop_start(sessions_pass);
	if (r)
		return r;
	__atomic_store_n(&pipe_hot.running, true, __ATOMIC_RELEASE);
	for (; modules[started] && r == 0; started++)
		r = modules[started]->start(options);
	if (r == 0)
		return 0;
	/* The module that failed has released what it had allocated. */
	for (size_t i = started - 1; i > 0; i--)
		if (modules[i - 1]->stop)
			modules[i - 1]->stop();
	loop_stop();
	__atomic_store_n(&pipe_hot.running, false, __ATOMIC_RELEASE);
	return r;
}

int spoor_start(const struct spoor_options *given)
{
	struct spoor_options options = { .size = sizeof(options) };
	bool starts = false;
	int r = 0;

	if (given && given->size < sizeof(given->size))
		return -EINVAL;
	if (given)
		memcpy(&options, given,
			given->size < sizeof(options) ? given->size : sizeof(options));
	pthread_mutex_lock(&library.lock);
	if (!library.started) {
		if (!library.handlers) {
			library.handlers = true;
			(void)pthread_atfork(before_fork, after_fork_parent, after_fork_child);
			(void)atexit(at_exit);
		}
		r = start_parts(&options);
		library.started = starts = r == 0;
	}
	pthread_mutex_unlock(&library.lock);
	if (starts)
		loggers_start_configured();
	return r;
}

void spoor_stop(void)
{
	if (loop_is_self())
		/*
		 * The program ends in a callback on the loop thread, which cannot wait for its own
		 * end.
		 */
		return;
	pthread_mutex_lock(&library.lock);
	bool mine = library.started && !library.stopping;
	library.stopping = mine || library.stopping;
	pthread_mutex_unlock(&library.lock);
	if (!mine)
		return;
	size_t count = 0;
	while (modules[count])
		count++;
	for (; count > 0; count--)
		if (modules[count - 1]->stop)
			modules[count - 1]->stop();
	sessions_stop_all();
	loop_stop();
	pthread_mutex_lock(&library.lock);
	__atomic_store_n(&pipe_hot.running, false, __ATOMIC_RELEASE);
	library.started = library.stopping = false;
	pthread_mutex_unlock(&library.lock);
}

uint64_t spoor_now_ns(void)
{
	return platform_now_ns();
}
