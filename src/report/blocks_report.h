/* The report of blocked time: what threads waited for, where, how long, and what woke them. */
#ifndef SPOOR_REPORT_BLOCKS_REPORT_H
#define SPOOR_REPORT_BLOCKS_REPORT_H

#include <stdint.h>

struct answers;
struct bytes;
struct report;

/* 0, or -ENOMEM; `row_count` 0: the usual number. */
int blocks_text(const struct answers *answers, const struct report *report, uint32_t row_count,
	struct bytes *out);
int blocks_json(const struct answers *answers, const struct report *report, struct bytes *out);

#endif
