/*
 * One logger: how it shows events to its tools, and how it passes one to them.
 *
 * A logger makes a part for each event that is registered while it is open. Parts are found by the
 * index of the event's entry without a lock, and exist until the process ends: rings may still have
 * such events, and a thread may be inside fire().
 *
 * All functions but is_on() and fire() are called with the loggers' lock held, one at a time.
 */
#ifndef SPOOR_LIB_LOGGER_LOGGER_H
#define SPOOR_LIB_LOGGER_LOGGER_H

#include <spoor/logger.h>

#include "lib/event/provider.h"

/* Of an event for tools: unique in the logger, [A-Za-z0-9_] only. */
struct logger_names {
	const char *provider;
	const char *event;
};

struct logger_ops {
	const char *name; /* in SPOOR_LOGGERS */
	/* Parts end with close(): add() is called again for each event after the next open(). */
	bool remakes_parts;
	/* Without the lock held, one call at a time. */
	int (*open)(void);
	/*
	 * Makes the part of one more event. NULL: no memory, or the tools cannot have this event.
	 * The names stay valid.
	 */
	void *(*add)(const struct event_entry *entry, const struct logger_names *names);
	/* Does a tool enable the event now? Any thread, no lock. */
	bool (*is_on)(const void *part);
	/*
	 * Passes one event to the tools, if they still want it. The payload is borrowed. On the
	 * thread that fires it, also in signal handlers: no lock, no allocation.
	 */
	void (*fire)(void *part, const struct event_entry *entry, const uint8_t *payload,
		size_t payload_size);
	/* Hides all events from the tools. Threads may still be inside fire(). */
	void (*close)(void);
	/* spoor_logger_prepare_thread(). May be NULL. Without the lock held. */
	void (*prepare_thread)(void);
	/* Around fork(), if the logger was opened once. `before` is called first. May be NULL. */
	void (*fork_before)(void);
	void (*fork_parent)(void);
	/* The child starts with a closed logger. */
	void (*fork_child)(void);
};

extern const struct logger_ops logger_usdt;
extern const struct logger_ops logger_lttng;
extern const struct logger_ops logger_user_events;
extern const struct logger_ops logger_etw;    /* Windows */
extern const struct logger_ops logger_dtrace; /* macOS */

#endif
