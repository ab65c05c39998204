/* See counters_metrics.h. */
#include "counters/counters_metrics.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "base/vec.h"
#include "counters/counters.h"

#define LABELS_MAX 24u

/* The next of "key=value,key=value"; a comma that is followed by no '=' belongs to the value. */
struct metric_tag {
	const char *key;
	size_t key_len;
	const char *value;
	size_t value_len;
};

static bool next_tag(const char **at, struct metric_tag *ret_tag)
{
	const char *text = *at;

	if (!*text)
		return false;
	size_t len = strcspn(text, ",");

	for (;;) {
		if (!text[len])
			break;
		size_t more = strcspn(text + len + 1, ",");
		if (memchr(text + len + 1, '=', more))
			break;
		len += 1 + more;
	}
	const char *equals = memchr(text, '=', len);

	ret_tag->key = text;
	ret_tag->key_len = equals ? (size_t)(equals - text) : len;
	ret_tag->value = equals ? equals + 1 : text + len;
	ret_tag->value_len = equals ? len - ret_tag->key_len - 1 : 0;
	*at = text + len + (text[len] == ',');
	return true;
}

static void add_number(double value, struct bytes *out)
{
	if (isnan(value))
		bytes_text(out, "NaN");
	else if (isinf(value))
		bytes_text(out, value > 0 ? "+Inf" : "-Inf");
	else
		text_add_f64(out, value);
}

/* ---- Prometheus ---- */

struct sample {
	size_t name; /* of the family, an offset into the names; NUL-terminated */
	uint32_t view;
	uint32_t series;
	const char *names; /* set before they are sorted */
};

struct families {
	struct bytes names;
	VEC(struct sample) samples;
};

static void add_name(const char *text, struct bytes *out)
{
	for (; *text; text++) {
		char c = *text;
		bool letter = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
		if (c >= 'A' && c <= 'Z')
			c = (char)(c + ('a' - 'A'));
		else if (!letter)
			c = '_';
		bytes_u8(out, (uint8_t)c);
	}
}

/* Units as OpenMetrics names them; a {thing} has none. */
static const char *unit_word(const char *unit)
{
	static const char *const words[][2] = {
		{ "s", "seconds" },
		{ "ms", "milliseconds" },
		{ "us", "microseconds" },
		{ "ns", "nanoseconds" },
		{ "min", "minutes" },
		{ "h", "hours" },
		{ "d", "days" },
		{ "By", "bytes" },
		{ "B", "bytes" },
		{ "KiBy", "kibibytes" },
		{ "MiBy", "mebibytes" },
		{ "KB", "kilobytes" },
		{ "MB", "megabytes" },
		{ "%", "percent" },
		{ "Cel", "celsius" },
		{ "Hz", "hertz" },
		{ "V", "volts" },
		{ "W", "watts" },
		{ "By/s", "bytes_per_second" },
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcmp(unit, words[i][0]) == 0)
			return words[i][1];
	}
	return NULL;
}

static bool ends_with(const struct bytes *text, size_t begin, const char *end)
{
	size_t len = strlen(end);

	return text->len - begin >= len && memcmp(text->data + text->len - len, end, len) == 0;
}

static void add_family(const struct counters *counters, const struct counter_series *series,
	struct bytes *out)
{
	const char *name = strtab_get(&counters->strings, series->id.name);
	const char *unit = unit_word(strtab_get(&counters->strings, series->unit));
	size_t begin = out->len;

	if (series->id.source != COUNTER_METER) {
		add_name(strtab_get(&counters->strings, series->id.provider), out);
		bytes_text(out, "_");
	} else if (*name >= '0' && *name <= '9') {
		bytes_text(out, "_");
	}
	add_name(name, out);
	if (unit && !ends_with(out, begin, unit))
		bytes_printf(out, "_%s", unit);
	if (series->kind == COUNTER_SUM && !ends_with(out, begin, "_total"))
		bytes_text(out, "_total");
	bytes_u8(out, 0);
}

static int by_family(const void *a, const void *b)
{
	const struct sample *one = a;
	const struct sample *other = b;
	int order = strcmp(one->names + one->name, other->names + other->name);

	if (order)
		return order;
	if (one->view != other->view)
		return one->view < other->view ? -1 : 1;
	return one->series < other->series ? -1 : one->series > other->series;
}

/* Escaped as the format has it: \\ and \n, and in a label's value \" as well. */
static void add_escaped(const char *text, size_t len, bool label, struct bytes *out)
{
	char utf8[4];

	for (size_t at = 0; at < len;) {
		uint32_t c = text_next_char(text, len, &at);
		if (c == '\\' || (c == '"' && label))
			bytes_text(out, "\\");
		if (c == '\n')
			bytes_text(out, "\\n");
		else if (text_is_control(c))
			/* the page may be printed on a terminal (curl) */
			bytes_printf(out, "\\\\u%04x", (unsigned)c);
		else
			bytes_add(out, utf8, text_put_char(utf8, c));
	}
}

struct labels {
	struct bytes *out;
	struct {
		char text[64];
	} names[LABELS_MAX];
	size_t count;
};

/* No two labels of a sample may have one name. */
static void add_label(struct labels *labels, const char *name, size_t name_len, const char *value,
	size_t value_len)
{
	char room[64];
	size_t len = 0;

	if (labels->count >= LABELS_MAX)
		return;
	if (!name_len || (name[0] >= '0' && name[0] <= '9'))
		room[len++] = '_';
	for (size_t i = 0; i < name_len && len + 2 < sizeof(room); i++) {
		char c = name[i];
		bool fits = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			    (c >= '0' && c <= '9') || c == '_';
		room[len++] = fits ? c : '_';
	}
	room[len] = '\0';
	for (size_t i = 0; i < labels->count; i++) {
		if (strcmp(labels->names[i].text, room) != 0)
			continue;
		if (len + 2 >= sizeof(room))
			return;
		room[len++] = '_';
		room[len] = '\0';
		i = (size_t)-1;
	}
	memcpy(labels->names[labels->count].text, room, len + 1);
	bytes_printf(labels->out, "%s%s=\"", labels->count ? "," : "{", room);
	add_escaped(value, value_len, true, labels->out);
	bytes_text(labels->out, "\"");
	labels->count++;
}

static void add_sample(const struct counters_view *view, const struct counter_series *series,
	const char *name, const char *suffix, double quantile, double value, struct bytes *out)
{
	const struct strtab *strings = &view->counters->strings;
	const char *provider = strtab_get(strings, series->id.provider);
	const char *version = strtab_get(strings, series->id.version);
	const char *tags = strtab_get(strings, series->id.tags);
	struct labels labels = { .out = out };
	cleanup(bytes_done) struct bytes number = { 0 };
	struct metric_tag tag;

	bytes_text(out, name);
	bytes_text(out, suffix);
	bytes_printf(&number, "%u", view->pid);
	add_label(&labels, "process", 7, view->process, strlen(view->process));
	add_label(&labels, "pid", 3, bytes_z(&number), number.len);
	if (series->id.source == COUNTER_METER) {
		add_label(&labels, "meter", 5, provider, strlen(provider));
		if (*version)
			add_label(&labels, "meter_version", 13, version, strlen(version));
	}
	if (!isnan(quantile)) {
		bytes_reset(&number);
		text_add_f64(&number, quantile);
		add_label(&labels, "quantile", 8, bytes_z(&number), number.len);
	}
	while (next_tag(&tags, &tag))
		add_label(&labels, tag.key, tag.key_len, tag.value, tag.value_len);
	bytes_text(out, "} ");
	add_number(value, out);
	bytes_text(out, "\n");
}

static void add_series(const struct counters_view *view, const struct counter_series *series,
	const char *name, struct bytes *out)
{
	if (series->kind != COUNTER_HISTOGRAM) {
		double value = series->value;
		if (isnan(value) && (series->kind == COUNTER_SUM || series->kind == COUNTER_UPDOWN))
			value = series->total;
		add_sample(view, series, name, "", NAN, value, out);
		return;
	}
	for (uint32_t i = 0; i < series->quantile_count; i++)
		add_sample(view, series, name, "", series->quantiles[i].quantile,
			series->quantiles[i].value, out);
	if (isnan(series->count))
		return;
	add_sample(view, series, name, "_sum", NAN, series->total_sum, out);
	add_sample(view, series, name, "_count", NAN, series->total, out);
}

static const char *type_of(const struct counter_series *series)
{
	static const char *const types[] = {
		[COUNTER_GAUGE] = "gauge",
		[COUNTER_SUM] = "counter",
		[COUNTER_UPDOWN] = "gauge",
		[COUNTER_HISTOGRAM] = "summary",
	};

	return types[series->kind];
}

static const struct counter_series *series_of(const struct counters_view *views,
	const struct sample *sample)
{
	return &views[sample->view].counters->series.items[sample->series];
}

/* Two Meters may give one name to different things: then the family has no type. */
static void add_head(const struct counters_view *views, const struct sample *first, size_t count,
	const char *name, struct bytes *out)
{
	const struct counter_series *series = series_of(views, first);
	const struct counters *counters = views[first->view].counters;
	const char *help = strtab_get(&counters->strings,
		series->description ? series->description : series->title);
	const char *type = type_of(series);

	for (size_t i = 1; i < count; i++) {
		if (strcmp(type_of(series_of(views, first + i)), type) != 0)
			type = "untyped";
	}
	if (*help) {
		bytes_printf(out, "# HELP %s ", name);
		add_escaped(help, strlen(help), false, out);
		bytes_text(out, "\n");
	}
	bytes_printf(out, "# TYPE %s %s\n", name, type);
}

void counters_prometheus(const struct counters_view *views, size_t count, struct bytes *out)
{
	struct families families = { 0 };

	for (uint32_t v = 0; v < count; v++) {
		const struct counters *counters = views[v].counters;
		for (uint32_t i = 0; i < counters->series.count; i++) {
			const struct counter_series *series = &counters->series.items[i];
			struct sample *sample =
				counter_series_shows(series) ? vec_push(&families.samples) : NULL;
			if (!sample)
				continue;
			*sample = (struct sample){
				.name = families.names.len, .view = v, .series = i
			};
			add_family(counters, series, &families.names);
		}
	}
	if (families.names.failed)
		out->failed = true;
	for (uint32_t i = 0; i < families.samples.count; i++)
		families.samples.items[i].names = (const char *)families.names.data;
	if (families.samples.count && !out->failed)
		qsort(families.samples.items, families.samples.count, sizeof(struct sample),
			by_family);
	for (uint32_t i = 0; i < families.samples.count && !out->failed;) {
		const struct sample *first = &families.samples.items[i];
		const char *name = first->names + first->name;
		uint32_t end = i + 1;
		while (end < families.samples.count &&
			strcmp(families.samples.items[end].names + families.samples.items[end].name,
				name) == 0)
			end++;
		add_head(views, first, end - i, name, out);
		for (; i < end; i++) {
			const struct sample *sample = &families.samples.items[i];
			add_series(&views[sample->view], series_of(views, sample), name, out);
		}
	}
	vec_done(&families.samples);
	bytes_done(&families.names);
}

/* ---- Graphite and StatsD ---- */

/* What a path may hold; the dots of a name part it, those of others would. */
static void add_part(const char *text, size_t len, bool dots, struct bytes *out)
{
	if (!len)
		bytes_text(out, "_");
	for (size_t i = 0; i < len; i++) {
		char c = text[i];
		bool fits = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			    (c >= '0' && c <= '9') || c == '_' || c == '-' ||
			    (c == '.' && dots && i && i + 1 < len && text[i - 1] != '.');
		bytes_u8(out, (uint8_t)(fits ? c : '_'));
	}
}

static void add_path(const struct counters_view *view, const struct counter_series *series,
	const char *host, bool with_pid, struct bytes *out)
{
	const struct strtab *strings = &view->counters->strings;
	const char *provider = strtab_get(strings, series->id.provider);
	const char *name = strtab_get(strings, series->id.name);
	const char *tags = strtab_get(strings, series->id.tags);
	struct metric_tag tag;

	bytes_text(out, "spoor.");
	add_part(host, strlen(host), false, out);
	bytes_text(out, ".");
	add_part(view->process, strlen(view->process), false, out);
	if (with_pid)
		bytes_printf(out, "-%u", view->pid);
	bytes_text(out, ".");
	if (series->id.source != COUNTER_DERIVED) {
		add_part(provider, strlen(provider), false, out);
		bytes_text(out, ".");
	}
	add_part(name, strlen(name), true, out);
	while (next_tag(&tags, &tag)) {
		bytes_text(out, ".");
		add_part(tag.value_len ? tag.value : tag.key,
			tag.value_len ? tag.value_len : tag.key_len, false, out);
	}
}

typedef void line_fn(const struct counters_view *view, const char *suffix, double value,
	double delta, struct bytes *out);

/* `delta` NAN: a level. Each line is the path and what `line` makes of it. */
static void each_line(const struct counters_view *view, const char *host, bool with_pid,
	line_fn *line, struct bytes *out)
{
	vec_each(series, &view->counters->series) {
		struct bytes path = { 0 };
		char suffix[32];
		if (!series->fresh || !counter_series_shows(series))
			continue;
		add_path(view, series, host, with_pid, &path);
		if (series->kind == COUNTER_HISTOGRAM) {
			for (uint32_t k = 0; k < series->quantile_count; k++) {
				if (!isfinite(series->quantiles[k].value))
					continue; /* neither Graphite nor StatsD can express it */
				/* "p99", "p99_9": a dot would part it. */
				int len = snprintf(suffix, sizeof(suffix), ".p%g",
					series->quantiles[k].quantile * 100);
				for (int c = 2; c < len && c < (int)sizeof(suffix); c++)
					suffix[c] = suffix[c] == '.' ? '_' : suffix[c];
				bytes_add(out, path.data, path.len);
				line(view, suffix, series->quantiles[k].value, NAN, out);
			}
			if (isfinite(series->rate)) {
				bytes_add(out, path.data, path.len);
				line(view, ".count", series->rate, series->count, out);
			}
		} else {
			bool sum = series->kind == COUNTER_SUM;
			double value = sum ? series->rate : series->value;
			if (isfinite(value)) {
				bytes_add(out, path.data, path.len);
				line(view, "", value, sum ? series->delta : NAN, out);
			}
		}
		out->failed |= path.failed;
		bytes_done(&path);
	}
}

static void graphite_line(const struct counters_view *view, const char *suffix, double value,
	double delta, struct bytes *out)
{
	(void)delta;
	bytes_printf(out, "%s ", suffix);
	add_number(value, out);
	bytes_printf(out, " %" PRIu64 "\n", view->utc_ns / 1000000000u);
}

void counters_graphite(const struct counters_view *view, const char *host, bool with_pid,
	struct bytes *out)
{
	each_line(view, host, with_pid, graphite_line, out);
}

/* In StatsD a signed value is a change, so a negative gauge is set to 0 first. `out`: the path. */
static void statsd_line(const struct counters_view *view, const char *suffix, double value,
	double delta, struct bytes *out)
{
	size_t begin = out->len;

	(void)view;
	while (begin && out->data[begin - 1] != '\n')
		begin--;
	bytes_text(out, suffix);
	size_t path_len = out->len - begin;

	if (isnan(delta) && value < 0) {
		bytes_text(out, ":0|g\n");
		uint8_t *room = bytes_reserve(out, path_len);
		if (!room)
			return;
		memcpy(room, out->data + begin, path_len);
		out->len += path_len;
	}
	bytes_text(out, ":");
	add_number(isnan(delta) ? value : delta, out);
	bytes_text(out, isnan(delta) ? "|g\n" : "|c\n");
}

void counters_statsd(const struct counters_view *view, const char *host, bool with_pid,
	struct bytes *out)
{
	each_line(view, host, with_pid, statsd_line, out);
}
