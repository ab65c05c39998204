/* The functions in which CPU time was spent, per process: self time, and total with callees. */
#ifndef SPOOR_ANALYSIS_TOP_H
#define SPOOR_ANALYSIS_TOP_H

struct profile;
struct report;
struct symbolmap;

enum top_sort { TOP_SELF, TOP_TOTAL, TOP_NAME, TOP_MODULE };

/*
 * Fills report->processes (most CPU first) and report->rows (sorted as asked, per process). A
 * function that is several times on a stack counts once towards its total. 0 or -ENOMEM.
 */
int top_count(struct report *report, const struct profile *profile, const struct symbolmap *names,
	enum top_sort sort);

#endif
