/* See report_page.h. */
#include "report/report_page.h"

#include <string.h>

#include "base/text.h"
#include "render/frame_label.h"
#include "trace/report.h"
#include "trace/symbolmap.h"
#include "trace/trace.h"

/* of the terminal's width, where there is too little room for all */
#define MODULE_PART   5u
#define TIERS_COLUMNS 14u /* in that case: "tier 1 OSR +2" */

static const char *kind_color(uint8_t kind)
{
	static const char *const colors[] = {
		[FUNCTION_UNKNOWN] = "\x1b[2m",
		[FUNCTION_KERNEL] = "\x1b[33m",
		[FUNCTION_NATIVE] = "",
		[FUNCTION_JIT] = "\x1b[32m",
		[FUNCTION_READYTORUN] = "\x1b[36m",
		[FUNCTION_STUB] = "\x1b[35m",
	};

	return colors[kind <= FUNCTION_STUB ? kind : FUNCTION_UNKNOWN];
}

void page_paint(const struct report_page *page, const char *color)
{
	if (page->options->color)
		bytes_text(page->out, color);
}

double page_share(uint64_t part, uint64_t whole)
{
	return whole ? (double)part / (double)whole : 0;
}

void page_percent(struct bytes *out, double share, bool blank)
{
	if (blank && share < 0.0005)
		bytes_text(out, "       ");
	else
		bytes_printf(out, "%5.1f %%", 100 * share);
}

void page_spaces(struct bytes *out, size_t count)
{
	while (count--)
		bytes_u8(out, ' ');
}

/* `columns` characters of a text that has more: both ends, with an ellipsis between them. */
static void add_cut(struct bytes *out, const char *text, size_t len, size_t columns)
{
	size_t have = text_columns(text, len);

	if (have <= columns || columns < 3) {
		bytes_add(out, text, len);
		return;
	}
	size_t front = (columns - 1) / 2;
	size_t back = columns - 1 - front;
	size_t at = 0;
	for (size_t i = 0; i < front; i++)
		(void)text_next_char(text, len, &at); /* only its length counts */
	bytes_add(out, text, at);
	bytes_text(out, "\xe2\x80\xa6");
	for (size_t i = front; i < have - back; i++)
		(void)text_next_char(text, len, &at);
	bytes_add(out, text + at, len - at);
}

void page_cell(struct report_page *page, size_t columns, bool last)
{
	const char *text = (const char *)page->cell.data;
	size_t len = page->cell.len;
	size_t have = text_columns(text, len);

	if (page->options->columns && have > columns) {
		add_cut(page->out, text, len, columns);
		have = columns;
	} else {
		bytes_add(page->out, text, len);
	}
	if (!last && have < columns)
		page_spaces(page->out, columns - have);
}

void page_set_cell(struct report_page *page, uint32_t text)
{
	bytes_reset(&page->cell);
	text_add_safe(&page->cell, trace_text(page->report->trace, text),
		strtab_len(&page->report->trace->strings, text));
}

size_t page_cell_columns(const struct report_page *page)
{
	return text_columns((const char *)page->cell.data, page->cell.len);
}

void page_fit_widths(const struct report_page *page, struct page_widths *widths, size_t fixed)
{
	size_t columns = page->options->columns;
	size_t behind = 2 + widths->module + (widths->tiers ? 2 + widths->tiers : 0);

	if (!columns || fixed + widths->name + behind <= columns)
		return;
	/* The name gives way last: it is what the line is about. */
	if (widths->module > columns / MODULE_PART) {
		behind -= widths->module - columns / MODULE_PART;
		widths->module = columns / MODULE_PART;
	}
	if (widths->tiers > TIERS_COLUMNS && fixed + widths->name + behind > columns) {
		behind -= widths->tiers - TIERS_COLUMNS;
		widths->tiers = TIERS_COLUMNS;
	}
	size_t room = columns > fixed + behind ? columns - fixed - behind : 0;
	if (room < NAME_COLUMNS_MIN)
		room = NAME_COLUMNS_MIN;
	if (widths->name > room)
		widths->name = room;
}

/* All tiers, or in a narrow column the last one, which replaced the others, and their number. */
static void set_tiers_cell(struct report_page *page, uint32_t tiers, size_t columns)
{
	unsigned last = 0;
	unsigned count = 0;

	bytes_reset(&page->cell);
	label_tiers(&page->cell, tiers);
	if (page_cell_columns(page) <= columns)
		return;
	for (unsigned tier = 0; tier < FUNCTION_TIER_COUNT; tier++) {
		if (!(tiers & 1u << tier))
			continue;
		last = tier;
		count++;
	}
	bytes_reset(&page->cell);
	bytes_text(&page->cell, function_tier_words((enum function_tier)last));
	if (count > 1)
		bytes_printf(&page->cell, " +%u", count - 1);
}

void page_measure(struct report_page *page, uint32_t function_index, uint32_t tiers, size_t indent,
	struct page_widths *widths)
{
	const struct function *function = &page->report->names->functions.items[function_index];

	page_set_cell(page, function->name);
	size_t name = page_cell_columns(page) + indent;
	if (name > widths->name)
		widths->name = name;
	page_set_cell(page, function->module);
	if (page_cell_columns(page) > widths->module)
		widths->module = page_cell_columns(page);
	set_tiers_cell(page, tiers, SIZE_MAX);
	if (page_cell_columns(page) > widths->tiers)
		widths->tiers = page_cell_columns(page);
}

/*
 * In the cell, the longest form of the function's name that fits: as in a flame graph arguments go
 * first, then the namespace, then the type.
 */
static void shorten_cell(struct report_page *page, uint8_t function_kind, size_t columns)
{
	const char *text = (const char *)page->cell.data;
	struct name_parts parts;

	if (!page->options->columns || page_cell_columns(page) <= columns)
		return;
	label_split(text, page->cell.len, function_kind, &parts);
	const size_t begins[] = { 0, parts.type_at, parts.method_at };

	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++) {
		size_t len = parts.head_len - begins[i];
		bool last = i + 1 == sizeof(begins) / sizeof(begins[0]);
		if (!last && text_columns(text + begins[i], len) > columns)
			continue;
		memmove(page->cell.data, page->cell.data + begins[i], len);
		page->cell.len = len;
		return;
	}
}

void page_function(struct report_page *page, uint32_t function_index, uint32_t tiers,
	size_t name_columns, const struct page_widths *widths)
{
	const struct function *function = &page->report->names->functions.items[function_index];

	page_set_cell(page, function->name);
	shorten_cell(page, function->named ? function->kind : (uint8_t)FUNCTION_UNKNOWN,
		name_columns);
	page_paint(page, kind_color(function->kind));
	page_cell(page, name_columns, !function->module && !tiers);
	if (page->options->color && *kind_color(function->kind))
		bytes_text(page->out, PAGE_RESET);
	if (function->module || tiers) {
		bytes_text(page->out, "  ");
		page_set_cell(page, function->module);
		page_cell(page, widths->module, !tiers);
	}
	if (tiers) {
		bytes_text(page->out, "  ");
		set_tiers_cell(page, tiers, page->options->columns ? widths->tiers : SIZE_MAX);
		page_cell(page, widths->tiers, true);
	}
	bytes_text(page->out, "\n");
}
