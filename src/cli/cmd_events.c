/*
 * spoor events: the events of a recording or trace, one a line, or counted.
 *
 * The file is read as a stream: memory holds only names and the window in which its events are put
 * in order (pipeline/saved_stream.h). Stacks are printed on request and in JSON; for their names the
 * whole file is read first. Losses are shown whichever events are chosen.
 */
#include "base/cleanup.h"
#include "cli/verbs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "analysis/event_counts.h"
#include "base/bytes.h"
#include "base/diag.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/event_choice.h"
#include "cli/message.h"
#include "cli/selection.h"
#include "code/method_name.h"
#include "machine/rights.h"
#include "pipeline/saved.h"
#include "pipeline/saved_stream.h"
#include "render/event_line.h"
#include "render/event_text.h"
#include "trace/event.h"
#include "trace/event_count.h"
#include "trace/schema.h"
#include "trace/symbolmap.h"
#include "trace/trace.h"

#define LINES_SIZE (64u << 10) /* bytes in one write */
#define LOST_KINDS 16u

#define OPTIONS_VERB events
#define OPTIONS_LIST "cli/events_options.def"
#include "cli/option_list.h"

/* The counts of the Loss events, added up by source and unit. */
struct lost_kind {
	char words[64]; /* "samples (ring)" */
	uint64_t count;
};

struct events_run {
	const struct events_values *values;
	struct event_choice choice;
	struct trace trace;
	struct trace facts;     /* of the whole file: its names of code may be at its end */
	struct symbolmap names; /* over facts */
	bool has_names;
	VEC(uint32_t) pids;
	struct event_counts counts;
	struct bytes lines;
	struct bytes name;
	uint64_t first_ns;
	uint64_t last_since_ns; /* the latest event, since the begin */
	uint64_t chosen;
	uint64_t counted; /* events that the recorder did not write */
	bool any;
	struct lost_kind lost[LOST_KINDS];
	unsigned lost_kinds;
	/* negative errno; -EPIPE: the reader has closed the pipe, which is no failure */
	int write_error;
	bool done; /* as many as were wanted */
};

/* ---- which ---- */

static bool process_is_chosen(const struct events_run *run, const struct event *event)
{
	const struct trace *trace = &run->trace;

	if (!run->pids.count)
		return true;
	if (!event->thread_index)
		return false;
	uint32_t pid =
		trace->processes.items[trace->threads.items[event->thread_index].process].pid;

	for (uint32_t i = 0; i < run->pids.count; i++)
		if (run->pids.items[i] == pid)
			return true;
	return false;
}

static bool time_is_chosen(struct events_run *run, const struct event *event)
{
	uint64_t begin_ns = run->trace.recording.sync_ns;

	if (!run->any)
		run->first_ns = event->time_ns;
	run->any = true;
	begin_ns = begin_ns ? begin_ns : run->first_ns;
	uint64_t since_ns = event->time_ns > begin_ns ? event->time_ns - begin_ns : 0;

	if (since_ns > run->last_since_ns)
		run->last_since_ns = since_ns;
	return since_ns >= run->values->selection.from_ns &&
	       (!run->values->selection.to_ns || since_ns <= run->values->selection.to_ns);
}

/* ---- lost events ---- */

static bool is_loss(const struct events_run *run, const struct event *event)
{
	return event->kind == EVENT_LOSS &&
	       run->trace.schemas.items[event->schema_index].provider_kind == PROVIDER_SPOOR;
}

/* The recorder's own word on what it lost, where and how many. */
static void note_loss(struct events_run *run, const struct event *event)
{
	cleanup(bytes_done) struct bytes text = { 0 };
	uint64_t count = 0;
	unsigned i = 0;

	if (!event_text_field(&text, &run->trace, event, "Count") ||
		!text_parse_u64(bytes_z(&text), &count))
		count = 0; /* not known how many */
	bytes_reset(&text);
	if (!event_text_field(&text, &run->trace, event, "Unit") || !text.len)
		bytes_text(&text, "events");
	bytes_text(&text, " (");
	(void)event_text_field(&text, &run->trace, event, "Source"); /* as above */
	bytes_text(&text, ")");
	const char *words = bytes_z(&text);

	if (text.len >= sizeof(run->lost[0].words))
		words = "of another kind";
	while (i < run->lost_kinds && strcmp(run->lost[i].words, words) != 0)
		i++;
	if (i == LOST_KINDS)
		i--; /* a foreign file with more kinds than there are: among the last */
	if (i == run->lost_kinds) {
		/* fits */
		(void)snprintf(run->lost[i].words, sizeof(run->lost[i].words), "%s", words);
		run->lost_kinds++;
	}
	run->lost[i].count += count;
}

/* Prints the losses. Loss events include those counted by sequence number. */
static void say_lost(const struct events_run *run, uint64_t by_sequence)
{
	cleanup(bytes_done) struct bytes text = { 0 };

	for (unsigned i = 0; i < run->lost_kinds; i++) {
		bytes_text(&text, i ? ", " : "");
		if (run->lost[i].count)
			text_add_count(&text, run->lost[i].count);
		else
			bytes_text(&text, "an unknown number of");
		bytes_printf(&text, " %s", run->lost[i].words);
	}
	if (!run->lost_kinds && by_sequence) {
		text_add_things(&text, by_sequence, "event, by its sequence number",
			"events, by their sequence numbers");
	}
	if (text.len)
		message_print("Lost: %s", bytes_z(&text));
}

static void say_counted(const struct events_run *run)
{
	struct bytes text = { 0 };

	text_add_things(&text, run->counted, "more event was", "more events were");
	message_print("%s only counted, not written: above the rate of spoor record --event-rate",
		bytes_z(&text));
	bytes_done(&text);
}

/* ---- out ---- */

static void write_lines(struct events_run *run)
{
	errno = 0;
	if (run->lines.len && !run->write_error &&
		(fwrite(run->lines.data, 1, run->lines.len, stdout) != run->lines.len ||
			fflush(stdout) != 0))
		run->write_error = errno ? -errno : -EIO;
	bytes_reset(&run->lines);
}

static int count_event(struct events_run *run, const struct event *event, uint64_t count,
	uint64_t size_bytes)
{
	const struct schema *schema = &run->trace.schemas.items[event->schema_index];
	bool dynamic = event_text_is_dynamic(&run->trace, event);
	uint32_t row = dynamic ? 0 : event_counts_of_schema(&run->counts, event->schema_index);

	if (!row) {
		const char *provider = trace_text(&run->trace, schema->provider);
		bytes_reset(&run->name);
		event_text_bare_name(&run->name, &run->trace, event);
		row = event_counts_row(&run->counts, provider, strlen(provider),
			bytes_z(&run->name), run->name.len);
		if (!row)
			return -ENOMEM;
		if (!dynamic)
			event_counts_remember(&run->counts, event->schema_index, row);
	}
	event_counts_add(&run->counts, row, count, size_bytes);
	return 0;
}

static int print_event(struct events_run *run, const struct event *event, uint32_t code_epoch,
	bool shown)
{
	const struct event_frames frames = { .names = &run->names, .code_epoch = code_epoch };
	int64_t utc_offset_ns =
		(int64_t)(run->trace.recording.utc_ns - run->trace.recording.sync_ns);

	if (event->lost_before && run->values->json)
		event_line_lost_json(&run->lines, &run->trace, event, utc_offset_ns);
	else if (event->lost_before)
		event_line_lost(&run->lines, &run->trace, event, utc_offset_ns);
	if (shown && run->values->json)
		event_line_json(&run->lines, &run->trace, event, utc_offset_ns,
			run->has_names ? &frames : NULL);
	else if (shown)
		event_line(&run->lines, &run->trace, event, utc_offset_ns);
	if (shown && run->values->stacks && !run->values->json)
		event_line_stack(&run->lines, &run->trace, event, run->has_names ? &frames : NULL);
	if (run->lines.failed)
		return -ENOMEM;
	if (run->lines.len >= LINES_SIZE)
		write_lines(run);
	return run->write_error ? -ECANCELED : 0;
}

static int on_event(void *context, const struct event *event, uint32_t code_epoch)
{
	struct events_run *run = context;
	struct event unwritten;
	struct event_counted counted = { .count = 1 };
	bool only_counted = event_count_read(&run->trace, event, &unwritten, &counted);

	if (only_counted && run->values->summary)
		event = &unwritten;
	bool loss = is_loss(run, event);
	bool in_time = time_is_chosen(run, event);
	bool of_schema =
		event_choice_has(&run->choice, event); /* first of all: it sees each name */
	bool chosen = of_schema && in_time && process_is_chosen(run, event);
	bool shown = chosen || (loss && in_time && !run->values->summary);
	int r = 0;

	if (loss)
		note_loss(run, event);
	if (run->values->summary)
		r = chosen ? count_event(run, event, counted.count,
				     only_counted ? 0 : event->payload_size)
			   : 0;
	else if (shown || (event->lost_before && in_time))
		r = print_event(run, event, code_epoch, shown);
	if (r < 0)
		return r;
	run->chosen += chosen;
	run->counted += only_counted && in_time ? counted.count : 0;
	run->done = run->values->limit && run->chosen >= run->values->limit;
	return run->done ? -ECANCELED : 0;
}

static void add_number(struct bytes *out, uint64_t number, int columns)
{
	struct bytes cell = { 0 };

	text_add_count(&cell, number);
	bytes_printf(out, "%*s  ", columns, bytes_z(&cell));
	out->failed |= cell.failed;
	bytes_done(&cell);
}

static void add_row(struct bytes *out, const struct event_counts *counts,
	const struct event_count *row, int width)
{
	char name[256];
	size_t len;

	add_number(out, row->count, 12);
	add_number(out, row->size_bytes, 14);
	if (!row->name) {
		bytes_text(out, "others, of too many names\n");
		return;
	}
	len = text_make_safe(strtab_get(&counts->strings, row->provider),
		/* a cut end is fine */
		strtab_len(&counts->strings, row->provider), name, sizeof(name));
	bytes_printf(out, "%s%*s  %s", name,
		width > (int)text_columns(name, len) ? width - (int)text_columns(name, len) : 0, "",
		strtab_get(&counts->strings, row->name)); /* made safe as it was made */
	bytes_text(out, "\n");
}

static void add_row_json(struct bytes *out, const struct event_counts *counts,
	const struct event_count *row)
{
	struct json j = { .out = out };

	json_object(&j, NULL);
	json_z(&j, "provider", strtab_get(&counts->strings, row->provider));
	json_z(&j, "event", strtab_get(&counts->strings, row->name));
	json_u64(&j, "count", row->count);
	json_u64(&j, "bytes", row->size_bytes);
	json_end(&j);
	bytes_text(out, "\n");
}

#define PROVIDER_COLUMNS_MAX 48

static void add_summary(struct events_run *run)
{
	const struct event_counts *counts = &run->counts;
	int width = 8;

	event_counts_sort(&run->counts);
	for (uint32_t i = 1; i < counts->rows.count; i++) {
		const char *provider = strtab_get(&counts->strings, counts->rows.items[i].provider);
		int columns = (int)text_columns(provider, strlen(provider));
		if (columns > width)
			width = columns < PROVIDER_COLUMNS_MAX ? columns : PROVIDER_COLUMNS_MAX;
	}
	if (!run->values->json && counts->rows.count)
		bytes_printf(&run->lines, "%12s  %14s  %-*s  event\n", "count", "bytes", width,
			"provider");
	for (uint32_t i = 1; i < counts->rows.count; i++) {
		const struct event_count *row = &counts->rows.items[i];
		if (!row->count)
			continue;
		if (run->values->json)
			add_row_json(&run->lines, counts, row);
		else
			add_row(&run->lines, counts, row, width);
	}
}

/* There is a selection, and it leaves nothing. */
static bool selection_failed(const struct events_run *run)
{
	return !run->chosen &&
	       (run->choice.patterns.count || run->pids.count || run->values->selection.from_ns ||
		       run->values->selection.to_ns);
}

/* Explains an empty result: names that no event has, or that do not occur together. */
static void say_unmatched(const struct events_run *run)
{
	bool said = run->values->selection.from_ns > run->last_since_ns;

	if (said)
		selection_say_late(run->values->selection.from_ns, run->last_since_ns);
	said |= event_choice_say_unmatched(&run->choice);
	if (!said && selection_failed(run))
		message_print("no event is left by this selection");
}

/*
 * Names of code may follow the events, so the file is read once for them and once more for the
 * events. A pipe can be read once only: its frames are addresses. A file that is damaged, or of an
 * unknown format, is reported by the second reading.
 */
static int read_names(struct events_run *run, const char *path, struct diag *diag)
{
	struct stat status;
	struct diag unused = { 0 };

	if (strcmp(path, "-") == 0 || stat(path, &status) < 0 || !S_ISREG(status.st_mode))
		return 0;
	int r = trace_init(&run->facts);

	if (r == 0 && saved_read(path, &run->facts, NULL, NULL, &unused) == -ENOMEM)
		r = -ENOMEM;
	if (r == 0)
		r = symbolmap_init(&run->names, &run->facts, METHOD_NAME_LONG);
	run->has_names = r == 0;
	return r < 0 ? diag_set(diag, r, "cannot read the names of '%s': %m", path) : 0;
}

static int show_file(struct events_run *run, const char *path)
{
	struct diag diag = { 0 };
	uint64_t lost = 0;
	int code = EXIT_DONE;
	bool stacks = !run->values->summary && !run->values->no_stacks &&
		      (run->values->json || run->values->stacks);
	int r = stacks ? read_names(run, path, &diag) : 0;

	if (r == 0)
		r = saved_stream(path, &run->trace,
			stacks ? SAVED_STREAM_STACKS : SAVED_STREAM_NO_STACKS, on_event, run, &lost,
			&diag);

	if (r == -ECANCELED)
		r = 0;
	if (r == 0 || run->any) {
		if (run->values->summary)
			add_summary(run);
		write_lines(run);
	}
	if (run->write_error && run->write_error != -EPIPE) {
		struct diag full = { 0 };
		diag_set(&full, run->write_error, "cannot write the result to standard output: %m");
		return message_fail(&full);
	}
	if (!run->write_error)
		code = message_finish_output();
	if (r < 0) {
		if (!diag.error)
			diag_set(&diag, r, "cannot read '%s': %m", path);
		int failed = message_fail(&diag);
		if (r == -ENOMEM || !run->any)
			return failed;
		message_print("What could be read before that is shown");
	}
	if (run->write_error)
		return code;
	if (!run->done && (!run->values->quiet || selection_failed(run)))
		say_unmatched(run);
	if (!run->values->quiet)
		say_lost(run, lost);
	if (!run->values->quiet && run->counted)
		say_counted(run);
	return code == EXIT_DONE && selection_failed(run) ? EXIT_FAILED : code;
}

int cmd_events(const struct verb *self, int argc, char **argv)
{
	struct events_values values = { 0 };
	struct events_run run = { .values = &values };
	struct arguments arguments;
	char path[4096];
	int code;

	if (!options_parse(self, argc, argv, &values, &arguments, &code))
		return code;
	/* As selection_open(): reading takes no right but to read files. */
	(void)rights_reduce(rights_are_borrowed() ? 0 : RIGHTS_OF_FILES);
	code = selection_numbers(&values.selection.pids, "-p", self, &run.pids, NULL);
	if (code == EXIT_DONE && values.selection.to_ns &&
		values.selection.to_ns <= values.selection.from_ns)
		code = options_misused(self, "--to is not after --from");
	if (code == EXIT_DONE && values.stacks && (values.no_stacks || values.summary))
		code = options_misused(self, "--stack and %s exclude each other",
			values.summary ? "--summary" : "--no-stacks");
	if (code == EXIT_DONE)
		code = selection_choose_file(values.selection.input, &arguments, self, path,
			sizeof(path));
	if (code == EXIT_DONE && trace_init(&run.trace) < 0) {
		struct diag diag = { 0 };
		diag_set(&diag, -ENOMEM, "cannot read a recording: %m");
		code = message_fail(&diag);
	} else if (code == EXIT_DONE && event_choice_init(&run.choice, &run.trace,
						&values.providers, &values.events) < 0) {
		code = EXIT_FAILED;
	} else if (code == EXIT_DONE) {
		code = show_file(&run, path);
	}
	if (run.has_names)
		symbolmap_done(&run.names);
	trace_done(&run.facts);
	trace_done(&run.trace);
	event_counts_done(&run.counts);
	vec_done(&run.pids);
	event_choice_done(&run.choice);
	bytes_done(&run.lines);
	bytes_done(&run.name);
	options_done(self, &values, &arguments);
	return code;
}
