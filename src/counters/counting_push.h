/*
 * Lines for a collector elsewhere: Graphite (TCP) or StatsD (UDP).
 *
 *   counting_push_open(COUNTING_PUSH_GRAPHITE, "collector:2003", &push, &diag);
 *   counting_push_add(push, lines, size, now_ns);           whole lines
 *   each turn:  counting_push_await(push, &set); poll_set_wait(&set);
 *               counting_push_advance(push, now_ns)
 *   counting_push_free(push);
 *
 * Never blocks. A collector that cannot be reached is tried again, every second at first, every 30
 * s later; meanwhile up to COUNTING_PUSH_QUEUE bytes wait, and beyond that the oldest lines are
 * dropped and counted. When a connection breaks, lines in the kernel's buffers may be lost; the
 * lines that were not sent completely are sent again.
 */
#ifndef SPOOR_COUNTERS_COUNTING_PUSH_H
#define SPOOR_COUNTERS_COUNTING_PUSH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct counting_push;
struct diag;
struct poll_set;

#define COUNTING_PUSH_QUEUE (4u << 20)

enum counting_push_kind { COUNTING_PUSH_GRAPHITE, COUNTING_PUSH_STATSD };

/* The port has a default: 2003, 8125. */
int counting_push_open(enum counting_push_kind kind, const char *address,
	struct counting_push **ret_push, struct diag *diag);

const char *counting_push_address(const struct counting_push *push);

void counting_push_add(struct counting_push *push, const void *lines, size_t size, uint64_t now_ns);

void counting_push_await(const struct counting_push *push, struct poll_set *set);
void counting_push_advance(struct counting_push *push, uint64_t now_ns);

/* Everything that was added was sent. */
bool counting_push_is_empty(const struct counting_push *push);

/* Why nothing can be sent, a sentence part or NULL, and the number of dropped lines. */
const char *counting_push_problem(const struct counting_push *push);
uint64_t counting_push_dropped(const struct counting_push *push);

void counting_push_free(struct counting_push *push);

#endif
