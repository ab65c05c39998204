/* The report of awaits of async methods: text and JSON (analysis/awaits.h). */
#ifndef SPOOR_REPORT_AWAITS_REPORT_H
#define SPOOR_REPORT_AWAITS_REPORT_H

#include "report/answer_parts.h"

extern const struct answer_report awaits_report;

#endif
