/* See report.h. */
#include "trace/report.h"

void report_done(struct report *report)
{
	vec_done(&report->losses);
	vec_done(&report->unnamed);
	vec_done(&report->processes);
	vec_done(&report->rows);
	vec_done(&report->groups);
	vec_done(&report->events);
	*report = (struct report){ 0 };
}
