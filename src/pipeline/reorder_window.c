/* See merge.h. */
#include "pipeline/reorder_window.h"

#include <stdlib.h>
#include <string.h>

struct pending *merge_add(struct merge *merge)
{
	struct pending *item = vec_push(&merge->items);

	if (item)
		item->sequence = merge->sequence++;
	return item;
}

/* Removes the items that have left from the array. */
static void compact(struct merge *merge)
{
	uint32_t left = merge->items.count - merge->taken;

	if (merge->taken)
		memmove(merge->items.items, merge->items.items + merge->taken,
			left * sizeof(struct pending));
	merge->items.count = left;
	merge->ordered -= merge->taken;
	merge->ready -= merge->taken;
	merge->taken = 0;
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
static bool merge_runs(struct merge *merge, uint32_t begin, uint32_t middle, uint32_t end)
{
	struct pending *items = merge->items.items;
	uint32_t at = place_of(items, begin, middle, &items[middle]);
	uint32_t aside = middle - at;
	uint32_t left = 0;
	uint32_t right = middle;

	if (!aside)
		return true;
	vec_reset(&merge->spare);
	if (!vec_reserve(&merge->spare, aside))
		return false;
	const struct pending *moved = merge->spare.items;

	memcpy(merge->spare.items, items + at, aside * sizeof(*items));
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
static bool order(struct merge *merge)
{
	uint32_t begin = merge->ordered;
	uint32_t count = merge->items.count;

	if (begin == count)
		return true;
	while (run_end(merge->items.items, begin, count) < count) {
		for (uint32_t at = begin; at < count;) {
			uint32_t middle = run_end(merge->items.items, at, count);
			uint32_t end =
				middle < count ? run_end(merge->items.items, middle, count) : count;
			if (middle < count && !merge_runs(merge, at, middle, end))
				return false;
			at = end;
		}
	}
	if (begin && !merge_runs(merge, 0, begin, count))
		return false;
	merge->ordered = count;
	return true;
}

void merge_sort(struct merge *merge, uint64_t until_ns)
{
	uint32_t low = 0;
	uint32_t high;

	compact(merge);
	high = merge->items.count;
	if (!order(merge))
		return; /* no item becomes ready; the next flush tries again */
	const struct pending *items = merge->items.items;

	while (low < high) { /* find the first item after until_ns */
		uint32_t middle = low + (high - low) / 2;
		if (items[middle].time_ns <= until_ns)
			low = middle + 1;
		else
			high = middle;
	}
	merge->ready = low;
}

struct pending *merge_next(struct merge *merge, uint64_t *ret_late_ns)
{
	if (merge->taken >= merge->ready)
		return NULL;
	struct pending *item = &merge->items.items[merge->taken++];

	*ret_late_ns = 0;
	if (item->time_ns < merge->reached_ns) {
		*ret_late_ns = merge->reached_ns - item->time_ns;
		item->time_ns = merge->reached_ns;
	}
	merge->reached_ns = item->time_ns;
	return item;
}

void merge_done(struct merge *merge)
{
	for (uint32_t i = merge->taken; i < merge->items.count; i++)
		if (merge->items.items[i].kind != PENDING_EVENT) /* the relay owns those */
			free(merge->items.items[i].side);
	vec_done(&merge->items);
	vec_done(&merge->spare);
	*merge = (struct merge){ 0 };
}
