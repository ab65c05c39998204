/* spoor diagnose: what is wrong with a process, from a recording. */
#include "cli/verbs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "analysis/top.h"
#include "base/bytes.h"
#include "base/diag.h"
#include "base/nearest.h"
#include "cli/options.h"
#include "cli/selection.h"
#include "cli/words.h"
#include "diagnose/diagnosis.h"
#include "diagnose/facts.h"
#include "diagnose/facts_gather.h"
#include "diagnose/findings.h"

#define COLUMNS_WITHOUT_TERMINAL 80u

struct diagnose_values {
	struct selection_values selection;
	struct texts fail_on;
	bool json;
};

const struct option diagnose_options[] = {
	SELECTION_BASIC_OPTIONS(struct diagnose_values, selection),
	{ 'n', "name", "NAME", "only processes of this name; a pattern with * and ?", OPTION_TEXTS,
		INTO(struct diagnose_values, selection.names) },
	{ 0, "fail-on", "KIND", "exit code 1 if there is a finding of this kind; may be repeated",
		OPTION_TEXTS, INTO(struct diagnose_values, fail_on) },
	OPTION_ROW_JSON(struct diagnose_values,
		"one JSON object, as spoor-diagnose(1) describes it"),
	{ 0 },
};

static int check_kinds(const struct diagnose_values *values, const struct verb *self)
{
	for (uint32_t i = 0; i < values->fail_on.list.count; i++) {
		struct nearest near = { .wanted = values->fail_on.list.items[i] };
		struct bytes text = { 0 };
		if (rule_kind_exists(near.wanted, &near))
			continue;
		if (near.count) {
			bytes_text(&text, "; did you mean ");
			(void)nearest_add(&near, &text); /* there are some */
			bytes_text(&text, "?");
		}
		int code = options_misused(self, "--fail-on: there is no kind '%s'%s", near.wanted,
			bytes_z(&text));
		bytes_done(&text);
		return code;
	}
	return EXIT_DONE;
}

static int code_of(const struct diagnose_values *values, const struct findings *findings)
{
	for (uint32_t i = 0; i < findings->items.count; i++)
		for (uint32_t k = 0; k < values->fail_on.list.count; k++)
			if (strcmp(findings->items.items[i].rule->kind,
				    values->fail_on.list.items[k]) == 0)
				return EXIT_FAILED;
	return EXIT_DONE;
}

static int print(const struct diagnose_values *values, const struct facts *facts,
	const struct findings *findings, const char *file)
{
	const struct diagnosis diagnosis = { .facts = facts, .findings = findings, .file = file };
	struct screen screen;
	struct bytes out = { 0 };

	screen_look(stdout, COLOR_AUTO, &screen);
	if (values->json)
		diagnosis_json(&diagnosis, &out);
	else
		diagnosis_text(&diagnosis,
			screen.columns ? screen.columns : COLUMNS_WITHOUT_TERMINAL, &out);
	int code = out.failed ? EXIT_FAILED : selection_print(&out);
	bytes_done(&out);
	return code;
}

static int diagnose_selection(const struct diagnose_values *values, struct selection *s)
{
	struct facts facts = { 0 };
	struct findings findings = { 0 };
	int code = EXIT_DONE;
	int error = profile_fold_unnamed(&s->profile, &s->names);

	if (!error)
		error = top_count(&s->report, &s->profile, &s->names, TOP_SELF);
	if (!error)
		error = facts_gather(&facts, &s->profile, &s->report, s->answers);
	if (!error)
		error = findings_make(&findings, &facts);
	if (error < 0) {
		struct diag diag = { 0 };
		diag_set(&diag, error, "cannot diagnose '%s': %m", s->path);
		code = words_fail(&diag);
	} else if (!facts.processes.count) {
		if (!s->unmatched)
			words_say("no process of '%s' has samples or events", s->path);
		code = EXIT_FAILED;
	} else {
		code = print(values, &facts, &findings, s->path);
	}
	code = code ? code : code_of(values, &findings);
	findings_done(&findings);
	facts_done(&facts);
	return code;
}

int cmd_diagnose(const struct verb *self, int argc, char **argv)
{
	struct diagnose_values values = { 0 };
	struct arguments arguments;
	struct selection selection = { 0 };
	struct answers answers = { .wanted = ANSWERS_ALL };
	int code;

	if (!options_parse(self, argc, argv, &values, &arguments, &code))
		return code;
	code = check_kinds(&values, self);
	values.selection.answers = &answers;
	if (code == EXIT_DONE) {
		code = selection_open(&values.selection, METHOD_NAME_SHORT, &arguments, self,
			&selection);
		if (code == EXIT_DONE)
			code = diagnose_selection(&values, &selection);
		selection_close(&selection);
	}
	answers_done(&answers);
	options_done(self, &values, &arguments);
	return code;
}
