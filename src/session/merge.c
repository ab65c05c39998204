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

static int compare(const void *a, const void *b)
{
	const struct pending *x = a;
	const struct pending *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return (int32_t)(x->sequence - y->sequence) < 0 ? -1 : 1;
}

void merge_sort(struct merge *merge, uint64_t until_ns)
{
	struct pending *items;
	uint32_t low = 0;
	uint32_t high;

	compact(merge);
	items = merge->items.items;
	high = merge->items.count;
	if (high > 1)
		qsort(items, high, sizeof(*items), compare);
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
		free(merge->items.items[i].side);
	vec_done(&merge->items);
	*merge = (struct merge){ 0 };
}
