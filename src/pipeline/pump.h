/* The loop that copies all events of a source to a sink. It exists only here. */
#ifndef SPOOR_PIPELINE_PUMP_H
#define SPOOR_PIPELINE_PUMP_H

#include "trace/flow.h"

/*
 * Passes all events of the source through absorb.c to the sink, then calls the sink's end().
 * Neither is closed. If the source fails, the sink is still ended, with all events before the
 * failure, and the source's error is returned. If the sink fails, the loop stops.
 */
int pump(const struct source_ops *source_ops, struct source *source,
	const struct sink_ops *sink_ops, struct sink *sink, struct trace *trace, struct diag *diag);

#endif
