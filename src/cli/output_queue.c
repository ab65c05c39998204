/* See output_queue.h. */
#include "cli/output_queue.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/poll_set.h"
#include "base/text.h"

void output_queue_open(struct output_queue *queue, int fd)
{
	struct stat info;
	char path[64];

	*queue = (struct output_queue){ .fd = fd };
	if (fstat(fd, &info) < 0 || (!S_ISFIFO(info.st_mode) && !S_ISCHR(info.st_mode)))
		return;
	text_set(path, "/proc/self/fd/%d", fd);
	int own = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (own < 0)
		return; /* another user's terminal cannot be reopened: the shared descriptor is used */
	queue->fd = own;
	queue->own = true;
}

bool output_queue_is_empty(const struct output_queue *queue)
{
	return queue->sent == queue->waiting.len;
}

void output_queue_advance(struct output_queue *queue)
{
	while (!queue->error && queue->sent < queue->waiting.len) {
		ssize_t n = write(queue->fd, queue->waiting.data + queue->sent,
			queue->waiting.len - queue->sent);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n < 0)
			queue->error = -errno;
		else
			queue->sent += (size_t)n;
	}
	queue->sent = 0;
	bytes_reset(&queue->waiting);
}

bool output_queue_add(struct output_queue *queue, const void *data, size_t size)
{
	if (queue->error)
		return false;
	if (queue->waiting.len - queue->sent + size > OUTPUT_QUEUE_MAX) {
		queue->refused++;
		return false;
	}
	if (queue->sent) {
		memmove(queue->waiting.data, queue->waiting.data + queue->sent,
			queue->waiting.len - queue->sent);
		queue->waiting.len -= queue->sent;
		queue->sent = 0;
	}
	size_t before = queue->waiting.len;

	bytes_add(&queue->waiting, data, size);
	if (queue->waiting.failed) {
		queue->waiting.failed = false;
		queue->waiting.len = before;
		queue->refused++;
		return false;
	}
	output_queue_advance(queue);
	return true;
}

void output_queue_await(const struct output_queue *queue, struct poll_set *set)
{
	/* With nothing to write, the wait still ends when the reader closes the pipe (POLLERR). */
	if (!queue->error)
		(void)poll_set_add(set, queue->fd, output_queue_is_empty(queue) ? 0 : POLLOUT);
}

void output_queue_close(struct output_queue *queue, int wait_ms)
{
	while (!queue->error && !output_queue_is_empty(queue) &&
		poll_one(queue->fd, POLLOUT, wait_ms))
		output_queue_advance(queue);
	if (queue->own)
		(void)close(queue->fd); /* an error shows when the original descriptor is closed */
	bytes_done(&queue->waiting);
}
