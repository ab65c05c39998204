/* See session_counts.h. */
#include "trace/session_counts.h"

#include <string.h>

static const char *const names[SESSION_COUNTS] = {
	[SESSION_COUNT_UNKNOWN] = "",
#define SESSION_COUNT(count, name) [SESSION_COUNT_##count] = (name),
#include "trace/session_counts.def"
};

const char *session_count_name(enum session_count_id id)
{
	return names[id];
}

enum session_count_id session_count_of(const char *name)
{
	for (unsigned id = SESSION_COUNT_UNKNOWN + 1; id < SESSION_COUNTS; id++)
		if (strcmp(names[id], name) == 0)
			return (enum session_count_id)id;
	return SESSION_COUNT_UNKNOWN;
}
