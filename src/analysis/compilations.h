/*
 * What the JIT compiled in .NET processes, and how long each method took: from
 * MethodJittingStarted to MethodLoadVerbose of one method on one thread.
 *
 *   compilations_event(&c, &event)           for each event, in file order
 *   compilations_find(&c, &trace, &names)    once, before profile_name()
 *   compilations_finish(&c, &profile)        once
 *   compilations_done(&c)
 */
#ifndef SPOOR_ANALYSIS_COMPILATIONS_H
#define SPOOR_ANALYSIS_COMPILATIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/timeline.h"
#include "base/map.h"
#include "base/strtab.h"
#include "base/vec.h"

struct profile;
struct runtime_event;
struct symbolmap;
struct trace;

#define COMPILATION_TIERS 8u /* by enum code_tier */

/* The share of an interval below which its JIT time is no longer that of a start. */
#define COMPILATION_STEADY_SHARE 0.01

struct compilation {
	uint64_t address;
	uint64_t
		at_ns; /* of its begin, since the recording's begin; of its end if it is not timed */
	uint64_t from_ns; /* the begin of the selected time */
	uint64_t lasts_ns;
	uint32_t il_bytes; /* 0 if it is not timed */
	uint32_t code_bytes;
	uint32_t process;
	uint32_t thread;
	uint32_t epoch;
	uint32_t function; /* of the symbolmap; set by compilations_find() */
	/* in `names`: by the event; after compilations_find() 0 if `function` has the name */
	uint32_t name;
	uint8_t tier;     /* enum code_tier */
	bool is_timed;    /* the event of its begin was recorded */
	bool is_rejected; /* it has precompiled code, which the runtime did not use */
};

struct compilations_sum {
	uint64_t count;
	uint64_t lasts_ns;
	uint64_t il_bytes;
	uint64_t code_bytes;
};

/* A process with at least one row. */
struct compilations_process {
	uint32_t process;
	uint32_t row_at; /* its rows, slowest first */
	uint32_t row_count;
	struct compilations_sum all;
	struct compilations_sum by_tier[COMPILATION_TIERS];
	uint64_t untimed_count;
	uint64_t rejected_count;
	/* the end of the last interval of `line` with more than COMPILATION_STEADY_SHARE */
	uint64_t steady_ns;
	struct timeline line; /* time in the JIT, from the begin of the selected time */
};

struct compilation_begun {
	uint64_t method_id;
	uint64_t at_ns;
	uint32_t thread;
	uint32_t il_bytes;
};

struct compilations {
	struct strtab names;
	VEC(struct compilation) rows;
	VEC(struct compilations_process) processes; /* most JIT time first */
	VEC(struct compilation_begun) begun;        /* until compilations_finish(), as `open` */
	struct map open;                            /* begun.items[i - 1] */
};

/* 0, or -ENOMEM. Payloads that are too short are ignored. */
int compilations_event(struct compilations *compilations, const struct runtime_event *event,
	const struct trace *trace);
int compilations_find(struct compilations *compilations, struct symbolmap *names);
int compilations_finish(struct compilations *compilations, const struct profile *profile);

void compilations_done(struct compilations *compilations);

#endif
