/* See trace_end.h. */
#include "cli/trace_end.h"

#include <stddef.h>

const char *trace_end_reason(enum trace_end end)
{
	static const char *const reasons[] = {
		[TRACE_CONTINUES] = NULL,
		[TRACE_TIME_UP] = "the time was up",
		[TRACE_STOPPING_EVENT] = "the stopping event",
		[TRACE_OUTPUT_CLOSED] = "a closed output",
		[TRACE_TARGETS_ENDED] = "all targets ended",
		[TRACE_PAUSED_RAW] = "Ctrl-Z: the runtime's own bytes are one session",
	};

	return reasons[end];
}

enum trace_end trace_end_of(bool time_is_up, bool wants_end, bool prints, int running)
{
	if (time_is_up)
		return TRACE_TIME_UP;
	if (wants_end)
		return prints ? TRACE_STOPPING_EVENT : TRACE_OUTPUT_CLOSED;
	return running ? TRACE_CONTINUES : TRACE_TARGETS_ENDED;
}
