/* The report of thread time: each thread's time on a CPU, runnable and blocked. */
#ifndef SPOOR_REPORT_THREAD_TIME_REPORT_H
#define SPOOR_REPORT_THREAD_TIME_REPORT_H

#include "report/answer_parts.h"

extern const struct answer_report thread_time_report;

#endif
