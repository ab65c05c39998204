/* The report of blocked time: what threads waited for, where, how long, and what woke them. */
#ifndef SPOOR_REPORT_BLOCKS_REPORT_H
#define SPOOR_REPORT_BLOCKS_REPORT_H

#include <stdint.h>

#include "report/answer_parts.h"

/* "lock: Monitor.Enter", of an enum block_cause and the function that waits, 0 for none. */
void blocks_report_wait(struct bytes *out, const struct report *report, uint32_t cause,
	uint32_t function);

extern const struct answer_report blocks_report;

#endif
