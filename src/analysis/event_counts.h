/*
 * The events of a file, counted: how many of each provider and name, and how many bytes their
 * payloads take.
 *
 *   row = event_counts_of_schema(&counts, schema_index)            the row of an event whose name depends on its schema alone; 0 not known yet
 *   row = event_counts_row(&counts, provider, provider_len, name, name_len)
 *   event_counts_remember(&counts, schema_index, row)
 *   event_counts_add(&counts, row, 1, size_bytes)
 *   event_counts_sort(&counts)                                      once, then rows 1 .. count - 1, the most frequent first
 *
 * All zero is empty. A file may invent names: beyond EVENT_COUNTS_MAX of them the rest is one row
 * without a name.
 */
#ifndef SPOOR_ANALYSIS_EVENT_COUNTS_H
#define SPOOR_ANALYSIS_EVENT_COUNTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/strtab.h"
#include "base/vec.h"

#define EVENT_COUNTS_MAX 16384u

struct event_count {
	uint32_t provider; /* strtab; 0 with name 0: all that found no row */
	uint32_t name;
	uint64_t count;
	uint64_t size_bytes;
};

struct event_counts {
	struct strtab strings;
	VEC(struct event_count) rows; /* item 0 is unused */
	VEC(uint32_t) by_schema;
	struct map index;
};

uint32_t event_counts_of_schema(const struct event_counts *counts, uint32_t schema_index);

/* 0: no memory. */
uint32_t event_counts_row(struct event_counts *counts, const char *provider, size_t provider_len,
	const char *name, size_t name_len);

/* Without memory it is not remembered. */
void event_counts_remember(struct event_counts *counts, uint32_t schema_index, uint32_t row);

/* `count` events with payloads of `size_bytes` together. */
void event_counts_add(struct event_counts *counts, uint32_t row, uint64_t count,
	uint64_t size_bytes);

/* Afterwards the rows that event_counts_remember() stored are invalid. */
void event_counts_sort(struct event_counts *counts);

void event_counts_done(struct event_counts *counts);

#endif
