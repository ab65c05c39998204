/* See folded.h. */
#include "render/folded.h"

#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "base/text.h"
#include "render/frame_label.h"
#include "trace/call_tree.h"
#include "trace/symbolmap.h"
#include "trace/trace.h"

struct folded {
	const struct trace *trace;
	const struct symbolmap *names;
	VEC(uint32_t) lengths; /* of the path, by depth */
	struct bytes path;
};

static const char *node_name(const struct folded *f, const struct call_tree *tree,
	const struct call_node *node)
{
	if (tree->by_process && node->depth == 1)
		return node->what < f->trace->processes.count
			       ? trace_text(f->trace, f->trace->processes.items[node->what].name)
			       : "";
	return trace_text(f->trace, f->names->functions.items[node->what].name);
}

static int compare_names(const struct call_tree *tree, uint32_t a, uint32_t b, void *context)
{
	const struct folded *f = context;
	const struct call_node *x = &tree->nodes.items[a];
	const struct call_node *y = &tree->nodes.items[b];
	int order = strcmp(node_name(f, tree, x), node_name(f, tree, y));

	return order ? order : x->what < y->what ? -1 : x->what > y->what;
}

static void add_name(struct folded *f, const struct call_tree *tree, const struct call_node *node)
{
	size_t at = f->path.len;

	if (tree->by_process && node->depth == 1)
		label_process_name(&f->path, f->trace, node->what);
	else
		text_add_safe(&f->path,
			trace_text(f->trace, f->names->functions.items[node->what].name),
			strtab_len(&f->trace->strings, f->names->functions.items[node->what].name));
	for (; at < f->path.len; at++)
		if (f->path.data[at] == ';')
			f->path.data[at] = ':';
}

void folded_write(struct call_tree *tree, const struct trace *trace, const struct symbolmap *names,
	bool by_weight, struct bytes *out)
{
	struct folded f = { .trace = trace, .names = names };
	uint32_t at;

	(void)call_tree_sort(tree, compare_names, &f); /* without memory only the order suffers */
	at = tree->nodes.items[CALL_TREE_ROOT].child;
	while (at) {
		const struct call_node *node = &tree->nodes.items[at];
		while (f.lengths.count < node->depth)
			if (!vec_add(&f.lengths, 0))
				goto done;
		f.path.len = node->depth > 1 ? f.lengths.items[node->depth - 2] : 0;
		if (f.path.len)
			bytes_u8(&f.path, ';');
		add_name(&f, tree, node);
		f.lengths.items[node->depth - 1] = (uint32_t)f.path.len;
		if (node->self_count) {
			bytes_add(out, f.path.data, f.path.len);
			bytes_printf(out, " %" PRIu64 "\n",
				by_weight ? node->self_ns : node->self_count);
		}
		if (node->child) {
			at = node->child;
			continue;
		}
		while (at && !tree->nodes.items[at].sibling)
			at = tree->nodes.items[at].parent;
		if (at)
			at = tree->nodes.items[at].sibling;
	}
done:
	if (f.path.failed || at)
		out->failed = true; /* torn output must not pass for whole */
	bytes_done(&f.path);
	vec_done(&f.lengths);
}
