/*
 * Listeners inside the process: a queue of chunks, and either a dispatch thread that calls a
 * function, or spoor_listener_read().
 *
 * The loop thread fills a chunk and appends it to the queue once per pass. The lock is held while
 * chunks are moved, never while a function is called. A slow listener only makes its own queue
 * grow: beyond the session's buffer events are lost, the oldest are dropped, or firing threads
 * wait, as the policy says.
 *
 * A session whose function does not return ends without it. The dispatch thread counts each event
 * before it calls the function, so that the loop thread knows which events were delivered. It makes
 * no fence for that: the loop thread makes the barrier.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/event/thread_ring.h"
#include "lib/pipe/pipe_session.h"
#include "lib/pipe/session_state.h"
#include "lib/platform/platform.h"
#include "lib/sink/event_store.h"
#include "lib/sink/sinks.h"
#include "lib/sink/thread_gaps.h"

#define CHUNK_BYTES (64u << 10)

struct queue_sink {
	struct sink sink;
	struct session *session;
	spoor_listener_function *function; /* NULL: the program reads with spoor_listener_read() */
	void *context;
	uint32_t references; /* atomic: one of the session, one of the dispatch thread */

	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
	bool has_thread;
	bool done;    /* the dispatch thread has called the function for the last time */
	bool closing; /* no further event will be appended */
	/*
	 * only the first `delivered` events are passed to the function; atomic, set under the lock
	 */
	bool abandoned;
	uint64_t delivered; /* of an abandoned queue */
	uint64_t taken;     /* events of the chunks that the reader has taken */
	uint64_t claimed;   /* of these: passed to the function or the program; atomic */
	struct store_chunk *first, *last;
	size_t bytes; /* of chunks in the queue, until they are read; atomic for reading */

	struct store_chunk *filling; /* used by the loop thread only */
	/* guarded by the lock: a dropped chunk of CHUNK_BYTES for reuse; or NULL */
	struct store_chunk *spare;
	struct store_chunk *reading; /* used by the reader only */
	struct store_cursor cursor;
	struct thread_gaps gaps; /* used by the reader only; with SPOOR_OVERWRITE_OLDEST */
};

static __thread const struct queue_sink *dispatching;

static struct queue_sink *of(struct sink *sink)
{
	return (struct queue_sink *)(void *)sink;
}

static bool queue_is_own_thread(const struct sink *sink)
{
	return dispatching == (const struct queue_sink *)(const void *)sink;
}

static void chunks_free(struct store_chunk *chunk)
{
	while (chunk) {
		struct store_chunk *next = chunk->next;
		free(chunk);
		chunk = next;
	}
}

static void queue_unref(struct queue_sink *queue)
{
	if (__atomic_fetch_sub(&queue->references, 1, __ATOMIC_ACQ_REL) != 1)
		return;
	chunks_free(queue->first);
	free(queue->filling);
	free(queue->spare);
	free(queue->reading);
	thread_gaps_done(&queue->gaps);
	pthread_mutex_destroy(&queue->lock);
	pthread_cond_destroy(&queue->changed);
	free(queue);
}

/*
 * The next event, from the current chunk or the next one. Waits for so long; UINT64_MAX: without a
 * limit. Called by the one reader, without the lock held.
 */
static bool queue_next(struct queue_sink *queue, uint64_t timeout_ns, struct pipe_event *ret_event)
{
	struct timespec deadline = { 0 };

	while (!queue->reading || !store_next(queue->reading, &queue->cursor, ret_event)) {
		struct store_chunk *old = queue->reading;
		int r = 0;

		/* Not for each event: reading the clock costs as much as the event. */
		if (timeout_ns != UINT64_MAX && !deadline.tv_sec) {
			uint64_t until = platform_now_ns() + timeout_ns;
			deadline.tv_sec = (time_t)(until / 1000000000u);
			deadline.tv_nsec = (long)(until % 1000000000u);
		}
		queue->reading = NULL;
		queue->cursor = (struct store_cursor){ 0 };
		pthread_mutex_lock(&queue->lock);
		if (old)
			__atomic_store_n(&queue->bytes, queue->bytes - old->room, __ATOMIC_RELAXED);
		while (!queue->first && !queue->closing && !queue->abandoned && r == 0)
			r = timeout_ns == UINT64_MAX
				    ? pthread_cond_wait(&queue->changed, &queue->lock)
				    : pthread_cond_timedwait(&queue->changed, &queue->lock,
					      &deadline);
		if (queue->first && !queue->abandoned) {
			queue->reading = queue->first;
			queue->taken += queue->reading->events;
			queue->first = queue->first->next;
			if (!queue->first)
				queue->last = NULL;
		}
		pthread_mutex_unlock(&queue->lock);
		free(old);
		if (!queue->reading)
			return false;
	}
	/* The events of chunks that were dropped were lost after they had been stored. */
	if (queue->session->config.options.policy == SPOOR_OVERWRITE_OLDEST)
		ret_event->lost_before = thread_gaps_before(&queue->gaps, ret_event);
	return true;
}

static void view_of(struct queue_sink *queue, const struct pipe_event *event,
	struct spoor_event_view *ret_view)
{
	*ret_view = (struct spoor_event_view){
		.size = sizeof(*ret_view),
		.info = &event->entry->info,
		.session = (struct spoor_session *)queue->session,
		.time_ns = event->time_ns,
		.thread_id = event->thread_id,
		.activity_id = event->activity_id,
		.related_activity_id = event->related_activity_id,
		.stack = event->stack,
		.stack_count = event->stack_count,
		.payload = event->payload,
		.payload_size = event->payload_size,
		.lost_before = event->lost_before,
	};
}

/*
 * Counts the next event as passed to the function. False: it is lost, because the session has ended
 * before. The store of `claimed` precedes the load of `abandoned`, as the barrier in abandon() shows
 * to the loop thread.
 */
static inline bool claim(struct queue_sink *queue)
{
	uint64_t number = queue->claimed + 1;

	__atomic_store_n(&queue->claimed, number, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (__builtin_expect(__atomic_load_n(&pipe_hot.fences, __ATOMIC_RELAXED), 0))
		platform_fence();
	if (__builtin_expect(!__atomic_load_n(&queue->abandoned, __ATOMIC_ACQUIRE), 1))
		return true;
	pthread_mutex_lock(&queue->lock);
	bool is_delivered = number <= queue->delivered;
	pthread_mutex_unlock(&queue->lock);
	return is_delivered;
}

static void *dispatch_main(void *context)
{
	struct queue_sink *queue = context;
	struct spoor_event_view view;
	struct pipe_event event;

	dispatching = queue;
	platform_thread_name("spoor-listener");
	while (queue_next(queue, UINT64_MAX, &event) && claim(queue)) {
		view_of(queue, &event, &view);
		queue->function(&view, queue->context);
	}
	pthread_mutex_lock(&queue->lock);
	queue->done = true;
	pthread_mutex_unlock(&queue->lock);
	struct session *session = queue->session;
	queue_unref(queue);
	session_unref(session);
	return NULL;
}

static int queue_begin(struct sink *sink, struct session *session)
{
	struct queue_sink *queue = of(sink);
	pthread_attr_t attributes;
	int r;

	queue->session = session;
	if (!queue->function)
		return 0;
	/* The thread inherits the loop's signal mask: no signal is delivered to it. */
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	__atomic_fetch_add(&queue->references, 1, __ATOMIC_RELAXED);
	(void)session_ref(session);
	r = pthread_create(&queue->thread, &attributes, dispatch_main, queue);
	pthread_attr_destroy(&attributes);
	if (r) {
		session_unref(session);
		queue_unref(queue);
	}
	queue->has_thread = r == 0;
	return -r;
}

/* Appends the filled chunk to the queue. */
static void chunk_publish(struct queue_sink *queue)
{
	struct store_chunk *chunk = queue->filling;

	if (!chunk || !chunk->used)
		return;
	queue->filling = NULL;
	/* A chunk with few events is shrunk, so that it does not use up the session's buffer. */
	if (chunk->used < chunk->room / 2) {
		struct store_chunk *smaller = realloc(chunk, sizeof(*chunk) + chunk->used);
		if (smaller) {
			chunk = smaller;
			chunk->room = chunk->used;
		}
	}
	pthread_mutex_lock(&queue->lock);
	if (queue->last)
		queue->last->next = chunk;
	else
		queue->first = chunk;
	queue->last = chunk;
	__atomic_store_n(&queue->bytes, queue->bytes + chunk->room, __ATOMIC_RELAXED);
	pthread_cond_broadcast(&queue->changed);
	pthread_mutex_unlock(&queue->lock);
}

/* Drops the oldest chunk that is not being read. */
static void drop_oldest(struct queue_sink *queue)
{
	struct store_chunk *oldest;

	pthread_mutex_lock(&queue->lock);
	oldest = queue->first;
	if (oldest) {
		queue->first = oldest->next;
		if (!queue->first)
			queue->last = NULL;
		__atomic_store_n(&queue->bytes, queue->bytes - oldest->room, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&queue->lock);
	if (oldest) {
		session_unwrite(queue->session, oldest->events, true, oldest->first_ns,
			oldest->last_ns);
		if (oldest->room == CHUNK_BYTES && !queue->spare)
			queue->spare = oldest;
		else
			free(oldest);
	}
}

static size_t held(const struct queue_sink *queue)
{
	return __atomic_load_n(&queue->bytes, __ATOMIC_RELAXED) +
	       (queue->filling ? queue->filling->used : 0);
}

/* A chunk with room for at least `size` bytes; the filled one is appended to the queue. */
static int chunk_add(struct queue_sink *queue, size_t size)
{
	const struct spoor_session_options *options = &queue->session->config.options;

	chunk_publish(queue);
	if (options->policy == SPOOR_DROP_NEWEST &&
		held(queue) + CHUNK_BYTES > options->buffer_bytes && held(queue))
		return -ENOBUFS;
	while (options->policy == SPOOR_OVERWRITE_OLDEST &&
		held(queue) + CHUNK_BYTES > options->buffer_bytes && queue->first)
		drop_oldest(queue);
	/* It is empty, and too small. */
	free(queue->filling);
	if (queue->spare && size <= CHUNK_BYTES) {
		queue->filling = queue->spare;
		queue->spare = NULL;
		*queue->filling = (struct store_chunk){ .room = CHUNK_BYTES };
	} else {
		queue->filling = store_chunk_new(size > CHUNK_BYTES ? size : CHUNK_BYTES);
	}
	return queue->filling ? 0 : -ENOBUFS;
}

static int queue_event(struct sink *sink, const struct pipe_event *event)
{
	struct queue_sink *queue = of(sink);

	while (!queue->filling || !store_append(queue->filling, event)) {
		int r = chunk_add(queue, store_size(event));
		if (r)
			return r;
	}
	return 0;
}

static int queue_records(struct sink *sink, struct record_run *run)
{
	struct queue_sink *queue = of(sink);

	while (run->count) {
		if (queue->filling && store_append_run(queue->filling, run))
			continue;
		int r = chunk_add(queue, store_run_size(run));
		if (r)
			return r;
	}
	return 0;
}

static bool queue_full(struct sink *sink)
{
	return held(of(sink)) >= of(sink)->session->config.options.buffer_bytes;
}

static int queue_turn(struct sink *sink, uint64_t now_ns, uint64_t watermark_ns, unsigned flags)
{
	(void)now_ns;
	(void)watermark_ns;
	(void)flags;
	chunk_publish(of(sink));
	return 0;
}

/*
 * Ends without the function, which does not return: the event that it has is delivered, the others
 * are lost. Returns how many. The lock is held.
 */
static uint64_t abandon(struct queue_sink *queue)
{
	__atomic_store_n(&queue->abandoned, true, __ATOMIC_RELEASE);
	if (!platform_barrier_everywhere())
		platform_fence();
	queue->delivered = __atomic_load_n(&queue->claimed, __ATOMIC_RELAXED);
	uint64_t left = queue->taken - queue->delivered;
	for (const struct store_chunk *chunk = queue->first; chunk; chunk = chunk->next)
		left += chunk->events;
	return left;
}

static int queue_end(struct sink *sink, bool aborted)
{
	struct queue_sink *queue = of(sink);
	uint64_t left = 0;

	chunk_publish(queue);
	pthread_mutex_lock(&queue->lock);
	queue->closing = true;
	bool done = !queue->has_thread || queue->done;
	if (!done && aborted)
		left = abandon(queue);
	pthread_cond_broadcast(&queue->changed);
	pthread_mutex_unlock(&queue->lock);
	if (left)
		session_unwrite(queue->session, left, true, 0, 0);
	if (done)
		return 0;
	return aborted ? -ETIMEDOUT : 1;
}

static uint64_t queue_progress(const struct sink *sink)
{
	return __atomic_load_n(&((const struct queue_sink *)(const void *)sink)->claimed,
		__ATOMIC_RELAXED);
}

static void queue_free(struct sink *sink)
{
	struct queue_sink *queue = of(sink);

	queue_unref(queue);
}

static const struct session_sink_ops queue_ops = {
	.name = "listener",
	.begin = queue_begin,
	.event = queue_event,
	.records = queue_records,
	.full = queue_full,
	.turn = queue_turn,
	.end = queue_end,
	.progress = queue_progress,
	.free = queue_free,
	.is_own_thread = queue_is_own_thread,
};

int sink_queue_new(const struct spoor_session_options *options, spoor_listener_function *function,
	void *context, struct sink **ret_sink)
{
	struct queue_sink *queue = calloc(1, sizeof(*queue));
	pthread_condattr_t attributes;

	(void)options;
	if (!queue)
		return -ENOMEM;
	queue->sink.ops = &queue_ops;
	queue->function = function;
	queue->context = context;
	queue->references = 1;
	pthread_mutex_init(&queue->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&queue->changed, &attributes);
	pthread_condattr_destroy(&attributes);
	*ret_sink = &queue->sink;
	return 0;
}

int spoor_listener_read(struct spoor_session *handle, struct spoor_event_view *ret_event,
	uint32_t timeout_ms)
{
	struct session *session = (struct session *)(void *)handle;
	struct pipe_event event;
	struct spoor_event_view view;

	if (!session || !session->sink || session->sink->ops != &queue_ops ||
		of(session->sink)->function || !ret_event || !ret_event->size)
		return -EINVAL;
	struct queue_sink *queue = of(session->sink);
	if (!queue_next(queue, timeout_ms * UINT64_C(1000000), &event)) {
		pthread_mutex_lock(&queue->lock);
		bool ended = queue->closing && !queue->first;
		pthread_mutex_unlock(&queue->lock);
		return ended ? -ESHUTDOWN : 0;
	}
	__atomic_store_n(&queue->claimed, queue->claimed + 1, __ATOMIC_RELAXED);
	view_of(queue, &event, &view);
	memcpy(ret_event, &view, ret_event->size < sizeof(view) ? ret_event->size : sizeof(view));
	return 1;
}
