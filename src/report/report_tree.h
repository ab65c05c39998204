/* The call tree of a report, or the callers of one function, with the share of each step. */
#ifndef SPOOR_REPORT_REPORT_TREE_H
#define SPOOR_REPORT_REPORT_TREE_H

struct call_tree;
struct report_page;

/* The tree gets sorted. */
void report_tree(struct report_page *page, struct call_tree *tree);

#endif
