/*
 * The events of .NET runtimes in a live session: from the window into the file, and what was lost of them.
 */
#ifndef SPOOR_RECORDING_LIVE_EVENTS_H
#define SPOOR_RECORDING_LIVE_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

struct live;
struct pending;

/* The relay, when events were asked for; -ENOMEM. After managed_new(). */
int live_events_open(struct live *live);

/* An item of kind PENDING_EVENT, in its turn. */
void live_events_hand_over(struct live *live, struct pending *item, uint64_t late_ns);

/* Up to which time the window may be given out: 250 ms ago, earlier while a stream is known to be behind. */
uint64_t live_events_limit_ns(const struct live *live, uint64_t now_ns);

/* So much waits that the window is better emptied now. */
bool live_events_press(const struct live *live, uint64_t now_ns);

/* Losses since they were told last become events. */
void live_events_tell_losses(struct live *live);

/* Before the window is done with. */
void live_events_close(struct live *live);

#endif
