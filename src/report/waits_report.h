/*
 * `spoor report --locks` and `--waits`: the blocked time of each process, for people and for
 * programs. The members of the JSON objects are documented in spoor-report(1); they are only added
 * to.
 */
#ifndef SPOOR_REPORT_WAITS_REPORT_H
#define SPOOR_REPORT_WAITS_REPORT_H

#include "report/answer_parts.h"

extern const struct answer_report locks_report;
extern const struct answer_report waits_report;

#endif
