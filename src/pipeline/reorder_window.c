/* See reorder_window.h. */
#include "pipeline/reorder_window.h"

#include <stdlib.h>
#include <string.h>

#include "base/partition_point.h"

struct pending *reorder_window_add(struct reorder_window *window)
{
	struct pending *item = vec_push(&window->items);

	if (item)
		item->sequence = window->sequence++;
	return item;
}

/* Removes the items that have left from the array. */
static void compact(struct reorder_window *window)
{
	uint32_t left = window->items.count - window->taken;

	if (window->taken)
		memmove(window->items.items, window->items.items + window->taken,
			left * sizeof(struct pending));
	window->items.count = left;
	window->ordered -= window->taken;
	window->ready -= window->taken;
	window->taken = 0;
}

static bool is_before(const struct pending *x, const struct pending *y)
{
	return x->time_ns != y->time_ns ? x->time_ns < y->time_ns
					: (int32_t)(x->sequence - y->sequence) < 0;
}

/* The end of the sorted run that begins at `at`. */
static uint32_t run_end(const struct pending *items, uint32_t at, uint32_t count)
{
	do
		at++;
	while (at < count && !is_before(&items[at], &items[at - 1]));
	return at;
}

/* The index of the first item in the run [begin, end) that sorts after `item`. */
static uint32_t place_of(const struct pending *items, uint32_t begin, uint32_t end,
	const struct pending *item)
{
	while (begin < end) {
		uint32_t middle = begin + (end - begin) / 2;
		if (is_before(item, &items[middle]))
			end = middle;
		else
			begin = middle + 1;
	}
	return begin;
}

/*
 * Merges the sorted runs [begin, middle) and [middle, end). Only the part where they overlap in
 * time is moved: items of the left run that sort after the first item of the right run are copied
 * to `spare`. Returns false without memory; then nothing has changed.
 */
static bool merge_runs(struct reorder_window *window, uint32_t begin, uint32_t middle, uint32_t end)
{
	struct pending *items = window->items.items;
	uint32_t at = place_of(items, begin, middle, &items[middle]);
	uint32_t aside = middle - at;
	uint32_t left = 0;
	uint32_t right = middle;

	if (!aside)
		return true;
	vec_reset(&window->spare);
	if (!vec_reserve(&window->spare, aside))
		return false;
	const struct pending *moved = window->spare.items;

	memcpy(window->spare.items, items + at, aside * sizeof(*items));
	while (left < aside && right < end)
		items[at++] =
			is_before(&items[right], &moved[left]) ? items[right++] : moved[left++];
	memcpy(items + at, moved + left, (aside - left) * sizeof(*items));
	return true;
}

/*
 * Sorts the items that were added since the last call, then merges them into the sorted ones. Each
 * source adds one sorted run at a time, so there are few runs: neighbors are merged until one is
 * left. Returns false without memory.
 */
static bool order(struct reorder_window *window)
{
	uint32_t begin = window->ordered;
	uint32_t count = window->items.count;

	if (begin == count)
		return true;
	while (run_end(window->items.items, begin, count) < count) {
		for (uint32_t at = begin; at < count;) {
			uint32_t middle = run_end(window->items.items, at, count);
			uint32_t end = middle < count ? run_end(window->items.items, middle, count)
						      : count;
			if (middle < count && !merge_runs(window, at, middle, end))
				return false;
			at = end;
		}
	}
	if (begin && !merge_runs(window, 0, begin, count))
		return false;
	window->ordered = count;
	return true;
}

void reorder_window_sort(struct reorder_window *window, uint64_t until_ns)
{
	compact(window);
	uint32_t count = window->items.count;
	if (!order(window))
		return; /* no item becomes ready; the next flush tries again */
	const struct pending *items = window->items.items;

	window->ready = partition_point(count, i, items[i].time_ns <= until_ns);
}

struct pending *reorder_window_next(struct reorder_window *window, uint64_t *ret_late_ns)
{
	if (window->taken >= window->ready)
		return NULL;
	struct pending *item = &window->items.items[window->taken++];

	*ret_late_ns = 0;
	if (item->time_ns < window->watermark_ns) {
		*ret_late_ns = window->watermark_ns - item->time_ns;
		item->time_ns = window->watermark_ns;
	}
	window->watermark_ns = item->time_ns;
	return item;
}

void reorder_window_done(struct reorder_window *window)
{
	for (uint32_t i = window->taken; i < window->items.count; i++)
		if (window->items.items[i].kind != PENDING_EVENT) /* the relay owns those */
			free(window->items.items[i].side);
	vec_done(&window->items);
	vec_done(&window->spare);
	*window = (struct reorder_window){ 0 };
}
