/*
 * What another process observes of the recorded ones while a session runs (`spoor diagnose`: readings
 * of /proc, stacks of all threads), as events of the file.
 *
 * The observer sends each event as one message of a SOCK_SEQPACKET socket and closes its end after the
 * last one, which ends the wait at the session's end:
 *
 *   live_observation_send(fd, SPOOR_STACK_LOOK, pid, &payload)    the observer
 *
 *   live_observations_await(&observations, &set)        the session, in its loop: wakes for a message
 *   live_observations_take(&observations)               writes those that have come
 *   live_observations_stop(&observations)               the session ends: tells the observer, by closing this direction
 *   live_observations_finish(&observations)             writes the rest
 *
 * One thread. All zero is a session without an observer.
 */
#ifndef SPOOR_RECORDING_LIVE_OBSERVATIONS_H
#define SPOOR_RECORDING_LIVE_OBSERVATIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "trace/schema.h"

struct poll_set;
struct process_table;

/* How long an observer may take for its last look. */
#define LIVE_OBSERVATIONS_REST_NS UINT64_C(5000000000)

struct live_observations {
	struct process_table *table; /* borrowed */
	int fd;               /* borrowed; above 2; 0: no observer, or it has closed its end */
	struct bytes message; /* scratch */
};

/*
 * Sends an event about the process. 0, -EAGAIN: the session took nothing for the socket's send
 * timeout, or a negative errno. A payload that ran out of memory or is too long is -ENOMEM or -E2BIG.
 */
int live_observation_send(int fd, enum known_event known, uint32_t pid,
	const struct bytes *payload);

/* fd 0: there is no observer. */
void live_observations_open(struct live_observations *observations, struct process_table *table,
	int fd);

void live_observations_await(const struct live_observations *observations, struct poll_set *set);

/* Processes that are not recorded, or have ended, get no event. */
void live_observations_take(struct live_observations *observations);

void live_observations_stop(struct live_observations *observations);

/* Waits LIVE_OBSERVATIONS_REST_NS for the observer's last messages. */
void live_observations_finish(struct live_observations *observations);

void live_observations_done(struct live_observations *observations);

#endif
