/*
 * Counters as a screen: one process with its last minute, or several processes side by side.
 *
 * Fits any screen: lines are cut at the right edge, columns that have no room are left out (the
 * last minute first, then notes, then whole processes), rows that have none are reached by
 * scrolling. A screen of a few columns and lines shows little, but nothing wrong.
 */
#ifndef SPOOR_COUNTERS_COUNTERS_TABLE_H
#define SPOOR_COUNTERS_COUNTERS_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bytes;
struct counters_view;

struct counters_table {
	unsigned columns; /* of the screen */
	unsigned lines;
	uint32_t first_row; /* scrolled; brought back into what there is */
	uint32_t first_process;
	bool paused;
	bool color;
	uint64_t utc_ns;
	const char *notice; /* said below the heading; "" */
};

/* Whole lines, each but the last ending with "\x1b[K\r\n", so that the screen never scrolls. */
void counters_table_draw(struct counters_table *table, const struct counters_view *views,
	size_t count, struct bytes *out);

#endif
