/* What `spoor record` prints at its end: what is in the recording, what is not, what to do next. */
#ifndef SPOOR_CLI_RECORD_SUMMARY_H
#define SPOOR_CLI_RECORD_SUMMARY_H

#include <stdbool.h>

struct bytes;
struct live_counts;
struct record_outputs;

/* `reported`: the report follows, so it is not named as the next command. */
void record_summary(struct bytes *out, const struct live_counts *counts,
	const struct record_outputs *outputs, bool reported);

#endif
