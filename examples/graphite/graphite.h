/*
 * Raw events and counters of this process, sent to Graphite as they come: one line "PATH VALUE
 * SECONDS" for each number.
 *
 *   event     PREFIX.Provider.Event.Field     each number and boolean of it, also inside structs; an event without any is sent as PREFIX.Provider.Event 1
 *   counter   PREFIX.Meter.Instrument;tag=value    once an interval; a histogram as .count .mean and .p50 .p95 .p99
 *
 * Who waits for whom: one thread reads the session and writes the socket. When Graphite is slow or
 * away that thread waits, the session's own memory (buffer_bytes) fills, and beyond it the library
 * drops and counts. The program's threads never wait for the network. What is lost is counted, each
 * kind once: events + events_lost = fired, and every line that an event or counter made is in
 * lines_sent or lines_lost.
 *
 * A connection that breaks is made again; a line of which only a part had gone is sent again whole.
 * What the kernel had taken when it broke may be gone all the same: plaintext has no
 * acknowledgement, so the send buffer is kept small.
 */
#ifndef SPOOR_EXAMPLES_GRAPHITE_H
#define SPOOR_EXAMPLES_GRAPHITE_H

#include <spoor/counter.h>
#include <spoor/spoor.h>

struct graphite_options {
	const char *host, *port;
	const char *prefix;             /* "shop.host1" */
	const struct spoor_want *wants; /* which events */
	size_t want_count;
	/* which counters (struct spoor_counter_listener_options); NULL: all */
	const char *meters;
	uint32_t interval_ms; /* of counters; 0: 1000 */
	size_t buffer_bytes;  /* of events that wait; 0: 64 MiB */
	/* how long graphite_close() tries to send the rest; 0: 5000 */
	uint32_t close_ms;
};

struct graphite_counts {
	/* read from the session; dropped before that, because there was no room */
	uint64_t events, events_lost;
	/* taken by the socket; given up at the end, or counter values that found no room */
	uint64_t lines_sent, lines_lost;
	uint64_t connections;
};

struct graphite;

/* The texts are borrowed until graphite_close(). Graphite need not be there yet. */
int graphite_open(const struct graphite_options *options, struct graphite **ret_graphite);
void graphite_close(struct graphite *graphite, struct graphite_counts *ret_counts);

#endif
