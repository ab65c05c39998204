/* See merge.h. */
#include "session/merge.h"

#include <stdlib.h>
#include <string.h>

struct pending *merge_add(struct merge *merge)
{
	struct pending *item = vec_push(&merge->items);

	if (item)
		item->sequence = merge->sequence++;
	return item;
}

/* Takes the items that have left out of the array. */
static void compact(struct merge *merge)
{
	uint32_t left = merge->items.count - merge->taken;

	if (merge->taken)
		memmove(merge->items.items, merge->items.items + merge->taken,
			left * sizeof(struct pending));
	merge->items.count = left;
	merge->ready -= merge->taken;
	merge->taken = 0;
}

static bool is_before(const struct pending *x, const struct pending *y)
{
	return x->time_ns != y->time_ns ? x->time_ns < y->time_ns
					: (int32_t)(x->sequence - y->sequence) < 0;
}

/* Where the run of ordered items that begins at `at` ends. */
static uint32_t run_end(const struct pending *items, uint32_t at, uint32_t count)
{
	do
		at++;
	while (at < count && !is_before(&items[at], &items[at - 1]));
	return at;
}

/* The ordered runs [begin, middle) and [middle, end) of `from`, as one in `to`. */
static void merge_runs(const struct pending *from, struct pending *to, uint32_t begin, uint32_t middle,
	uint32_t end)
{
	uint32_t left = begin;
	uint32_t right = middle;

	for (uint32_t at = begin; at < end; at++) {
		bool take_left = right == end || (left < middle && !is_before(&from[right], &from[left]));
		to[at] = from[take_left ? left++ : right++];
	}
}

/*
 * Each ring gives one ordered run, so there are few of them: neighbours are merged until one is left. False when there is no memory for
 * the other half.
 */
static bool order(struct merge *merge)
{
	uint32_t count = merge->items.count;

	for (;;) {
		struct pending *items = merge->items.items;
		if (run_end(items, 0, count) == count)
			return true;
		vec_reset(&merge->spare);
		if (!vec_reserve(&merge->spare, count))
			return false;
		for (uint32_t at = 0; at < count;) {
			uint32_t middle = run_end(items, at, count);
			uint32_t end = middle < count ? run_end(items, middle, count) : count;
			merge_runs(items, merge->spare.items, at, middle, end);
			at = end;
		}
		struct pending *ordered = merge->spare.items;
		uint32_t capacity = merge->spare.capacity;
		merge->spare.items = items;
		merge->spare.capacity = merge->items.capacity;
		merge->items.items = ordered;
		merge->items.capacity = capacity;
	}
}

void merge_sort(struct merge *merge, uint64_t until_ns)
{
	uint32_t low = 0;
	uint32_t high;

	compact(merge);
	high = merge->items.count;
	if (high > 1 && !order(merge))
		return; /* nothing becomes ready now; there may be memory at the next flush */
	const struct pending *items = merge->items.items;

	while (low < high) { /* the first item beyond until_ns */
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
		if (merge->items.items[i].kind != PENDING_EVENT) /* those are the relay's */
			free(merge->items.items[i].side);
	vec_done(&merge->items);
	vec_done(&merge->spare);
	*merge = (struct merge){ 0 };
}
