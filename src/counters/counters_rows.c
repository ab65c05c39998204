/* See counters_rows.h. */
#include "counters/counters_rows.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/text.h"
#include "counters/counters.h"

const char counters_json_tail[] = "\n]}\n";

/* What dotnet-counters makes of a series. */
struct counters_row {
	const struct counters_view *view;
	const struct counter_series *series;
	const char *suffix; /* appended to its name; "" */
	double percentile;  /* NAN: no quantile */
	bool rate;
	double value;
};

typedef void row_fn(void *context, const struct counters_row *row);

static void each_row(const struct counters_view *view, row_fn *each, void *context)
{
	vec_each(series, &view->counters->series) {
		struct counters_row row = {
			.view = view, .series = series, .suffix = "", .percentile = NAN
		};
		if (!series->fresh || !counter_series_shows(series))
			continue;
		if (series->kind == COUNTER_HISTOGRAM) {
			for (uint32_t k = 0; k < series->quantile_count; k++) {
				row.percentile = series->quantiles[k].quantile * 100;
				row.value = series->quantiles[k].value;
				each(context, &row);
			}
			row.percentile = NAN;
			row.suffix = ".count";
			row.rate = true;
			row.value = series->rate * view->interval_s;
			if (!isnan(row.value))
				each(context, &row);
			continue;
		}
		row.rate = series->kind == COUNTER_SUM;
		row.value = row.rate ? series->rate * view->interval_s : series->value;
		if (!isnan(row.value))
			each(context, &row);
	}
}

static void add_label(const struct counters_row *row, struct bytes *out)
{
	const struct strtab *strings = &row->view->counters->strings;

	if (!*row->suffix) {
		counters_add_label(row->view->counters, row->series, row->view->interval_s, out);
		return;
	}
	bytes_printf(out, "%s%s (Count / %g sec)", strtab_get(strings, row->series->id.name),
		row->suffix, row->view->interval_s);
}

static void add_tags(const struct counters_row *row, struct bytes *out)
{
	const char *tags = strtab_get(&row->view->counters->strings, row->series->id.tags);

	bytes_text(out, tags);
	if (!isnan(row->percentile))
		bytes_printf(out, "%sPercentile=%g", *tags ? "," : "", row->percentile);
}

static const char *provider_of(const struct counters_row *row)
{
	return strtab_get(&row->view->counters->strings, row->series->id.provider);
}

static void split_time(uint64_t utc_ns, struct tm *ret_utc)
{
	time_t seconds = (time_t)(utc_ns / 1000000000u);

	gmtime_r(&seconds, ret_utc);
}

/* Parts of a second where intervals are. */
static void add_millis(const struct counters_view *view, struct bytes *out)
{
	if (view->interval_s != floor(view->interval_s))
		bytes_printf(out, ".%03u", (unsigned)(view->utc_ns % 1000000000u / 1000000u));
}

/* ---- CSV ---- */

/* Quoted only where it must be: commas in tags are semicolons there, as dotnet-counters has it. */
static void add_csv_field(const char *text, size_t len, struct bytes *out)
{
	bool quote = memchr(text, ',', len) || memchr(text, '"', len) || memchr(text, '\n', len) ||
		     memchr(text, '\r', len);

	if (!quote) {
		bytes_add(out, text, len);
		return;
	}
	bytes_text(out, "\"");
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '"')
			bytes_text(out, "\"");
		bytes_add(out, text + i, 1);
	}
	bytes_text(out, "\"");
}

void counters_csv_head(const struct counters_csv_options *options, struct bytes *out)
{
	bytes_printf(out, "Timestamp,Provider,Counter Name,Counter Type,Mean/Increment%s\n",
		options->several ? ",Process" : "");
}

struct csv {
	struct bytes *out;
	struct bytes text;
	const struct counters_csv_options *options;
};

/* A file and a pipe get the text as it is, a terminal gets it with its controls shown. */
static void add_csv_text(struct csv *csv, const char *text, size_t len)
{
	struct bytes safe = { 0 };

	if (csv->options->terminal) {
		text_add_safe(&safe, text, len);
		text = bytes_z(&safe);
		len = safe.len;
	}
	add_csv_field(text, len, csv->out);
	csv->out->failed |= safe.failed;
	bytes_done(&safe);
}

static void csv_row(void *context, const struct counters_row *row)
{
	struct csv *csv = context;
	struct tm utc;
	cleanup(bytes_done) struct bytes tags = { 0 };

	split_time(row->view->utc_ns, &utc);
	bytes_printf(csv->out, "%02d/%02d/%04d %02d:%02d:%02d", utc.tm_mon + 1, utc.tm_mday,
		utc.tm_year + 1900, utc.tm_hour, utc.tm_min, utc.tm_sec);
	add_millis(row->view, csv->out);
	bytes_text(csv->out, ",");
	add_csv_text(csv, provider_of(row), strlen(provider_of(row)));
	bytes_text(csv->out, ",");
	bytes_reset(&csv->text);
	add_label(row, &csv->text);
	add_tags(row, &tags);
	for (size_t i = 0; i < tags.len; i++) {
		if (tags.data[i] == ',')
			tags.data[i] = ';';
	}
	if (tags.len)
		bytes_printf(&csv->text, "[%s]", bytes_z(&tags));
	add_csv_text(csv, bytes_z(&csv->text), csv->text.len);
	bytes_printf(csv->out, ",%s,", row->rate ? "Rate" : "Metric");
	text_add_f64(csv->out, row->value);
	if (csv->options->several) {
		bytes_reset(&csv->text);
		bytes_printf(&csv->text, "%s (%u)", row->view->process, row->view->pid);
		bytes_text(csv->out, ",");
		add_csv_text(csv, bytes_z(&csv->text), csv->text.len);
	}
	bytes_text(csv->out, "\n");
}

void counters_csv(const struct counters_view *view, const struct counters_csv_options *options,
	struct bytes *out)
{
	struct csv csv = { .out = out, .options = options };

	each_row(view, csv_row, &csv);
	bytes_done(&csv.text);
}

/* ---- JSON ---- */

static void add_timestamp(const struct counters_view *view, uint64_t utc_ns, struct bytes *out)
{
	struct tm utc;

	split_time(utc_ns, &utc);
	bytes_printf(out, "%04d-%02d-%02d %02d:%02d:%02d", utc.tm_year + 1900, utc.tm_mon + 1,
		utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec);
	if (view)
		add_millis(view, out);
	bytes_text(out, "Z");
}

void counters_json_head(const char *process, uint64_t utc_ns, struct bytes *out)
{
	struct json j = { .out = out };
	cleanup(bytes_done) struct bytes time = { 0 };

	add_timestamp(NULL, utc_ns, &time);
	json_object(&j, NULL);
	json_z(&j, "TargetProcess", process);
	json_z(&j, "StartTime", bytes_z(&time));
	bytes_text(out, ",\"Events\":[");
}

struct json_rows {
	struct bytes *out;
	const char *separator;
	bool *first;
};

static void json_row(void *context, const struct counters_row *row)
{
	struct json_rows *rows = context;
	const struct strtab *strings = &row->view->counters->strings;
	const struct counter_series *series = row->series;
	struct json j = { .out = rows->out };
	cleanup(bytes_done) struct bytes text = { 0 };

	if (!*rows->first)
		bytes_text(rows->out, rows->separator);
	*rows->first = false;
	json_object(&j, NULL);
	add_timestamp(row->view, row->view->utc_ns, &text);
	json_text(&j, "timestamp", (const char *)text.data, text.len);
	json_z(&j, "provider", provider_of(row));
	bytes_reset(&text);
	add_label(row, &text);
	json_text(&j, "name", (const char *)text.data, text.len);
	bytes_reset(&text);
	add_tags(row, &text);
	json_text(&j, "tags", text.len ? (const char *)text.data : "", text.len);
	json_z(&j, "counterType", row->rate ? "Rate" : "Metric");
	json_f64(&j, "value", row->value);
	json_z(&j, "process", row->view->process);
	json_u64(&j, "pid", row->view->pid);
	json_z(&j, "counter", strtab_get(strings, series->id.name));
	json_z(&j, "unit", strtab_get(strings, series->unit));
	if (series->kind == COUNTER_SUM || series->kind == COUNTER_UPDOWN) {
		json_f64(&j, "added", series->delta);
		json_f64(&j, "seconds", series->seconds);
		json_f64(&j, "per_second", series->rate);
	}
	if (counter_series_adds_up(series)) {
		json_f64(&j, "since_start", series->value);
		if (series->since)
			json_z(&j, "since", counter_since_words(series) + strlen("since "));
		else
			json_null(&j, "since");
	}
	if (*row->suffix) {
		json_f64(&j, "per_second", series->rate);
		json_f64(&j, "count", series->count);
		json_f64(&j, "sum", series->sum);
	}
	json_end(&j);
}

void counters_json(const struct counters_view *view, const char *separator, bool *first,
	struct bytes *out)
{
	struct json_rows rows = { .out = out, .separator = separator, .first = first };

	each_row(view, json_row, &rows);
}

/* ---- for people ---- */

/* Three significant digits, thousands apart, no exponent where people would not write one. */
static void add_digits(double value, struct bytes *out)
{
	double size = fabs(value);

	if (size >= 1e15 || (size > 0 && size < 1e-4)) {
		bytes_printf(out, "%.3g", value);
		return;
	}
	if (size >= 999.5) {
		if (value < 0)
			bytes_text(out, "-");
		text_add_count(out, (uint64_t)(size + 0.5));
		return;
	}
	if (size == floor(size)) {
		bytes_printf(out, "%.0f", value);
		return;
	}
	int decimals = size >= 99.95 ? 0 : size >= 9.995 ? 1 : size >= 0.9995 ? 2 : 3;

	if (size < 0.0995 && size > 0)
		decimals = size < 0.00995 ? 5 : 4;
	bytes_printf(out, "%.*f", decimals, value);
}

/* The number and its unit, "171 %", "212 MB/s", "1.09 ms". */
static void counter_add_figure(double value, const char *unit, bool per_second, struct bytes *out)
{
	double size = fabs(value);

	if (!isfinite(value)) {
		bytes_text(out, isnan(value) ? "-" : value > 0 ? "infinite" : "-infinite");
		return;
	}
	if ((strcmp(unit, "By") == 0 || strcmp(unit, "B") == 0 || strcmp(unit, "By/s") == 0) &&
		size < 1e18) {
		if (value < 0)
			bytes_text(out, "-");
		bytes_printf(out, "%s%s", TEXT_SIZE((uint64_t)(size + 0.5)),
			per_second || strcmp(unit, "By/s") == 0 ? "/s" : "");
		return;
	}
	if (strcmp(unit, "s") == 0) {
		if (value < 0)
			bytes_text(out, "-");
		bytes_printf(out, "%s%s", TEXT_DURATION(size), per_second ? "/s" : "");
		return;
	}
	add_digits(value, out);
	if (unit[0] == '{' || !*unit || strcmp(unit, "1") == 0 || strcmp(unit, "Count") == 0)
		bytes_text(out, per_second ? " /s" : "");
	else {
		bytes_text(out, " ");
		text_add_safe_z(out, unit);
		bytes_text(out, per_second ? "/s" : "");
	}
}

static const char *unit_of(const struct counters_view *view, const struct counter_series *series)
{
	return strtab_get(&view->counters->strings, series->unit);
}

void counter_add_level(const struct counters_view *view, const struct counter_series *series,
	struct bytes *out)
{
	double level = counter_series_level(series);

	if (isnan(level))
		return;
	counter_add_figure(level, unit_of(view, series), series->kind == COUNTER_SUM, out);
}

static void add_quantile_name(double quantile, struct bytes *out)
{
	bytes_printf(out, "p%g", quantile * 100);
}

void counter_add_note(const struct counters_view *view, const struct counter_series *series,
	struct bytes *out)
{
	const char *unit = unit_of(view, series);

	if (series->kind == COUNTER_SUM && !isnan(series->value)) {
		counter_add_figure(series->value, unit, false, out);
		bytes_printf(out, " %s", series->since ? counter_since_words(series) : "in all");
	}
	if (series->kind == COUNTER_UPDOWN && counter_series_adds_up(series))
		bytes_printf(out, "change %s", counter_since_words(series));
	if (series->kind != COUNTER_HISTOGRAM)
		return;
	for (uint32_t k = 0; k + 1 < series->quantile_count; k++) {
		add_quantile_name(series->quantiles[k].quantile, out);
		bytes_text(out, " ");
		counter_add_figure(series->quantiles[k].value, unit, false, out);
		bytes_text(out, "  ");
	}
	if (!isnan(series->rate))
		counter_add_figure(series->rate, "", true, out);
}

/* The values of "key=value,key=value" with blanks between: a screen's keys say nothing new. */
static void add_tag_values(const char *tags, struct bytes *out)
{
	while (*tags) {
		size_t len = strcspn(tags, ",");
		const char *equals = memchr(tags, '=', len);
		const char *value = equals ? equals + 1 : tags;
		bytes_text(out, " ");
		text_add_safe(out, value, len - (size_t)(value - tags));
		tags += len + (tags[len] == ',');
	}
}

void counter_add_name(const struct counters_view *view, const struct counter_series *series,
	bool whole, struct bytes *out)
{
	const struct strtab *strings = &view->counters->strings;
	uint32_t index = series->title ? series->title : series->id.name;
	const char *tags = strtab_get(strings, series->id.tags);

	text_add_safe(out, strtab_get(strings, index), strtab_len(strings, index));
	if (whole && *tags) {
		bytes_text(out, " ");
		text_add_safe_z(out, tags);
	} else {
		add_tag_values(tags, out);
	}
	if (series->kind == COUNTER_HISTOGRAM && series->quantile_count) {
		bytes_text(out, " ");
		add_quantile_name(series->quantiles[series->quantile_count - 1].quantile, out);
	}
}

static bool has_line(const struct counter_series *series)
{
	return series->fresh && counter_series_shows(series);
}

/* The cells of a line: its provider, its name, its level, its note. */
#define LINE_CELLS 4u

struct line_cells {
	struct bytes cell[LINE_CELLS];
};

static void fill_cells(const struct counters_view *view, const struct counter_series *series,
	struct line_cells *line)
{
	for (size_t c = 0; c < LINE_CELLS; c++)
		bytes_reset(&line->cell[c]);
	if (series->id.source != COUNTER_DERIVED)
		text_add_safe_z(&line->cell[0],
			strtab_get(&view->counters->strings, series->id.provider));
	counter_add_name(view, series, true, &line->cell[1]);
	counter_add_level(view, series, &line->cell[2]);
	counter_add_note(view, series, &line->cell[3]);
}

static size_t columns_of(struct bytes *cell)
{
	return text_columns(bytes_z(cell), cell->len);
}

/* An interval's lines have the same columns. Names of any length fit: nothing is cut in a pipe. */
void counters_lines(const struct counters_view *view, struct bytes *out)
{
	struct line_cells line = { 0 };
	size_t width[LINE_CELLS] = { 0 };
	struct tm utc;

	split_time(view->utc_ns, &utc);
	for (uint32_t i = 0; i < view->counters->series.count; i++) {
		if (!has_line(&view->counters->series.items[i]))
			continue;
		fill_cells(view, &view->counters->series.items[i], &line);
		for (size_t c = 0; c < LINE_CELLS; c++)
			width[c] = columns_of(&line.cell[c]) > width[c] ? columns_of(&line.cell[c])
									: width[c];
	}
	for (uint32_t i = 0; i < view->counters->series.count; i++) {
		if (!has_line(&view->counters->series.items[i]))
			continue;
		fill_cells(view, &view->counters->series.items[i], &line);
		bytes_printf(out, "%02d:%02d:%02d", utc.tm_hour, utc.tm_min, utc.tm_sec);
		add_millis(view, out);
		bytes_text(out, " ");
		text_add_safe_z(out, view->process);
		bytes_printf(out, " (%u)", view->pid);
		for (size_t c = 0; c < LINE_CELLS; c++) {
			int blanks = (int)(width[c] - columns_of(&line.cell[c]));
			bool figure = c == 2;
			if (!width[c])
				continue;
			bytes_printf(out, "  %*s%s%*s", figure ? blanks : 0, "",
				bytes_z(&line.cell[c]), figure ? 0 : blanks, "");
		}
		while (out->data && out->data[out->len - 1] == ' ')
			out->len--;
		bytes_text(out, "\n");
	}
	for (size_t c = 0; c < LINE_CELLS; c++)
		bytes_done(&line.cell[c]);
}
