/* An event of a .NET runtime, as answers.h passes it to an analysis. */
#ifndef SPOOR_ANALYSIS_RUNTIME_EVENT_H
#define SPOOR_ANALYSIS_RUNTIME_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cursor.h"

struct event;
struct event_stacks;
struct schema;

struct runtime_event {
	const struct event *event; /* with a thread and a schema that exist */
	const struct schema *schema;
	struct event_stacks *stacks; /* of all analyses */
	struct cursor payload;       /* from its begin */
	uint64_t at_ns;              /* since the recording's begin */
	uint64_t from_ns;            /* begin of the selected time, since that of the recording */
	uint64_t to_ns;              /* end of the selected time; 0: that of the recording */
	uint64_t count;              /* how often it occurred: 1, or see event_count.h */
	uint64_t count_ns;           /* the time before at_ns in which these were */
	bool is_counted;             /* it was not written, only counted */
	bool is_unseen;    /* it was only counted, and not observed: its type is not known */
	bool is_estimated; /* it was only counted, and the count is an estimate */
	uint32_t process;
	bool is_of_thread; /* its thread passes the filter */
	bool is_selected; /* its time and thread pass the filter; processes are filtered at the end */
};

#endif
