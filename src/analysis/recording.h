/* Facts about a recording and its quality: time, rate, CPU use, losses, names. */
#ifndef SPOOR_ANALYSIS_RECORDING_H
#define SPOOR_ANALYSIS_RECORDING_H

#include <stdbool.h>
#include <stdint.h>

struct profile;
struct report;
struct symbolmap;
struct trace;

/*
 * Fills all of the report but its processes and rows (top_count() does these). 0 or -ENOMEM;
 * report_done() in any case.
 */
int recording_describe(struct report *report, const struct trace *trace,
	const struct symbolmap *names, const struct profile *profile);

/* When sampling began and ended, on the recording's clock; false: the file does not have it. */
bool recording_sampled(const struct trace *trace, uint64_t *ret_from_ns, uint64_t *ret_to_ns);

#endif
