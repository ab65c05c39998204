/*
 * A module: a part of the library that starts and stops with it (diagnostics server, sampler,
 * counters, ...). lib/start/modules.c is the table of all; a new module adds its line there.
 */
#ifndef SPOOR_LIB_PLATFORM_MODULE_H
#define SPOOR_LIB_PLATFORM_MODULE_H

#include <spoor/spoor.h>

struct module {
	const char *name;
	/*
	 * Called by spoor_start() after the loop thread runs, on the thread of the caller. 0 or a
	 * negative errno; after an error spoor_start() stops the modules that were started and
	 * returns the error. A module that fails has released what it had allocated.
	 */
	int (*start)(const struct spoor_options *options);
	/*
	 * Called by spoor_stop(), on the thread of the caller, in the reverse order of start; the
	 * loop still runs and sessions still exist. May be NULL.
	 */
	void (*stop)(void);
	/*
	 * Called in the child of fork(), which has only the calling thread: closes fds, and forgets
	 * timers and the memory of sessions. Calls no function of the library. May be NULL.
	 */
	void (*child)(void);
};

#endif
