/*
 * Events of LTTng in a live session: a session of LTTng (lttng_session.h), whose trace is read while it
 * grows (formats/ctf_read.h), into the reorder window and from there to the file. What was read is
 * released on disk.
 *
 * LTTng's times are CLOCK_MONOTONIC, as those of the recording; the difference of the two dates is
 * written as a ClockOffset.
 */
#ifndef SPOOR_RECORDING_LIVE_LTTNG_H
#define SPOOR_RECORDING_LIVE_LTTNG_H

#include <stdbool.h>
#include <stdint.h>

#include "recording/lttng_session.h"

struct ctf_reader;
struct diag;
struct pending;
struct poll_set;
struct process_table;

/* All zero: no events of LTTng. */
struct live_lttng {
	struct process_table *table; /* borrowed; NULL: not started */
	struct lttng_session session;
	struct ctf_reader *reader;
	uint64_t looked_ns;
	uint64_t own_namespace; /* inode of this pid namespace; 0 unknown */
	uint64_t count;         /* written */
	uint64_t late;
	uint64_t unplaced; /* of processes that could not be identified */
	uint64_t waiting_bytes;
	uint64_t last_ns; /* time of the event that was put last */
	bool clock_reported;
	bool failed;     /* reading has ended; a notice has the reason */
	bool incomplete; /* reading has failed, or the end of the trace may be missing */
};

int live_lttng_start(struct live_lttng *lttng, struct process_table *table, struct diag *diag);

void live_lttng_await(const struct live_lttng *lttng, struct poll_set *set);

/* Puts the events that have arrived into the window. */
void live_lttng_look(struct live_lttng *lttng, uint64_t now_ns);

/* Events up to this time have arrived; UINT64_MAX: there are none. */
uint64_t live_lttng_limit_ns(const struct live_lttng *lttng, uint64_t now_ns);

/* Writes an item of kind PENDING_LTTNG that leaves the window. */
void live_lttng_write(struct live_lttng *lttng, const struct pending *item, uint64_t late_ns);

/*
 * Stops LTTng's session. live_lttng_finish() then puts the remaining events into the window: true if
 * there are more, once those up to last_ns have left it.
 */
void live_lttng_stop(struct live_lttng *lttng);
bool live_lttng_finish(struct live_lttng *lttng);

/* Events that LTTng discarded, or that belong to no known process. */
uint64_t live_lttng_lost(const struct live_lttng *lttng);

void live_lttng_done(struct live_lttng *lttng);

#endif
