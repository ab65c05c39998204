/*
 * The page of a report for people: colours, shares, and cells cut to the columns of the terminal.
 *
 * A cell is made in page->cell, and then appended. In a pipe nothing is cut and nothing coloured.
 */
#ifndef SPOOR_REPORT_REPORT_PAGE_H
#define SPOOR_REPORT_REPORT_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

struct answers;
struct report;

#define PAGE_RESET "\x1b[0m"
#define PAGE_BOLD  "\x1b[1m"
#define PAGE_DIM   "\x1b[2m"

#define NAME_COLUMNS_MIN   20u
#define PROCESS_TABLES_MAX 3u
#define TABLE_SHARE_MIN    0.05 /* a process below it gets no table of functions */

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

struct report_page {
	const struct report *report;
	const struct report_text_options *options;
	struct bytes *out;
	struct bytes cell; /* the cell in the making */
	uint32_t row_count;
};

/* Of the columns of a table of functions. */
struct page_widths {
	size_t name;
	size_t module;
	size_t tiers;
};

void page_paint(const struct report_page *page, const char *color);

double page_share(uint64_t part, uint64_t whole);

/* "41.2 %" right-aligned in 7 columns; blank when it would read 0.0 and `blank` is set. */
void page_percent(struct bytes *out, double share, bool blank);

void page_spaces(struct bytes *out, size_t count);

/* The current cell, cut to the terminal and padded to `columns` if it is not its line's last. */
void page_cell(struct report_page *page, size_t columns, bool last);

/* Makes the text of the trace the current cell. */
void page_set_cell(struct report_page *page, uint32_t text);

size_t page_cell_columns(const struct report_page *page);

/* Reduces the widths to the columns of the terminal; `fixed` columns are before the name. */
void page_fit_widths(const struct report_page *page, struct page_widths *widths, size_t fixed);

/* Extends the widths to a function's name, module and tiers. */
void page_measure(struct report_page *page, uint32_t function_index, uint32_t tiers, size_t indent,
	struct page_widths *widths);

/* Name, module and tiers, and the end of the line. */
void page_function(struct report_page *page, uint32_t function_index, uint32_t tiers,
	size_t name_columns, const struct page_widths *widths);

#endif
