/*
 * A session that writes a nettrace file. The loop thread copies events into chunks; a thread of the
 * sink formats and writes them (file_writer.h). A slow disk makes only this queue grow: beyond the
 * session's buffer events are lost, or firing threads wait, as the policy says.
 *
 * If the disk is full, events that were not written are counted as lost, the file is cut after its
 * end tag, and the session stops. A last event reports that, if it still fits. If a write hangs
 * while the session ends, the end does not wait for it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/pipe/own_events.h"
#include "lib/pipe/pipe.h"
#include "lib/pipe/session_state.h"
#include "lib/platform/platform.h"
#include "lib/sink/file_writer.h"
#include "lib/sink/sinks.h"

#define DUE_MAX_US  1000000u /* a flush that is due later is looked at again */
#define CHUNK_BYTES (64u << 10)
/*
 * A sequence point is possible after so many bytes: often enough for a table of stacks
 * (nettrace4.c) that is filled by events with 64 bytes and a new stack each.
 */
#define MARK_BYTES (512u << 10)

enum file_end_step {
	FILE_WRITES,
	FILE_FLUSHES, /* the last events of the session are being written */
	FILE_CLOSES,  /* the mark of the end was added */
	FILE_ENDED,
};

struct file_sink {
	struct sink sink;
	struct session *session;
	struct file_writer *writer;
	struct file_item *filling;
	size_t buffer_bytes;
	size_t marked_bytes; /* added since the last mark */
	uint64_t flush_ns;
	uint64_t flushed_ns;
	uint64_t rotate_ns;
	uint64_t opened_ns;
	uint64_t flush_serial; /* of the mark that SINK_FLUSH waits for; 0: none */
	bool since_point;      /* events were added since the last sequence point that is certain */
	bool refuses;          /* until the end of this pass, so that a point can follow */
	enum file_end_step step;
	uint64_t step_serial;
	uint64_t progress;
	uint64_t progress_ns;
	int failed;
};

static struct file_sink *of(struct sink *sink)
{
	return (struct file_sink *)(void *)sink;
}

static int file_open(struct sink *sink, struct session *session)
{
	struct file_sink *file = of(sink);

	file->session = session;
	file->flushed_ns = file->opened_ns = platform_now_ns();
	return file_writer_start(file->writer, file->opened_ns);
}

static size_t held(const struct file_sink *file)
{
	return file_writer_bytes(file->writer) + (file->filling ? file->filling->chunk->used : 0);
}

static void chunk_publish(struct file_sink *file)
{
	struct file_item *item = file->filling;

	if (!item || !item->chunk->used)
		return;
	file->filling = NULL;
	file->marked_bytes += item->chunk->used;
	file_writer_add(file->writer, item);
}

/* A chunk with room for at least `size` bytes; the filled one is given to the writer. */
static int chunk_add(struct file_sink *file, size_t size)
{
	chunk_publish(file);
	if (file->session->config.options.policy == SPOOR_DROP_NEWEST && held(file) &&
		(file->refuses || held(file) + CHUNK_BYTES > file->buffer_bytes)) {
		file->refuses = true;
		return -ENOBUFS;
	}
	if (file->filling) /* it is empty, and too small */
		file_writer_add(file->writer, file->filling);
	file->filling = file_writer_chunk(file->writer, size);
	return file->filling ? 0 : -ENOBUFS;
}

static int file_event(struct sink *sink, const struct pipe_event *event)
{
	struct file_sink *file = of(sink);

	if (file->refuses)
		return -ENOBUFS;
	while (!file->filling || !store_append(file->filling->chunk, event)) {
		int r = chunk_add(file, store_size(event));
		if (r)
			return r;
	}
	file->since_point = true;
	return 0;
}

static int file_records(struct sink *sink, struct record_run *run)
{
	struct file_sink *file = of(sink);

	if (file->refuses)
		return -ENOBUFS;
	while (run->count) {
		if (file->filling && store_append_run(file->filling->chunk, run))
			continue;
		int r = chunk_add(file, store_run_size(run));
		if (r)
			return r;
	}
	file->since_point = true;
	return 0;
}

static bool file_full(struct sink *sink)
{
	return held(of(sink)) >= of(sink)->buffer_bytes;
}

/*
 * Adds a mark after all events so far. A sequence point that has news about threads, besides their
 * present numbers, is not optional.
 */
static int mark(struct file_sink *file, unsigned flags, uint64_t watermark_ns, uint64_t *ret_serial)
{
	struct outbuf rows = { 0 };
	int r = 0;

	chunk_publish(file);
	if (file->session->has_unknown && (flags & (MARK_ROTATE | MARK_END)))
		r = mark(file, MARK_POINT, watermark_ns, NULL);
	if (session_threads_ending(file->session) || file->session->has_unknown)
		flags |= MARK_POINT;
	if (r == 0)
		r = session_point_rows(file->session, &rows);
	if (r == 0)
		r = file_writer_mark(file->writer, flags, watermark_ns, &rows, ret_serial);
	outbuf_done(&rows);
	file->marked_bytes = 0;
	if (flags & (MARK_POINT | MARK_ROTATE))
		file->since_point = false;
	return r;
}

/* Counts what the writer could not write. */
static void losses_take(struct file_sink *file)
{
	struct session_loss loss;

	if (file_writer_take_losses(file->writer, &loss))
		session_unwrite(file->session, loss.count, true, loss.first_ns, loss.last_ns);
}

static int file_turn(struct sink *sink, uint64_t now_ns, uint64_t watermark_ns, unsigned flags)
{
	struct file_sink *file = of(sink);
	unsigned idle_point = (flags & SINK_IDLE) && file->since_point ? MARK_POINT : 0;
	int r = file_writer_error(file->writer);

	losses_take(file);
	file->refuses = false;
	if (r)
		return r;
	if (file->session->has_unknown)
		r = mark(file, MARK_POINT, watermark_ns, NULL);
	if (r == 0 && (flags & SINK_FLUSH) && !file->flush_serial) {
		r = mark(file, MARK_FLUSH | idle_point, watermark_ns, &file->flush_serial);
		file->flushed_ns = now_ns;
	}
	/* Between flushes the thread is woken by full chunks only. */
	bool has_some = file->since_point || (file->filling && file->filling->chunk->used);
	bool busy = r == 0 && has_some && file_writer_busy(file->writer);
	if (r == 0 && has_some && !busy && now_ns - file->flushed_ns >= file->flush_ns) {
		r = mark(file, MARK_FLUSH | idle_point, watermark_ns, NULL);
		file->flushed_ns = now_ns;
	} else if (r == 0 && file->marked_bytes >= MARK_BYTES) {
		r = mark(file, 0, watermark_ns, NULL);
	}
	if (r == 0 && file->rotate_ns && now_ns - file->opened_ns >= file->rotate_ns) {
		r = mark(file, MARK_ROTATE, watermark_ns, NULL);
		file->opened_ns = now_ns;
	}
	if (r)
		return r;
	if (file->flush_serial && file_writer_passed(file->writer, file->flush_serial))
		file->flush_serial = 0;
	if (file->flush_serial)
		return SINK_FLUSHING;
	/* While the writer is busy, it wakes this thread. */
	if (!has_some || busy)
		return 0;
	uint64_t since_ns = now_ns - file->flushed_ns;
	uint64_t left_us = since_ns < file->flush_ns ? (file->flush_ns - since_ns) / 1000 : 0;
	return left_us < DUE_MAX_US ? (int)left_us + 1 : (int)DUE_MAX_US;
}

/* Has the writer passed step_serial? 1: not yet; it gets on. -ETIMEDOUT: it hangs. */
static int step_wait(struct file_sink *file)
{
	uint64_t progress = file_writer_progress(file->writer);
	uint64_t now = platform_now_ns();

	if (file_writer_passed(file->writer, file->step_serial))
		return 0;
	if (!file->progress_ns || progress != file->progress) {
		file->progress = progress;
		file->progress_ns = now;
	}
	return now - file->progress_ns < FILE_WRITER_STUCK_NS ? 1 : -ETIMEDOUT;
}

/* The last step, after all events: reports losses in the file, and ends it. */
static int file_close(struct file_sink *file)
{
	struct session *session = file->session;
	int error = file_writer_error(file->writer);
	int before = session->error;

	losses_take(file);
	if (error) {
		file->failed = error;
		session->error = error; /* the event states it */
		(void)file_writer_mark(file->writer, MARK_RESUME, pipe_watermark_ns(), NULL, NULL);
	}
	if (session->loss_event.count)
		(void)own_event_loss(session, &session->loss_event);
	session->loss_event = (struct session_loss){ 0 };
	if (error)
		(void)own_event_failure(session, error);
	session->error = before;
	return mark(file, MARK_END, pipe_watermark_ns(), &file->step_serial);
}

static int file_end(struct sink *sink, bool aborted)
{
	struct file_sink *file = of(sink);
	struct session_loss loss;
	int r = 0;

	(void)aborted; /* a disk that gets on is waited for */
	file->refuses = false;
	if (file->step == FILE_WRITES) {
		r = mark(file, MARK_FLUSH, pipe_watermark_ns(), &file->step_serial);
		file->step = FILE_FLUSHES;
	}
	if (r == 0 && file->step == FILE_FLUSHES) {
		r = step_wait(file);
		if (r == 0) {
			r = file_close(file);
			file->step = FILE_CLOSES;
		}
	}
	if (r == 0 && file->step == FILE_CLOSES)
		r = step_wait(file);
	if (r > 0)
		return r;
	if (r < 0 && file->step != FILE_ENDED) {
		file_writer_abandon(file->writer, &loss);
		if (loss.count)
			session_unwrite(file->session, loss.count, true, loss.first_ns,
				loss.last_ns);
	} else if (!file->failed) {
		r = file_writer_error(file->writer);
		losses_take(file);
	}
	file->step = FILE_ENDED;
	return r ? r : file->failed;
}

static uint64_t file_progress(const struct sink *sink)
{
	return file_writer_progress(((const struct file_sink *)(const void *)sink)->writer);
}

static void file_free(struct sink *sink)
{
	struct file_sink *file = of(sink);
	struct session_loss loss;

	if (file->writer) /* its thread ends, if it has one still */
		file_writer_abandon(file->writer, &loss);
	file_writer_unref(file->writer);
	free(file->filling);
	free(file);
}

static void file_child(struct sink *sink)
{
	file_writer_child(of(sink)->writer);
}

static const struct session_sink_ops file_ops = {
	.name = "file",
	.takes_own = true,
	.open = file_open,
	.event = file_event,
	.records = file_records,
	.full = file_full,
	.turn = file_turn,
	.end = file_end,
	.progress = file_progress,
	.free = file_free,
	.child = file_child,
};

int sink_file_new(const struct spoor_file_options *options,
	const struct spoor_session_options *session, struct sink **ret_sink)
{
	struct file_writer_options writer = {
		.path = options->path, .rotate_bytes = options->rotate_bytes, .keep = options->keep
	};
	struct file_sink *file = calloc(1, sizeof(*file));

	if (!file)
		return -ENOMEM;
	file->sink.ops = &file_ops;
	file->buffer_bytes = session->buffer_bytes ? session->buffer_bytes : 64u << 20;
	file->flush_ns = (session->flush_ms ? session->flush_ms : 100) * UINT64_C(1000000);
	file->rotate_ns = options->rotate_ms * UINT64_C(1000000);
	int r = file_writer_new(&writer, &file->writer);
	if (r) {
		file_free(&file->sink);
		return r;
	}
	*ret_sink = &file->sink;
	return 0;
}
