/*
 * Output that never blocks: bytes that a slow reader does not read yet are kept in a bounded queue.
 *
 * A pager that is not scrolled, a terminal that was stopped with Ctrl-S: a blocking write to them
 * would delay the sessions that are open in other processes. So a pipe or a terminal is opened a
 * second time, non-blocking, without changing the first descriptor, which other processes share.
 *
 *   output_queue_open(&queue, STDOUT_FILENO);
 *   output_queue_add(&queue, data, size);                 false: no room, nothing of it is taken
 *   each turn:  output_queue_await(&queue, &set); poll_set_wait(&set); output_queue_advance(&queue)
 *   output_queue_close(&queue, wait_ms);                  what waits still goes out, if it goes within this time
 */
#ifndef SPOOR_CLI_OUTPUT_QUEUE_H
#define SPOOR_CLI_OUTPUT_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

struct poll_set;

#define OUTPUT_QUEUE_MAX (4u << 20)

struct output_queue {
	int fd;
	bool own; /* opened by us */
	struct bytes waiting;
	size_t sent;
	/* negative errno: no more can be written. -EPIPE: the reader went away */
	int error;
	uint64_t refused; /* additions refused because the queue was full */
};

void output_queue_open(struct output_queue *queue, int fd);
bool output_queue_add(struct output_queue *queue, const void *data, size_t size);
bool output_queue_is_empty(const struct output_queue *queue);
void output_queue_await(const struct output_queue *queue, struct poll_set *set);
void output_queue_advance(struct output_queue *queue);
void output_queue_close(struct output_queue *queue, int wait_ms);

#endif
