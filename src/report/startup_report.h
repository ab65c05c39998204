/* The report of the starts of processes (analysis/startup.h), as text and as JSON. */
#ifndef SPOOR_REPORT_STARTUP_REPORT_H
#define SPOOR_REPORT_STARTUP_REPORT_H

#include "report/answer_parts.h"

struct bytes;
struct startup_process;

extern const struct answer_report startup_report;

/* "ready after 812 ms, its first request took 95.1 ms". The process has a phase. */
void startup_add_words(struct bytes *out, const struct startup_process *process);

#endif
