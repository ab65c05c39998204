/*
 * The threads that have records in this pass, in the order of each thread's first one. All zero is
 * an empty list. Loop thread.
 */
#ifndef SPOOR_LIB_PIPE_PENDING_LIST_H
#define SPOOR_LIB_PIPE_PENDING_LIST_H

#include <stdint.h>

#include "lib/event/thread_ring.h"

struct pending_thread {
	uint64_t first_stamp;
	struct thread_state *state;
};

struct pending_list {
	struct pending_thread *items;
	uint32_t count;
	uint32_t room;
};

/*
 * Adds the state if it has records up to seen_published. Without memory it is left out: its records
 * wait for the next pass.
 */
void pending_list_add(struct pending_list *list, struct thread_state *state);
void pending_list_sort(struct pending_list *list);
/* The first stamp of the item after this one; UINT64_MAX: there is none. */
static inline uint64_t pending_list_next(const struct pending_list *list, uint32_t index)
{
	return index + 1 < list->count ? list->items[index + 1].first_stamp : UINT64_MAX;
}

#endif
