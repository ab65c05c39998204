/* What `spoor record` prints: how it records, and at its end the contents and losses of the recording. */
#ifndef SPOOR_CLI_RECORD_SUMMARY_H
#define SPOOR_CLI_RECORD_SUMMARY_H

#include <stdbool.h>

struct bytes;
struct live_counts;
struct record_outputs;
struct recorder_info;

/* `reported`: the report follows, so it is not named as the next command. */
void record_summary(struct bytes *out, const struct live_counts *counts,
	const struct record_outputs *outputs, bool reported);

/* The details that -v prints of the events that were opened; the first line is empty. */
void record_summary_details(const struct recorder_info *info, struct bytes *out);

#endif
