/* The reports of all analyses of runtime events, by one table. */
#ifndef SPOOR_REPORT_ANSWER_REPORT_H
#define SPOOR_REPORT_ANSWER_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/answers.h"

struct bytes;
struct report;

struct answer_report {
	const char *option; /* of `spoor report`, without the dashes */
	/* 0, or -ENOMEM; at most `row_count` rows a process, 0: the analysis's own number */
	int (*text)(const struct answers *answers, const struct report *report, uint32_t row_count,
		struct bytes *out);
	int (*json)(const struct answers *answers, const struct report *report, struct bytes *out);
	bool (*has_data)(const struct answers *answers);
};

/* By enum answer. */
extern const struct answer_report answer_reports[ANSWER_COUNT];

/* The analysis whose `flags` (enum answer) is true; ANSWER_COUNT: none. *ret_several: more are. */
enum answer answer_report_requested(const bool *flags, bool *ret_several);

#endif
