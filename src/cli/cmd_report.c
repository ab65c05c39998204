/* spoor report: what a recording holds, and where its CPU time went. */
#include "cli/verbs.h"

#include <errno.h>
#include <stdio.h>

#include "analyze/top.h"
#include "analyze/tree.h"
#include "base/bytes.h"
#include "base/diag.h"
#include "cli/options.h"
#include "cli/selection.h"
#include "cli/words.h"
#include "export/report_json.h"
#include "export/report_text.h"

struct report_values {
	struct selection_values selection;
	bool tree;
	const char *callers;
	unsigned sort;
	uint64_t top;
	bool json;
	unsigned color;
};

const struct option report_options[] = {
	{ 0, "tree", NULL, "who called what, with the share of each step", OPTION_FLAG,
		INTO(struct report_values, tree) },
	{ 0, "callers", "FUNCTION", "who called this function: its name, its last part, or a pattern",
		OPTION_TEXT, INTO(struct report_values, callers) },
	SELECTION_OPTIONS(struct report_values, selection),
	{ 0, "sort", "self|total|name|module", "order of the functions", OPTION_CHOICE,
		INTO(struct report_values, sort) },
	{ 0, "top", "N", "functions a process, or branches a step (10; JSON: all)", OPTION_COUNT,
		INTO(struct report_values, top) },
	{ 0, "json", NULL, "one JSON object, as spoor-report(1) describes it", OPTION_FLAG,
		INTO(struct report_values, json) },
	{ 0, "color", "auto|always|never", "colour", OPTION_CHOICE, INTO(struct report_values, color) },
	{ 0 },
};

static int write_report(const struct report_values *values, struct selection *s)
{
	struct call_tree tree = { 0 };
	struct bytes out = { 0 };
	bool with_tree = values->tree || values->callers;
	uint32_t top = values->top > UINT32_MAX ? UINT32_MAX : (uint32_t)values->top;
	int error = top_count(&s->report, &s->profile, &s->names, (enum top_sort)values->sort);

	if (!error && with_tree)
		error = tree_build(&tree, &s->profile, &s->names,
			values->callers ? TREE_CALLERS : TREE_BY_PROCESS, values->callers);
	if (!error && values->json) {
		report_json(&s->report, with_tree ? &tree : NULL, top, &out);
	} else if (!error) {
		struct screen screen;
		screen_look(stdout, (enum color_when)values->color, &screen);
		const struct report_text_options options = { .columns = screen.columns,
			.color = screen.color, .row_count = top, .callers = values->callers };
		report_text(&s->report, with_tree ? &tree : NULL, &options, &out);
	}
	if (!error && out.failed)
		error = -ENOMEM;
	int code;
	if (error < 0) {
		struct diag diag = { 0 };
		diag_set(&diag, error, "cannot report on '%s': %m", s->path);
		code = words_fail(&diag);
	} else {
		code = selection_print(&out);
	}
	call_tree_done(&tree);
	bytes_done(&out);
	return code;
}

int cmd_report(const struct verb *self, int argc, char **argv)
{
	struct report_values values = { 0 };
	struct arguments arguments;
	struct selection selection;
	int code;

	if (!options_parse(self, argc, argv, &values, &arguments, &code))
		return code;
	code = selection_open(&values.selection, &arguments, self, &selection);
	if (code == EXIT_DONE)
		code = write_report(&values, &selection);
	selection_close(&selection);
	options_done(self, &values, &arguments);
	return code;
}
