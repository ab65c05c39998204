/*
 * `spoor report --requests`: the HTTP requests that each process served, for people and for
 * programs. The members of the JSON object are documented in spoor-report(1); they are only added
 * to.
 */
#ifndef SPOOR_REPORT_REQUESTS_REPORT_H
#define SPOOR_REPORT_REQUESTS_REPORT_H

#include <stdint.h>

struct answers;
struct bytes;
struct report;

/* At most `row_count` routes a process; 0: ANSWER_ROWS_DEFAULT. 0, or -ENOMEM. */
int requests_text(const struct answers *answers, const struct report *report, uint32_t row_count,
	struct bytes *out);

/* 0, or -ENOMEM. */
int requests_json(const struct answers *answers, const struct report *report, struct bytes *out);

#endif
