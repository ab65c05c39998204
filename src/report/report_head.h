/* The first lines of a report: the machine, its CPU use, and how far the answer can be trusted. */
#ifndef SPOOR_REPORT_REPORT_HEAD_H
#define SPOOR_REPORT_REPORT_HEAD_H

struct report_page;

void report_head(struct report_page *page);

#endif
