/* See counters_list.h. */
#include "counters/counters_list.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/text.h"
#include "base/vec.h"
#include "counters/counter_feed.h"
#include "counters/counters.h"

struct counters_list_entry {
	const char *provider;
	const char *name;
	const char *type;
	const char *unit;
	const char *words;
	const char *tags;
	bool meter;
};

struct entries {
	VEC(struct counters_list_entry) list;
};

/* Meters first, each name once; a provider's together. */
static int by_names(const void *a, const void *b)
{
	const struct counters_list_entry *one = a;
	const struct counters_list_entry *other = b;

	if (one->meter != other->meter)
		return one->meter ? -1 : 1;
	int order = strcmp(one->provider, other->provider);

	if (!order)
		order = strcmp(one->name, other->name);
	return order ? order : strcmp(one->tags, other->tags);
}

static void collect(const struct counters_offer *offer, struct entries *entries)
{
	const struct strtab *strings = &offer->counters->strings;

	for (uint32_t i = 0; i < offer->instrument_count; i++) {
		const struct counter_instrument *instrument = &offer->instruments[i];
		const struct counters_list_entry entry = {
			.provider = strtab_get(strings, instrument->meter),
			.name = strtab_get(strings, instrument->name),
			.type = strtab_get(strings, instrument->type),
			.unit = strtab_get(strings, instrument->unit),
			.words = strtab_get(strings, instrument->description),
			.tags = strtab_get(strings, instrument->tags),
			.meter = true,
		};
		if (!instrument->ended)
			(void)vec_add(&entries->list, entry); /* without memory there is one less */
	}
	for (uint32_t i = DERIVED_COUNT; i < offer->counters->series.count; i++) {
		const struct counter_series *series = &offer->counters->series.items[i];
		const struct counters_list_entry entry = {
			.provider = strtab_get(strings, series->id.provider),
			.name = strtab_get(strings, series->id.name),
			.type = series->kind == COUNTER_SUM ? "rate" : "value",
			.unit = strtab_get(strings, series->unit),
			.words = strtab_get(strings, series->title),
			.tags = strtab_get(strings, series->id.tags),
		};
		if (series->id.source == COUNTER_EVENT_SOURCE)
			(void)vec_add(&entries->list, entry); /* as above */
	}
	if (entries->list.count)
		qsort(entries->list.items, entries->list.count, sizeof(struct counters_list_entry),
			by_names);
}

static void add_column(const char *text, size_t wide, struct bytes *out)
{
	size_t before = out->len;

	text_add_safe_z(out, text);
	size_t used = out->len > before
			      ? text_columns((const char *)out->data + before, out->len - before)
			      : 0;

	for (; used < wide; used++)
		bytes_text(out, " ");
}

struct list_widths {
	size_t name, type, unit;
};

static void widen(const char *text, size_t *most)
{
	cleanup(bytes_done) struct bytes safe = { 0 };

	text_add_safe_z(&safe, text);
	size_t wide = text_columns(bytes_z(&safe), safe.len);

	if (wide > *most)
		*most = wide;
}

/* Nothing is cut: each column is as wide as its longest text. */
static struct list_widths measure(const struct entries *entries)
{
	struct list_widths w = { 0 };

	for (uint32_t i = 0; i < entries->list.count; i++) {
		widen(entries->list.items[i].name, &w.name);
		widen(entries->list.items[i].type, &w.type);
		widen(entries->list.items[i].unit, &w.unit);
	}
	return w;
}

/* Fit to be pasted: a program may call its Meter what it likes. */
static bool is_plain(const char *name)
{
	return *name &&
	       !name[strspn(name,
		       "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")];
}

void counters_list_text(const struct counters_offer *offer, struct bytes *out)
{
	struct entries entries = { 0 };
	const struct counters_list_entry *last = NULL;
	uint32_t instruments = 0;

	collect(offer, &entries);
	for (uint32_t i = 0; i < entries.list.count; i++)
		instruments += entries.list.items[i].meter;
	text_add_safe_z(out, offer->process);
	bytes_printf(out, " (%u)", offer->pid);
	if (*offer->runtime) {
		bytes_text(out, ", .NET ");
		text_add_safe_z(out, offer->runtime);
	}
	bytes_printf(out, ": %s%s",
		TEXT_THINGS(instruments, "instrument of Meters, ", "instruments of Meters, "),
		TEXT_THINGS(entries.list.count - instruments, "EventCounter\n", "EventCounters\n"));
	const struct list_widths w = measure(&entries);

	vec_each(entry, &entries.list) {
		if (!last || last->meter != entry->meter ||
			strcmp(last->provider, entry->provider) != 0) {
			bytes_text(out, "\n");
			text_add_safe_z(out, entry->provider);
			bytes_text(out, entry->meter ? "\n" : " (EventCounters)\n");
		}
		last = entry;
		bytes_text(out, "  ");
		add_column(entry->name, w.name, out);
		bytes_text(out, "  ");
		add_column(entry->type, w.type, out);
		bytes_text(out, "  ");
		add_column(entry->unit, w.unit, out);
		bytes_text(out, "  ");
		text_add_safe_z(out, entry->words);
		if (*entry->tags) {
			bytes_text(out, " [");
			text_add_safe_z(out, entry->tags);
			bytes_text(out, "]");
		}
		while (out->len && out->data[out->len - 1] == ' ')
			out->len--;
		bytes_text(out, "\n");
	}
	if (entries.list.count && is_plain(entries.list.items[0].provider))
		bytes_printf(out, "\nnext   %s counters -p %u --counters %s\n", text_program(),
			offer->pid, entries.list.items[0].provider);
	vec_done(&entries.list);
}

void counters_list_json(const struct counters_offer *offer, struct bytes *out)
{
	struct entries entries = { 0 };
	struct json j = { .out = out };

	collect(offer, &entries);
	json_object(&j, NULL);
	json_z(&j, "process", offer->process);
	json_u64(&j, "pid", offer->pid);
	json_z(&j, "runtime", offer->runtime);
	json_array(&j, "counters");
	vec_each(entry, &entries.list) {
		json_object(&j, NULL);
		json_z(&j, "provider", entry->provider);
		json_z(&j, "name", entry->name);
		json_z(&j, "source", entry->meter ? "meter" : "event_counters");
		json_z(&j, "type", entry->type);
		json_z(&j, "unit", entry->unit);
		json_z(&j, "description", entry->words);
		json_z(&j, "tags", entry->tags);
		json_end(&j);
	}
	json_end(&j);
	json_end(&j);
	bytes_text(out, "\n");
	vec_done(&entries.list);
}
