/*
 * The loop that pumps a source into a sink. It exists once.
 */
#ifndef SPOOR_PIPELINE_PUMP_H
#define SPOOR_PIPELINE_PUMP_H

#include "trace/flow.h"

/*
 * All events of the source through absorb.c into the sink, then the sink's end(). Neither is closed. When the source tears, the sink is still ended
 * (what came before is whole) and the source's error is returned; a failing sink stops it.
 */
int pump(const struct source_ops *source_ops, struct source *source, const struct sink_ops *sink_ops,
	struct sink *sink, struct trace *trace, struct diag *diag);

#endif
