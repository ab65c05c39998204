/* spoor report: what a recording holds, and where its CPU time went. */
#include "base/cleanup.h"
#include "cli/verbs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/answers.h"
#include "analysis/group.h"
#include "analysis/top.h"
#include "analysis/tree.h"
#include "base/bytes.h"
#include "base/diag.h"
#include "base/text.h"
#include "cli/message.h"
#include "cli/selection.h"
#include "report/answer_report.h"
#include "report/report_json.h"
#include "report/report_page.h"
#include "report/report_text.h"

#define OPTIONS_VERB report
#define OPTIONS_LIST "cli/report_options.def"
#include "cli/option_list.h"

/* What --sort means: an order of the tables, or keys to add up by. */
struct report_sorting {
	enum top_sort order;
	unsigned keys; /* enum report_group_key */
};

/* NULL, or the key that is none. Our own words and perf's. */
static const char *parse_sort(const char *text, struct report_sorting *ret_sorting, size_t *ret_len)
{
	static const struct {
		const char *word;
		unsigned key; /* 0: an order */
		enum top_sort order;
	} words[] = {
		{ "self", 0, TOP_SELF },
		{ "total", 0, TOP_TOTAL },
		{ "name", 0, TOP_NAME },
		{ "module", 0, TOP_MODULE },
		{ "overhead", 0, TOP_SELF },
		{ "comm", GROUP_NAME, TOP_SELF },
		{ "process", GROUP_NAME, TOP_SELF },
		{ "pid", GROUP_NAME | GROUP_PID, TOP_SELF },
		{ "dso", GROUP_MODULE, TOP_SELF },
		{ "sym", GROUP_FUNCTION, TOP_SELF },
		{ "symbol", GROUP_FUNCTION, TOP_SELF },
		{ "function", GROUP_FUNCTION, TOP_SELF },
	};

	*ret_sorting = (struct report_sorting){ 0 };
	for (const char *at = text;; at += *ret_len + 1) {
		size_t i = 0;
		*ret_len = strcspn(at, ",");
		while (i < sizeof(words) / sizeof(words[0]) &&
			(strlen(words[i].word) != *ret_len ||
				strncmp(words[i].word, at, *ret_len) != 0))
			i++;
		if (i == sizeof(words) / sizeof(words[0]))
			return at;
		ret_sorting->keys |= words[i].key;
		if (!words[i].key)
			ret_sorting->order = words[i].order;
		if (!at[*ret_len])
			return NULL;
	}
}

static bool parse_percent(const char *text, double *ret_share)
{
	char *end;

	if (!strchr("0123456789.", *text) || !*text)
		return false;
	*ret_share = strtod(text, &end) / 100;
	return (!*end || strcmp(end, "%") == 0) && *ret_share >= 0 && *ret_share <= 1;
}

static void tell(const char *path, size_t size)
{
	cleanup(bytes_done) struct bytes words = { 0 };

	text_add_safe_z(&words, path);
	bytes_printf(&words, "  %s", TEXT_SIZE(size));
	message_print("%s", bytes_z(&words));
}

/* Writes the result, or prints why there is none. */
static int deliver(const struct report_values *values, const struct selection *s, int error,
	const struct bytes *out)
{
	bool to_file = values->output && strcmp(values->output, "-") != 0;

	if (!error && out->failed)
		error = -ENOMEM;
	if (error < 0) {
		struct diag diag = { 0 };
		diag_set(&diag, error, "cannot report on '%s': %m", s->path);
		return message_fail(&diag);
	}
	int code = to_file ? selection_write(s, values->output, out, values->quiet)
			   : selection_print(out);
	if (to_file && code == EXIT_DONE && !values->quiet)
		tell(values->output, out->len);
	return code;
}

static uint32_t row_count_of(const struct report_values *values)
{
	return values->top > UINT32_MAX ? UINT32_MAX : (uint32_t)values->top;
}

static int write_answer(const struct report_values *values, enum answer answer,
	const struct answers *answers, const struct selection *s)
{
	cleanup(bytes_done) struct bytes out = { 0 };
	int error = values->json ? answer_report_json(answer, answers, &s->report, &out)
				 : answer_report_text(answer, answers, &s->report,
					   row_count_of(values), &out);
	int code = deliver(values, s, error, &out);
	bool has_data = answer_reports[answer]->process_count(answers) > 0;

	return code == EXIT_DONE && !has_data && s->words.len ? EXIT_FAILED : code;
}

/* The tables of functions have a summary of the runtimes' events above them. */
static bool has_summary(const struct report_values *values, const struct report_sorting *sorting,
	enum answer answer)
{
	return !values->selection.events.list.count && answer == ANSWER_COUNT && !values->json &&
	       !values->tree && !values->callers && !sorting->keys;
}

static int write_report(const struct report_values *values, const struct report_sorting *sorting,
	double least_share, struct selection *s)
{
	struct call_tree tree = { 0 };
	cleanup(bytes_done) struct bytes out = { 0 };
	bool with_tree = values->tree || values->callers;
	bool by_total = sorting->order == TOP_TOTAL && !values->no_children;
	/* JSON and --callers have a row for each function. */
	bool folds = !values->native && !values->json && !values->callers;
	int error = folds ? profile_fold_unnamed(&s->profile, &s->names) : 0;

	if (!error)
		error = top_count(&s->report, &s->profile, &s->names, sorting->order);
	s->report.group_keys = sorting->keys;
	if (!error && sorting->keys)
		error = group_count(&s->report, &s->profile, &s->names,
			values->no_children ? GROUP_SELF_ONLY
			: by_total          ? GROUP_BY_TOTAL
					    : GROUP_BY_SELF);

	if (!error && with_tree)
		error = profile_add_roles(&s->profile, &s->names);
	if (!error && with_tree)
		error = tree_build(&tree, &s->profile, &s->names,
			values->callers ? TREE_CALLERS : TREE_BY_PROCESS, values->callers);
	if (!error && values->json) {
		report_json(&s->report, with_tree ? &tree : NULL, row_count_of(values), &out);
	} else if (!error) {
		struct screen screen;
		screen_look(stdout, (enum color_when)values->color, &screen);
		if (values->output && strcmp(values->output, "-") != 0) {
			screen.columns = 0;
			screen.color = values->color == COLOR_ALWAYS;
		}
		const struct report_text_options options = { .columns = screen.columns,
			.color = screen.color,
			.row_count = row_count_of(values),
			.least_share = least_share,
			.by_total = by_total,
			.verbose = values->verbose,
			.without_total = values->no_children,
			.answers = s->answers,
			.callers = values->callers };
		report_text(&s->report, with_tree ? &tree : NULL, &options, &out);
	}
	int code = deliver(values, s, error, &out);
	if (code == EXIT_DONE &&
		(selection_is_empty(s) ||
			(values->callers && !tree.nodes.items[CALL_TREE_ROOT].total_ns)))
		code = EXIT_FAILED;
	call_tree_done(&tree);
	return code;
}

int cmd_report(const struct verb *self, int argc, char **argv)
{
	struct report_values values = { 0 };
	struct arguments arguments;
	struct selection selection;
	struct answers answers = { 0 };
	enum answer answer;
	bool several;
	struct report_sorting sorting = { 0 };
	double least_share = 0;
	const char *bad_key;
	size_t len;
	int code;

	if (!options_parse(self, argc, argv, &values, &arguments, &code))
		return code;
	answer = answer_report_requested(values.answers, &several);
	if (values.sort && (bad_key = parse_sort(values.sort, &sorting, &len))) {
		code = options_misused(self,
			"--sort takes self, total, name, module, or any of comm, pid, dso, sym with commas between, not '%.*s'",
			(int)len, bad_key);
	} else if (values.percent_limit && !parse_percent(values.percent_limit, &least_share)) {
		code = options_misused(self,
			"--percent-limit takes a number from 0 to 100, not '%s'",
			values.percent_limit);
	} else if (several) {
		code = options_misused(self, "--%s does not go with another analysis",
			answer_reports[answer]->option);
	} else if (answer != ANSWER_COUNT && (values.tree || values.callers || values.sort ||
						     values.selection.events.list.count)) {
		code = options_misused(self,
			"--%s does not go with --tree, --callers, --sort or --event",
			answer_reports[answer]->option);
	} else {
		values.selection.without_samples = answer != ANSWER_COUNT;
		answers.for_summary = has_summary(&values, &sorting, answer);
		answers.wanted = answer != ANSWER_COUNT ? 1u << answer
				 : answers.for_summary ? ANSWERS_OF_RUNTIMES & ~(1u << ANSWER_WAITS)
						       : 0;
		if (answer == ANSWER_THREAD_TIME || answer == ANSWER_LOCKS ||
			answer == ANSWER_WAITS)
			answers.wanted |= 1u << ANSWER_OFF_CPU;
		values.selection.answers = answers.wanted ? &answers : NULL;
		/* Programs get names that are distinct, people those that fit. */
		code = selection_open(&values.selection,
			values.long_names || values.json ? METHOD_NAME_LONG : METHOD_NAME_SHORT,
			&arguments, self, &selection);
		if (code == EXIT_DONE)
			code = answer != ANSWER_COUNT
				       ? write_answer(&values, answer, &answers, &selection)
				       : write_report(&values, &sorting, least_share, &selection);
		answers_done(&answers);
		selection_close(&selection);
	}
	options_done(self, &values, &arguments);
	return code;
}
