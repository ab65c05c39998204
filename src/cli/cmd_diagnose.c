/* spoor diagnose: what is wrong with a process, from a recording or live. */
#include "cli/verbs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "analysis/top.h"
#include "base/bytes.h"
#include "base/diag.h"
#include "base/nearest.h"
#include "base/text.h"
#include "cli/diagnose_live.h"
#include "cli/message.h"
#include "cli/record_outputs.h"
#include "cli/selection.h"
#include "cli/target_options.h"
#include "diagnose/competition.h"
#include "diagnose/diagnosis.h"
#include "diagnose/facts.h"
#include "diagnose/facts_gather.h"
#include "diagnose/findings.h"
#include "diagnose/observation_events.h"
#include "machine/rights.h"

#define COLUMNS_WITHOUT_TERMINAL 80u
#define DURATION_NS              UINT64_C(10000000000)

#define OPTIONS_VERB diagnose
#define OPTIONS_LIST "cli/diagnose_options.def"
#include "cli/option_list.h"

/* One diagnosis. Facts outlive the selection that gives them. */
struct diagnose_run {
	const struct diagnose_values *values;
	const struct verb *verb;
	struct facts facts;
	struct observation_events observations;
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

/* A kind that no process was judged for must not pass as one without findings. */
static int check_judged(const struct diagnose_run *run)
{
	const struct facts *facts = &run->facts;

	bool observed = false;

	for (uint32_t i = 0; i < facts->processes.count; i++)
		observed |= facts->processes.items[i].observed;
	for (uint32_t k = 0; k < run->values->fail_on.list.count; k++) {
		const char *kind = run->values->fail_on.list.items[k];
		bool judged = false;
		for (uint32_t i = 0; i < facts->processes.count; i++)
			judged |= kind_is_judged(&facts->processes.items[i], kind);
		if (judged)
			continue;
		message_print("--fail-on %s: no process could be judged for it%s", kind,
			observed
				? ""
				: " from this recording; spoor diagnose -p PID observes a running process");
		return EXIT_MISUSED;
	}
	return EXIT_DONE;
}

static int code_of(const struct diagnose_run *run, const struct findings *findings)
{
	const struct diagnose_values *values = run->values;

	for (uint32_t i = 0; i < findings->items.count; i++)
		for (uint32_t k = 0; k < values->fail_on.list.count; k++)
			if (strcmp(findings->items.items[i].rule->kind,
				    values->fail_on.list.items[k]) == 0)
				return EXIT_FAILED;
	return check_judged(run);
}

static int print(const struct diagnose_run *run, const struct findings *findings, const char *file)
{
	const struct diagnosis diagnosis = {
		.facts = &run->facts, .findings = findings, .file = file
	};
	struct screen screen;
	struct bytes out = { 0 };

	screen_look(stdout, COLOR_AUTO, &screen);
	if (run->values->json)
		diagnosis_json(&diagnosis, &out);
	else
		diagnosis_text(&diagnosis,
			screen.columns ? screen.columns : COLUMNS_WITHOUT_TERMINAL, &out);
	int code = out.failed ? EXIT_FAILED : selection_print(&out);
	bytes_done(&out);
	return code;
}

/* For the commands in advice; standard input cannot be read again. */
static void set_recording(struct facts *facts, const char *path)
{
	struct bytes word = { 0 };

	if (strcmp(path, "-") == 0)
		return;
	text_add_shell_word(&word, path);
	for (uint32_t i = 0; i < facts->processes.count; i++)
		facts->processes.items[i].words[WORD_recording] =
			strtab_add(&facts->texts, (const char *)word.data, word.len);
	bytes_done(&word);
}

static int diagnose(struct diagnose_run *run, struct selection *s)
{
	struct findings findings = { 0 };
	int code = EXIT_DONE;
	int error = profile_fold_unnamed(&s->profile, &s->names);

	if (!error)
		error = top_count(&s->report, &s->profile, &s->names, TOP_SELF);
	if (!error)
		error = facts_gather(&run->facts, &s->profile, &s->report, s->answers,
			&run->observations);
	competition_settle(&run->facts);
	set_recording(&run->facts, s->path);
	if (!error)
		error = findings_make(&findings, &run->facts);
	if (error < 0) {
		struct diag diag = { 0 };
		diag_set(&diag, error, "cannot diagnose '%s': %m", s->path);
		code = message_fail(&diag);
	} else if (!run->facts.processes.count) {
		if (!s->unmatched)
			message_print("no process of '%s' has samples or events", s->path);
		code = EXIT_FAILED;
	} else {
		code = print(run, &findings, s->path);
	}
	code = code ? code : code_of(run, &findings);
	findings_done(&findings);
	return code;
}

static int read_recording(struct diagnose_run *run, const struct selection_values *chosen,
	const struct arguments *arguments)
{
	struct answers answers = { .wanted = ANSWERS_ALL & ~(1u << ANSWER_STARTUP) };
	struct selection_values values = *chosen;
	struct selection selection = { 0 };

	values.answers = &answers;
	values.observations = &run->observations;
	run->observations.facts = &run->facts;
	int code = selection_open(&values, METHOD_NAME_SHORT, arguments, run->verb, &selection);
	if (code == EXIT_DONE)
		code = diagnose(run, &selection);
	selection_close(&selection);
	observation_events_done(&run->observations);
	answers_done(&answers);
	return code;
}

/* The verdict is that of the recording: `spoor diagnose FILE` prints the same. */
static int diagnose_running(struct diagnose_run *run, const struct arguments *arguments)
{
	struct target_choice choice = { 0 };
	struct diagnose_live live = { .query = &choice.query,
		.outputs = &run->values->outputs,
		.duration_ns = run->values->duration_ns };
	int code = target_options_query(&run->values->targets, run->verb, &choice);

	if (code == EXIT_DONE)
		code = diagnose_live_run(&live);
	if (code == EXIT_DONE)
		code = read_recording(run, &(struct selection_values){ .input = live.path },
			arguments);
	diagnose_live_done(&live);
	target_options_done(&choice);
	return code;
}

/* NULL: the options go together. */
static const char *find_conflict(const struct diagnose_values *values, bool of_file)
{
	const struct target_values *targets = &values->targets;

	if (of_file && (targets->containers.list.count || targets->pods.list.count ||
			       targets->cgroups.list.count || targets->trees.list.count))
		return "of a recording, -p and -n choose processes";
	if (of_file && values->outputs.list.count)
		return "-o is for running processes";
	if (!of_file && (values->from_ns || values->to_ns))
		return "--from and --to are for recordings";
	if (!of_file && values->duration_ns < 1000000)
		return "--duration is at least 1ms";
	return record_outputs_problem(&values->outputs);
}

int cmd_diagnose(const struct verb *self, int argc, char **argv)
{
	struct diagnose_values values = { .duration_ns = DURATION_NS };
	struct diagnose_run run = { .values = &values, .verb = self };
	struct arguments arguments;
	int code;

	if (!options_parse(self, argc, argv, &values, &arguments, &code))
		return code;
	bool of_file =
		arguments.words.count || values.input || !target_options_given(&values.targets);
	const char *conflict = find_conflict(&values, of_file);
	const struct selection_values chosen = { .input = values.input,
		.pids = values.targets.pids,
		.names = values.targets.names,
		.from_ns = values.from_ns,
		.to_ns = values.to_ns };

	code = conflict ? options_misused(self, "%s", conflict) : check_kinds(&values, self);
	if (code == EXIT_DONE && of_file) {
		code = read_recording(&run, &chosen, &arguments);
	} else if (code == EXIT_DONE) {
		rights_raise();
		code = diagnose_running(&run, &arguments);
	}
	facts_done(&run.facts);
	options_done(self, &values, &arguments);
	return code;
}
