/* The report of calls over the network: text and JSON (analysis/calls.h). */
#ifndef SPOOR_REPORT_CALLS_REPORT_H
#define SPOOR_REPORT_CALLS_REPORT_H

#include "report/answer_parts.h"

extern const struct answer_report calls_report;

#endif
