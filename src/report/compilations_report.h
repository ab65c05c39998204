/*
 * `spoor report --jit`: what the JIT of each process compiled, for people and for programs. The
 * members of the JSON object are documented in spoor-report(1); they are only added to.
 */
#ifndef SPOOR_REPORT_COMPILATIONS_REPORT_H
#define SPOOR_REPORT_COMPILATIONS_REPORT_H

#include "report/answer_parts.h"

extern const struct answer_report compilations_report;

#endif
