/*
 * Sends the events and counters of this process to Graphite: one line "PATH VALUE SECONDS" for each
 * number.
 *
 *   event     PREFIX.Provider.Event.Field     each number and boolean, also inside structs; an event without numbers is sent as PREFIX.Provider.Event 1
 *   counter   PREFIX.Meter.Instrument;tag=value    once an interval; a histogram as .count .mean and .p50 .p95 .p99
 *
 * Back-pressure: one thread reads the session and writes the socket. When Graphite is slow or down,
 * that thread waits and the session's buffer (buffer_bytes) fills. When the buffer is full, the
 * library drops events and counts them. The program's threads never wait for the network. Losses
 * are exact: events + events_lost is the number of fired events, and every line made from an event
 * or a counter is counted in lines_sent or in lines_lost.
 *
 * A broken connection is opened again, and a partly sent line is sent again whole. Lines that were
 * in the kernel's send buffer when the connection broke may be lost without being counted: the
 * protocol has no acknowledgement. The send buffer is therefore small.
 */
#ifndef SPOOR_EXAMPLES_GRAPHITE_H
#define SPOOR_EXAMPLES_GRAPHITE_H

#include <spoor/counter.h>
#include <spoor/spoor.h>

struct graphite_options {
	const char *host, *port;
	const char *prefix;             /* first part of every path, such as "shop.host1" */
	const struct spoor_want *wants; /* the events to send */
	size_t want_count;
	/* the counters to send (struct spoor_counter_listener_options); NULL: all */
	const char *meters;
	uint32_t interval_ms; /* between two values of a counter; 0: 1000 */
	size_t buffer_bytes;  /* memory for unsent events; 0: 64 MiB */
	/* time limit of graphite_close() for sending the remainder; 0: 5000 */
	uint32_t close_ms;
};

struct graphite_counts {
	uint64_t events;      /* read from the session */
	uint64_t events_lost; /* dropped by the library because the session's buffer was full */
	uint64_t lines_sent;  /* accepted by the socket */
	uint64_t lines_lost;  /* unsent at the end, or counter values for which there was no room */
	uint64_t connections;
};

struct graphite;

/* The texts are borrowed until graphite_close(). Graphite may be started later. */
int graphite_open(const struct graphite_options *options, struct graphite **ret_graphite);
void graphite_close(struct graphite *graphite, struct graphite_counts *ret_counts);

#endif
