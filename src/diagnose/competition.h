/*
 * Which facts about durations are the program's own on a machine where it waits for CPUs. Waits for
 * CPUs only lengthen what a program does: what the fastest of many requests or calls take is the
 * program's own, whatever the machine does.
 *
 *   competition_settle(&facts)     once, after all facts were gathered
 */
#ifndef SPOOR_DIAGNOSE_COMPETITION_H
#define SPOOR_DIAGNOSE_COMPETITION_H

struct facts;

/* The share of durations that is the fastest ones. */
#define COMPETITION_FASTEST 0.1

/* Sets the facts that the rules judge: FACT_slow_own_share, FACT_dependency_own, ... */
void competition_settle(struct facts *facts);

#endif
