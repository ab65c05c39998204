/*
 * The events of .NET runtimes in a live session: writes them from the reorder window to the file,
 * and reports losses.
 */
#ifndef SPOOR_RECORDING_LIVE_EVENTS_H
#define SPOOR_RECORDING_LIVE_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "recording/event_bound.h"

struct live_options;
struct pending;
struct process_table;
struct relay;

/* All zero: no events were requested. */
struct live_events {
	struct process_table *table; /* borrowed; set by live_events_open() */
	struct relay *relay;         /* NULL: no events */
	uint64_t count;              /* written */
	uint64_t late;
	uint64_t lost; /* reported losses, of the streams and of the reorder window */
	uint64_t losses_reported_ns;
	struct event_bound bound;
};

/* Opens the relay if events were requested. Returns 0 or -ENOMEM. Called after managed_new(). */
int live_events_open(struct live_events *events, struct process_table *table);

/* Writes an item of kind PENDING_EVENT that leaves the reorder window. */
void live_events_hand_over(struct live_events *events, struct pending *item, uint64_t late_ns);

/*
 * The watermark up to which the reorder window is released: 250 ms ago, or earlier while a stream
 * is known to lag. `settled_ns`: all other sources are complete up to this time.
 */
uint64_t live_events_limit_ns(const struct live_events *events, uint64_t settled_ns,
	uint64_t now_ns);

/*
 * Back-pressure: so many bytes wait that the window, last released at `released_ns`, should be
 * released before the next flush.
 */
bool live_events_press(const struct live_events *events, uint64_t released_ns, uint64_t now_ns);

/* Writes the losses and the counts of unwritten events since the last call as events. */
void live_events_tell_losses(struct live_events *events);

/* Called before the reorder window is freed. */
void live_events_close(struct live_events *events);

#endif
