/* See activity_spans.h. */
#include "analysis/activity_spans.h"

#include <errno.h>
#include <string.h>

#include "trace/trace.h"

/* With fewer events no session has ended before the recording. */
#define MANY 1000u

int activity_spans_add(struct activity_spans *spans, uint32_t process, uint64_t at_ns)
{
	struct activity_span *span = NULL;

	for (uint32_t i = 0; i < spans->list.count && !span; i++)
		if (spans->list.items[i].process == process)
			span = &spans->list.items[i];
	if (!span) {
		span = vec_push(&spans->list);
		if (!span)
			return -ENOMEM;
		span->process = process;
	}
	span->count++;
	span->last_ns = at_ns > span->last_ns ? at_ns : span->last_ns;
	return 0;
}

bool activity_spans_has_session(const struct activity_spans *spans, uint32_t process)
{
	uint32_t sessions = spans->trace->processes.items[process].runtime_sessions;

	return strstr(trace_text(spans->trace, sessions), "activities,") != NULL;
}

uint64_t activity_spans_end(const struct activity_spans *spans, uint32_t process, uint64_t to_ns)
{
	for (uint32_t i = 0; i < spans->list.count; i++) {
		const struct activity_span *span = &spans->list.items[i];
		if (span->process == process && span->count >= MANY && span->last_ns < to_ns &&
			activity_spans_has_session(spans, process))
			return span->last_ns;
	}
	return to_ns;
}

void activity_spans_done(struct activity_spans *spans)
{
	vec_done(&spans->list);
}
