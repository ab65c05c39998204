/* See counters_table.h. */
#include "counters/counters_table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "base/vec.h"
#include "counters/counters.h"
#include "counters/counters_rows.h"

#define FIGURE_COLUMNS  12u
#define PROCESS_COLUMNS 16u
#define NAME_LEAST      16u
#define NAME_MOST       60u
#define SPARK_COLUMNS   20u
#define NOTE_LEAST      16u
#define KEYS            "p pause  r resume  q quit"

/* A row: a series by its names, with each process's value; or a provider's heading. */
struct table_row {
	const struct counters_view *view; /* the first that has it */
	const struct counter_series *series;
	const char *provider;
	const char *name;
	const char *tags;
	uint32_t source;
	bool heading;
};

struct screen_text {
	struct counters_table *table;
	struct bytes *out;
	unsigned lines; /* drawn */
};

static bool begin_line(struct screen_text *s)
{
	if (s->lines >= s->table->lines)
		return false;
	if (s->lines++)
		bytes_text(s->out, "\x1b[K\r\n");
	return true;
}

/* At most `columns` characters of it; how many there were. */
static unsigned add_cut(const char *text, size_t len, unsigned columns, struct bytes *out)
{
	size_t at = 0;
	unsigned used = 0;
	bool cut = text_columns(text, len) > columns;
	unsigned room = cut && columns ? columns - 1 : columns;

	while (at < len && used < room) {
		(void)text_next_char(text, len, &at);
		used++;
	}
	bytes_add(out, text, at);
	if (cut && columns) {
		bytes_text(out, "\u2026");
		used++;
	}
	return used;
}

/* At most `columns` characters, cut in the middle: names differ at their begin or end. */
static unsigned add_cut_middle(const char *text, size_t len, unsigned columns, struct bytes *out)
{
	size_t wide = text_columns(text, len);
	size_t at = 0;

	if (wide <= columns || columns < 8)
		return add_cut(text, len, columns, out);
	unsigned tail = columns / 2;

	for (unsigned i = 0; i + 1 < columns - tail; i++)
		(void)text_next_char(text, len, &at);
	bytes_add(out, text, at);
	bytes_text(out, "\u2026");
	while (text_columns(text + at, len - at) > tail)
		(void)text_next_char(text, len, &at);
	bytes_add(out, text + at, len - at);
	return columns;
}

static void add_blanks(unsigned count, struct bytes *out)
{
	for (; count; count--)
		bytes_text(out, " ");
}

static void add_left(const struct bytes *text, unsigned columns, struct bytes *out)
{
	unsigned used =
		text->len ? add_cut_middle((const char *)text->data, text->len, columns, out) : 0;

	add_blanks(columns - used, out);
}

static void add_right(const struct bytes *text, unsigned columns, struct bytes *out)
{
	size_t wide = text->len ? text_columns((const char *)text->data, text->len) : 0;

	add_blanks(wide < columns ? columns - (unsigned)wide : 0, out);
	if (text->len)
		/* as wide as it is */
		(void)add_cut((const char *)text->data, text->len, columns, out);
}

/* A line in a single colour. */
static void add_line(struct screen_text *s, const struct bytes *text, const char *color)
{
	if (!begin_line(s))
		return;
	if (s->table->color && *color)
		bytes_text(s->out, color);
	if (text->len)
		/* as wide as it is */
		(void)add_cut((const char *)text->data, text->len, s->table->columns, s->out);
	if (s->table->color && *color)
		bytes_text(s->out, "\x1b[0m");
}

static int by_names(const void *a, const void *b)
{
	const struct table_row *one = a;
	const struct table_row *other = b;

	if ((one->source == COUNTER_DERIVED) != (other->source == COUNTER_DERIVED))
		return one->source == COUNTER_DERIVED ? -1 : 1;
	if (one->source == COUNTER_DERIVED) {
		uint32_t one_index = (uint32_t)(one->series - one->view->counters->series.items);
		uint32_t other_index =
			(uint32_t)(other->series - other->view->counters->series.items);
		return one_index < other_index ? -1 : one_index > other_index;
	}
	int order = strcmp(one->provider, other->provider);

	if (!order)
		order = strcmp(one->name, other->name);
	if (!order)
		order = strcmp(one->tags, other->tags);
	if (!order)
		order = one->source < other->source ? -1 : one->source > other->source;
	return order;
}

struct rows {
	VEC(struct table_row) list;
};

static void add_row(struct rows *rows, const struct counters_view *view,
	const struct counter_series *series)
{
	const struct strtab *strings = &view->counters->strings;
	const struct table_row row = {
		.view = view,
		.series = series,
		.provider = strtab_get(strings, series->id.provider),
		.name = strtab_get(strings, series->id.name),
		.tags = strtab_get(strings, series->id.tags),
		.source = series->id.source,
	};

	(void)vec_add(&rows->list, row); /* without memory there is a row less */
}

/* Every series that any of them shows, once, in order. */
static void collect(const struct counters_view *views, size_t count, struct rows *rows)
{
	uint32_t kept = 0;

	for (size_t v = 0; v < count; v++) {
		for (uint32_t i = 0; i < views[v].counters->series.count; i++) {
			if (counter_series_shows(&views[v].counters->series.items[i]))
				add_row(rows, &views[v], &views[v].counters->series.items[i]);
		}
	}
	if (!rows->list.count)
		return;
	qsort(rows->list.items, rows->list.count, sizeof(struct table_row), by_names);
	for (uint32_t i = 0; i < rows->list.count; i++) {
		if (!kept || by_names(&rows->list.items[kept - 1], &rows->list.items[i]) != 0)
			rows->list.items[kept++] = rows->list.items[i];
	}
	rows->list.count = kept;
}

/* A heading in front of each provider's rows. */
static void add_headings(const struct rows *rows, struct rows *out)
{
	const char *last = NULL;

	vec_each(row, &rows->list) {
		if (row->source != COUNTER_DERIVED && (!last || strcmp(last, row->provider) != 0)) {
			struct table_row heading = *row;
			heading.heading = true;
			(void)vec_add(&out->list, heading); /* as above */
			last = row->provider;
		}
		(void)vec_add(&out->list, *row); /* as above */
	}
}

/* The same series of another process. */
static const struct counter_series *find(const struct counters_view *view,
	const struct table_row *row)
{
	if (view == row->view)
		return row->series;
	vec_each(series, &view->counters->series) {
		const struct strtab *strings = &view->counters->strings;
		if (series->id.source == row->source && counter_series_shows(series) &&
			strcmp(strtab_get(strings, series->id.name), row->name) == 0 &&
			strcmp(strtab_get(strings, series->id.tags), row->tags) == 0 &&
			strcmp(strtab_get(strings, series->id.provider), row->provider) == 0)
			return series;
	}
	return NULL;
}

/*
 * The last minute in eighths of a line, the greatest of it as the whole. Several intervals share a
 * column: the greatest counts.
 */
static void add_spark(const struct counter_series *series, struct bytes *out)
{
	static const char *const bars[] = { "\u2581", "\u2582", "\u2583", "\u2584", "\u2585",
		"\u2586", "\u2587", "\u2588" };
	float columns[SPARK_COLUMNS];
	uint32_t share = COUNTERS_HISTORY / SPARK_COLUMNS;
	uint32_t used = (series->history_count + share - 1) / share;
	float most = 0;

	for (uint32_t i = 0; i < used; i++)
		columns[i] = NAN;
	for (uint32_t i = 0; i < series->history_count; i++) {
		/* The newest ends the last column; older ones fill it and those before. */
		uint32_t age = series->history_count - 1u - i;
		float *column = &columns[used - 1 - age / share];
		uint32_t at =
			(series->history_next + COUNTERS_HISTORY - 1u - age) % COUNTERS_HISTORY;
		float value = series->history[at];
		if (isfinite(value) && (isnan(*column) || value > *column))
			*column = value;
		if (isfinite(value) && value > most)
			most = value;
	}
	add_blanks(SPARK_COLUMNS - used, out);
	for (uint32_t i = 0; i < used; i++) {
		double part = most > 0 ? (double)columns[i] / (double)most : 0;
		if (isnan(columns[i]))
			bytes_text(out, " ");
		else
			bytes_text(out, bars[part <= 0      ? 0
						: part >= 1 ? 7
							    : (size_t)(part * 7 + 0.5)]);
	}
}

static void add_clock(uint64_t utc_ns, struct bytes *out)
{
	time_t seconds = (time_t)(utc_ns / 1000000000u);
	struct tm utc;

	gmtime_r(&seconds, &utc);
	bytes_printf(out, "%02d:%02d:%02d UTC", utc.tm_hour, utc.tm_min, utc.tm_sec);
}

static void add_title(struct screen_text *s, const struct counters_view *views, size_t count)
{
	struct bytes text = { 0 };

	if (count == 1) {
		text_add_safe_z(&text, views->process);
		bytes_printf(&text, " (%u)", views->pid);
		if (*views->runtime) {
			bytes_text(&text, "  .NET ");
			text_add_safe_z(&text, views->runtime);
		}
	} else {
		text_add_things(&text, count, "process", "processes");
	}
	bytes_text(&text, s->table->paused ? "  (paused)  " : "  ");
	add_clock(s->table->utc_ns, &text);
	bytes_printf(&text, "  refresh %g s  " KEYS, views->interval_s);
	add_line(s, &text, "\x1b[1m");
	bytes_done(&text);
	if (*s->table->notice) {
		struct bytes notice = { 0 };
		text_add_safe_z(&notice, s->table->notice);
		add_line(s, &notice, "\x1b[33m");
		bytes_done(&notice);
	}
}

/* How wide the columns are, and which there are. */
struct table_widths {
	unsigned name;
	bool spark;
	unsigned note;      /* 0: none */
	uint32_t processes; /* side by side; one process has the other form */
};

static unsigned widest_name(const struct rows *rows)
{
	cleanup(bytes_done) struct bytes name = { 0 };
	size_t most = NAME_LEAST;

	vec_each(row, &rows->list) {
		if (row->heading)
			continue;
		bytes_reset(&name);
		counter_add_name(row->view, row->series, false, &name);
		size_t wide = (name.len ? text_columns((const char *)name.data, name.len) : 0) +
			      (row->source != COUNTER_DERIVED);
		if (wide > most)
			most = wide;
	}
	return most < NAME_MOST ? (unsigned)most : NAME_MOST;
}

static struct table_widths measure(const struct counters_table *table, const struct rows *rows,
	size_t count)
{
	struct table_widths w = { .name = widest_name(rows), .processes = 1 };
	unsigned figures = count == 1 ? FIGURE_COLUMNS : PROCESS_COLUMNS;
	unsigned least = figures + NAME_LEAST;

	if (count == 1 && table->columns >= least + SPARK_COLUMNS + 2 &&
		w.name + figures + SPARK_COLUMNS + 2 > table->columns)
		/* the columns of the last minute are worth more than the end of a name */
		w.name = table->columns - figures - SPARK_COLUMNS - 2;
	else if (w.name + figures > table->columns)
		w.name = table->columns > least ? table->columns - figures : NAME_LEAST;
	unsigned left = table->columns > w.name + figures ? table->columns - w.name - figures : 0;

	if (count > 1) {
		w.processes = 1 + left / PROCESS_COLUMNS;
		return w;
	}
	w.note = left > NOTE_LEAST + 2 ? left - 2 : 0;
	if (left >= SPARK_COLUMNS + 2) {
		w.spark = true;
		w.note = left > SPARK_COLUMNS + 4 + NOTE_LEAST ? left - SPARK_COLUMNS - 4 : 0;
	}
	return w;
}

static void draw_row(struct screen_text *s, const struct table_widths *w,
	const struct table_row *row, const struct counters_view *views, size_t count)
{
	cleanup(bytes_done) struct bytes text = { 0 };
	cleanup(bytes_done) struct bytes line = { 0 };
	bool several = count > 1;

	if (row->heading) {
		text_add_safe_z(&text, row->provider);
		add_line(s, &text, "\x1b[36m");
		return;
	}
	if (row->source != COUNTER_DERIVED)
		bytes_text(&text, " ");
	counter_add_name(row->view, row->series, false, &text);
	add_left(&text, w->name, &line);
	for (uint32_t k = 0;
		k < (several ? w->processes : 1) && s->table->first_process + k < count; k++) {
		const struct counters_view *view =
			&views[several ? s->table->first_process + k : 0];
		const struct counter_series *series = find(view, row);
		bytes_reset(&text);
		if (series)
			counter_add_level(view, series, &text);
		add_right(&text, several ? PROCESS_COLUMNS : FIGURE_COLUMNS, &line);
	}
	if (!several && w->spark) {
		bytes_text(&line, "  ");
		add_spark(row->series, &line);
	}
	if (!several && w->note) {
		bytes_reset(&text);
		counter_add_note(row->view, row->series, &text);
		bytes_text(&line, "  ");
		if (text.len)
			/* as wide as it is */
			(void)add_cut((const char *)text.data, text.len, w->note, &line);
	}
	add_line(s, &line, "");
}

static void draw_heading(struct screen_text *s, const struct table_widths *w,
	const struct counters_view *views, size_t count)
{
	cleanup(bytes_done) struct bytes text = { 0 };
	cleanup(bytes_done) struct bytes line = { 0 };

	add_blanks(w->name, &line);
	if (count == 1) {
		bytes_text(&text, "now");
		add_right(&text, FIGURE_COLUMNS, &line);
		if (w->spark) {
			/* As long as the history is: its intervals. */
			double span_s = views->interval_s * COUNTERS_HISTORY;
			bytes_reset(&text);
			if (span_s >= 60)
				bytes_printf(&text, "%g min", span_s / 60);
			else
				bytes_printf(&text, "%g s", span_s);
			bytes_text(&line, "  ");
			add_right(&text, SPARK_COLUMNS, &line);
		}
	} else {
		for (uint32_t k = 0; k < w->processes && s->table->first_process + k < count; k++) {
			const struct counters_view *view = &views[s->table->first_process + k];
			char pid[16];
			int pid_len = snprintf(pid, sizeof(pid), " %u", view->pid);
			struct bytes name = { 0 };
			bytes_reset(&text);
			text_add_safe_z(&name, view->process);
			if (name.len)
				/* any */
				(void)add_cut((const char *)name.data, name.len,
					PROCESS_COLUMNS - 1 - (unsigned)pid_len, &text);
			bytes_text(&text, pid);
			add_right(&text, PROCESS_COLUMNS, &line);
			bytes_done(&name);
		}
	}
	add_line(s, &line, "\x1b[2m");
}

/* The number of rows and counters that are not on the screen, and the keys that show them. */
static void draw_rest(struct screen_text *s, uint32_t above, uint32_t below, size_t hidden)
{
	cleanup(bytes_done) struct bytes text = { 0 };

	if (above || below)
		text_add_things(&text, above, "row", "rows");
	if (above || below)
		bytes_printf(&text, " above, %u below: arrows up and down. ", below);
	if (hidden)
		text_add_things(&text, hidden, "more process: arrows left and right.",
			"more processes: arrows left and right.");
	add_line(s, &text, "\x1b[2m");
}

void counters_table_draw(struct counters_table *table, const struct counters_view *views,
	size_t count, struct bytes *out)
{
	struct screen_text s = { .table = table, .out = out };
	struct rows series = { 0 };
	struct rows rows = { 0 };

	if (!count || !table->lines || !table->columns)
		return;
	collect(views, count, &series);
	add_headings(&series, &rows);
	if (table->first_process >= count)
		table->first_process = (uint32_t)count - 1;
	const struct table_widths w = measure(table, &rows, count);
	size_t shown = count == 1                                   ? 1
		       : w.processes < count - table->first_process ? w.processes
								    : count - table->first_process;

	add_title(&s, views, count);
	draw_heading(&s, &w, views, count);
	if (!rows.list.count) {
		struct bytes text = { 0 };
		text_add_safe_z(&text,
			*views->trouble ? views->trouble : "waiting for the first values");
		add_line(&s, &text, "");
		bytes_done(&text);
	}
	uint32_t room = table->lines > s.lines ? table->lines - s.lines : 0;
	bool rest = rows.list.count > room || shown < count;

	if (rest && room > 3)
		room--;
	uint32_t last = rows.list.count > room ? rows.list.count - room : 0;

	if (table->first_row > last)
		table->first_row = last;
	uint32_t end = rows.list.count - table->first_row < room ? rows.list.count
								 : table->first_row + room;

	for (uint32_t i = table->first_row; i < end; i++)
		draw_row(&s, &w, &rows.list.items[i], views, count);
	if (rest && room >= 3 && s.lines < table->lines)
		draw_rest(&s, table->first_row, rows.list.count - end, count - shown);
	bytes_text(out, "\x1b[K");
	vec_done(&series.list);
	vec_done(&rows.list);
}
