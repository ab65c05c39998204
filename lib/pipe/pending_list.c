/* See pending_list.h. */
#include "lib/pipe/pending_list.h"

#include <stdlib.h>

#include "lib/pipe/ring_look.h"

void pending_list_add(struct pending_list *list, struct thread_state *state)
{
	uint64_t first = UINT64_MAX;

	if (ring_pending(&state->main))
		first = ring_record(&state->main)->stamp;
	if (ring_pending(&state->nested) && ring_record(&state->nested)->stamp < first)
		first = ring_record(&state->nested)->stamp;
	if (first == UINT64_MAX)
		return;
	if (list->count == list->room) {
		uint32_t room = list->room ? list->room * 2 : 64;
		struct pending_thread *items = realloc(list->items, room * sizeof(*items));
		if (!items)
			return;
		list->items = items;
		list->room = room;
	}
	list->items[list->count++] = (struct pending_thread){ first, state };
}

static int by_first_stamp(const void *a, const void *b)
{
	uint64_t x = ((const struct pending_thread *)a)->first_stamp;
	uint64_t y = ((const struct pending_thread *)b)->first_stamp;

	return x < y ? -1 : x > y;
}

void pending_list_sort(struct pending_list *list)
{
	if (list->count > 1)
		qsort(list->items, list->count, sizeof(*list->items), by_first_stamp);
}
