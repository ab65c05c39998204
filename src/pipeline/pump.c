/* See pump.h. */
#include "pipeline/pump.h"

#include <errno.h>

#include "trace/absorb.h"
#include "trace/event.h"

int pump(const struct source_ops *source_ops, struct source *source,
	const struct sink_ops *sink_ops, struct sink *sink, struct trace *trace, struct diag *diag)
{
	struct event event;
	int torn;

	while ((torn = source_ops->next(source, &event, diag)) > 0) {
		int r = absorb_event(trace, &event, NULL);
		if (r == -ENOMEM)
			return r;
		/*
		 * A payload that cannot be decoded is the error of its writer; it is copied
		 * unchanged.
		 */
		r = sink_ops->event(sink, &event, diag);
		if (r < 0)
			return r;
	}
	int r = sink_ops->end(sink, torn < 0 ? NULL : diag);
	return torn < 0 ? torn : r;
}
