/*
 * Counters as sessions ask for them: a session that wants System.Diagnostics.Metrics, or the provider of a meter's name with EventCounterIntervalSec, becomes a
 * consumer of the collecting thread, whose events go to that session alone. So each has its own interval and its own sums, however many there are.
 */
#ifndef SPOOR_LIB_COUNTER_COUNTER_SESSION_H
#define SPOOR_LIB_COUNTER_COUNTER_SESSION_H

#include "lib/counter/counter_registry.h"
#include "lib/event/outbuf.h"
#include "lib/platform/module.h"

struct counter_session {
	struct counter_consumer consumer; /* first */
	struct counter_session *next;
	uint64_t session_id;              /* of the pipe's session */
	const void *owner;                /* which provider */
	struct counter_meter *meter;      /* EventCounters: only this one */
	struct outbuf payload;
	void (*release)(struct counter_session *session);
};

/* In the list of running ones; 0 or what counter_consumer_add() said, then it has been released. */
int counter_session_start(struct counter_session *session);

/* Ends the one of this pipe session and owner, without waiting. Nothing happens when there is none. */
void counter_session_end(uint64_t session_id, const void *owner);

/* Sends `session->payload` as this event and empties it. */
void counter_session_fire(struct counter_session *session, struct spoor_event *event);

extern const struct module counter_module;

/* counter_metrics.c: comes and goes with the library. */
int counter_metrics_start(void);
void counter_metrics_stop(void);

#endif
