/*
 * `spoor report --gc`: the garbage collections of each process, for people and for programs.
 *
 * Foreign names are made safe for a terminal. The members of the JSON object are documented in
 * spoor-report(1); they are only added to.
 */
#ifndef SPOOR_REPORT_COLLECTIONS_REPORT_H
#define SPOOR_REPORT_COLLECTIONS_REPORT_H

#include <stdint.h>

struct bytes;
struct collections;
struct report;

/* At most `row_count` collections a process, those with the longest pauses; 0: all. */
void collections_text(const struct collections *collections, const struct report *report,
	uint32_t row_count, struct bytes *out);

void collections_json(const struct collections *collections, const struct report *report,
	struct bytes *out);

#endif
