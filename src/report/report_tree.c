/* See report_tree.h. */
#include "report/report_tree.h"

#include <string.h>

#include "base/bytes.h"
#include "base/nearest.h"
#include "base/text.h"
#include "render/frame_label.h"
#include "report/report_page.h"
#include "trace/call_tree.h"
#include "trace/report.h"
#include "trace/symbolmap.h"
#include "trace/trace.h"

#define STEP_SHARE_MIN 0.01 /* of the tree */
#define BRANCHES_MAX   100u /* nested ones */

/* Order of children in a printed tree: most time first. */
static int compare_steps(const struct call_tree *tree, uint32_t a, uint32_t b, void *context)
{
	const struct call_node *x = &tree->nodes.items[a];
	const struct call_node *y = &tree->nodes.items[b];

	(void)context;
	if (x->total_ns != y->total_ns)
		return x->total_ns > y->total_ns ? -1 : 1;
	return x->what < y->what ? -1 : x->what > y->what;
}

struct tree_page {
	struct report_page *page;
	const struct call_tree *tree;
	struct page_widths widths;
	struct bytes prefix; /* of the lines below the current branch */
	uint64_t whole_ns;   /* 100 % */
	bool measuring;
};

/* The number of children with enough time for a line, and the number and time of the others. */
static uint32_t count_children(const struct tree_page *t, const struct call_node *node,
	uint32_t *ret_more, uint64_t *ret_more_ns)
{
	uint32_t shown = 0;

	*ret_more = 0;
	*ret_more_ns = 0;
	for (uint32_t c = node->child; c; c = t->tree->nodes.items[c].sibling) {
		const struct call_node *child = &t->tree->nodes.items[c];
		if (page_share(child->total_ns, t->whole_ns) >= STEP_SHARE_MIN &&
			shown < t->page->row_count) {
			shown++;
		} else {
			(*ret_more)++;
			*ret_more_ns += child->total_ns;
		}
	}
	return shown;
}

static void add_step(struct tree_page *t, const struct call_node *node, const char *branch)
{
	struct bytes *out = t->page->out;
	size_t indent = text_columns((const char *)t->prefix.data, t->prefix.len) +
			text_columns(branch, strlen(branch));

	if (t->measuring) {
		page_measure(t->page, node->what, node->tiers, indent, &t->widths);
		return;
	}
	page_percent(out, page_share(node->total_ns, t->whole_ns), false);
	bytes_text(out, "  ");
	/* In a tree of callers the last frame of a branch is a caller: it has no self time. */
	page_percent(out, t->tree->reversed ? 0 : page_share(node->self_ns, t->whole_ns), true);
	bytes_text(out, "  ");
	page_paint(t->page, PAGE_DIM);
	bytes_add(out, t->prefix.data, t->prefix.len);
	bytes_text(out, branch);
	page_paint(t->page, PAGE_RESET);
	/* However deep: some of the name must be seen. */
	size_t room = t->widths.name > indent + NAME_COLUMNS_MIN ? t->widths.name - indent
								 : NAME_COLUMNS_MIN;
	page_function(t->page, node->what, node->tiers, room, &t->widths);
}

/*
 * The steps below `node`, whose line was printed before. A step that is its parent's only child is
 * printed without further indenting: stacks are deep, and most of them do not branch.
 */
static void add_steps(struct tree_page *t, const struct call_node *node, unsigned branches)
{
	size_t prefix_len = t->prefix.len;
	uint32_t more;
	uint64_t more_ns;
	uint32_t shown = count_children(t, node, &more, &more_ns);

	while (shown == 1 && page_share(more_ns, t->whole_ns) < STEP_SHARE_MIN) {
		node = &t->tree->nodes.items[node->child];
		add_step(t, node, "");
		shown = count_children(t, node, &more, &more_ns);
	}
	if (branches == BRANCHES_MAX)
		shown = 0;
	bool more_line = shown && more && page_share(more_ns, t->whole_ns) >= STEP_SHARE_MIN;
	uint32_t child = node->child;
	for (uint32_t i = 0; i < shown; i++, child = t->tree->nodes.items[child].sibling) {
		bool last = i + 1 == shown && !more_line;
		add_step(t, &t->tree->nodes.items[child], last ? "\xe2\x94\x94 " : "\xe2\x94\x9c ");
		bytes_text(&t->prefix, last ? "  " : "\xe2\x94\x82 ");
		add_steps(t, &t->tree->nodes.items[child], branches + 1);
		t->prefix.len = prefix_len;
	}
	if (more_line && !t->measuring) {
		struct bytes *out = t->page->out;
		page_percent(out, page_share(more_ns, t->whole_ns), false);
		bytes_text(out, "           ");
		bytes_add(out, t->prefix.data, t->prefix.len);
		bytes_printf(out, "\xe2\x94\x94 \xe2\x80\xa6 %u more\n", more);
	}
}

static void add_tree_below(struct report_page *page, const struct call_tree *tree,
	const struct call_node *node)
{
	struct tree_page t = { .page = page,
		.tree = tree,
		.whole_ns = node->total_ns,
		.widths = { .name = 8, .module = 6 } };
	uint32_t more;
	uint64_t more_ns;

	t.measuring = true;
	add_steps(&t, node, 0);
	t.measuring = false;
	page_fit_widths(page, &t.widths, 18);
	page_paint(page, PAGE_DIM);
	bytes_text(page->out, tree->reversed ? "  share           " : "  total     self  ");
	bytes_printf(page->out, "%-*s  module\n", (int)t.widths.name, "function");
	page_paint(page, PAGE_RESET);
	(void)count_children(&t, node, &more, &more_ns);
	add_steps(&t, node, 0);
	bytes_done(&t.prefix);
}

/* In place of the callers of a function that is on no stack. */
static void add_nearest_functions(struct report_page *page)
{
	struct nearest near = { .wanted = page->options->callers };
	const struct report *report = page->report;

	struct bytes names = { 0 };

	bytes_text(page->out, " is on no stack; ");
	for (uint32_t i = 0; i < report->rows.count; i++)
		nearest_offer(&near,
			trace_text(report->trace,
				report->names->functions.items[report->rows.items[i].function]
					.name));
	if (nearest_add(&near, &names))
		bytes_printf(page->out, "did you mean %s?\n", bytes_z(&names));
	else
		bytes_text(page->out,
			"names are compared whole, from their last part (\"Burn\"), or as a pattern (\"*Burn*\")\n");
	page->out->failed |= names.failed;
	bytes_done(&names);
}

void report_tree(struct report_page *page, struct call_tree *tree)
{
	const struct call_node *root = &tree->nodes.items[CALL_TREE_ROOT];
	struct bytes *out = page->out;
	uint32_t shown = 0;

	(void)call_tree_sort(tree, compare_steps, NULL); /* without memory only the order suffers */
	if (page->options->callers) {
		bytes_text(out, "\n");
		page_paint(page, PAGE_BOLD);
		text_add_safe_z(out, page->options->callers);
		page_paint(page, PAGE_RESET);
		if (!root->total_ns) {
			add_nearest_functions(page);
			return;
		}
		bytes_text(out, " and its callers: ");
		label_amount(out, page->report, root->total_ns);
		bytes_printf(out, ", %.1f %% of what is shown\n",
			100 * page_share(root->total_ns, page->report->cpu_ns));
		add_tree_below(page, tree, root);
		return;
	}
	for (uint32_t c = root->child; c; c = tree->nodes.items[c].sibling) {
		const struct call_node *node = &tree->nodes.items[c];
		double share = page_share(node->total_ns, root->total_ns);
		if (shown && (share < TABLE_SHARE_MIN || shown == PROCESS_TABLES_MAX))
			break;
		shown++;
		bytes_text(out, "\n");
		page_paint(page, PAGE_BOLD);
		label_process(out, page->report->trace, node->what);
		page_paint(page, PAGE_RESET);
		bytes_text(out, "  ");
		label_amount(out, page->report, node->total_ns);
		bytes_text(out, "\n");
		add_tree_below(page, tree, node);
	}
}
