/* All loggers together, for start.c: configuration and fork(). */
#ifndef SPOOR_LIB_LOGGER_LOGGERS_H
#define SPOOR_LIB_LOGGER_LOGGERS_H

#include "lib/platform/module.h"

extern const struct module loggers_module;

/* Starts the loggers that SPOOR_LOGGERS names; errors are ignored. The library runs. */
void loggers_start_configured(void);

/*
 * For a logger whose tracer calls it when an event is enabled or disabled: the loop thread looks which
 * events are enabled. Any thread, also with the loggers' lock held; allocates.
 */
void loggers_look_soon(void);

/* fork(): before the locks of the library are taken, and after they are released. */
void loggers_fork_before(void);
void loggers_fork_parent(void);
void loggers_fork_child(void);

#endif
