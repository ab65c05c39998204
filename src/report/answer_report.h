/* The reports of all analyses of runtime events, by one table. */
#ifndef SPOOR_REPORT_ANSWER_REPORT_H
#define SPOOR_REPORT_ANSWER_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/answers.h"
#include "report/answer_parts.h"

struct bytes;
struct report;

/* By enum answer. */
extern const struct answer_report *const answer_reports[ANSWER_COUNT];

/* At most `row_count` rows a process, 0: the analysis's own number. 0, or -ENOMEM. */
int answer_report_text(enum answer answer, const struct answers *answers,
	const struct report *report, uint32_t row_count, struct bytes *out);

/* Members are documented in spoor-report(1); they are only added to. 0, or -ENOMEM. */
int answer_report_json(enum answer answer, const struct answers *answers,
	const struct report *report, struct bytes *out);

/* The analysis whose `flags` (enum answer) is true; ANSWER_COUNT: none. *ret_several: more are. */
enum answer answer_report_requested(const bool *flags, bool *ret_several);

#endif
