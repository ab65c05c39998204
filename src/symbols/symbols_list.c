/* See symbols_list.h. */
#include "symbols/symbols_list.h"

#include "analysis/missing_symbols.h"
#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/text.h"
#include "symbolize/symbol_cache.h"
#include "symbols/symbol_names.h"
#include "trace/trace.h"

#define DAY_S (24 * 3600)

/* "absent", "present" ...: the words of the JSON. */
static const char *symbol_state_word(uint8_t state)
{
	static const char *const words[] = {
		[SYMBOLS_ABSENT] = "absent",
		[SYMBOLS_NO_ID] = "no-build-id",
		[SYMBOLS_WRONG] = "damaged",
		[SYMBOLS_UNSUITABLE] = "unsuitable",
		[SYMBOLS_USED] = "present",
	};

	return state < sizeof(words) / sizeof(words[0]) ? words[state] : "";
}

/* Columns that hold numbers are right-aligned. */
static void add_count(struct bytes *out, uint64_t count, size_t width)
{
	cleanup(bytes_done) struct bytes cell = { 0 };

	text_add_count(&cell, count);
	bytes_printf(out, "%*s", (int)width, bytes_z(&cell));
}

void symbols_list_text(const struct missing_symbols *missing, const struct symbol_names *found,
	struct bytes *out)
{
	const struct trace *trace = missing->trace;

	if (!missing->images.count)
		return;
	bytes_text(out, "    FRAMES   SHARE  FUNCTIONS  SYMBOLS      IMAGE\n");
	for (uint32_t i = 0; i < missing->images.count; i++) {
		const struct missing_image *image = &missing->images.items[i];
		add_count(out, image->frames, 10);
		bytes_printf(out, "  %5.1f%%",
			100 * (double)image->frames / (double)missing->frames);
		add_count(out, image->functions, 11);
		bytes_printf(out, "  %-11s  ", symbol_state_word(found->states.items[i]));
		text_add_safe_z(out, text_base_name(trace_text(trace, image->path)));
		if (image->build_id)
			bytes_printf(out, "  %s", trace_text(trace, image->build_id));
		bytes_text(out, "\n");
	}
}

void symbols_list_json(const struct missing_symbols *missing, const struct symbol_names *found,
	const char *file, struct bytes *out)
{
	const struct trace *trace = missing->trace;
	struct json j = { .out = out };

	json_object(&j, NULL);
	json_z(&j, "file", file);
	json_u64(&j, "frames", missing->frames);
	json_u64(&j, "frames_without_symbols", missing->missing_frames);
	json_u64(&j, "frames_named", found->frames);
	json_array(&j, "images");
	for (uint32_t i = 0; i < missing->images.count; i++) {
		const struct missing_image *image = &missing->images.items[i];
		json_object(&j, NULL);
		json_z(&j, "image", text_base_name(trace_text(trace, image->path)));
		json_z(&j, "path", trace_text(trace, image->path));
		if (image->build_id)
			json_z(&j, "build_id", trace_text(trace, image->build_id));
		else
			json_null(&j, "build_id");
		json_u64(&j, "frames", image->frames);
		json_u64(&j, "functions", image->functions);
		json_z(&j, "symbols", symbol_state_word(found->states.items[i]));
		json_u64(&j, "frames_named", found->by_image.items[i]);
		json_end(&j);
	}
	json_end(&j);
	json_end(&j);
	bytes_text(out, "\n");
}

static uint64_t age_days(const struct symbol_cache_entry *entry, int64_t now_s)
{
	return now_s > entry->used_s ? (uint64_t)(now_s - entry->used_s) / DAY_S : 0;
}

void symbol_cache_text(const struct symbol_cache_list *list, const char *folder, int64_t now_s,
	struct bytes *out)
{
	cleanup(bytes_done) struct bytes cell = { 0 };

	for (uint32_t i = 0; i < list->entries.count; i++) {
		const struct symbol_cache_entry *entry = &list->entries.items[i];
		if (!i)
			bytes_text(out, "      SIZE  UNUSED FOR  BUILD ID\n");
		bytes_reset(&cell);
		text_add_size(&cell, entry->size_bytes);
		bytes_printf(out, "%10s", bytes_z(&cell));
		bytes_reset(&cell);
		text_add_things(&cell, age_days(entry, now_s), "day", "days");
		bytes_printf(out, "  %10s  %s\n", bytes_z(&cell), entry->build_id);
	}
	bytes_printf(out, "%s%s in ", TEXT_THINGS(list->entries.count, "file, ", "files, "),
		TEXT_SIZE(list->size_bytes));
	text_add_safe_z(out, folder);
	bytes_text(out, "\n");
}

void symbol_cache_json(const struct symbol_cache_list *list, const char *folder, int64_t now_s,
	struct bytes *out)
{
	struct json j = { .out = out };

	json_object(&j, NULL);
	json_z(&j, "folder", folder);
	json_u64(&j, "size_bytes", list->size_bytes);
	json_array(&j, "files");
	for (uint32_t i = 0; i < list->entries.count; i++) {
		const struct symbol_cache_entry *entry = &list->entries.items[i];
		json_object(&j, NULL);
		json_z(&j, "build_id", entry->build_id);
		json_u64(&j, "size_bytes", entry->size_bytes);
		json_u64(&j, "unused_days", age_days(entry, now_s));
		json_end(&j);
	}
	json_end(&j);
	json_end(&j);
	bytes_text(out, "\n");
}
