/*
 * See pipe_session.h: starting and ending sessions. The status of a session only increases:
 *
 *   NEW -> STARTING -> RUNNING             session_enable()
 *   RUNNING -> STOPPING -> CLEARED         session_stop(), or the loop thread when the sink fails
 *   CLEARED -> RUNDOWN -> ENDING -> ENDED  the loop thread, pass by pass
 *
 * After CLEARED no thread begins an event for the session. Events that were begun before are
 * published after a grace period (grace_period.h). Then those that are left in the rings are
 * delivered, while those of other sessions wait.
 */
#include "lib/pipe/pipe_session.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/event/left_record.h"
#include "lib/pipe/own_events.h"
#include "lib/pipe/pipe.h"
#include "lib/pipe/session_state.h"
#include "lib/pipe/slow_path.h"
#include "lib/platform/loop.h"
#include "lib/platform/platform.h"

/* while threads are inside records for less than 1 s each (pipe.c), a session's end waits this long */
#define STOP_MAX_NS UINT64_C(1000000000)
#define END_MAX_NS  UINT64_C(5000000000) /* nor for a peer that reads nothing for longer */
#define NAP_NS      UINT64_C(1000000)
/* until the next look at threads that are inside records; they need a processor to leave them */
#define STOP_NAP_NS  UINT64_C(200000)
#define BUFFER_BYTES (UINT64_C(64) << 20)

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct session *slots[SESSIONS_MAX];
	uint64_t last_id;
	uint64_t quarantine;      /* atomic; changed under the lock */
	uint64_t quarantine_pass; /* slots were added in this pass; loop thread */
	bool made;                /* `changed` is initialized, with CLOCK_MONOTONIC */
	/*
	 * All sessions with memory. In a child of fork() those of the parent stay here: their
	 * references may be held by threads that the child does not have.
	 */
	struct session *all;
} sessions = { .lock = PTHREAD_MUTEX_INITIALIZER };

void sessions_lock(void)
{
	pthread_mutex_lock(&sessions.lock);
}

void sessions_unlock(void)
{
	pthread_mutex_unlock(&sessions.lock);
}

/* Wakes the threads that wait for a session's state. The lock is held. */
static void sessions_changed(void)
{
	pthread_cond_broadcast(&sessions.changed);
}

void sessions_set_up(void)
{
	pthread_condattr_t attributes;

	if (sessions.made)
		return;
	sessions.made = true;
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&sessions.changed, &attributes);
	pthread_condattr_destroy(&attributes);
}

bool sessions_quarantined(void)
{
	return __atomic_load_n(&sessions.quarantine, __ATOMIC_RELAXED) != 0;
}

void sessions_release_slots(const struct pipe_pass *pass)
{
	if (!sessions_quarantined() || !pass->grace_ends || pass->stuck ||
		pass->grace_complete <= sessions.quarantine_pass)
		return;
	sessions_lock();
	__atomic_store_n(&sessions.quarantine, 0, __ATOMIC_RELAXED);
	sessions_unlock();
}

/* ---- References ---- */

struct session *session_ref(struct session *session)
{
	__atomic_fetch_add(&session->references, 1, __ATOMIC_RELAXED);
	return session;
}

static uint32_t status_of(const struct session *session)
{
	return __atomic_load_n(&session->status, __ATOMIC_ACQUIRE);
}

static void session_destroy(struct session *session)
{
	if (session->sink)
		session->sink->ops->free(session->sink);
	session_wants_done(&session->wants);
	free(session->threads);
	free(session->thread_table);
	sessions_lock(); /* so that fork() never sees a half-removed list */
	if (session->next)
		session->next->previous = session->previous;
	if (session->previous)
		session->previous->next = session->next;
	else
		sessions.all = session->next;
	free(session);
	sessions_unlock();
}

void session_unref(struct session *session)
{
	if (session && __atomic_fetch_sub(&session->references, 1, __ATOMIC_ACQ_REL) == 1)
		session_destroy(session);
}

uint64_t session_id(const struct session *session)
{
	return session->id;
}

struct sink *session_sink(const struct session *session)
{
	return session->sink;
}

uint64_t session_bit(uint64_t id)
{
	uint64_t bit = 0;

	sessions_lock();
	for (uint32_t i = 0; i < SESSIONS_MAX; i++)
		if (sessions.slots[i] && sessions.slots[i]->id == id)
			bit = UINT64_C(1) << i;
	sessions_unlock();
	return bit;
}

static void notify(struct session *session, uint32_t kind, uint64_t count, int error)
{
	struct spoor_notice notice = { .size = sizeof(notice),
		.session = session->config.options.notice ? (struct spoor_session *)session : NULL,
		.kind = kind,
		.error = error,
		.count = count };

	if (session->config.options.notice)
		session->config.options.notice(&notice, session->config.options.notice_context);
}

/* ---- Beginning ---- */

/* A slot without a session that is not in the mask `except`, or -1. The lock is held. */
static int slot_free(uint64_t except)
{
	for (int i = 0; i < (int)SESSIONS_MAX; i++)
		if (!sessions.slots[i] && !(except >> i & 1))
			return i;
	return -1;
}

int session_new(const struct session_config *config, struct session **ret_session)
{
	sessions_lock();
	struct session *session = calloc(1, sizeof(*session));
	int r = session ? 0 : -ENOMEM;
	if (session) {
		session->next = sessions.all;
		if (session->next)
			session->next->previous = session;
		sessions.all = session;
	}
	sessions_unlock();

	if (r == 0) {
		session->config = *config;
		if (!session->config.options.buffer_bytes)
			session->config.options.buffer_bytes = BUFFER_BYTES;
		if (!session->config.options.block_ms)
			session->config.options.block_ms = 100;
		session->references = 1;
		r = session_wants_copy(&session->wants, config->options.wants,
			config->options.want_count);
		if (r == 0)
			session->config.options.wants = session->wants.wants;
	}
	if (r == 0 && !loop_running())
		r = -ENOTCONN;
	if (r == 0) {
		r = -EBUSY;
		sessions_lock();
		int slot = slot_free(sessions.quarantine);
		if (slot < 0)
			slot = slot_free(0);
		if (slot >= 0) {
			__atomic_fetch_and(&sessions.quarantine, ~(UINT64_C(1) << slot),
				__ATOMIC_RELAXED);
			sessions.slots[slot] = session_ref(session);
			session->slot = (uint32_t)slot;
			session->id = ++sessions.last_id;
			session->sink = config->sink;
			r = 0;
		}
		sessions_unlock();
	}
	if (r) {
		config->sink->ops->free(config->sink);
		if (session)
			session_destroy(session);
		return r;
	}
	*ret_session = session;
	return 0;
}

struct activation {
	struct session *session;
	int result;
};

static void flags_set(uint64_t *word, uint64_t bit, bool on)
{
	if (on)
		__atomic_fetch_or(word, bit, __ATOMIC_RELAXED);
	else
		__atomic_fetch_and(word, ~bit, __ATOMIC_RELAXED);
}

static void activate(void *context)
{
	struct activation *activation = context;
	struct session *session = activation->session;
	uint64_t bit = UINT64_C(1) << session->slot;

	activation->result =
		session->sink->ops->begin ? session->sink->ops->begin(session->sink, session) : 0;
	if (activation->result)
		return;
	/* Before its first event: a fast thread fills its small first ring in less than a millisecond. */
	while (!rings_prepare())
		continue;
	pipe_slot_begin(session->slot);
	session_active[session->slot] = session;
	bool block = session->config.options.policy == SPOOR_BLOCK;
	__atomic_store_n(&pipe_hot.block_ns[session->slot],
		session->config.options.block_ms * UINT64_C(1000000), __ATOMIC_RELAXED);
	flags_set(&pipe_hot.blocking, bit, block);
	flags_set(&pipe_hot.stalled, bit, false);
	flags_set(&pipe_hot.given_up, bit, false);
	flags_set(&pipe_hot.stacks, bit, session->config.options.stacks);
	slow_path_slot(session->slot, session->config.options.stacks);
}

/* Releases the slot, and the reference that the table of slots held. */
static void slot_leave(struct session *session)
{
	sessions_lock();
	sessions.slots[session->slot] = NULL;
	__atomic_store_n(&session->status, SESSION_ENDED, __ATOMIC_RELEASE);
	sessions_changed();
	sessions_unlock();
	session_unref(session);
}

int session_enable(struct session *session)
{
	struct activation activation = { session, 0 };

	sessions_lock();
	bool fresh = status_of(session) == SESSION_NEW && !session->stop_wanted;
	if (fresh)
		__atomic_store_n(&session->status, SESSION_STARTING, __ATOMIC_RELEASE);
	sessions_unlock();
	if (!fresh) {
		if (status_of(session) == SESSION_NEW)
			slot_leave(session);
		return -EINVAL;
	}
	int r = session->sink->ops->open ? session->sink->ops->open(session->sink, session) : 0;
	if (r == 0)
		r = loop_call(activate, &activation);
	if (r == 0)
		r = activation.result;
	if (r) {
		session->error = r;
		slot_leave(session);
		return r;
	}
	(void)registry_session_set(session->slot, session->id, &session->wants);
	sessions_lock();
	__atomic_store_n(&session->status, SESSION_RUNNING, __ATOMIC_RELEASE);
	bool stop = session->stop_wanted;
	sessions_unlock();
	if (stop)
		session_stop(session, session->aborted);
	loop_wake();
	return 0;
}

/* ---- Ending ---- */

void session_stop(struct session *session, bool aborted)
{
	bool mine = false;

	if (aborted)
		__atomic_store_n(&session->aborted, true, __ATOMIC_RELAXED);
	sessions_lock();
	if (status_of(session) == SESSION_RUNNING) {
		__atomic_store_n(&session->status, SESSION_STOPPING, __ATOMIC_RELEASE);
		mine = true;
	} else if (status_of(session) < SESSION_RUNNING) {
		session->stop_wanted = true;
	}
	sessions_unlock();
	if (!mine)
		return;
	uint64_t bit = UINT64_C(1) << session->slot;
	flags_set(&pipe_hot.blocking, bit, false);
	flags_set(&pipe_hot.stalled, bit, false);
	registry_session_clear(session->slot);
	sessions_lock();
	__atomic_store_n(&session->status, SESSION_CLEARED, __ATOMIC_RELEASE);
	sessions_unlock();
	loop_wake();
}

/* Stops a session whose sink has failed. */
static void session_fail(struct session *session, int error)
{
	if (session->error)
		return;
	session->error = error;
	own_event_session_failed(session->id, error, session->sink->ops->name);
	notify(session, SPOOR_NOTICE_FAILED, 0, error);
	session_stop(session, true);
}

/* The last step: the sink is closed and the slot is released. */
static void session_over(struct session *session, const struct pipe_pass *pass)
{
	uint64_t bit = UINT64_C(1) << session->slot;

	session_active[session->slot] = NULL;
	flags_set(&pipe_hot.stacks, bit, false);
	slow_path_slot(session->slot, false);
	if (session->slot_held) {
		sessions.quarantine_pass = pass->number;
		sessions_lock();
		__atomic_fetch_or(&sessions.quarantine, bit, __ATOMIC_RELAXED);
		sessions_unlock();
	}
	(void)session_ref(session);
	notify(session, SPOOR_NOTICE_ENDED, __atomic_load_n(&session->lost, __ATOMIC_RELAXED),
		session->error);
	slot_leave(session);
	if (session->config.ended)
		session->config.ended(session, session->error, session->config.context);
	session_unref(session);

	bool any = false;
	for (uint32_t i = 0; i < SESSIONS_MAX; i++)
		any = any || session_active[i];
	if (!any)
		pipe_trim();
}

/* Reports losses: an event in the stream, a notice to the program. */
static void report_losses(struct session *session)
{
	if (session->loss_event.count &&
		(!session->sink->ops->takes_own || session->error ||
			own_event_loss(session, &session->loss_event) != -ENOBUFS))
		session->loss_event = (struct session_loss){ 0 };
	if (session->loss_notice.count) {
		uint64_t count = session->loss_notice.count;
		session->loss_notice = (struct session_loss){ 0 };
		notify(session, SPOOR_NOTICE_LOST, count, 0);
	}
}

static uint64_t progress_of(const struct session *session)
{
	const struct sink *sink = session->sink;

	return sink->ops->progress ? sink->ops->progress(sink) : 0;
}

/*
 * Back-pressure of a session with SPOOR_BLOCK: firing threads wait while its sink is full. As long
 * as the sink takes something, they do not give up.
 */
static void update_stall(struct session *session, uint64_t now_ns)
{
	uint64_t bit = UINT64_C(1) << session->slot;
	bool was = (__atomic_load_n(&pipe_hot.stalled, __ATOMIC_RELAXED) & bit) != 0;
	bool is = status_of(session) == SESSION_RUNNING && session->sink->ops->full &&
		  session->sink->ops->full(session->sink);

	if (session->config.options.policy != SPOOR_BLOCK)
		return;
	uint64_t progress = is ? progress_of(session) : 0;
	if (is && (!was || progress != session->stall_progress)) {
		session->stall_progress = progress;
		__atomic_store_n(&pipe_hot.taken_ns[session->slot], now_ns, __ATOMIC_RELAXED);
		flags_set(&pipe_hot.given_up, bit, false);
	}
	if (was == is)
		return;
	flags_set(&pipe_hot.given_up, bit, false);
	flags_set(&pipe_hot.stalled, bit, is);
	slow_path_slot(session->slot, is || session->config.options.stacks);
}

/* Has the session's end not progressed for END_MAX_NS? */
static bool end_is_late(struct session *session, uint64_t now_ns)
{
	uint64_t progress = progress_of(session);

	if (progress != session->end_progress)
		session->end_since_ns = now_ns;
	session->end_progress = progress;
	return now_ns - session->end_since_ns > END_MAX_NS;
}

static uint64_t stop_turn(struct session *session, const struct pipe_pass *pass)
{
	uint64_t now_ns = pass->now_ns;
	bool aborted = session->error || __atomic_load_n(&session->aborted, __ATOMIC_RELAXED);

	if (status_of(session) == SESSION_CLEARED) {
		if (!session->cleared_pass)
			return 0;
		if (!session->cleared_ns)
			session->cleared_ns = now_ns;
		/* Threads that are inside a record for too long are not waited for. */
		if (pass->grace_complete < session->cleared_pass &&
			now_ns - session->cleared_ns < STOP_MAX_NS)
			return STOP_NAP_NS;
		pipe_slot_drain(session->slot);
		session->slot_held = pipe_slot_end(session->slot, session->cleared_pass);
		session->end_since_ns = now_ns;
		__atomic_store_n(&session->status, SESSION_RUNDOWN, __ATOMIC_RELEASE);
	}
	bool late = end_is_late(session, now_ns);
	if (status_of(session) == SESSION_RUNDOWN) {
		if (session->config.rundown && !aborted && !late &&
			session->config.rundown(session, session->config.context) == 1)
			return NAP_NS;
		__atomic_store_n(&session->status, SESSION_ENDING, __ATOMIC_RELEASE);
		session->end_since_ns = now_ns;
	}
	report_losses(session);
	int r = session->sink->ops->end ? session->sink->ops->end(session->sink,
						  aborted || end_is_late(session, now_ns))
					: 0;
	if (r > 0)
		return NAP_NS;
	if (r < 0 && !session->error)
		session_fail(session, r);
	session->loss_event = (struct session_loss){ 0 }; /* the stream is closed */
	report_losses(session);
	session_over(session, pass);
	return 0;
}

uint64_t session_turn(struct session *session, const struct pipe_pass *pass)
{
	uint64_t now_ns = pass->now_ns;
	uint64_t watermark_ns = pass->watermark_ns;

	if (session->failure)
		session_fail(session, session->failure);
	uint32_t status = __atomic_load_n(&session->status, __ATOMIC_ACQUIRE);
	uint64_t flush_ns;

	if (status < SESSION_STARTING || status == SESSION_ENDED)
		return UINT64_MAX;
	report_losses(session);
	update_stall(session, now_ns);
	if (status >= SESSION_CLEARED)
		return stop_turn(session, pass);

	sessions_lock();
	flush_ns = session->flush_ns;
	bool flush = flush_ns > session->flushed_ns && watermark_ns >= flush_ns;
	sessions_unlock();
	bool stalled = __atomic_load_n(&pipe_hot.stalled, __ATOMIC_RELAXED) >> session->slot & 1;
	uint64_t due_ns = session->loss_event.count || stalled ? NAP_NS : UINT64_MAX;
	if (flush && !session->flushing_ns)
		session->flushing_ns = flush_ns;
	if (!session->error) {
		int r = session->sink->ops->turn
				? session->sink->ops->turn(session->sink, now_ns, watermark_ns,
					  (flush ? SINK_FLUSH : 0u) | (pass->idle ? SINK_IDLE : 0u))
				: 0;
		if (r < 0)
			session_fail(session, r);
		uint64_t sink_ns = r > 0 && r != SINK_FLUSHING ? (uint64_t)r * 1000 : UINT64_MAX;
		if (sink_ns < due_ns)
			due_ns = sink_ns > NAP_NS ? sink_ns : NAP_NS;
		flush = flush && r != SINK_FLUSHING; /* the sink wakes this thread */
	}
	if (flush) {
		sessions_lock();
		session->flushed_ns = session->flushing_ns;
		session->flushing_ns = 0;
		sessions_changed();
		sessions_unlock();
	}
	if (flush_ns > session->flushed_ns && (flush || watermark_ns < flush_ns))
		return 100000;
	return due_ns;
}

/* An absolute time for pthread_cond_timedwait(). */
static struct timespec deadline_of(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / 1000000000u),
		.tv_nsec = (long)(ns % 1000000000u) };
}

int session_wait(struct session *session, uint64_t timeout_ns)
{
	uint64_t now = platform_now_ns();
	struct timespec deadline =
		deadline_of(timeout_ns > UINT64_MAX / 2 - now ? UINT64_MAX / 2 : now + timeout_ns);
	int r = 0;

	sessions_lock();
	while (status_of(session) != SESSION_ENDED && r == 0)
		r = -pthread_cond_timedwait(&sessions.changed, &sessions.lock, &deadline);
	if (status_of(session) == SESSION_ENDED)
		r = 0;
	sessions_unlock();
	return r;
}

/* Does the calling thread belong to the session's sink? */
static bool on_sink_thread(const struct session *session)
{
	const struct sink *sink = __atomic_load_n(&session->sink, __ATOMIC_RELAXED);

	return sink && sink->ops->is_own_thread && sink->ops->is_own_thread(sink);
}

void sessions_stop_all(void)
{
	struct session *running[SESSIONS_MAX];
	uint32_t count = 0;

	sessions_lock();
	for (uint32_t i = 0; i < SESSIONS_MAX; i++)
		if (sessions.slots[i])
			running[count++] = session_ref(sessions.slots[i]);
	sessions_unlock();
	/* This may be in a callback, which does not return before: the rest of its session is lost. */
	for (uint32_t i = 0; i < count; i++)
		session_stop(running[i], on_sink_thread(running[i]));
	for (uint32_t i = 0; i < count; i++) {
		/* A peer that reads nothing has END_MAX_NS; then its connection is closed. */
		uint64_t progress = progress_of(running[i]), before;
		do {
			before = progress;
			if (session_wait(running[i], END_MAX_NS + 2 * STOP_MAX_NS) == 0)
				break;
			progress = progress_of(running[i]);
		} while (progress != before);
		if (status_of(running[i]) != SESSION_ENDED) {
			__atomic_store_n(&running[i]->aborted, true, __ATOMIC_RELAXED);
			(void)session_wait(running[i], STOP_MAX_NS);
		}
		session_unref(running[i]);
	}
}

void sessions_child(void)
{
	pthread_mutex_init(&sessions.lock, NULL);
	sessions.made = false;
	for (uint32_t i = 0; i < SESSIONS_MAX; i++) {
		struct session *session = sessions.slots[i];
		sessions.slots[i] = NULL;
		session_active[i] = NULL;
		if (!session)
			continue;
		/* The program may still have its handle, which reads as ended. */
		session->status = SESSION_ENDED;
		if (session->sink && session->sink->ops->child)
			session->sink->ops->child(session->sink);
	}
	sessions.quarantine = 0;
}

/* ---- Public functions; struct spoor_session is struct session ---- */

static struct session *of(const struct spoor_session *session)
{
	return (struct session *)(uintptr_t)session;
}

int session_start_public(const struct spoor_session_options *options, struct sink *sink,
	struct spoor_session **ret_session)
{
	struct session_config config = { .sink = sink };
	struct session *session;

	memcpy(&config.options, options,
		options->size < sizeof(config.options) ? options->size : sizeof(config.options));
	int r = session_new(&config, &session);
	if (r)
		return r;
	r = session_enable(session);
	if (r) {
		session_unref(session);
		return r;
	}
	*ret_session = (struct spoor_session *)session;
	return 0;
}

int spoor_session_stop(struct spoor_session *handle)
{
	struct session *session = of(handle);

	if (!session)
		return -EINVAL;
	left_settle();
	session_stop(session, false);
	if (status_of(session) == SESSION_ENDED)
		return session->error;
	if (loop_is_self() || on_sink_thread(session))
		return 0;
	while (session_wait(session, UINT64_C(1000000000)) && loop_running())
		;
	return session->error;
}

void spoor_session_free(struct spoor_session *handle)
{
	if (!handle)
		return;
	session_stop(of(handle), false);
	session_unref(of(handle));
}

int spoor_session_flush(struct spoor_session *handle, uint32_t timeout_ms)
{
	struct session *session = of(handle);
	uint64_t now = platform_now_ns();
	struct timespec deadline = deadline_of(now + timeout_ms * UINT64_C(1000000));
	int r = 0;

	if (!session)
		return -EINVAL;
	if (loop_is_self())
		return -EDEADLK;
	left_settle();
	sessions_lock();
	/* Events fired before now have an earlier stamp, within the error of the conversion. */
	uint64_t wanted = now + 1000;
	if (session->flush_ns < wanted)
		session->flush_ns = wanted;
	sessions_unlock();
	loop_wake();
	sessions_lock();
	while (session->flushed_ns < wanted && status_of(session) < SESSION_ENDED && r == 0)
		r = -pthread_cond_timedwait(&sessions.changed, &sessions.lock, &deadline);
	if (session->flushed_ns >= wanted || status_of(session) == SESSION_ENDED)
		r = session->error;
	sessions_unlock();
	return r;
}

int spoor_session_snapshot(struct spoor_session *handle, const char *path)
{
	struct session *session = of(handle);

	if (!handle || !path || !session->sink->ops->snapshot)
		return -EINVAL;
	int r = loop_is_self() ? 0 : spoor_session_flush(handle, 10000);
	return r ? r : session->sink->ops->snapshot(session->sink, path);
}

uint64_t spoor_session_id(const struct spoor_session *session)
{
	return session ? of(session)->id : 0;
}

void spoor_session_count(const struct spoor_session *session,
	struct spoor_session_counts *ret_counts)
{
	struct spoor_session_counts counts = { 0 };

	if (!ret_counts)
		return;
	counts.size = ret_counts->size;
	if (session) {
		counts.written = __atomic_load_n(&of(session)->written, __ATOMIC_RELAXED);
		counts.lost = __atomic_load_n(&of(session)->lost, __ATOMIC_RELAXED);
	}
	memcpy(ret_counts, &counts, counts.size < sizeof(counts) ? counts.size : sizeof(counts));
}
