/*
 * Tracepoints of LTTng-UST 2.12 and older (liblttng-ust.so.0), which has another binary interface
 * than 2.13 (lttng_abi.h). For lttng.c, which describes an event once and calls one of the two.
 */
#ifndef SPOOR_LIB_LOGGER_LTTNG_OLD_H
#define SPOOR_LIB_LOGGER_LTTNG_OLD_H

#include <signal.h>

#include "lib/event/provider.h"
#include "lib/logger/lttng_abi.h"

struct lttng_old;

/* -ENOENT: the library is not installed. Once. */
int lttng_old_load(void);

/*
 * Makes a tracepoint; its descriptions are those of 2.13, and borrowed. `log_level` and `uri` have
 * their values there as well. It is never freed. NULL: no memory.
 */
struct lttng_old *lttng_old_make(const struct lttng_event *event, const char *provider);

bool lttng_old_register(struct lttng_old *tracepoint);
void lttng_old_unregister(struct lttng_old *tracepoint);

/* Has a session enabled it? Any thread, no lock. */
bool lttng_old_is_on(const struct lttng_old *tracepoint);

/* On the firing thread. */
void lttng_old_fire(const struct lttng_old *tracepoint, const struct event_entry *entry,
	const uint8_t *payload, size_t payload_size);

/* Around fork(), as LTTng's own wrapper calls them. */
void lttng_old_fork_before(sigset_t *signals);
void lttng_old_fork_parent(sigset_t *signals);
void lttng_old_fork_child(sigset_t *signals);

#endif
