/*
 * spoor ps: the .NET processes and programs with libspoor here, and whether they can be reached; with
 * -a all processes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/diag.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/message.h"
#include "cli/target_options.h"
#include "cli/verbs.h"
#include "machine/rights.h"
#include "target/runtime_info.h"
#include "target/targets.h"

#define ANSWER_NS   UINT64_C(1000000000)
#define ID_SHOWN    12u
#define PASSWD_LINE 4096u
#define NAME_ROOM   24u /* columns of a name or place on a terminal */
/* on a terminal, other columns are left out until the command has as many */
#define COMMAND_ROOM 20u

enum column {
	COLUMN_PID,
	COLUMN_INNER,
	COLUMN_NAME,
	COLUMN_USER,
	COLUMN_PLACE,
	COLUMN_KIND,
	COLUMN_RUNTIME,
	COLUMN_ARCHITECTURE,
	COLUMN_AGE,
	COLUMN_MEMORY,
	COLUMN_COMMAND,
	COLUMN_COUNT,
};

static const struct {
	const char *head;
	bool right;
} columns[COLUMN_COUNT] = {
	[COLUMN_PID] = { "pid", true },
	[COLUMN_INNER] = { "inner", true },
	[COLUMN_NAME] = { "name", false },
	[COLUMN_USER] = { "user", false },
	[COLUMN_PLACE] = { "container", false },
	[COLUMN_KIND] = { "kind", false },
	[COLUMN_RUNTIME] = { "runtime", false },
	[COLUMN_ARCHITECTURE] = { "arch", false },
	[COLUMN_AGE] = { "up", true },
	[COLUMN_MEMORY] = { "memory", true },
	[COLUMN_COMMAND] = { "command", false },
};

/* What a narrow terminal does without, in this order. */
static const uint8_t dispensable[] = { COLUMN_ARCHITECTURE, COLUMN_KIND, COLUMN_INNER, COLUMN_AGE,
	COLUMN_USER, COLUMN_PLACE };

#define OPTIONS_VERB ps
#define OPTIONS_LIST "cli/ps_options.def"
#include "cli/option_list.h"

/* From /etc/passwd alone: other users are shown by number. */
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

/* Of a run of as many hexadecimal digits as an id has, the first: "crio-9f3c2b1a77aa.scope". */
static void add_short_ids(struct bytes *out, const char *text, size_t len)
{
	for (size_t i = 0; i < len;) {
		size_t run = 0;
		while (i + run < len && strchr("0123456789abcdef", text[i + run]))
			run++;
		size_t skipped = run >= 2 * ID_SHOWN ? run - ID_SHOWN : 0;
		size_t shown = run ? run - skipped : 1;
		text_add_safe(out, text + i, shown);
		i += shown + skipped;
	}
}

/* The container's short id, else the last part of the control group's path. */
static void add_place(struct bytes *out, const struct target *target)
{
	const char *slash = strrchr(target->cgroup, '/');

	if (target->container[0])
		text_add_safe(out, target->container, strnlen(target->container, ID_SHOWN));
	else if (slash && slash[1])
		add_short_ids(out, slash + 1, strlen(slash + 1));
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
		text_add_safe_z(out, target->runtime_version);
	else
		bytes_text(out, "?");
}

static const char *or_dash(const char *text)
{
	return text[0] ? text : "-";
}

static void add_command(struct bytes *out, const struct target *target, bool whole)
{
	const char *text = whole ? target->command_line : target->short_command;

	text = text[0] ? text : target->program;
	text_add_safe_z(out, text);
}

/* A row of the table; its texts are owned by it. */
struct ps_row {
	struct bytes cell[COLUMN_COUNT];
	struct bytes note; /* after the command */
};

static void fill_row(struct ps_row *row, const struct target *target, bool whole, uint64_t now_ns)
{
	struct bytes *cell = row->cell;

	bytes_printf(&cell[COLUMN_PID], "%u", target->pid);
	if (target->inner_pid != target->pid)
		bytes_printf(&cell[COLUMN_INNER], "%u", target->inner_pid);
	else
		bytes_text(&cell[COLUMN_INNER], "-");
	text_add_safe_z(&cell[COLUMN_NAME], target->name);
	add_user(&cell[COLUMN_USER], target->uid);
	add_place(&cell[COLUMN_PLACE], target);
	bytes_text(&cell[COLUMN_KIND], dotnet_kind_name(target->kind));
	add_runtime(&cell[COLUMN_RUNTIME], target);
	text_add_safe_z(&cell[COLUMN_ARCHITECTURE], or_dash(target->architecture));
	add_age(&cell[COLUMN_AGE], now_ns > target->start_ns ? now_ns - target->start_ns : 0);
	text_add_size(&cell[COLUMN_MEMORY], target->resident_bytes);
	add_command(&cell[COLUMN_COMMAND], target, whole);
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

static void row_done(struct ps_row *row)
{
	for (unsigned i = 0; i < COLUMN_COUNT; i++)
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
	size_t rest = text_columns(text + at, len - at);

	for (; rest > tail; rest--)
		(void)text_next_char(text, len, &at);
	bytes_add(out, text + at, len - at);
}

static void cut_cell(struct bytes *cell, size_t room)
{
	struct bytes cut = { 0 };

	add_cut(&cut, bytes_z(cell), cell->len, room);
	bytes_done(cell);
	*cell = cut;
}

/* Which columns are shown, and how wide. */
struct layout {
	size_t width[COLUMN_COUNT]; /* 0: it is not shown */
	size_t before;              /* columns before the command */
};

static void make_layout(struct ps_row *rows, uint32_t count, const struct screen *screen,
	bool whole, struct layout *ret_layout)
{
	struct layout layout = { .before = 0 };

	for (unsigned c = 0; c < COLUMN_COMMAND; c++) {
		layout.width[c] = strlen(columns[c].head);
		for (uint32_t i = 0; i < count; i++) {
			struct bytes *cell = &rows[i].cell[c];
			if (screen->terminal && !whole && (c == COLUMN_NAME || c == COLUMN_PLACE))
				cut_cell(cell, NAME_ROOM);
			size_t own = text_columns(bytes_z(cell), cell->len);
			if (own > layout.width[c])
				layout.width[c] = own;
		}
		layout.before += layout.width[c] + 2;
	}
	for (size_t d = 0; d < sizeof(dispensable) && screen->terminal && !whole; d++) {
		if (!screen->columns || layout.before + COMMAND_ROOM <= screen->columns)
			break;
		layout.before -= layout.width[dispensable[d]] + 2;
		layout.width[dispensable[d]] = 0;
	}
	*ret_layout = layout;
}

static void add_head(const struct layout *layout, struct bytes *out)
{
	for (unsigned c = 0; c < COLUMN_COMMAND; c++) {
		if (layout->width[c])
			bytes_printf(out, columns[c].right ? "%*s  " : "%-*s  ",
				(int)layout->width[c], columns[c].head);
	}
	bytes_printf(out, "%s\n", columns[COLUMN_COMMAND].head);
}

static void add_row(struct ps_row *row, const struct layout *layout, const struct screen *screen,
	bool whole, struct bytes *out)
{
	for (unsigned c = 0; c < COLUMN_COMMAND; c++) {
		struct bytes *cell = &row->cell[c];
		if (!layout->width[c])
			continue;
		int pad = (int)(layout->width[c] - text_columns(bytes_z(cell), cell->len));
		bytes_printf(out, "%*s%s%*s  ", columns[c].right ? pad : 0, "", bytes_z(cell),
			columns[c].right ? 0 : pad, "");
	}
	struct bytes *command = &row->cell[COLUMN_COMMAND];

	if (screen->terminal && !whole && screen->columns > layout->before)
		add_cut(out, bytes_z(command), command->len, screen->columns - layout->before);
	else
		bytes_text(out, bytes_z(command));
	if (!row->note.len) {
		bytes_text(out, "\n");
		return;
	}
	size_t used = layout->before + text_columns(bytes_z(command), command->len) + 2;
	bool fits = !screen->terminal || !screen->columns ||
		    used + text_columns(bytes_z(&row->note), row->note.len) <= screen->columns;

	bytes_printf(out, fits ? "  %s\n" : "\n       %s\n", bytes_z(&row->note));
}

static void print_table(const struct targets *targets, const struct screen *screen, bool whole)
{
	uint32_t count = targets->list.count;
	struct ps_row *rows = calloc((size_t)count + 1, sizeof(*rows));
	cleanup(bytes_done) struct bytes out = { 0 };
	uint64_t now_ns = clock_monotonic_ns();
	struct layout layout;

	for (uint32_t i = 0; rows && i < count; i++)
		fill_row(&rows[i], &targets->list.items[i], whole, now_ns);
	make_layout(rows, rows ? count : 0, screen, whole, &layout);
	add_head(&layout, &out);
	for (uint32_t i = 0; rows && i < count; i++) {
		add_row(&rows[i], &layout, screen, whole, &out);
		row_done(&rows[i]);
	}
	free(rows);
	fputs(bytes_z(&out), stdout);
}

static void print_json(const struct targets *targets)
{
	cleanup(bytes_done) struct bytes out = { 0 };
	struct json json = { .out = &out };
	uint64_t now_ns = clock_monotonic_ns();

	json_object(&json, NULL);
	json_array(&json, "processes");
	vec_each(target, &targets->list) {
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
		json_bool(&json, "dotnet",
			target->kind != DOTNET_NOT && target->kind != DOTNET_LIBSPOOR);
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
}

/* Sentences below the table: the processes that could not be seen, and a command to try next. */
static void say_rest(const struct targets *targets, bool everything)
{
	const struct target *best = NULL;

	if (!targets->list.count)
		message_print("no .NET process runs here%s",
			targets->hidden_count && geteuid() != 0 ? " that this user may look into"
								: "");
	if (targets->hidden_count && !everything && geteuid() != 0)
		message_print("%u %s not be looked into by this user; sudo spoor ps sees all",
			targets->hidden_count,
			targets->hidden_count == 1 ? "process may" : "processes may");
	for (uint32_t i = 0; i < targets->list.count && !best; i++)
		if (targets->list.items[i].reachable)
			best = &targets->list.items[i];
	if (best)
		message_next(best->pid, (const char *const[]){ "record", "stacks", NULL });
}

static int list_processes(const struct ps_values *values, struct target_choice *choice)
{
	struct diag diag = { 0 };
	struct targets targets;
	struct screen screen;

	choice->query.dotnet_only = !values->targets.all;
	choice->query.libspoor = true;
	choice->query.all = !target_options_given(&values->targets);
	choice->query.details = TARGET_REACH | TARGET_PLACE;
	if (targets_choose(&choice->query, &targets, &diag) < 0)
		return message_fail(&diag);
	if (runtime_info(&targets, ANSWER_NS) < 0) {
		targets_done(&targets);
		return message_fail(&diag);
	}
	screen_look(stdout, COLOR_NEVER, &screen);
	if (values->json)
		print_json(&targets);
	else if (targets.list.count)
		print_table(&targets, &screen, values->whole_names);
	int code = message_finish_output();

	if (code == EXIT_DONE && !values->json)
		say_rest(&targets, values->targets.all);
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
