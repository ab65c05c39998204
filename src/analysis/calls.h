/*
 * What the processes called over the network: requests of HttpClient, name lookups, TLS handshakes
 * and connections, by target; from pairs of events with the id of one activity
 * (trace/activity_events.def).
 *
 *   calls_event(&calls, &event, trace)        for each event, in file order
 *   calls_settle(&calls, &spans, end_ns)      once
 *   calls_finish(&calls, &profile)            once; and tally_finish() for the tally
 *   calls_done(&calls)
 *
 * At most CALL_TARGETS_MAX targets are kept; the calls of others are one row with an empty target.
 */
#ifndef SPOOR_ANALYSIS_CALLS_H
#define SPOOR_ANALYSIS_CALLS_H

#include <stdint.h>

#include "analysis/durations.h"
#include "analysis/tally.h"
#include "base/map.h"
#include "base/strtab.h"
#include "base/vec.h"
#include "trace/activity_event.h"

struct activity_spans;
struct profile;
struct runtime_event;
struct trace;

#define CALL_TARGETS_MAX 500u
/* The target of TLS handshakes that a client began. */
#define CALL_AS_SERVER "(as the server)"

struct call_row {
	uint32_t process;
	uint32_t target; /* in `targets`: "shop.example:443" */
	enum activity_kind kind;
	uint64_t failed;        /* of those that ended */
	uint64_t unfinished;    /* they had not ended at the end of the recording */
	uint64_t unfinished_ns; /* that these lasted at least, until the end of the observation */
	struct durations durations; /* of those that ended */
};

/* A process with at least one call. */
struct calls_process {
	uint32_t process;
	uint32_t row_at; /* its rows, by kind, those that lasted longest first */
	uint32_t row_count;
	uint64_t count; /* calls that began */
};

struct call_begun {
	uint64_t id; /* hash of the activity's id and the kind; 0: the place is free */
	uint64_t at_ns;
	uint64_t from_ns; /* see tally_amount */
	uint32_t row;
	uint32_t stack; /* of event_stacks; 0 none */
	uint32_t next_free;
	uint32_t thread; /* that began it */
	uint32_t
		previous; /* place of the call of this kind that the thread began before; 0: none */
	bool has_failed;
};

/*
 * Calls of one kind within which the same flow began another one of that kind, such as the request of
 * a handler for a token. EventSource ends the outer activity there: the inner one has its id, and the
 * end of the outer one has none. The first of them is taken as the one that such an end ends, so that
 * the sum of the durations is right.
 */
struct calls_outer {
	uint32_t process;
	enum activity_kind kind;
	uint32_t first;       /* of places: those before have ended */
	VEC(uint32_t) places; /* begun.items[i - 1] */
};

struct calls {
	struct strtab targets;
	VEC(struct call_row) rows;
	VEC(struct calls_process) processes; /* most calls first */
	struct tally tally;                  /* key: kind, text = target, stack; in ns */
	VEC(struct call_begun) begun;        /* until calls_settle(), as the next ones */
	struct map row_index;
	struct map open;               /* begun.items[i - 1] */
	uint32_t free;                 /* begun.items[free - 1] is the first free item; 0: none */
	VEC(struct calls_outer) outer; /* until calls_settle() */
	struct map latest; /* likewise: by thread and kind, the place of the last begun */
};

/* 0, or -ENOMEM. Payloads that are too short are ignored. */
int calls_event(struct calls *calls, const struct runtime_event *event, const struct trace *trace);
int calls_settle(struct calls *calls, const struct activity_spans *spans, uint64_t end_ns);
void calls_finish(struct calls *calls, const struct profile *profile);

/* "name lookups": a constant text. */
const char *call_kind_words(enum activity_kind kind);

void calls_done(struct calls *calls);

#endif
