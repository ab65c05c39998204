/*
 * What the runtime's events say about each process: how often something happened, and in which of
 * the user's methods. A place from an event's own stack replaces one from CPU samples.
 */
#ifndef SPOOR_DIAGNOSE_EVENT_PLACES_H
#define SPOOR_DIAGNOSE_EVENT_PLACES_H

struct answers;
struct facts;
struct symbolmap;

/* For processes that are rows of `facts`. 0 or -ENOMEM. */
int event_places_gather(struct facts *facts, const struct answers *answers,
	const struct symbolmap *names);

#endif
