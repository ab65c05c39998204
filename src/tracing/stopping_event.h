/*
 * The event that ends a trace: by provider, and optionally by name and by field values.
 *
 *   struct stopping_event stop = { .provider = "My-Source", .event = "Done", .payload = "Id:3" };
 *   if (stopping_event_fits(&stop, trace, event)) ...
 *   stopping_event_done(&stop);
 */
#ifndef SPOOR_TRACING_STOPPING_EVENT_H
#define SPOOR_TRACING_STOPPING_EVENT_H

#include <stdbool.h>

#include "base/bytes.h"

struct event;
struct trace;

struct stopping_event {
	const char *provider; /* NULL: no event fits */
	const char *event;    /* "GC/Start"; NULL: any */
	const char *payload;  /* "FIELD:VALUE,..."; NULL: any */
	struct bytes text;    /* scratch */
};

bool stopping_event_fits(struct stopping_event *stop, const struct trace *trace,
	const struct event *event);

void stopping_event_done(struct stopping_event *stop);

#endif
