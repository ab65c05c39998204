/* The report of thread time: each thread's time on a CPU, runnable and blocked. */
#ifndef SPOOR_REPORT_THREAD_TIME_REPORT_H
#define SPOOR_REPORT_THREAD_TIME_REPORT_H

#include <stdint.h>

struct answers;
struct bytes;
struct report;

/* 0, or -ENOMEM; `row_count` 0: the usual number. */
int thread_time_text(const struct answers *answers, const struct report *report, uint32_t row_count,
	struct bytes *out);
int thread_time_json(const struct answers *answers, const struct report *report, struct bytes *out);

#endif
