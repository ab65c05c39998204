/*
 * What is wrong with a process: the rules of rules.def, applied to its facts.
 *
 *   struct findings findings = { 0 };
 *   findings_make(&findings, &facts)          sorted: by process, worst first
 *   ... findings.items ...
 *   findings_done(&findings)
 */
#ifndef SPOOR_DIAGNOSE_FINDINGS_H
#define SPOOR_DIAGNOSE_FINDINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "diagnose/facts.h"

struct nearest;

#define RULE_CONDITIONS_MAX 3

/* What a cost is a share of. */
enum cost_of {
	COST_CPU,
	COST_TIME,
	COST_MACHINE,
	COST_WORKERS,
	COST_THREADS,
	COST_THREAD,
	COST_GROWTH
};

struct condition {
	enum fact fact;
	double least;
	const char *reason; /* for the threshold; NULL ends the list */
};

struct rule {
	const char *kind;
	const char *title;
	struct condition when[RULE_CONDITIONS_MAX];
	enum place_kind place; /* where it happens */
	/* a finding about the same method with a smaller number replaces it, as it says more */
	unsigned generality;
	/* about the machine around the process: after all findings about the process itself */
	bool outside;
	bool symptom;   /* of any other finding, so after those about the process */
	enum fact cost; /* a share; unknown is 0 */
	enum cost_of cost_of;
	double confidence; /* far beyond the thresholds */
	const char *evidence;
	const char *advice;
	/* its first fact comes from observations at the running process, not from recordings */
	bool live;
	const char *see[2]; /* verb and options of the command that shows more */
};

/* All rules, in the order of rules.def; ends with one without a kind. */
extern const struct rule diagnose_rules[];

struct finding {
	const struct rule *rule;
	uint32_t process;  /* in facts.processes */
	double confidence; /* 0 to 1 */
	double cost;       /* share; growth, and the time of several threads, may be above 1 */
};

struct findings {
	VEC(struct finding) items;
};

/* False: it was observed for less than half a second, in which rates mean nothing. */
bool findings_are_possible(const struct process_facts *process);

/* Whether a rule of this kind had its facts. Rules about stacks need observations (observation_events.h). */
bool kind_is_judged(const struct process_facts *process, const char *kind);

/* The next kind after *at that was not judged, where NULL begins; false: there is none. */
bool kind_next_not_judged(const struct process_facts *process, const struct rule **at);

/* 0 or -ENOMEM. */
int findings_make(struct findings *findings, const struct facts *facts);

void findings_done(struct findings *findings);

const struct place *finding_place(const struct facts *facts, const struct finding *finding);

/* "CPU time", "the time". */
const char *cost_words(enum cost_of cost_of);

/* Appends the next line of a rule's text at *at, which it moves. False: there is no other line. */
bool rule_line(const struct facts *facts, const struct process_facts *process, const char **at,
	struct bytes *out);

/* Whether there is a rule of this kind; else offers all kinds. */
bool rule_kind_exists(const char *kind, struct nearest *near);

#endif
