/*
 * What events say that are no samples, of .NET runtimes and of the scheduler: several analyses in one
 * pass over a recording.
 *
 *   struct answers answers = { .trace = &trace, .filter = &filter, .wanted = 1 << ANSWER_GC };
 *   answers_event(&answers, event)                  for each event, in file order
 *   answers_find(&answers, &names)                  once, before profile_name()
 *   answers_finish(&answers, &profile, &names, duration_ns)    once, after it
 *   ... answers.exceptions ...                      results: see the header of each analysis
 *   answers_done(&answers)
 *
 * An event that no wanted analysis takes costs one look into a table.
 */
#ifndef SPOOR_ANALYSIS_ANSWERS_H
#define SPOOR_ANALYSIS_ANSWERS_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/activity_spans.h"
#include "analysis/allocations.h"
#include "analysis/awaits.h"
#include "analysis/blocked_profile.h"
#include "analysis/blocks.h"
#include "analysis/calls.h"
#include "analysis/collections.h"
#include "analysis/collector_cpu.h"
#include "analysis/compilations.h"
#include "analysis/databases.h"
#include "analysis/event_stacks.h"
#include "analysis/exceptions.h"
#include "analysis/io_calls.h"
#include "analysis/requests.h"
#include "analysis/startup.h"
#include "analysis/thread_pool.h"
#include "analysis/thread_time.h"
#include "analysis/waits.h"
#include "base/vec.h"

struct event;
struct profile;
struct profile_filter;
struct symbolmap;
struct trace;

enum answer {
	ANSWER_GC,
	ANSWER_EXCEPTIONS,
	ANSWER_ALLOC,
	ANSWER_LOCKS, /* with ANSWER_OFF_CPU also those known by context switches; the next too */
	ANSWER_WAITS,
	ANSWER_POOL,
	ANSWER_JIT,
	ANSWER_THREAD_TIME, /* with ANSWER_OFF_CPU */
	ANSWER_OFF_CPU,
	ANSWER_REQUESTS,
	ANSWER_HTTP,
	ANSWER_ASYNC,
	ANSWER_DATABASES,
	ANSWER_STARTUP,
	ANSWER_IO,
	ANSWER_COUNT,
};

#define ANSWERS_ALL ((1u << ANSWER_COUNT) - 1)
/* without those of the scheduler's events */
#define ANSWERS_OF_RUNTIMES (ANSWERS_ALL & ~(1u << ANSWER_THREAD_TIME | 1u << ANSWER_OFF_CPU))

struct answers {
	const struct trace *trace;
	const struct profile_filter *filter; /* threads and times; the caller's */
	unsigned wanted;                     /* set of 1 << enum answer */
	bool for_summary; /* threads' samples are left out: a summary does not show them */
	struct event_stacks stacks;
	uint64_t begin_ns; /* of the recording; 0: no event has arrived */
	uint64_t last_ns;  /* of the events that an analysis took; since begin_ns, as the next */
	uint64_t from_ns; /* the selected time, within the recorded time; set by answers_finish() */
	uint64_t to_ns;
	uint64_t span_ns; /* to_ns - from_ns */
	/* by schema: set of 1 << enum answer, shifted by one; bit 0: it has been asked */
	VEC(uint32_t) by_schema;
	bool is_settled;
	struct collections collections;
	struct collector_cpu collector_cpu; /* of ANSWER_GC */
	struct exceptions exceptions;
	struct allocations allocations;
	struct waits locks;
	struct waits handles;
	struct thread_pool thread_pool;
	struct compilations compilations;
	struct thread_time thread_time;
	struct blocks blocks;
	enum blocked_form blocked_form; /* of answers_fill_profile(), set by the caller */
	struct requests requests;
	struct activity_spans activity_spans; /* of requests, calls and awaits */
	struct calls calls;
	struct awaits awaits;
	struct databases databases;
	struct startup startup;
	struct io_calls io_calls;
};

/* 0, or -ENOMEM. */
int answers_event(struct answers *answers, const struct event *event);

/*
 * Whether no wanted analysis takes events of this schema, of which at least one was passed to
 * answers_event(): the others need not be.
 */
bool answers_ignore(const struct answers *answers, uint32_t schema_index);

int answers_find(struct answers *answers, struct symbolmap *names);

/*
 * Before profile_name(), for a profile that ignores samples: adds the stacks of an analysis with
 * their amounts: bytes, ns or events. 0, or -ENOMEM.
 */
int answers_fill_profile(struct answers *answers, enum answer answer, struct profile *profile);

/* `duration_ns` is of the whole recording. 0, or -ENOMEM. */
int answers_finish(struct answers *answers, const struct profile *profile,
	const struct symbolmap *names, uint64_t duration_ns);

void answers_done(struct answers *answers);

#endif
