/*
 * One line for each analysis of runtime events that has data, most costly first: what stands above
 * the tables of `spoor report`.
 */
#ifndef SPOOR_REPORT_ANSWER_SUMMARY_H
#define SPOOR_REPORT_ANSWER_SUMMARY_H

struct answers;
struct bytes;
struct report;

/* Nothing if no analysis has data. A line is of the process with the largest figure. */
void answer_summary(const struct answers *answers, const struct report *report, struct bytes *out);

#endif
