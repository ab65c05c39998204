/*
 * spoor doctor: what this machine and this user can record, and what to grant for what can't. Everything is found by trying.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/json.h"
#include "cli/options.h"
#include "cli/verbs.h"
#include "cli/words.h"
#include "machine/box.h"
#include "machine/rights.h"
#include "record/capability.h"
#include "session/survey.h"

struct doctor_values {
	bool json;
};

const struct option doctor_options[] = {
	{ 0, "json", NULL, "one JSON object", OPTION_FLAG, INTO(struct doctor_values, json) },
	{ 0 },
};

static const char *const answers[] = {
	[CAPABILITY_NO] = "no",
	[CAPABILITY_LIMITED] = "part",
	[CAPABILITY_YES] = "yes",
};

#define ROW_COUNT (CAPABILITY_COUNT + 1)

/* The .NET processes as one row more. */
static void look_for_dotnet(struct capability *row)
{
	struct survey survey;

	*row = (struct capability){ .key = "dotnet_names",
		.what = ".NET names, from the runtimes",
		.answer = CAPABILITY_YES };
	if (survey_dotnet(&survey, NULL) < 0) {
		row->answer = CAPABILITY_NO;
		(void)snprintf(row->reason, sizeof(row->reason), "/proc cannot be read"); /* fits */
		return;
	}
	struct bytes reason = { 0 };

	if (!survey.found)
		bytes_text(&reason, "no .NET process runs now");
	else
		bytes_printf(&reason, "%u of %u .NET processes", survey.reachable, survey.found);
	if (survey.refused_pid)
		bytes_printf(&reason, "; %u: %s", survey.refused_pid, survey.reason);
	if (survey.hidden) {
		bytes_printf(&reason, "; %u %s not be looked into", survey.hidden,
			survey.hidden == 1 ? "process may" : "processes may");
		if (geteuid())
			(void)snprintf(row->remedy, sizeof(row->remedy), "run it with sudo"); /* fits */
	}
	if (survey.refused_pid || survey.hidden)
		row->answer = CAPABILITY_LIMITED;
	(void)snprintf(row->reason, sizeof(row->reason), "%s", bytes_z(&reason)); /* a cut end is fine */
	bytes_done(&reason);
}

static void print_table(const struct capability *table)
{
	int width = 0;

	for (size_t i = 0; i < ROW_COUNT; i++)
		if ((int)strlen(table[i].what) > width)
			width = (int)strlen(table[i].what);
	for (size_t i = 0; i < ROW_COUNT; i++) {
		const struct capability *row = &table[i];
		printf("%-*s  ", width, row->what);
		if (row->answer == CAPABILITY_YES && !row->reason[0])
			puts(answers[row->answer]);
		else
			printf("%-4s  %s%s%s\n", answers[row->answer], row->reason,
				row->remedy[0] ? "; " : "", row->remedy);
	}
}

static void print_json(const struct capability *table)
{
	struct bytes out = { 0 };
	struct json json = { .out = &out };
	struct rights rights;
	struct box box;

	rights_read(&rights);
	box_read(&box);
	json_object(&json, NULL);
	json_z(&json, "host", box.host);
	json_z(&json, "kernel", box.kernel);
	json_z(&json, "system", box.system);
	json_z(&json, "architecture", box.architecture);
	json_u64(&json, "cpus_online", box.cpu_online);
	json_u64(&json, "memory_bytes", box.memory_bytes);
	json_u64(&json, "user_id", rights.euid);
	if (rights.perf_event_paranoid == RIGHTS_PARANOID_UNKNOWN)
		json_null(&json, "perf_event_paranoid");
	else
		json_i64(&json, "perf_event_paranoid", rights.perf_event_paranoid);
	json_i64(&json, "kptr_restrict", rights.kptr_restrict);
	json_u64(&json, "perf_event_max_stack", rights.perf_event_max_stack);
	json_u64(&json, "perf_event_max_sample_rate", rights.perf_event_max_sample_rate);
	json_u64(&json, "open_files_max", rights.open_files_max);
	json_array(&json, "capabilities");
	for (size_t i = 0; i < ROW_COUNT; i++) {
		json_object(&json, NULL);
		json_z(&json, "name", table[i].key);
		json_z(&json, "what", table[i].what);
		json_z(&json, "answer", answers[table[i].answer]);
		json_z(&json, "reason", table[i].reason);
		json_z(&json, "remedy", table[i].remedy);
		json_end(&json);
	}
	json_end(&json);
	json_end(&json);
	puts(bytes_z(&out));
	bytes_done(&out);
}

int cmd_doctor(const struct verb *self, int argc, char **argv)
{
	struct doctor_values values = { 0 };
	struct arguments args;
	struct capability table[ROW_COUNT];
	int code;

	if (!options_parse(self, argc, argv, &values, &args, &code))
		return code;
	if (args.words.count || args.command) {
		code = options_misused(self, "doctor takes no words");
	} else {
		capability_probe(table);
		look_for_dotnet(&table[CAPABILITY_COUNT]);
		if (values.json)
			print_json(table);
		else
			print_table(table);
		code = words_finish_output();
	}
	options_done(self, &values, &args);
	return code;
}
