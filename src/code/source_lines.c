/* See source_lines.h. Units and their ranges: dwarf.h; lines: dwarf_lines.h; inlined: dwarf_inlines.h. */
#include "code/source_lines.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/partition_point.h"
#include "base/strtab.h"
#include "base/vec.h"
#include "code/dwarf.h"
#include "code/dwarf_inlines.h"
#include "code/dwarf_lines.h"
#include "code/dwarf_units.h"
#include "code/go_lines.h"

struct source_lines {
	struct dwarf dwarf;
	struct strtab *strings;
	struct dwarf_line_files files;
	struct dwarf_inlines inlines;
	VEC(struct source_frame) frames;
	struct go_lines *go; /* a Go program without DWARF; NULL: DWARF */
};

/* A query and the unit that has its code. */
struct unit_query {
	uint64_t address;
	uint32_t index; /* of the query */
	uint32_t unit;  /* UINT32_MAX: none */
};

static int compare_queries(const void *left, const void *right)
{
	const struct unit_query *a = left;
	const struct unit_query *b = right;

	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	return a->index < b->index ? -1 : a->index > b->index;
}

/* Callers pass addresses in order as a rule. */
static void sort(struct unit_query *queries, uint32_t count)
{
	uint32_t i = 1;

	while (i < count && compare_queries(&queries[i - 1], &queries[i]) <= 0)
		i++;
	if (i < count)
		qsort(queries, count, sizeof(*queries), compare_queries);
}

/*
 * Groups the queries by unit: `order` has the place of each in `queries`, those of a unit in their order.
 * ends[u]: where those of unit u end. Queries without a unit are left out. Returns the most of one unit.
 */
static uint32_t group(const struct unit_query *queries, uint32_t count, uint32_t *ends,
	uint32_t unit_count, uint32_t *order)
{
	uint32_t total = 0;
	uint32_t most = 0;

	for (uint32_t i = 0; i < count; i++)
		if (queries[i].unit != UINT32_MAX)
			ends[queries[i].unit]++;
	for (uint32_t u = 0; u < unit_count; u++) {
		uint32_t of = ends[u];
		ends[u] = total; /* where its first goes, until all are there */
		total += of;
		most = of > most ? of : most;
	}
	for (uint32_t i = 0; i < count; i++)
		if (queries[i].unit != UINT32_MAX)
			order[ends[queries[i].unit]++] = i;
	return most;
}

int source_lines_open(const struct image_file *file, const struct elf *elf, struct strtab *strings,
	struct source_lines **ret_lines)
{
	struct source_lines *lines = calloc(1, sizeof(*lines));

	if (!lines)
		return -ENOMEM;
	lines->strings = strings;
	int result = dwarf_open(&lines->dwarf, file, elf);
	if (result == -ENODATA)
		result = go_lines_open(file, elf, &lines->go);
	if (result < 0) {
		source_lines_close(lines);
		return result;
	}
	*ret_lines = lines;
	return 0;
}

/* Finds the unit of each query. Both are sorted by address; ranges seldom overlap. */
static void find_units(struct dwarf *dwarf, struct unit_query *queries, uint32_t count)
{
	vec_each(range, &dwarf->ranges) {
		uint32_t low = partition_point(count, i, queries[i].address < range->begin);
		/* The first unit owns an address. */
		for (; low < count && queries[low].address < range->end &&
			dwarf->work++ < DWARF_WORK_MAX;
			low++)
			if (queries[low].unit == UINT32_MAX)
				queries[low].unit = range->unit;
	}
}

/* The frames of one query: its line, and the calls that were inlined around it. */
static int add_frames(struct source_lines *lines, const struct dwarf_line_query *line,
	struct source_query *query)
{
	const struct dwarf_inline_call *call = dwarf_inlines_call(&lines->inlines, line->call);
	struct source_frame frame = { .line = line->line };

	frame.file = line->line ? dwarf_line_path(&lines->files, line->file, lines->strings) : 0;
	query->frame_at = lines->frames.count;
	for (; call; call = dwarf_inlines_call(&lines->inlines, call->outer)) {
		frame.function = call->function;
		if (!vec_add_quick(&lines->frames, frame))
			return -ENOMEM;
		frame = (struct source_frame){
			.file = dwarf_line_path(&lines->files, call->file, lines->strings),
			.line = call->line,
		};
	}
	if (!vec_add_quick(&lines->frames, frame))
		return -ENOMEM;
	query->frame_count = lines->frames.count - query->frame_at;
	return 0;
}

static int find_in_unit(struct source_lines *lines, uint32_t unit_index,
	struct dwarf_line_query *queries, uint32_t count, struct source_query *all)
{
	const struct dwarf_unit *unit = &lines->dwarf.units.items[unit_index];
	int result = dwarf_lines_find(&lines->dwarf, unit, queries, count, &lines->files);

	if (result == -ENOMEM)
		return result;
	result = dwarf_inlines_find(&lines->inlines, &lines->dwarf, unit, queries, count,
		lines->strings);
	if (result == -ENOMEM)
		return result;
	for (uint32_t i = 0; i < count; i++) {
		if (queries[i].file == UINT32_MAX)
			continue;
		result = add_frames(lines, &queries[i], &all[queries[i].index]);
		if (result < 0)
			return result;
	}
	return 0;
}

static bool add_go_frame(void *context, const char *function, const char *file, uint32_t line)
{
	struct source_lines *lines = context;
	struct source_frame frame = { .line = line };

	frame.function = function ? strtab_add_z(lines->strings, function) : 0;
	frame.file = *file ? strtab_add_z(lines->strings, file) : 0;
	return vec_add(&lines->frames, frame);
}

static int find_in_go(struct source_lines *lines, struct source_query *queries, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		queries[i].frame_at = lines->frames.count;
		queries[i].frame_count = 0;
		if (go_lines_find(lines->go, queries[i].vaddr, add_go_frame, lines))
			queries[i].frame_count = lines->frames.count - queries[i].frame_at;
	}
	return 0;
}

int source_lines_find(struct source_lines *lines, struct source_query *queries, uint32_t count)
{
	if (lines->go)
		return find_in_go(lines, queries, count);

	uint32_t unit_count = lines->dwarf.units.count;
	cleanup(freep) struct unit_query *sorted = calloc((size_t)count + 1, sizeof(*sorted));
	cleanup(freep) uint32_t *order = calloc((size_t)count + 1, sizeof(*order));
	cleanup(freep) uint32_t *ends = calloc((size_t)unit_count + 1, sizeof(*ends));

	if (!sorted || !order || !ends)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		queries[i].frame_at = queries[i].frame_count = 0;
		sorted[i] = (struct unit_query){ queries[i].vaddr, i, UINT32_MAX };
	}
	sort(sorted, count);
	find_units(&lines->dwarf, sorted, count);
	uint32_t most = group(sorted, count, ends, unit_count, order);
	cleanup(freep) struct dwarf_line_query *of_unit =
		calloc((size_t)most + 1, sizeof(*of_unit));
	/* Most have one frame or two. */
	int result = of_unit && vec_reserve(&lines->frames, (size_t)count * 2) ? 0 : -ENOMEM;
	for (uint32_t u = 0, at = 0; u < unit_count && result == 0; u++) {
		uint32_t of = 0;
		for (; at < ends[u]; at++) {
			const struct unit_query *query = &sorted[order[at]];
			of_unit[of++] = (struct dwarf_line_query){
				.address = query->address, .index = query->index, .file = UINT32_MAX
			};
		}
		if (of)
			result = find_in_unit(lines, u, of_unit, of, queries);
	}
	return result;
}

const struct source_frame *source_lines_frame(const struct source_lines *lines, uint32_t index)
{
	return &lines->frames.items[index];
}

void source_lines_close(struct source_lines *lines)
{
	if (!lines)
		return;
	dwarf_done(&lines->dwarf);
	go_lines_close(lines->go);
	dwarf_line_files_done(&lines->files);
	dwarf_inlines_done(&lines->inlines);
	vec_done(&lines->frames);
	free(lines);
}
