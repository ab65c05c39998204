/*
 * What each process's CPU time went into, and below which of the user's own methods: fills the
 * facts and places about CPU from a profile. Every stack counts for exactly one topic.
 */
#ifndef SPOOR_DIAGNOSE_CPU_TOPICS_H
#define SPOOR_DIAGNOSE_CPU_TOPICS_H

struct facts;
struct profile;
struct symbolmap;

/* For processes that are rows of `facts`. 0 or -ENOMEM. */
int cpu_topics_gather(struct facts *facts, const struct profile *profile,
	const struct symbolmap *names);

#endif
