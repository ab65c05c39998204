/*
 * The events of .NET runtimes in a live session: writes them from the reorder window to the file,
 * and reports losses.
 */
#ifndef SPOOR_RECORDING_LIVE_EVENTS_H
#define SPOOR_RECORDING_LIVE_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

struct live;
struct pending;

/* Opens the relay if events were requested. Returns 0 or -ENOMEM. Called after managed_new(). */
int live_events_open(struct live *live);

/* Writes an item of kind PENDING_EVENT that leaves the reorder window. */
void live_events_hand_over(struct live *live, struct pending *item, uint64_t late_ns);

/*
 * The watermark up to which the reorder window is released: 250 ms ago, or earlier while a stream
 * is known to lag.
 */
uint64_t live_events_limit_ns(const struct live *live, uint64_t now_ns);

/* Back-pressure: so many bytes wait that the window should be released before the next flush. */
bool live_events_press(const struct live *live, uint64_t now_ns);

/* Writes the losses since the last call as events. */
void live_events_tell_losses(struct live *live);

/* Called before the reorder window is freed. */
void live_events_close(struct live *live);

#endif
