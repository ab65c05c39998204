/*
 * The flight recorder: stores the newest events of a session in memory, in chunks, and drops the
 * oldest chunk when the memory is full. A snapshot and the session's end write them as a nettrace
 * file.
 *
 * The chunks are in one piece of memory, which the thread that starts the session populates:
 * touching 64 MiB for the first time takes longer than a ring needs to fill. Only an event that is
 * too large for such a chunk gets one from malloc().
 *
 * A snapshot copies the chunks on the loop thread and writes the copy on the calling thread's time;
 * the end gives the chunks away. file_writer.h writes both.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/pipe/own_events.h"
#include "lib/pipe/pipe.h"
#include "lib/pipe/session_state.h"
#include "lib/platform/loop.h"
#include "lib/platform/platform.h"
#include "lib/sink/event_store.h"
#include "lib/sink/file_writer.h"
#include "lib/sink/sinks.h"

#define CHUNK_BYTES (64u << 10) /* with its head */
#define CHUNK_ROOM  (CHUNK_BYTES - sizeof(struct store_chunk))

struct recorder_sink {
	struct sink sink;
	struct session *session;
	struct spoor_file_options file;
	char *path;
	struct store_chunk *first, *last;
	struct store_chunk *spare; /* chunks of `memory` that are not in use */
	uint8_t *memory;
	size_t touched;   /* number of its chunks that were ever used */
	size_t bytes;     /* of the chunks in use */
	size_t bytes_max; /* of `memory`; a multiple of CHUNK_BYTES */
	/* at the end */
	struct file_writer *writer; /* atomic */
	uint64_t end_serial;
	uint64_t progress;
	uint64_t progress_ns;
};

static struct recorder_sink *of(struct sink *sink)
{
	return (struct recorder_sink *)(void *)sink;
}

static int recorder_begin(struct sink *sink, struct session *session)
{
	of(sink)->session = session;
	return 0;
}

static size_t bytes_of(const struct store_chunk *chunk)
{
	return sizeof(*chunk) + chunk->room;
}

static void drop_oldest(struct recorder_sink *recorder)
{
	struct store_chunk *oldest = recorder->first;

	recorder->first = oldest->next;
	if (!recorder->first)
		recorder->last = NULL;
	recorder->bytes -= bytes_of(oldest);
	session_unwrite(recorder->session, oldest->events, false, 0, 0);
	if (oldest->room != CHUNK_ROOM) {
		free(oldest);
		return;
	}
	oldest->next = recorder->spare;
	recorder->spare = oldest;
}

/* A free chunk. One exists, because those in use have less than bytes_max. */
static struct store_chunk *chunk_take(struct recorder_sink *recorder)
{
	struct store_chunk *chunk = recorder->spare;

	if (chunk)
		recorder->spare = chunk->next;
	else
		chunk = (struct store_chunk *)(void *)(recorder->memory +
						       recorder->touched++ * CHUNK_BYTES);
	*chunk = (struct store_chunk){ .room = CHUNK_ROOM };
	return chunk;
}

/* Appends a chunk for at least `size` bytes. */
static int chunk_add(struct recorder_sink *recorder, size_t size)
{
	size_t room = size > CHUNK_ROOM ? size : CHUNK_ROOM;

	while (recorder->first &&
		recorder->bytes + sizeof(struct store_chunk) + room > recorder->bytes_max)
		drop_oldest(recorder);
	struct store_chunk *chunk =
		room == CHUNK_ROOM ? chunk_take(recorder) : store_chunk_new(room);
	if (!chunk)
		return -ENOBUFS;
	if (recorder->last)
		recorder->last->next = chunk;
	else
		recorder->first = chunk;
	recorder->last = chunk;
	recorder->bytes += bytes_of(chunk);
	return 0;
}

static int recorder_event(struct sink *sink, const struct pipe_event *event)
{
	struct recorder_sink *recorder = of(sink);

	while (!recorder->last || !store_append(recorder->last, event)) {
		int r = chunk_add(recorder, store_size(event));
		if (r)
			return r;
	}
	return 0;
}

static int recorder_records(struct sink *sink, struct record_run *run)
{
	struct recorder_sink *recorder = of(sink);

	while (run->count) {
		if (recorder->last && store_append_run(recorder->last, run))
			continue;
		int r = chunk_add(recorder, store_run_size(run));
		if (r)
			return r;
	}
	return 0;
}

/* Adds the losses so far and the end; *ret_serial is that of the end. */
static int writer_finish(struct file_writer *writer, struct session *session, uint64_t *ret_serial)
{
	struct outbuf rows = { 0 };
	struct pipe_event event;
	struct own_loss loss;

	own_loss_make(&loss, session, pipe_watermark_ns(), &event);
	if (session->lost) {
		struct file_item *item = file_writer_chunk(writer, store_size(&event));
		if (!item)
			return -ENOMEM;
		(void)store_append(item->chunk, &event); /* it has room */
		file_writer_add(writer, item);
	}
	int r = session_point_rows(session, &rows);
	if (r == 0)
		r = file_writer_mark(writer, MARK_END, pipe_watermark_ns(), &rows, ret_serial);
	outbuf_done(&rows);
	return r;
}

static int writer_new(const char *path, struct file_writer **ret_writer)
{
	struct file_writer_options options = { .path = path };

	return file_writer_new(&options, ret_writer);
}

/* The time of the first event. */
static uint64_t first_ns_of(const struct recorder_sink *recorder)
{
	return recorder->first ? recorder->first->first_ns : platform_now_ns();
}

/* ---- Snapshots ---- */

struct snapshot {
	struct recorder_sink *recorder;
	struct file_writer *writer;
	uint8_t *memory; /* for the copies */
	size_t room;
	uint64_t first_ns;
	uint64_t end_serial;
	int result;
};

static int snapshot_copy(struct snapshot *snapshot)
{
	size_t used = 0;

	for (const struct store_chunk *from = snapshot->recorder->first; from; from = from->next) {
		size_t size = (sizeof(*from) + from->used + 7) & ~(size_t)7;
		if (size > snapshot->room - used)
			return -ENOMEM;
		struct store_chunk *to = (struct store_chunk *)(void *)(snapshot->memory + used);
		memcpy(to, from, sizeof(*from) + from->used);
		used += size;
		int r = file_writer_add_foreign(snapshot->writer, to, NULL);
		if (r)
			return r;
	}
	return writer_finish(snapshot->writer, snapshot->recorder->session, &snapshot->end_serial);
}

static void snapshot_take(void *context)
{
	struct snapshot *snapshot = context;
	const struct recorder_sink *recorder = snapshot->recorder;
	uint32_t status = __atomic_load_n(&recorder->session->status, __ATOMIC_ACQUIRE);

	snapshot->first_ns = first_ns_of(recorder);
	snapshot->result = status >= SESSION_ENDING ? -EINVAL : snapshot_copy(snapshot);
}

static int recorder_snapshot(struct sink *sink, const char *path)
{
	struct recorder_sink *recorder = of(sink);
	struct snapshot snapshot = { .recorder = recorder,
		/* chunks are smaller than this together, one that is too large included */
		.room = recorder->bytes_max + (128u << 10) };
	int r = writer_new(path, &snapshot.writer);

	if (r)
		return r;
	snapshot.memory = platform_map_large(snapshot.room);
	if (!snapshot.memory) {
		file_writer_unref(snapshot.writer);
		return -ENOMEM;
	}
	file_writer_give(snapshot.writer, snapshot.memory, snapshot.room);
	r = loop_call(snapshot_take, &snapshot);
	if (r == 0)
		r = snapshot.result;
	if (r == 0)
		r = file_writer_start(snapshot.writer, snapshot.first_ns);
	if (r == 0)
		r = file_writer_wait(snapshot.writer, snapshot.end_serial);
	file_writer_unref(snapshot.writer);
	return r;
}

/* ---- The end ---- */

static int recorder_hand_over(struct recorder_sink *recorder)
{
	uint64_t first_ns = first_ns_of(recorder);
	struct file_writer *writer;
	int r = writer_new(recorder->path, &writer);

	if (r == 0)
		__atomic_store_n(&recorder->writer, writer, __ATOMIC_RELEASE);
	while (r == 0 && recorder->first) {
		struct store_chunk *chunk = recorder->first;
		r = file_writer_add_foreign(recorder->writer, chunk,
			chunk->room == CHUNK_ROOM ? NULL : chunk);
		if (r == 0)
			recorder->first = chunk->next;
	}
	if (r)
		return r;
	recorder->last = NULL;
	file_writer_give(recorder->writer, recorder->memory, recorder->bytes_max);
	recorder->memory = NULL;
	r = writer_finish(recorder->writer, recorder->session, &recorder->end_serial);
	return r ? r : file_writer_begin(recorder->writer, first_ns);
}

static int recorder_end(struct sink *sink, bool aborted)
{
	struct recorder_sink *recorder = of(sink);
	struct session_loss loss;
	int r = 0;

	(void)aborted; /* a disk that gets on is waited for */
	if (!recorder->path)
		return 0;
	if (!recorder->writer)
		r = recorder_hand_over(recorder);
	if (r == 0 && !file_writer_passed(recorder->writer, recorder->end_serial)) {
		uint64_t progress = file_writer_progress(recorder->writer);
		uint64_t now = platform_now_ns();
		if (!recorder->progress_ns || progress != recorder->progress) {
			recorder->progress = progress;
			recorder->progress_ns = now;
		}
		if (!file_writer_error(recorder->writer) &&
			now - recorder->progress_ns < FILE_WRITER_STUCK_NS)
			return 1;
		r = -ETIMEDOUT;
	}
	if (recorder->writer) {
		if (r == 0 || file_writer_error(recorder->writer))
			r = file_writer_error(recorder->writer);
		file_writer_abandon(recorder->writer, &loss);
		session_unwrite(recorder->session, loss.count, true, loss.first_ns, loss.last_ns);
	}
	return r;
}

static uint64_t recorder_progress(const struct sink *sink)
{
	const struct recorder_sink *recorder = (const struct recorder_sink *)(const void *)sink;
	const struct file_writer *writer = __atomic_load_n(&recorder->writer, __ATOMIC_ACQUIRE);

	return writer ? file_writer_progress(writer) : 0;
}

static void recorder_free(struct sink *sink)
{
	struct recorder_sink *recorder = of(sink);

	while (recorder->first) {
		struct store_chunk *chunk = recorder->first;
		recorder->first = chunk->next;
		if (chunk->room != CHUNK_ROOM)
			free(chunk);
	}
	platform_unmap(recorder->memory, recorder->bytes_max);
	file_writer_unref(recorder->writer);
	free(recorder->path);
	free(recorder);
}

static const struct session_sink_ops recorder_ops = {
	.name = "recorder",
	.begin = recorder_begin,
	.event = recorder_event,
	.records = recorder_records,
	.snapshot = recorder_snapshot,
	.end = recorder_end,
	.progress = recorder_progress,
	.free = recorder_free,
};

int sink_recorder_new(const struct spoor_file_options *file,
	const struct spoor_session_options *session, struct sink **ret_sink)
{
	struct recorder_sink *recorder = calloc(1, sizeof(*recorder));

	if (!recorder)
		return -ENOMEM;
	recorder->sink.ops = &recorder_ops;
	recorder->path = file->path ? strdup(file->path) : NULL;
	recorder->bytes_max = session->buffer_bytes ? session->buffer_bytes : 64u << 20;
	recorder->bytes_max &= ~(size_t)(CHUNK_BYTES - 1);
	if (recorder->bytes_max < 2 * CHUNK_BYTES)
		recorder->bytes_max = 2 * CHUNK_BYTES;
	recorder->memory = platform_map_large(recorder->bytes_max);
	if (!recorder->memory || (file->path && !recorder->path)) {
		recorder_free(&recorder->sink);
		return -ENOMEM;
	}
	*ret_sink = &recorder->sink;
	return 0;
}

/* ---- Events that stay in the rings ---- */

static int rings_event(struct sink *sink, const struct pipe_event *event)
{
	(void)sink;
	(void)event;
	return 0;
}

static int rings_records(struct sink *sink, struct record_run *run)
{
	(void)sink;
	run->count = 0;
	return 0;
}

static void rings_free(struct sink *sink)
{
	free(sink);
}

static const struct session_sink_ops rings_ops = {
	.name = "rings", .event = rings_event, .records = rings_records, .free = rings_free
};

int sink_rings_new(struct sink **ret_sink)
{
	struct sink *sink = calloc(1, sizeof(*sink));

	if (!sink)
		return -ENOMEM;
	sink->ops = &rings_ops;
	*ret_sink = sink;
	return 0;
}
