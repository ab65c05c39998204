/*
 * The parts of the library that live on top of the pipe, each started and stopped with it: diagnostics server, sampler, counters. modules.c is the table;
 * a new part adds its line there.
 */
#ifndef SPOOR_LIB_PIPE_MODULES_H
#define SPOOR_LIB_PIPE_MODULES_H

#include <spoor/spoor.h>

struct module {
	const char *name;
	/* From spoor_start(), after the loop runs, on the caller's thread. A failure is told by spoor_start() and what was started is stopped. */
	int (*start)(const struct spoor_options *options);
	/* From spoor_stop(), on the caller's thread, last started first; the loop still runs, sessions still exist. May be NULL. */
	void (*stop)(void);
	/* In the child of a fork(), where only this thread is left: forget fds (close them), timers, memory of sessions. No call of the library. May be NULL. */
	void (*child)(void);
};

/* NULL ends it. */
extern const struct module *const modules[];

#endif
