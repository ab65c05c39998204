/*
 * See live_looks.h.
 *
 * A message is of one event, in the byte order of the machine:
 *
 *   offset  size  field
 *   0       4     enum known_event
 *   4       4     pid, in the recorder's namespace
 *   8             payload, at most EVENT_PAYLOAD_MAX bytes
 */
#include "recording/live_looks.h"

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

int live_look_send(int fd, enum known_event known, uint32_t pid, const struct bytes *payload)
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

void live_looks_open(struct live_looks *looks, struct process_table *table, int fd)
{
	looks->table = table;
	looks->fd = fd;
}

void live_looks_await(const struct live_looks *looks, struct poll_set *set)
{
	if (looks->fd)
		(void)poll_set_add(set, looks->fd, POLLIN);
}

static void write_event(struct live_looks *looks, const uint8_t *data, size_t size)
{
	struct session_writer *writer = looks->table->writer;
	struct message_head head;

	if (size < HEAD_BYTES)
		return;
	memcpy(&head, data, HEAD_BYTES);
	bool is_look = head.known >= SPOOR_PROCESS_USE && head.known <= SPOOR_LOOK_THREAD;
	uint32_t process = is_look ? process_table_owner(looks->table, head.pid) : 0;
	if (!process || session_writer_is_over(writer))
		return;
	process_table_announce(looks->table, process);
	bytes_add(&writer->payload, data + HEAD_BYTES, size - HEAD_BYTES);
	session_writer_emit_about(writer, (enum known_event)head.known, process);
}

/* False: none is waiting. */
static bool take_message(struct live_looks *looks)
{
	const size_t room = HEAD_BYTES + EVENT_PAYLOAD_MAX;

	uint8_t *data = bytes_reserve(&looks->message, room);
	if (!data) {
		looks->fd = 0; /* without memory the looks are left out */
		return false;
	}
	ssize_t got = recv(looks->fd, data, room, MSG_DONTWAIT);
	if (got > 0)
		write_event(looks, data, (size_t)got);
	else if (got == 0 || (errno != EAGAIN && errno != EINTR))
		looks->fd = 0; /* the observer has closed its end */
	return got > 0;
}

void live_looks_take(struct live_looks *looks)
{
	for (uint32_t i = 0; i < TURN_MAX && looks->fd; i++)
		if (!take_message(looks))
			return;
}

void live_looks_stop(struct live_looks *looks)
{
	if (looks->fd)
		(void)shutdown(looks->fd, SHUT_WR); /* an observer that has ended needs no word */
}

void live_looks_finish(struct live_looks *looks)
{
	uint64_t bound_ns = clock_monotonic_ns() + LIVE_LOOKS_REST_NS;

	for (uint64_t now_ns; looks->fd && (now_ns = clock_monotonic_ns()) < bound_ns;) {
		if (poll_one(looks->fd, POLLIN, clock_left_ms(bound_ns, now_ns)))
			live_looks_take(looks);
	}
}

void live_looks_done(struct live_looks *looks)
{
	bytes_done(&looks->message);
}
