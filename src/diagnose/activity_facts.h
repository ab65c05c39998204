/*
 * What requests, calls over the network and awaits say about each process: how long they take, how
 * many are under way, and in which of the user's methods.
 */
#ifndef SPOOR_DIAGNOSE_ACTIVITY_FACTS_H
#define SPOOR_DIAGNOSE_ACTIVITY_FACTS_H

struct answers;
struct facts;
struct symbolmap;

/* For processes that are rows of `facts`. 0 or -ENOMEM. */
int activity_facts_gather(struct facts *facts, const struct answers *answers,
	const struct symbolmap *names);

#endif
