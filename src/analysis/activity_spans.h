/*
 * When the activities of each process were observed. `record --activities` ends with a number of
 * events, so that a busy process may be observed for less than the recording.
 *
 *   activity_spans_add(&spans, process, at_ns)      for each event of an activity
 *   to_ns = activity_spans_end(&spans, process, to_ns)
 *   activity_spans_done(&spans)
 */
#ifndef SPOOR_ANALYSIS_ACTIVITY_SPANS_H
#define SPOOR_ANALYSIS_ACTIVITY_SPANS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

struct activity_span {
	uint32_t process;
	uint32_t count;   /* events */
	uint64_t last_ns; /* the last one, since the recording's begin */
};

struct trace;

struct activity_spans {
	const struct trace *trace; /* set before activity_spans_end() */
	VEC(struct activity_span) list;
};

/* 0, or -ENOMEM. */
int activity_spans_add(struct activity_spans *spans, uint32_t process, uint64_t at_ns);

/* Whether the process had the session of `record --activities`. */
bool activity_spans_has_session(const struct activity_spans *spans, uint32_t process);

/*
 * The end of the time in which the process was observed, at most to_ns: that of its last event if it
 * had that session and sent many. The time before the first event was observed as well.
 */
uint64_t activity_spans_end(const struct activity_spans *spans, uint32_t process, uint64_t to_ns);

void activity_spans_done(struct activity_spans *spans);

#endif
