/* The report of commands to databases: text and JSON (analysis/databases.h). */
#ifndef SPOOR_REPORT_DATABASES_REPORT_H
#define SPOOR_REPORT_DATABASES_REPORT_H

#include "report/answer_parts.h"

extern const struct answer_report databases_report;

#endif
