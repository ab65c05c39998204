/* See counters_outlets.h. */
#include "cli/counters_outlets.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clocks.h"
#include "base/diag.h"
#include "base/poll_set.h"
#include "base/text.h"
#include "counters/counters.h"
#include "counters/counters_metrics.h"
#include "counters/counters_rows.h"
#include "counters/counting_push.h"
#include "machine/endpoint.h"

#define CLOSE_WAIT_MS 500
#define PUSH_WAIT_NS  UINT64_C(1000000000)

static void say_where(const struct counters_outlets *o, const char *what, const char *where)
{
	if (!o->options.quiet)
		fprintf(stderr, "%-11s%s\n", what, where);
}

static int open_network(struct counters_outlets *o, struct diag *diag)
{
	const struct counters_outlet_options *options = &o->options;
	char url[ENDPOINT_TEXT_MAX + 32u];
	int result = 0;

	if (options->prometheus) {
		result = counting_http_open(options->prometheus, &o->http, diag);
		if (result < 0)
			return result;
		text_set(url, "http://%s/metrics", counting_http_address(o->http));
		say_where(o, "metrics", url);
	}
	if (options->graphite) {
		result = counting_push_open(COUNTING_PUSH_GRAPHITE, options->graphite, &o->graphite,
			diag);
		if (result < 0)
			return result;
		say_where(o, "graphite", counting_push_address(o->graphite));
	}
	if (options->statsd) {
		result =
			counting_push_open(COUNTING_PUSH_STATSD, options->statsd, &o->statsd, diag);
		if (result < 0)
			return result;
		say_where(o, "statsd", counting_push_address(o->statsd));
	}
	return 0;
}

int counters_outlets_open(struct counters_outlets *o, const struct counters_outlet_options *options,
	struct diag *diag)
{
	*o = (struct counters_outlets){ .options = *options, .first = true };
	o->file.fd = o->file.folder = -1;
	output_queue_open(&o->out, STDOUT_FILENO);
	int result = open_network(o, diag);

	if (result == 0 && options->file) {
		result = output_file_open(&o->file, options->file, diag);
		/* Named from the first byte on: a killed process leaves its rows. */
		if (result == 0)
			result = output_file_keep(&o->file, diag);
	}
	if (result < 0)
		return result;
	screen_look(stdout, COLOR_AUTO, &o->screen);
	if (options->form == COUNTERS_TABLE) {
		terminal_open(&o->terminal, &o->scratch);
		/* nothing waits yet */
		(void)output_queue_add(&o->out, o->scratch.data, o->scratch.len);
		o->drawn = o->dirty = true;
	}
	return 0;
}

/* ---- rows ---- */

/* One write a row, over the tail of the row before: the file is whole after each. */
static int write_at(struct counters_outlets *o, const void *data, size_t size, struct diag *diag)
{
	const uint8_t *at = data;
	uint64_t offset = o->file_end;

	while (size) {
		ssize_t n = pwrite(o->file.fd, at, size, (off_t)offset);
		if (n < 0 && errno == ESPIPE)
			n = write(o->file.fd, at, size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			diag_set(diag, -errno, "cannot write '%s': %m", o->options.file);
			diag_remedy(diag, "choose another place with -o FILE");
			return diag->error;
		}
		at += n;
		offset += (uint64_t)n;
		size -= (size_t)n;
	}
	return 0;
}

/* After a partial write (disk full) the file is cut back to its last whole row. */
static int mend(struct counters_outlets *o, bool document, int error)
{
	size_t tail = document && o->file_end ? strlen(counters_json_tail) : 0;

	if (tail &&
		pwrite(o->file.fd, counters_json_tail, tail, (off_t)o->file_end) != (ssize_t)tail)
		return error;
	(void)!ftruncate(o->file.fd, (off_t)(o->file_end + tail)); /* then the torn row stays */
	return error;
}

/* After a partial write of `scratch`, the rows that were written whole belong to the file. */
static void keep_whole_rows(struct counters_outlets *o)
{
	struct stat st;

	if (fstat(o->file.fd, &st) < 0 || (uint64_t)st.st_size <= o->file_end)
		return;
	uint64_t written = (uint64_t)st.st_size - o->file_end;
	const uint8_t *end = memrchr(o->scratch.data, '\n',
		written < o->scratch.len ? (size_t)written : o->scratch.len);

	o->file_end += end ? (size_t)(end - o->scratch.data) + 1 : 0;
}

static int write_json_rows(struct counters_outlets *o, struct diag *diag)
{
	size_t tail = strlen(counters_json_tail);
	size_t at = 0;
	struct bytes piece = { 0 };
	int result = 0;

	/* All rows but the first begin with ",\n"; a row contains no line end. */
	while (result == 0 && at < o->scratch.len) {
		const uint8_t *begin = o->scratch.data + at;
		const uint8_t *next = memchr(begin + 2, '\n', o->scratch.len - at - 2);
		size_t size = next ? (size_t)(next - begin) - 1 : o->scratch.len - at;
		bytes_reset(&piece);
		bytes_add(&piece, begin, size);
		bytes_add(&piece, counters_json_tail, tail);
		result = piece.failed ? -ENOMEM : write_at(o, piece.data, piece.len, diag);
		o->file_end += result == 0 ? size : 0;
		at += size;
	}
	bytes_done(&piece);
	return result;
}

static int add_rows(struct counters_outlets *o, const struct counters_view *view, struct diag *diag)
{
	bool json = o->options.form == COUNTERS_JSON;
	bool document = json && o->options.file;
	const struct counters_csv_options csv = {
		.several = o->options.several,
		.terminal = o->options.file ? isatty(o->file.fd) == 1 : o->screen.terminal,
	};
	size_t tail = strlen(counters_json_tail);
	int result = 0;

	bytes_reset(&o->scratch);
	if (!o->begun && document) {
		counters_json_head(o->options.several ? "several" : view->process, clock_utc_ns(),
			&o->scratch);
		bytes_text(&o->scratch, counters_json_tail);
		result = write_at(o, o->scratch.data, o->scratch.len, diag);
		o->file_end = result == 0 ? o->scratch.len - tail : 0;
		bytes_reset(&o->scratch);
		if (result < 0)
			return mend(o, document, result);
	} else if (!o->begun && !json) {
		counters_csv_head(&csv, &o->scratch);
	}
	o->begun = true;
	if (json)
		counters_json(view, document ? ",\n" : "\n", &o->first, &o->scratch);
	else
		counters_csv(view, &csv, &o->scratch);
	if (result < 0 || !o->scratch.len)
		return result;
	if (o->scratch.failed)
		return diag_set(diag, -ENOMEM, "out of memory");
	if (document) {
		result = write_json_rows(o, diag);
		return result < 0 ? mend(o, document, result) : 0;
	}
	if (o->options.file) {
		result = write_at(o, o->scratch.data, o->scratch.len, diag);
		if (result < 0) {
			keep_whole_rows(o);
			return mend(o, document, result);
		}
		o->file_end += o->scratch.len;
		return 0;
	}
	if (json) {
		/* Lines: each ends where it ends, not where the next begins. */
		bytes_text(&o->scratch, "\n");
		o->first = true;
	}
	/* rows that did not fit the queue are reported at the end */
	(void)output_queue_add(&o->out, o->scratch.data, o->scratch.len);
	return 0;
}

/* ---- the screen ---- */

static void draw(struct counters_outlets *o, const struct counters_view *views, size_t count)
{
	if (!o->drawn || !o->dirty || !count)
		return;
	if (!output_queue_is_empty(&o->out))
		/* the previous screen is still being written: this one follows later */
		return;
	terminal_size(&o->table.columns, &o->table.lines);
	o->table.color = o->screen.color;
	o->table.notice = o->notice;
	if (!o->table.paused)
		o->table.utc_ns = clock_utc_ns();
	bytes_reset(&o->scratch);
	/* synchronized update: terminals that know it show the whole screen in one step */
	bytes_text(&o->scratch, "\x1b[?2026h\x1b[H");
	counters_table_draw(&o->table, views, count, &o->scratch);
	bytes_text(&o->scratch, "\x1b[J\x1b[?2026l");
	(void)output_queue_add(&o->out, o->scratch.data, o->scratch.len); /* nothing waits */
	o->dirty = false;
}

static void take_keys(struct counters_outlets *o)
{
	uint32_t page = o->table.lines > 4 ? o->table.lines - 4 : 1;
	int key;

	while ((key = terminal_key(&o->terminal)) != KEY_NONE) {
		o->dirty = true;
		if (key == 'q' || key == 'Q' || key == KEY_ENDED || key == 3) {
			o->wants_end = true;
			return;
		}
		if (key == 'p' || key == 'P')
			o->table.paused = true;
		else if (key == 'r' || key == 'R')
			o->table.paused = false;
		else if (key == KEY_UP || key == 'k')
			o->table.first_row -= o->table.first_row != 0;
		else if (key == KEY_DOWN || key == 'j')
			o->table.first_row++;
		else if (key == KEY_PAGE_UP)
			o->table.first_row -= o->table.first_row < page ? o->table.first_row : page;
		else if (key == KEY_PAGE_DOWN || key == ' ')
			o->table.first_row += page;
		else if (key == KEY_HOME)
			o->table.first_row = 0;
		else if (key == KEY_LEFT)
			o->table.first_process -= o->table.first_process != 0;
		else if (key == KEY_RIGHT)
			o->table.first_process++;
	}
}

void counters_outlets_resized(struct counters_outlets *o)
{
	o->dirty = true;
}

void counters_outlets_say(struct counters_outlets *o, const char *sentence)
{
	if (o->options.quiet)
		return;
	if (!o->drawn) {
		message_print("%s", sentence);
		return;
	}
	text_set(o->notice, "%s", sentence);
	o->dirty = true;
}

/* ---- all of them ---- */

/* Whether another process has the same name: then the output adds the process id. */
static bool has_namesake(const struct counters_view *views, size_t count, size_t index)
{
	for (size_t i = 0; i < count; i++) {
		if (i != index && strcmp(views[i].process, views[index].process) == 0)
			return true;
	}
	return false;
}

static void push(struct counters_outlets *o, struct counting_push *to,
	const struct counters_view *views, size_t count, size_t index)
{
	bool with_pid = has_namesake(views, count, index);

	bytes_reset(&o->scratch);
	if (to == o->graphite)
		counters_graphite(&views[index], o->options.host, with_pid, &o->scratch);
	else
		counters_statsd(&views[index], o->options.host, with_pid, &o->scratch);
	if (!o->scratch.failed)
		counting_push_add(to, o->scratch.data, o->scratch.len, clock_monotonic_ns());
}

int counters_outlets_interval(struct counters_outlets *o, const struct counters_view *views,
	size_t count, size_t index, struct diag *diag)
{
	if (o->graphite)
		push(o, o->graphite, views, count, index);
	if (o->statsd)
		push(o, o->statsd, views, count, index);
	switch (o->options.form) {
	case COUNTERS_TABLE:
		o->dirty |= !o->table.paused;
		return 0;
	case COUNTERS_LINES:
		bytes_reset(&o->scratch);
		counters_lines(&views[index], &o->scratch);
		/* lines that did not fit the queue are reported at the end */
		(void)output_queue_add(&o->out, o->scratch.data, o->scratch.len);
		return 0;
	case COUNTERS_CSV:
	case COUNTERS_JSON:
		return add_rows(o, &views[index], diag);
	default:
		return 0;
	}
}

void counters_outlets_await(const struct counters_outlets *o, struct poll_set *set)
{
	output_queue_await(&o->out, set);
	if (o->drawn && o->terminal.keys)
		(void)poll_set_add(set, STDIN_FILENO, POLLIN);
	if (o->graphite)
		counting_push_await(o->graphite, set);
	if (o->statsd)
		counting_push_await(o->statsd, set);
	if (o->http)
		counting_http_await(o->http, set);
}

static void page(void *context, struct bytes *out)
{
	const struct counters_outlets *o = context;

	counters_prometheus(o->views, o->view_count, out);
}

/* A collector that is away is said once, and again after it was back. */
static void advance_push(struct counters_outlets *o, struct counting_push *to, const char *what,
	bool *reported)
{
	char sentence[512];

	counting_push_advance(to, clock_monotonic_ns());
	const char *problem = counting_push_problem(to);

	if (problem && !*reported) {
		text_set(sentence,
			"%s at %s takes nothing: %s. It is tried again, and lines wait meanwhile",
			what, counting_push_address(to), problem);
		counters_outlets_say(o, sentence);
	}
	*reported = problem != NULL;
}

void counters_outlets_advance(struct counters_outlets *o, const struct counters_view *views,
	size_t count)
{
	output_queue_advance(&o->out);
	if (o->out.error ||
		(o->options.form != COUNTERS_NOTHING && (poll_one(o->out.fd, 0, 0) & POLLERR)))
		o->wants_end = true;
	if (o->graphite)
		advance_push(o, o->graphite, "graphite", &o->graphite_reported);
	if (o->statsd)
		advance_push(o, o->statsd, "statsd", &o->statsd_reported);
	o->views = views;
	o->view_count = count;
	if (o->http)
		counting_http_advance(o->http, clock_monotonic_ns(), page, o);
	if (o->drawn) {
		take_keys(o);
		draw(o, views, count);
	}
}

/* Waits at most PUSH_WAIT_NS for the last lines to a connected collector. */
static void finish_push(struct counters_outlets *o, struct counting_push *to, const char *what)
{
	uint64_t until_ns = clock_monotonic_ns() + PUSH_WAIT_NS;
	struct poll_set set = { 0 };
	char sentence[256];

	while (!counting_push_is_empty(to) && !counting_push_problem(to) &&
		clock_monotonic_ns() < until_ns) {
		poll_set_begin(&set, until_ns);
		counting_push_await(to, &set);
		if (!set.fds.count)
			break;
		counting_push_advance(to, poll_set_wait(&set));
	}
	poll_set_done(&set);
	if (counting_push_dropped(to)) {
		text_set(sentence, "%llu %s for %s at %s dropped: it was away for too long",
			(unsigned long long)counting_push_dropped(to),
			counting_push_dropped(to) == 1 ? "line" : "lines", what,
			counting_push_address(to));
		counters_outlets_say(o, sentence);
	} else if (!counting_push_is_empty(to)) {
		text_set(sentence, "the last lines did not get to %s at %s", what,
			counting_push_address(to));
		counters_outlets_say(o, sentence);
	}
}

void counters_outlets_close(struct counters_outlets *o)
{
	if (o->drawn) {
		bytes_reset(&o->scratch);
		terminal_close(&o->terminal, &o->scratch);
		/* the terminal may have been closed */
		(void)output_queue_add(&o->out, o->scratch.data, o->scratch.len);
		o->drawn = false;
	}
	output_queue_close(&o->out, CLOSE_WAIT_MS);
	if (o->out.refused && !o->options.quiet)
		message_print("%llu %s not printed: the reader did not take them",
			(unsigned long long)o->out.refused,
			o->out.refused == 1 ? "interval was" : "intervals were");
	if (o->graphite)
		finish_push(o, o->graphite, "graphite");
	if (o->statsd)
		finish_push(o, o->statsd, "statsd");
	counting_push_free(o->graphite);
	counting_push_free(o->statsd);
	counting_http_free(o->http);
	output_file_close(&o->file);
	bytes_done(&o->scratch);
}
