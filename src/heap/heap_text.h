/*
 * A heap report for people, and for programs. Foreign names are made safe for a terminal; in a pipe
 * nothing is cut.
 */
#ifndef SPOOR_HEAP_HEAP_TEXT_H
#define SPOOR_HEAP_HEAP_TEXT_H

#include <stdint.h>

struct bytes;
struct heap_report;

struct heap_text_options {
	unsigned columns;      /* of the terminal; 0: do not cut */
	uint32_t row_count;    /* 0: the usual number */
	const char *type_name; /* of the requested paths; NULL: types are shown */
};

void heap_text(const struct heap_report *report, const struct heap_text_options *options,
	struct bytes *out);

/* `before` is the heap that report->diff compares with. */
void heap_diff_text(const struct heap_report *report, const struct heap_report *before,
	const struct heap_text_options *options, struct bytes *out);

/* One JSON object, documented in spoor-heap(1) and only added to. `before` may be NULL. */
void heap_json(const struct heap_report *report, const struct heap_report *before,
	uint32_t row_count, struct bytes *out);

#endif
