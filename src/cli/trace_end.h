/* Why spoor trace ends without a signal or a key, and what it says and writes of it. */
#ifndef SPOOR_CLI_TRACE_END_H
#define SPOOR_CLI_TRACE_END_H

#include <stdbool.h>

enum trace_end {
	TRACE_CONTINUES,
	TRACE_TIME_UP,
	TRACE_STOPPING_EVENT,
	TRACE_OUTPUT_CLOSED, /* no more events can be printed */
	TRACE_TARGETS_ENDED,
	TRACE_PAUSED_RAW, /* Ctrl-Z with --raw */
};

/* For run_control.reason and the file; NULL of TRACE_CONTINUES. */
const char *trace_end_reason(enum trace_end end);

/*
 * `wants_end`: tracing_wants_end(). `prints`: no printing has failed. `running`: the processes that
 * have not ended, and the port.
 */
enum trace_end trace_end_of(bool time_is_up, bool wants_end, bool prints, int running);

#endif
