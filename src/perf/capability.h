/* What this user can record on this machine: each try opens an event and closes it again. */
#ifndef SPOOR_PERF_CAPABILITY_H
#define SPOOR_PERF_CAPABILITY_H

#include <stdbool.h>

#include "machine/rights.h"

enum capability_answer { CAPABILITY_NO, CAPABILITY_LIMITED, CAPABILITY_YES };

struct capability {
	const char *key;  /* "samples_own": a stable key for JSON */
	const char *what; /* "CPU samples, this user's processes" */
	enum capability_answer answer;
	char reason[256]; /* why not, or with which restriction; may be "" */
	char remedy[256]; /* what to grant; may be "" */
};

#define CAPABILITY_COUNT 8u

/*
 * The results that the rows are made from: 0, or the negative errno with which an event was refused.
 * If `own` is negative, no other event is tried, and `kernel` and `machine` are equal to it.
 */
struct capability_trials {
	struct rights rights;
	int own;          /* cpu-clock, user code of the calling thread */
	int kernel;       /* kernel code as well */
	int machine;      /* of the whole machine, user code only */
	int cycles;       /* a hardware counter */
	int switches;     /* context switches */
	int tracepoint;   /* sched:sched_switch */
	bool has_tracefs; /* false: the id of the tracepoint cannot be read, so it was not tried */
	bool has_build_ids; /* the kernel reports the build ids of mapped files */
	bool names_kernel;  /* by BPF, which does not depend on kptr_restrict */
	bool is_virtual;    /* a virtual machine */
};

/* Fills all CAPABILITY_COUNT rows: tries everything, and explains the results. */
void capability_probe(struct capability ret_table[CAPABILITY_COUNT]);

/* The second half of capability_probe(): a pure function. */
void capability_explain(const struct capability_trials *trials,
	struct capability ret_table[CAPABILITY_COUNT]);

#endif
