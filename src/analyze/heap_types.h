/*
 * What a heap consists of: by type, by root, and against an earlier one.
 */
#ifndef SPOOR_ANALYZE_HEAP_TYPES_H
#define SPOOR_ANALYZE_HEAP_TYPES_H

struct dominators;
struct heap_graph;
struct heap_report;

enum heap_sort { HEAP_BY_SIZE, HEAP_BY_RETAINED, HEAP_BY_COUNT };

/*
 * Fills report->types, roots and the sums from report->graph. `dominators` are used up by it: `above` is overwritten, so roots and paths that need
 * it come first. -ENOMEM.
 */
int heap_types_count(struct heap_report *report, struct dominators *dominators, enum heap_sort sort);

/* Fills report->diff: `graph` of the report against an earlier one, type by type, by name and module. -ENOMEM. */
int heap_types_compare(struct heap_report *report, const struct heap_graph *before);

#endif
