/* What a heap consists of: by type, by root, and against an earlier one. */
#ifndef SPOOR_HEAP_HEAP_TYPES_H
#define SPOOR_HEAP_HEAP_TYPES_H

struct heap_graph;
struct heap_order;
struct heap_report;

enum heap_sort { HEAP_BY_SIZE, HEAP_BY_RETAINED, HEAP_BY_COUNT };

/* Fills report->types, roots and the sums from report->graph. -ENOMEM. */
int heap_types_count(struct heap_report *report, const struct heap_order *order,
	enum heap_sort sort);

/* Fills report->diff: `graph` against an earlier one, by type name and module. -ENOMEM. */
int heap_types_compare(struct heap_report *report, const struct heap_graph *before);

#endif
