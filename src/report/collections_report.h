/*
 * `spoor report --gc`: the garbage collections of each process, for people and for programs.
 *
 * Foreign names are made safe for a terminal. The members of the JSON object are documented in
 * spoor-report(1); they are only added to.
 */
#ifndef SPOOR_REPORT_COLLECTIONS_REPORT_H
#define SPOOR_REPORT_COLLECTIONS_REPORT_H

#include <stdint.h>

struct answers;
struct bytes;
struct report;

/* At most `row_count` collections a process, those with the longest pauses; 0: all. 0, or -ENOMEM. */
int collections_text(const struct answers *answers, const struct report *report, uint32_t row_count,
	struct bytes *out);

/* 0, or -ENOMEM. */
int collections_json(const struct answers *answers, const struct report *report, struct bytes *out);

#endif
