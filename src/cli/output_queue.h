/*
 * Output that never makes us wait: what a slow reader does not take waits in a bounded queue.
 *
 * A pager that is not scrolled, a terminal that was stopped with Ctrl-S: writing to them would hold up the sessions we have open in other
 * processes. So a pipe or a terminal is opened once more, for ourselves alone, without blocking.
 *
 *   output_queue_open(&queue, STDOUT_FILENO);
 *   output_queue_add(&queue, data, size);                 false: no room, nothing of it is taken
 *   each turn:  if (output_queue_poll(&queue, &fd)) poll it; output_queue_advance(&queue)
 *   output_queue_close(&queue, wait_ms);                  what waits still goes out, if it goes within this time
 */
#ifndef SPOOR_CLI_OUTPUT_QUEUE_H
#define SPOOR_CLI_OUTPUT_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

struct pollfd;

#define OUTPUT_QUEUE_MAX (4u << 20)

struct output_queue {
	int fd;
	bool own;              /* opened by us */
	struct bytes waiting;
	size_t sent;
	int error;             /* negative errno: no more can be written. -EPIPE: the reader went away */
	uint64_t refused;      /* times there was no room */
};

void output_queue_open(struct output_queue *queue, int fd);
bool output_queue_add(struct output_queue *queue, const void *data, size_t size);
bool output_queue_is_empty(const struct output_queue *queue);
bool output_queue_poll(const struct output_queue *queue, struct pollfd *ret_fd);
void output_queue_advance(struct output_queue *queue);
void output_queue_close(struct output_queue *queue, int wait_ms);

#endif
