/* Facts about processes from a recording that was read to its end. */
#ifndef SPOOR_DIAGNOSE_FACTS_GATHER_H
#define SPOOR_DIAGNOSE_FACTS_GATHER_H

struct answers;
struct facts;
struct observation_events;
struct profile;
struct report;

/*
 * Adds a row for each process that the profile's filter selects: without a filter those that were
 * observed, or, if there are none, the .NET processes, or those that used CPU time. `report` describes the recording, and
 * `answers` are finished. 0 or -ENOMEM.
 */
int facts_gather(struct facts *facts, const struct profile *profile, const struct report *report,
	const struct answers *answers, const struct observation_events *observations);

#endif
