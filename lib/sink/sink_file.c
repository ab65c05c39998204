/*
 * A session that writes a nettrace file, which is valid at any time. The file ends with the end tag
 * (one byte). To append, all bytes after the tag and a new end tag are written first; then the old
 * tag is overwritten with the first byte of the next object. One byte is written completely or not
 * at all, so a process that is killed leaves a file that opens and lacks at most the last flush
 * interval.
 *
 * If the disk is full, events that were not written are counted as lost, the file is cut after its
 * end tag, and the session stops. A last event reports that, if it still fits.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/pipe/own_events.h"
#include "lib/pipe/pipe.h"
#include "lib/pipe/session_state.h"
#include "lib/platform/platform.h"
#include "lib/sink/nettrace4.h"
#include "lib/sink/sinks.h"

/* written when so many bytes are pending, before the flush interval has passed */
#define PUT_BYTES (512u << 10)

struct file_sink {
	struct sink sink;
	struct session *session;
	struct nettrace4 *encoder;
	struct outbuf out;
	char *path;
	int fd;
	bool regular;
	uint64_t end;       /* offset of the end tag; 0: no byte was written yet */
	uint64_t unwritten; /* events taken since the last write */
	uint64_t first_ns;  /* time of the first unwritten event */
	uint64_t flush_ns;
	uint64_t flushed_ns;
	uint64_t rotate_bytes;
	uint64_t rotate_ns;
	uint64_t opened_ns;
	uint32_t keep;
	uint32_t number; /* of the current file of a rotation */
	int failed;
};

static struct file_sink *of(struct sink *sink)
{
	return (struct file_sink *)(void *)sink;
}

/* NAME.3.nettrace: the number is inserted before the last dot of the file name. */
static char *numbered(const char *path, uint32_t number)
{
	size_t size = strlen(path) + 16;
	char *name = malloc(size);
	const char *slash = strrchr(path, '/');
	const char *dot = strrchr(path, '.');

	if (!name)
		return NULL;
	if (!dot || (slash && dot < slash) || dot == path || (slash && dot == slash + 1))
		dot = path + strlen(path);
	if (number)
		snprintf(name, size, "%.*s.%u%s", (int)(dot - path), path, number, dot);
	else
		snprintf(name, size, "%s", path);
	return name;
}

static int write_all(int fd, const uint8_t *data, size_t size, uint64_t at, bool regular)
{
	while (size) {
		ssize_t n = regular ? pwrite(fd, data, size, (off_t)at) : write(fd, data, size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -EIO;
		data += n;
		size -= (size_t)n;
		at += (uint64_t)n;
	}
	return 0;
}

/* Writes all of `out` into the file. The encoder has no pending event. */
static int put(struct file_sink *file)
{
	static const uint8_t end_tag = 1;
	int r = 0;

	file->flushed_ns = platform_now_ns();
	if (!file->out.size)
		return file->out.failed ? -ENOMEM : 0;
	if (file->regular) {
		/* The first write contains the head and the first block. */
		size_t size = file->out.size;
		outbuf_add(&file->out, &end_tag, 1);
		if (file->out.failed)
			return -ENOMEM;
		if (!file->end) {
			r = write_all(file->fd, file->out.data, size + 1, 0, true);
		} else {
			r = write_all(file->fd, file->out.data + 1, size, file->end + 1, true);
			if (r == 0)
				r = write_all(file->fd, file->out.data, 1, file->end, true);
		}
		if (r == 0)
			file->end += size;
	} else {
		r = write_all(file->fd, file->out.data, file->out.size, 0, false);
		file->end += file->out.size;
	}
	if (r)
		return r;
	file->unwritten = 0;
	outbuf_reset(&file->out);
	return nettrace4_safe(file->encoder);
}

static int flush(struct file_sink *file)
{
	int r = nettrace4_flush(file->encoder);

	return r ? r : put(file);
}

static int file_open(struct file_sink *file)
{
	char *path = numbered(file->path, file->number);
	struct stat facts;
	int r;

	if (!path)
		return -ENOMEM;
	file->fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0644);
	r = file->fd < 0 ? -errno : 0;
	free(path);
	if (r)
		return r;
	file->regular = fstat(file->fd, &facts) == 0 && S_ISREG(facts.st_mode);
	if (file->regular && ftruncate(file->fd, 0))
		return -errno;
	file->end = 0;
	file->opened_ns = platform_now_ns();
	r = nettrace4_begin(file->encoder);
	if (r == 0)
		r = own_event_process_info(file->session);
	return r ? r : flush(file);
}

static int file_begin(struct sink *sink, struct session *session)
{
	struct file_sink *file = of(sink);

	file->session = session;
	return file_open(file);
}

static int file_event(struct sink *sink, const struct pipe_event *event)
{
	struct file_sink *file = of(sink);
	int r = file->failed ? -ENOBUFS : nettrace4_event(file->encoder, event);

	if (r)
		return r;
	if (!(event->entry->flags & ENTRY_OWN)) {
		if (!file->unwritten++)
			file->first_ns = event->time_ns;
	}
	/*
	 * This event is taken. If the write fails, file_turn() reports it, when the number of lost
	 * events is known.
	 */
	if (__builtin_expect(file->out.size >= PUT_BYTES, 0) && !file->failed)
		file->failed = flush(file);
	return 0;
}

static int rotate(struct file_sink *file, uint64_t cutoff_ns)
{
	int r = nettrace4_end(file->encoder, cutoff_ns, file->session);

	if (r)
		return r;
	/* The end tag is written by put(). */
	if (file->regular)
		file->out.size--;
	r = put(file);
	if (r)
		return r;
	close(file->fd);
	file->fd = -1;
	file->number++;
	if (file->keep && file->number >= file->keep) {
		char *oldest = numbered(file->path, file->number - file->keep);
		if (oldest)
			(void)unlink(oldest); /* another program may have removed it */
		free(oldest);
	}
	return file_open(file);
}

static int file_turn(struct sink *sink, uint64_t now_ns, uint64_t cutoff_ns, unsigned flags)
{
	struct file_sink *file = of(sink);
	bool due = (flags & SINK_FLUSH) || now_ns - file->flushed_ns >= file->flush_ns;
	int r = file->failed;

	if (r)
		return r;
	if (nettrace4_wants_point(file->encoder) ||
		(due && (flags & SINK_IDLE) && nettrace4_since_point(file->encoder)))
		r = nettrace4_point(file->encoder, cutoff_ns, file->session);
	if (r == 0 && (due || file->out.size >= PUT_BYTES))
		r = flush(file);
	if (r == 0 && file->regular &&
		((file->rotate_bytes && file->end >= file->rotate_bytes) ||
			(file->rotate_ns && now_ns - file->opened_ns >= file->rotate_ns)))
		r = rotate(file, cutoff_ns);
	file->failed = r;
	return r ? r
		 : file->out.size || nettrace4_pending(file->encoder) ||
			       nettrace4_since_point(file->encoder);
}

/*
 * After a failure: counts the events that are not in the file as lost, and writes an event about
 * that if it fits.
 */
static void give_up(struct file_sink *file)
{
	uint64_t now = nettrace4_last_ns(file->encoder);

	if (file->fd < 0)
		return;
	nettrace4_roll_back(file->encoder);
	file->failed = 0;
	session_unwrite(file->session, file->unwritten, true, file->first_ns, now);
	file->unwritten = 0;
	if (!file->regular || !file->end)
		return;
	(void)ftruncate(file->fd, (off_t)file->end + 1); /* removes the incomplete write */
	(void)own_event_loss(file->session, &file->session->loss_event);
	(void)own_event_failure(file->session, file->session->error);
	if (nettrace4_end(file->encoder, pipe_cutoff_ns(), file->session) == 0) {
		file->out.size--;
		if (put(file))
			(void)ftruncate(file->fd, (off_t)file->end + 1);
	}
}

static int file_end(struct sink *sink, bool aborted)
{
	struct file_sink *file = of(sink);
	int r = 0;

	(void)aborted; /* a disk is not waited for any longer than its writes take */
	if (file->fd < 0)
		return 0;
	if (file->session->error) {
		give_up(file);
	} else {
		r = nettrace4_end(file->encoder, pipe_cutoff_ns(), file->session);
		if (r == 0) {
			if (file->regular)
				file->out.size--;
			r = put(file);
		}
		if (r) {
			file->session->error = r;
			give_up(file);
			file->session->error = 0;
		}
	}
	close(file->fd);
	file->fd = -1;
	return r;
}

static void file_free(struct sink *sink)
{
	struct file_sink *file = of(sink);

	platform_close(file->fd);
	nettrace4_free(file->encoder);
	outbuf_done(&file->out);
	free(file->path);
	free(file);
}

static void file_child(struct sink *sink)
{
	platform_close(of(sink)->fd);
	of(sink)->fd = -1;
}

static const struct sink_ops file_ops = {
	.name = "file",
	.takes_own = true,
	.begin = file_begin,
	.event = file_event,
	.turn = file_turn,
	.end = file_end,
	.free = file_free,
	.child = file_child,
};

int sink_file_new(const struct spoor_file_options *options,
	const struct spoor_session_options *session, struct sink **ret_sink)
{
	struct file_sink *file = calloc(1, sizeof(*file));

	if (!file)
		return -ENOMEM;
	file->sink.ops = &file_ops;
	file->fd = -1;
	file->path = strdup(options->path);
	file->encoder = nettrace4_new(&file->out);
	file->flush_ns = (session->flush_ms ? session->flush_ms : 100) * UINT64_C(1000000);
	file->rotate_bytes = options->rotate_bytes;
	file->rotate_ns = options->rotate_ms * UINT64_C(1000000);
	file->keep = options->keep;
	if (!file->path || !file->encoder) {
		file_free(&file->sink);
		return -ENOMEM;
	}
	*ret_sink = &file->sink;
	return 0;
}
