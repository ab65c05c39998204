/*
 * Lists of labels in a nettrace file of version 6: an event's activity, and by how much it is late.
 *
 *   label_lists_keep(&lists, &event, &label);        for each event; 0: it has no label
 *   label_lists_put(&lists, &out);                   blocks with the lists that were kept
 *   ... its number in the file is lists.written + label ...
 *   label_lists_flushed(&lists);
 *
 * All zero is empty. With written = 0 the file numbers its lists from the start.
 */
#ifndef SPOOR_NETTRACE_LABEL_LISTS_H
#define SPOOR_NETTRACE_LABEL_LISTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "trace/event.h"

struct bytes;

/* Recently used lists that are found again. */
#define LABELS_RECENT 64u

struct label_list {
	uint32_t late_ns;
	bool has_activity;
	uint8_t activity[EVENT_ACTIVITY_SIZE];
};

struct label_lists {
	VEC(struct label_list) lists; /* that wait for the flush */
	/* in `lists`, plus 1: events of one activity follow one another */
	uint32_t recent[LABELS_RECENT];
	uint32_t written; /* since the file numbers them from the start */
};

/*
 * The list, new or of an earlier event, for a late event or an activity: in `lists`, plus 1. False:
 * no memory.
 */
bool label_lists_keep(struct label_lists *lists, const struct event *event, uint32_t *ret_label);

void label_lists_put(const struct label_lists *lists, struct bytes *out);
void label_lists_flushed(struct label_lists *lists);
void label_lists_done(struct label_lists *lists);

#endif
