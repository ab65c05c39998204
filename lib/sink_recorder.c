/*
 * The flight recorder: keeps the newest events of a session in memory, copies in chunks, the oldest chunk falling off. Becomes a nettrace file at a
 * snapshot and at the session's end.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/event_store.h"
#include "lib/own_events.h"
#include "lib/session_state.h"

#define CHUNK_BYTES (64u << 10)

struct recorder_sink {
	struct sink sink;
	struct session *session;
	struct spoor_file_options file;
	char *path;
	struct store_chunk *first, *last;
	struct store_chunk *spare; /* CHUNK_BYTES, or NULL */
	size_t bytes;
	size_t bytes_max;
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

static void drop_oldest(struct recorder_sink *recorder)
{
	struct store_chunk *oldest = recorder->first;

	recorder->first = oldest->next;
	if (!recorder->first)
		recorder->last = NULL;
	recorder->bytes -= oldest->room;
	session_unwrite(recorder->session, oldest->events, false, 0, 0);
	/* Used again: fresh memory costs a page fault every 4 KiB. */
	if (oldest->room == CHUNK_BYTES && !recorder->spare)
		recorder->spare = oldest;
	else
		free(oldest);
}

static struct store_chunk *chunk_make(struct recorder_sink *recorder, size_t room)
{
	struct store_chunk *chunk = recorder->spare;

	if (room != CHUNK_BYTES || !chunk)
		return store_chunk_new(room);
	recorder->spare = NULL;
	*chunk = (struct store_chunk){ .room = room };
	return chunk;
}

static int recorder_event(struct sink *sink, const struct pipe_event *event)
{
	struct recorder_sink *recorder = of(sink);
	size_t size = stored_size(event);

	if (!recorder->last || recorder->last->room - recorder->last->used < size) {
		size_t room = size > CHUNK_BYTES ? size : CHUNK_BYTES;
		while (recorder->first && recorder->bytes + room > recorder->bytes_max)
			drop_oldest(recorder);
		struct store_chunk *chunk = chunk_make(recorder, room);
		if (!chunk)
			return -ENOBUFS;
		if (recorder->last)
			recorder->last->next = chunk;
		else
			recorder->first = chunk;
		recorder->last = chunk;
		recorder->bytes += chunk->room;
	}
	store_append(recorder->last, event);
	return 0;
}

/* What is held as a file: by a sink of its own, with this session's threads and losses. */
static int write_out(struct recorder_sink *recorder, const char *path)
{
	struct spoor_file_options file = { .size = sizeof(file), .path = path };
	struct session *session = recorder->session;
	struct sink *out;
	struct pipe_event event;
	int r = sink_file_new(&file, &session->config.options, &out);

	if (r)
		return r;
	/* Losses up to here are told in the file; what it says of itself is emitted through the session, so its sink is the file meanwhile. */
	struct sink *own = session->sink;
	uint64_t written = session->written;
	uint64_t lost = session->lost;
	__atomic_store_n(&session->sink, out, __ATOMIC_RELAXED);
	r = out->ops->begin(out, session);
	for (const struct store_chunk *chunk = recorder->first; chunk && r == 0; chunk = chunk->next) {
		size_t offset = 0;
		while (r == 0 && store_next(chunk, &offset, &event))
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
		free(chunk);
	}
	free(recorder->spare);
	free(recorder->path);
	free(recorder);
}

static const struct sink_ops recorder_ops = {
	.name = "recorder",
	.begin = recorder_begin,
	.event = recorder_event,
	.snapshot = recorder_snapshot,
	.end = recorder_end,
	.free = recorder_free,
};

int sink_recorder_new(const struct spoor_file_options *file, const struct spoor_session_options *session, struct sink **ret_sink)
{
	struct recorder_sink *recorder = calloc(1, sizeof(*recorder));

	if (!recorder)
		return -ENOMEM;
	recorder->sink.ops = &recorder_ops;
	recorder->path = file->path ? strdup(file->path) : NULL;
	recorder->bytes_max = session->buffer_bytes ? session->buffer_bytes : 64u << 20;
	if (recorder->bytes_max < 2 * CHUNK_BYTES)
		recorder->bytes_max = 2 * CHUNK_BYTES;
	if (file->path && !recorder->path) {
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

static void rings_free(struct sink *sink)
{
	free(sink);
}

static const struct sink_ops rings_ops = { .name = "rings", .event = rings_event, .free = rings_free };

int sink_rings_new(struct sink **ret_sink)
{
	struct sink *sink = calloc(1, sizeof(*sink));

	if (!sink)
		return -ENOMEM;
	sink->ops = &rings_ops;
	*ret_sink = sink;
	return 0;
}
