/* See heap_report.h. */
#include "heap/heap_report.h"

void heap_report_done(struct heap_report *report)
{
	vec_done(&report->types);
	vec_done(&report->roots);
	vec_done(&report->paths);
	vec_done(&report->path_types);
	vec_done(&report->diff);
	*report = (struct heap_report){ 0 };
}
