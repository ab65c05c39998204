/* The report of blocked time: what threads waited for, where, how long, and what woke them. */
#ifndef SPOOR_REPORT_BLOCKS_REPORT_H
#define SPOOR_REPORT_BLOCKS_REPORT_H

#include "report/answer_parts.h"

extern const struct answer_report blocks_report;

#endif
