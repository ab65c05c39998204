/*
 * Amounts of runtime events, added up by what they have in common: what several analyses share.
 *
 *   tally_add(&tally, &key, &amount)         for each event
 *   tally_finish(&tally, &selected)          once: drops what the filter refuses, and sorts
 *   ... tally.processes, tally.rows.list ...
 *   tally_group(&tally, process, TALLY_TEXT, &rows)
 *   tally_done(&tally)
 *
 * Memory grows with distinct keys, not with events. What a key's members and an amount are is up to
 * the analysis; members that it does not use are 0.
 */
#ifndef SPOOR_ANALYSIS_TALLY_H
#define SPOOR_ANALYSIS_TALLY_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/timeline.h"
#include "base/map.h"
#include "base/vec.h"

struct event_stacks;
struct profile;
struct symbolmap;

struct tally_key {
	uint64_t id;
	uint32_t process;
	uint32_t kind;
	uint32_t text;
	uint32_t detail;
	uint32_t stack; /* of event_stacks; 0 none */
	uint32_t place; /* set by tally_finish(): the stack's own function, see event_stacks.h */
};

struct tally_row {
	struct tally_key key;
	uint64_t count; /* events */
	uint64_t amount;
	uint64_t most;       /* the largest amount of one event */
	uint64_t most_at_ns; /* since the recording's begin, like the other times */
	uint64_t first_ns;
	uint64_t last_ns;
};

/* A process with at least one row. */
struct tally_process {
	uint32_t process;
	uint32_t row_at; /* its rows, largest amount first */
	uint32_t row_count;
	uint64_t count;
	uint64_t amount;
	struct timeline line; /* of the amounts, from the begin of the selected time */
};

struct tally_rows {
	VEC(struct tally_row) list;
	struct map index;
	uint32_t last; /* list.items[last - 1] was added to last; 0: none */
};

struct tally {
	struct tally_rows rows;              /* tally_finish() sorts them by process */
	VEC(struct tally_process) processes; /* largest amount first */
	VEC(uint32_t) by_process;            /* until tally_finish(): processes.items[i - 1] */
};

struct tally_amount {
	uint64_t amount;
	uint64_t at_ns;   /* since the recording's begin */
	uint64_t from_ns; /* begin of the selected time, since that of the recording */
	bool lasts;       /* the amount is a time that begins at at_ns */
	uint64_t count;   /* events that it is the sum of; 0 is 1. A sum is no `most` */
	uint64_t sum_ns;  /* a sum's events are spread over this time before at_ns */
};

/* What tally_finish() keeps: processes of the filter, and stacks with a module of the filter. */
struct tally_selection {
	const struct profile *profile;
	const struct symbolmap *names;
	const struct event_stacks *stacks;
};

/* Members of the key that tally_group() keeps apart. */
enum tally_member {
	TALLY_ID = 1 << 0,
	TALLY_KIND = 1 << 1,
	TALLY_TEXT = 1 << 2,
	TALLY_DETAIL = 1 << 3,
	TALLY_STACK = 1 << 4,
	TALLY_PLACE = 1 << 5,
};

/* 0, or -ENOMEM. `place` of the key is ignored. */
int tally_add(struct tally *tally, const struct tally_key *key, const struct tally_amount *amount);

/* Before tally_finish(): adds those of `other`, of processes of which `tally` has none. 0, or -ENOMEM. */
int tally_add_missing(struct tally *tally, const struct tally *other);

/* 0, or -ENOMEM. */
int tally_finish(struct tally *tally, const struct tally_selection *selection);

/*
 * A process's rows that are equal in `members` merged into one, largest amount first. The other
 * members of a merged key are those of its largest row. tally_rows_done() in any case. 0,
 * or -ENOMEM.
 */
int tally_group(const struct tally *tally, const struct tally_process *process, unsigned members,
	struct tally_rows *ret_rows);

/*
 * The same for the rows of which `wants` says true. Members that are not kept may differ among the
 * rows that are merged, so what depends on them is decided before.
 */
int tally_group_some(const struct tally *tally, const struct tally_process *process,
	unsigned members, bool (*wants)(const void *context, const struct tally_row *row),
	const void *context, struct tally_rows *ret_rows);
void tally_rows_done(struct tally_rows *rows);

/* For qsort(3): the process with the most first. */
int tally_compare_processes(const void *a, const void *b);

void tally_done(struct tally *tally);

#endif
