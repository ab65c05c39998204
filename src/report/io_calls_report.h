/* The report of system calls for input and output: text and JSON (analysis/io_calls.h). */
#ifndef SPOOR_REPORT_IO_CALLS_REPORT_H
#define SPOOR_REPORT_IO_CALLS_REPORT_H

#include "report/answer_parts.h"

extern const struct answer_report io_calls_report;

#endif
