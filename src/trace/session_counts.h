/* The numbers of SessionEnd (session_counts.def), for its writers and its readers. Constant data. */
#ifndef SPOOR_TRACE_SESSION_COUNTS_H
#define SPOOR_TRACE_SESSION_COUNTS_H

#include <stdint.h>

enum session_count_id {
	SESSION_COUNT_UNKNOWN, /* a name that the list does not have */
#define SESSION_COUNT(count, name) SESSION_COUNT_##count,
#include "trace/session_counts.def"
	SESSION_COUNTS
};

/* One number, as a writer has it. */
struct session_count {
	enum session_count_id id;
	uint64_t count;
};

/* "samples"; "" for SESSION_COUNT_UNKNOWN, which any other name gives back. */
const char *session_count_name(enum session_count_id id);
enum session_count_id session_count_of(const char *name);

#endif
