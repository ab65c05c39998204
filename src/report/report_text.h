/*
 * A report for people: the answer, how far it can be trusted, the tables, what to do next.
 *
 * Foreign names are made safe for a terminal. In a pipe nothing is cut and nothing coloured.
 */
#ifndef SPOOR_REPORT_REPORT_TEXT_H
#define SPOOR_REPORT_REPORT_TEXT_H

struct bytes;
struct call_tree;
struct report;
struct report_text_options; /* of report_page.h */

/* `tree` NULL: tables of functions. Otherwise the tree, with each step's share; it gets sorted. */
void report_text(const struct report *report, struct call_tree *tree,
	const struct report_text_options *options, struct bytes *out);

#endif
