/*
 * spoor ps: the .NET processes of this machine, and whether they can be asked; with -a all others too.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/target_options.h"
#include "cli/verbs.h"
#include "cli/words.h"
#include "machine/rights.h"
#include "session/roll_call.h"
#include "session/targets.h"

#define ANSWER_NS   UINT64_C(1000000000)
#define ID_SHOWN    12u
#define COLUMNS     10u
#define PASSWD_LINE 4096u

struct ps_values {
	struct target_values targets;
	bool json;
};

const struct option ps_options[] = {
	TARGET_ALL_OPTION(struct ps_values, targets, "native programs too"),
	TARGET_OPTIONS(struct ps_values, targets),
	{ 0, "json", NULL, "one JSON object", OPTION_FLAG, INTO(struct ps_values, json) },
	{ 0 },
};

static uint64_t monotonic_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail for this clock */
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* From /etc/passwd alone: who is known elsewhere, and who lives in a container, has a number. */
static void add_user(struct bytes *out, uint32_t uid)
{
	cleanup(fclosep) FILE *file = fopen("/etc/passwd", "re");
	char line[PASSWD_LINE];

	while (file && fgets(line, sizeof(line), file)) {
		char *name_end = strchr(line, ':');
		char *number = name_end ? strchr(name_end + 1, ':') : NULL;
		if (!number || strtoul(number + 1, NULL, 10) != uid || number[1] < '0' ||
			number[1] > '9')
			continue;
		text_add_safe(out, line, (size_t)(name_end - line));
		return;
	}
	bytes_printf(out, "%u", uid);
}

/* The container's id as people know it, else the last part of the control group that says something. */
static void add_place(struct bytes *out, const struct target *target)
{
	const char *slash = strrchr(target->cgroup, '/');

	if (target->container[0])
		bytes_add(out, target->container, ID_SHOWN);
	else if (slash && slash[1])
		text_add_safe(out, slash + 1, strlen(slash + 1));
	else
		bytes_text(out, "-");
}

/* One unit: "3 d", "12 m". */
static void add_age(struct bytes *out, uint64_t ns)
{
	uint64_t s = ns / 1000000000;

	if (s >= 48 * 3600)
		bytes_printf(out, "%u d", (unsigned)(s / 86400));
	else if (s >= 2 * 3600)
		bytes_printf(out, "%u h", (unsigned)(s / 3600));
	else if (s >= 2 * 60)
		bytes_printf(out, "%u m", (unsigned)(s / 60));
	else
		bytes_printf(out, "%u s", (unsigned)s);
}

static void add_runtime(struct bytes *out, const struct target *target)
{
	if (target->kind == DOTNET_NOT)
		bytes_text(out, "-");
	else if (target->runtime_version[0])
		text_add_safe(out, target->runtime_version, strlen(target->runtime_version));
	else
		bytes_text(out, "?");
}

static const char *or_dash(const char *text)
{
	return text[0] ? text : "-";
}

static void add_command(struct bytes *out, const struct target *target)
{
	const char *text = target->command_line[0] ? target->command_line : target->program;

	text_add_safe(out, text, strlen(text));
}

/* A row of the table; its texts are owned by it. */
struct row {
	struct bytes cell[COLUMNS];
	struct bytes note; /* behind the command */
};

static void fill_row(struct row *row, const struct target *target, uint64_t now_ns)
{
	struct bytes *cell = row->cell;

	bytes_printf(&cell[0], "%u", target->pid);
	if (target->inner_pid != target->pid)
		bytes_printf(&cell[1], "%u", target->inner_pid);
	else
		bytes_text(&cell[1], "-");
	add_user(&cell[2], target->uid);
	add_place(&cell[3], target);
	bytes_text(&cell[4], dotnet_kind_name(target->kind));
	add_runtime(&cell[5], target);
	text_add_safe_z(&cell[6], or_dash(target->architecture));
	add_age(&cell[7], now_ns > target->start_ns ? now_ns - target->start_ns : 0);
	text_add_size(&cell[8], target->resident_bytes);
	add_command(&cell[9], target);
	if (target->kind == DOTNET_NOT || target->reachable)
		return;
	bytes_text(&row->note, "not reachable: ");
	text_add_safe(&row->note, target->reason[0] ? target->reason : "not tried",
		strlen(target->reason[0] ? target->reason : "not tried"));
	if (target->remedy[0]) {
		bytes_text(&row->note, "; ");
		text_add_safe_z(&row->note, target->remedy);
	}
}

static void row_done(struct row *row)
{
	for (unsigned i = 0; i < COLUMNS; i++)
		bytes_done(&row->cell[i]);
	bytes_done(&row->note);
}

/* The beginning and the end of a text that is too long, with a mark between. */
static void add_cut(struct bytes *out, const char *text, size_t len, size_t room)
{
	if (text_columns(text, len) <= room || room < 8) {
		bytes_add(out, text, len);
		return;
	}
	size_t tail = room / 3;
	size_t head = room - tail - 1;
	size_t at = 0;

	for (size_t i = 0; i < head; i++)
		(void)text_next_char(text, len, &at);
	bytes_add(out, text, at);
	bytes_text(out, "\xe2\x80\xa6");
	size_t columns = text_columns(text + at, len - at);

	for (; columns > tail; columns--)
		(void)text_next_char(text, len, &at);
	bytes_add(out, text + at, len - at);
}

static void print_table(const struct targets *targets, const struct screen *screen)
{
	static const char *const heads[COLUMNS] = { "pid", "inner", "user", "container", "kind",
		"runtime", "arch", "up", "memory", "command" };
	static const bool right[COLUMNS] = { [0] = true, [1] = true, [7] = true, [8] = true };
	struct row *rows = calloc(targets->list.count + 1, sizeof(*rows));
	struct bytes out = { 0 };
	uint64_t now_ns = monotonic_ns();
	int width[COLUMNS];
	size_t before = 0;

	for (uint32_t i = 0; rows && i < targets->list.count; i++)
		fill_row(&rows[i], &targets->list.items[i], now_ns);
	for (unsigned c = 0; c + 1 < COLUMNS; c++) {
		width[c] = (int)strlen(heads[c]);
		for (uint32_t i = 0; rows && i < targets->list.count; i++) {
			int columns =
				(int)text_columns(bytes_z(&rows[i].cell[c]), rows[i].cell[c].len);
			if (columns > width[c])
				width[c] = columns;
		}
		before += (size_t)width[c] + 2;
	}
	for (unsigned c = 0; c < COLUMNS; c++) {
		if (c + 1 == COLUMNS)
			bytes_printf(&out, "%s\n", heads[c]);
		else
			bytes_printf(&out, right[c] ? "%*s  " : "%-*s  ",
				right[c] ? width[c] : width[c], heads[c]);
	}
	for (uint32_t i = 0; rows && i < targets->list.count; i++) {
		for (unsigned c = 0; c + 1 < COLUMNS; c++) {
			struct bytes *cell = &rows[i].cell[c];
			int pad = width[c] - (int)text_columns(bytes_z(cell), cell->len);
			bytes_printf(&out, "%*s%s%*s  ", right[c] ? pad : 0, "", bytes_z(cell),
				right[c] ? 0 : pad, "");
		}
		struct bytes *command = &rows[i].cell[COLUMNS - 1];
		size_t note = rows[i].note.len
				      ? text_columns(bytes_z(&rows[i].note), rows[i].note.len) + 2
				      : 0;
		if (screen->terminal && screen->columns > before + note)
			add_cut(&out, bytes_z(command), command->len,
				screen->columns - before - note);
		else
			bytes_text(&out, bytes_z(command));
		if (note)
			bytes_printf(&out, "  %s", bytes_z(&rows[i].note));
		bytes_text(&out, "\n");
		row_done(&rows[i]);
	}
	free(rows);
	fputs(bytes_z(&out), stdout);
	bytes_done(&out);
}

static void print_json(const struct targets *targets)
{
	struct bytes out = { 0 };
	struct json json = { .out = &out };
	uint64_t now_ns = monotonic_ns();

	json_object(&json, NULL);
	json_array(&json, "processes");
	for (uint32_t i = 0; i < targets->list.count; i++) {
		const struct target *target = &targets->list.items[i];
		struct bytes user = { 0 };
		add_user(&user, target->uid);
		json_object(&json, NULL);
		json_u64(&json, "pid", target->pid);
		json_u64(&json, "inner_pid", target->inner_pid);
		json_u64(&json, "parent_pid", target->parent_pid);
		json_z(&json, "name", target->name);
		json_u64(&json, "user_id", target->uid);
		json_z(&json, "user", bytes_z(&user));
		json_z(&json, "container", target->container);
		json_z(&json, "cgroup", target->cgroup);
		json_bool(&json, "dotnet", target->kind != DOTNET_NOT);
		json_z(&json, "kind",
			target->kind == DOTNET_NOT ? "" : dotnet_kind_name(target->kind));
		json_z(&json, "runtime_version", target->runtime_version);
		json_z(&json, "runtime_path", target->runtime_path);
		json_z(&json, "architecture", target->architecture);
		json_u64(&json, "up_ns", now_ns > target->start_ns ? now_ns - target->start_ns : 0);
		json_u64(&json, "resident_bytes", target->resident_bytes);
		json_u64(&json, "threads", target->thread_count);
		json_z(&json, "command_line", target->command_line);
		json_bool(&json, "reachable", target->reachable);
		json_z(&json, "reason", target->reason);
		json_z(&json, "remedy", target->remedy);
		json_end(&json);
		bytes_done(&user);
	}
	json_end(&json);
	json_u64(&json, "hidden_processes", targets->hidden_count);
	json_end(&json);
	puts(bytes_z(&out));
	bytes_done(&out);
}

/* What the table cannot say: what was not seen, and where to go from here. */
static void say_rest(const struct targets *targets, const struct screen *screen, bool everything)
{
	const struct target *best = NULL;

	if (!targets->list.count)
		words_say("no .NET process runs here%s", targets->hidden_count && geteuid() != 0
								 ? " that this user may look into"
								 : "");
	if (targets->hidden_count && !everything && geteuid() != 0)
		words_say("%u %s not be looked into by this user; sudo spoor ps sees all",
			targets->hidden_count,
			targets->hidden_count == 1 ? "process may" : "processes may");
	for (uint32_t i = 0; i < targets->list.count && !best; i++)
		if (targets->list.items[i].reachable)
			best = &targets->list.items[i];
	if (best && screen->terminal)
		fprintf(stderr, "next   spoor trace -p %u    spoor record -p %u\n", best->pid,
			best->pid);
}

static int list_processes(const struct ps_values *values, struct target_choice *choice)
{
	struct diag diag = { 0 };
	struct targets targets;
	struct screen screen;

	choice->query.dotnet_only = !values->targets.all;
	choice->query.all = !target_options_given(&values->targets);
	choice->query.details = TARGET_REACH | TARGET_PLACE;
	if (targets_choose(&choice->query, &targets, &diag) < 0)
		return words_fail(&diag);
	if (roll_call(&targets, ANSWER_NS) < 0) {
		targets_done(&targets);
		return words_fail(&diag);
	}
	screen_look(stdout, COLOR_NEVER, &screen);
	if (values->json)
		print_json(&targets);
	else if (targets.list.count)
		print_table(&targets, &screen);
	int code = words_finish_output();

	if (code == EXIT_DONE && !values->json)
		say_rest(&targets, &screen, values->targets.all);
	targets_done(&targets);
	return code;
}

int cmd_ps(const struct verb *self, int argc, char **argv)
{
	struct ps_values values = { 0 };
	struct target_choice choice = { 0 };
	struct arguments args;
	int code;

	if (!options_parse(self, argc, argv, &values, &args, &code))
		return code;
	rights_raise();
	if (args.words.count || args.command)
		code = options_misused(self, "ps takes no words; -n NAME chooses by name");
	else
		code = target_options_query(&values.targets, self, &choice);
	if (code == EXIT_DONE)
		code = list_processes(&values, &choice);
	target_options_done(&choice);
	options_done(self, &values, &args);
	return code;
}
