/*
 * `spoor report --gc`: the garbage collections of each process, for people and for programs.
 *
 * Foreign names are made safe for a terminal. The members of the JSON object are documented in
 * spoor-report(1); they are only added to.
 */
#ifndef SPOOR_REPORT_COLLECTIONS_REPORT_H
#define SPOOR_REPORT_COLLECTIONS_REPORT_H

#include "report/answer_parts.h"

extern const struct answer_report collections_report;

#endif
