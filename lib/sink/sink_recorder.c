/*
 * The flight recorder: stores the newest events of a session in memory, in chunks, and drops the
 * oldest chunk when the memory is full. A snapshot and the session's end write them as a nettrace
 * file.
 *
 * The chunks are in one piece of memory, which the thread that starts the session populates:
 * touching 64 MiB for the first time takes longer than a ring needs to fill. Only an event that is
 * too large for such a chunk gets one from malloc().
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/pipe/own_events.h"
#include "lib/pipe/session_state.h"
#include "lib/platform/platform.h"
#include "lib/sink/event_store.h"
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
	bool ended;
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

/*
 * Writes the stored events as a file: with a sink for the file, and this session's threads and
 * losses.
 */
static int write_out(struct recorder_sink *recorder, const char *path)
{
	struct spoor_file_options file = { .size = sizeof(file), .path = path };
	struct session *session = recorder->session;
	struct sink *out;
	struct pipe_event event;
	int r = sink_file_new(&file, &session->config.options, &out);

	if (r)
		return r;
	/*
	 * Losses up to here are reported in the file. They are emitted through the session, so the
	 * file's sink takes the place of the session's meanwhile.
	 */
	struct sink *own = session->sink;
	uint64_t written = session->written;
	uint64_t lost = session->lost;
	__atomic_store_n(&session->sink, out, __ATOMIC_RELAXED);
	r = out->ops->begin(out, session);
	for (const struct store_chunk *chunk = recorder->first; chunk && r == 0;
		chunk = chunk->next) {
		struct store_cursor cursor = { 0 };
		while (r == 0 && store_next(chunk, &cursor, &event))
			r = out->ops->event(out, &event);
	}
	struct session_loss all = { lost, 0, 0 };
	if (r == 0 && lost)
		r = own_event_loss(session, &all);
	int end = out->ops->end(out, r != 0);
	__atomic_store_n(&session->sink, own, __ATOMIC_RELAXED);
	__atomic_store_n(&session->written, written, __ATOMIC_RELAXED);
	__atomic_store_n(&session->lost, lost, __ATOMIC_RELAXED);
	session->loss_event = (struct session_loss){ 0 };
	out->ops->free(out);
	return r ? r : end;
}

static int recorder_snapshot(struct sink *sink, const char *path)
{
	return write_out(of(sink), path);
}

static int recorder_end(struct sink *sink, bool aborted)
{
	struct recorder_sink *recorder = of(sink);

	if (recorder->ended || aborted)
		return 0;
	recorder->ended = true;
	return recorder->path ? write_out(recorder, recorder->path) : 0;
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
	free(recorder->path);
	free(recorder);
}

static const struct sink_ops recorder_ops = {
	.name = "recorder",
	.begin = recorder_begin,
	.event = recorder_event,
	.records = recorder_records,
	.snapshot = recorder_snapshot,
	.end = recorder_end,
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

static const struct sink_ops rings_ops = {
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
