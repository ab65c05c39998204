/*
 * `spoor report --requests`: the HTTP requests that each process served, for people and for
 * programs. The members of the JSON object are documented in spoor-report(1); they are only added
 * to.
 */
#ifndef SPOOR_REPORT_REQUESTS_REPORT_H
#define SPOOR_REPORT_REQUESTS_REPORT_H

#include "report/answer_parts.h"

extern const struct answer_report requests_report;

#endif
