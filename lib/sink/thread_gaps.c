/* See thread_gaps.h. */
#include "lib/sink/thread_gaps.h"

#include <stdbool.h>
#include <stdlib.h>

#define ROOM_FIRST 32u

/* The row of this thread, or the free one where it belongs. There is a free row. */
static struct thread_gap *row_find(struct thread_gap *rows, uint32_t room, uint64_t thread_id)
{
	uint32_t at = (uint32_t)(thread_id * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (room - 1);

	while (rows[at].thread_id && rows[at].thread_id != thread_id)
		at = (at + 1) & (room - 1);
	return &rows[at];
}

static bool grow(struct thread_gaps *gaps)
{
	uint32_t room = gaps->room ? gaps->room * 2 : ROOM_FIRST;
	struct thread_gap *rows = calloc(room, sizeof(*rows));

	if (!rows)
		return false;
	for (uint32_t i = 0; i < gaps->room; i++)
		if (gaps->rows[i].thread_id)
			*row_find(rows, room, gaps->rows[i].thread_id) = gaps->rows[i];
	free(gaps->rows);
	gaps->rows = rows;
	gaps->room = room;
	return true;
}

static struct thread_gap *row_of(struct thread_gaps *gaps, uint64_t thread_id)
{
	if (gaps->count * 2 >= gaps->room && !grow(gaps))
		return NULL;
	struct thread_gap *row = row_find(gaps->rows, gaps->room, thread_id);
	if (!row->thread_id) {
		row->thread_id = thread_id;
		gaps->count++;
	}
	return row;
}

uint64_t thread_gaps_before(struct thread_gaps *gaps, const struct pipe_event *event)
{
	struct thread_gap *row = gaps->latest;

	if (!row || row->thread_id != event->capture_thread_id)
		row = row_of(gaps, event->capture_thread_id);
	gaps->latest = row;
	if (!row)
		return event->lost_before;
	/* Modulo 2^32, as the numbers are. */
	uint32_t gap = event->sequence - row->sequence - 1;
	row->sequence = event->sequence;
	return gap > event->lost_before ? gap : event->lost_before;
}

void thread_gaps_done(struct thread_gaps *gaps)
{
	free(gaps->rows);
	*gaps = (struct thread_gaps){ 0 };
}
