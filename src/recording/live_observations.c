/*
 * See live_observations.h.
 *
 * A message is of one event, in the byte order of the machine:
 *
 *   offset  size  field
 *   0       4     enum known_event
 *   4       4     pid, in the recorder's namespace
 *   8             payload, at most EVENT_PAYLOAD_MAX bytes
 */
#include "recording/live_observations.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/clocks.h"
#include "base/poll_set.h"
#include "pipeline/session_writer.h"
#include "recording/process_table.h"
#include "trace/event.h"

#define HEAD_BYTES sizeof(struct message_head)
/* In one turn: an observer that sends without an end does not hold up the rings. */
#define TURN_MAX 4096u

struct message_head {
	uint32_t known;
	uint32_t pid;
};
_Static_assert(sizeof(struct message_head) == 8, "the head is sent as it is in memory");

int live_observation_send(int fd, enum known_event known, uint32_t pid, const struct bytes *payload)
{
	struct message_head head = { .known = known, .pid = pid };
	struct iovec parts[] = { { .iov_base = &head, .iov_len = sizeof(head) },
		{ .iov_base = payload->data, .iov_len = payload->len } };
	const struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2 };

	if (payload->failed)
		return -ENOMEM;
	if (payload->len > EVENT_PAYLOAD_MAX)
		return -E2BIG;
	while (sendmsg(fd, &message, MSG_NOSIGNAL) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

void live_observations_open(struct live_observations *observations, struct process_table *table,
	int fd)
{
	observations->table = table;
	observations->fd = fd;
}

void live_observations_await(const struct live_observations *observations, struct poll_set *set)
{
	if (observations->fd)
		(void)poll_set_add(set, observations->fd, POLLIN);
}

static void write_event(struct live_observations *observations, const uint8_t *data, size_t size)
{
	struct session_writer *writer = observations->table->writer;
	struct message_head head;

	if (size < HEAD_BYTES)
		return;
	memcpy(&head, data, HEAD_BYTES);
	bool is_observation = head.known >= SPOOR_PROCESS_USE && head.known <= SPOOR_LOOK_THREAD;
	uint32_t process = is_observation ? process_table_owner(observations->table, head.pid) : 0;
	if (!process || session_writer_is_over(writer))
		return;
	process_table_announce(observations->table, process);
	bytes_add(&writer->payload, data + HEAD_BYTES, size - HEAD_BYTES);
	session_writer_emit_about(writer, (enum known_event)head.known, process);
}

/* False: none is waiting. */
static bool take_message(struct live_observations *observations)
{
	const size_t room = HEAD_BYTES + EVENT_PAYLOAD_MAX;

	uint8_t *data = bytes_reserve(&observations->message, room);
	if (!data) {
		observations->fd = 0; /* without memory the observations are left out */
		return false;
	}
	ssize_t got = recv(observations->fd, data, room, MSG_DONTWAIT);
	if (got > 0)
		write_event(observations, data, (size_t)got);
	else if (got == 0 || (errno != EAGAIN && errno != EINTR))
		observations->fd = 0; /* the observer has closed its end */
	return got > 0;
}

void live_observations_take(struct live_observations *observations)
{
	for (uint32_t i = 0; i < TURN_MAX && observations->fd; i++)
		if (!take_message(observations))
			return;
}

void live_observations_stop(struct live_observations *observations)
{
	if (observations->fd)
		(void)shutdown(observations->fd,
			SHUT_WR); /* an observer that has ended needs no word */
}

void live_observations_finish(struct live_observations *observations)
{
	uint64_t bound_ns = clock_monotonic_ns() + LIVE_OBSERVATIONS_REST_NS;

	for (uint64_t now_ns; observations->fd && (now_ns = clock_monotonic_ns()) < bound_ns;) {
		if (poll_one(observations->fd, POLLIN, clock_left_ms(bound_ns, now_ns)))
			live_observations_take(observations);
	}
}

void live_observations_done(struct live_observations *observations)
{
	bytes_done(&observations->message);
}
