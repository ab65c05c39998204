/*
 * Counters for sessions. A session that enables System.Diagnostics.Metrics, or the provider with a
 * meter's name and EventCounterIntervalSec, becomes a consumer of the collecting thread, whose
 * events are for that session only. So each session has its own interval and its own sums.
 */
#ifndef SPOOR_LIB_COUNTER_COUNTER_SESSION_H
#define SPOOR_LIB_COUNTER_COUNTER_SESSION_H

#include "lib/counter/counter_registry.h"
#include "lib/event/outbuf.h"
#include "lib/platform/module.h"

struct counter_session {
	struct counter_consumer consumer; /* first */
	struct counter_session *next;
	uint64_t session_id;         /* id of the pipe's session */
	const void *owner;           /* identifies the provider that started it */
	struct counter_meter *meter; /* EventCounters: only this meter; else NULL */
	struct outbuf payload;
	void (*release)(struct counter_session *session);
};

/*
 * Adds it to the list and starts it. 0, or the error of counter_consumer_add(), after which it has
 * been released.
 */
int counter_session_start(struct counter_session *session);

/* Ends the one with this session id and owner, without waiting. No effect if there is none. */
void counter_session_end(uint64_t session_id, const void *owner);

/* Fires `event` with `session->payload` for the session, and empties the payload. */
void counter_session_fire(struct counter_session *session, struct spoor_event *event);

extern const struct module counter_module;

/* The module part of counter_metrics.c. */
int counter_metrics_start(void);
void counter_metrics_stop(void);

#endif
