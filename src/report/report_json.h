/*
 * A report for programs: one JSON object on one line. Its members are documented in
 * spoor-report(1); they are only added to.
 */
#ifndef SPOOR_REPORT_REPORT_JSON_H
#define SPOOR_REPORT_REPORT_JSON_H

#include <stdint.h>

struct bytes;
struct call_tree;
struct report;

/* At most `row_count` functions a process, 0: all. `tree` may be NULL. */
void report_json(const struct report *report, const struct call_tree *tree, uint32_t row_count,
	struct bytes *out);

#endif
