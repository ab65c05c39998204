/*
 * A report for people: the answer, how far it can be trusted, the tables, what to do next.
 *
 * Foreign names are made safe for a terminal. In a pipe nothing is cut and nothing coloured.
 */
#ifndef SPOOR_REPORT_REPORT_TEXT_H
#define SPOOR_REPORT_REPORT_TEXT_H

#include <stdbool.h>
#include <stdint.h>

struct answers;
struct bytes;
struct call_tree;
struct report;

struct report_text_options {
	unsigned columns; /* of the terminal; 0: do not cut */
	bool color;
	uint32_t row_count; /* functions a process (or callers a step); 0: the usual number */
	double least_share; /* rows with less than this (0.01 is 1 %) are counted, not shown */
	/* rows are sorted by their total, which `least_share` means; else by what they took */
	bool by_total;
	bool verbose;       /* clocks, and notes that limit nothing */
	bool without_total; /* no column for what they called */
	/* analyses of runtime events, to be summed up before the tables; NULL none */
	const struct answers *answers;
	/* the NAME whose callers the tree shows; NULL for a tree from the root */
	const char *callers;
};

/* `tree` NULL: tables of functions. Otherwise the tree, with each step's share; it gets sorted. */
void report_text(const struct report *report, struct call_tree *tree,
	const struct report_text_options *options, struct bytes *out);

#endif
