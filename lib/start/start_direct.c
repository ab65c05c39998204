/*
 * libspoor without sessions: events, activities and the logger of the system, for systems that the
 * rest of the library does not run on. scripts/libspoor-direct compiles it. spoor_start() starts the
 * library's thread and the loggers that SPOOR_LOGGERS names; there is no diagnostics server, and
 * functions of sessions, counters and code are not in the library.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "lib/event/activity.h"
#include "lib/logger/loggers.h"
#include "lib/platform/loop.h"
#include "lib/platform/platform.h"

static struct {
	pthread_mutex_t lock;
	bool started;
	bool handlers;
} library = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void at_exit(void)
{
	spoor_stop();
}

int spoor_start(const struct spoor_options *options)
{
	bool starts = false;
	int r = 0;

	if (options && options->size < sizeof(options->size))
		return -EINVAL;
	pthread_mutex_lock(&library.lock);
	if (!library.started) {
		if (!library.handlers) {
			library.handlers = true;
			(void)atexit(at_exit);
		}
		r = loop_start(NULL);
		if (r == 0)
			r = activity_module.start(options);
		if (r)
			loop_stop();
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
		return;
	pthread_mutex_lock(&library.lock);
	bool mine = library.started;
	library.started = false;
	pthread_mutex_unlock(&library.lock);
	if (!mine)
		return;
	loggers_module.stop();
	activity_module.stop();
	loop_stop();
}

uint64_t spoor_now_ns(void)
{
	return platform_now_ns();
}
