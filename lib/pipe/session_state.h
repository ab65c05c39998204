/*
 * The state of a session, its threads and its losses: shared by pipe_session.c (start and end),
 * pipe.c (events) and the sinks. Functions are called on the loop thread.
 */
#ifndef SPOOR_LIB_PIPE_SESSION_STATE_H
#define SPOOR_LIB_PIPE_SESSION_STATE_H

#include "lib/event/outbuf.h"
#include "lib/event/thread_ring.h"
#include "lib/pipe/session_config.h"

enum session_status {
	SESSION_NEW,
	SESSION_STARTING,
	SESSION_RUNNING,
	SESSION_STOPPING, /* session_stop() was called; masks may still have its bit */
	/* no mask has its bit; waits for passes that see every thread outside of a record */
	SESSION_CLEARED,
	SESSION_RUNDOWN,
	SESSION_ENDING,
	SESSION_ENDED,
};

/*
 * A thread in this session. The entry exists as long as the session: if the thread id is used
 * again, its sequence continues.
 */
struct session_thread {
	uint64_t thread_id;
	uint64_t lost_pending; /* events lost since the last one that was written */
	uint32_t sequence;
	bool known;     /* the stream has an event or a sequence point of it */
	bool tombstone; /* ended, and a sequence point without it was written */
	bool ending;    /* ended; not yet left out of a sequence point */
};

/* Losses that were not reported yet. */
struct session_loss {
	uint64_t count;
	uint64_t first_ns;
	uint64_t last_ns;
};

struct session {
	uint32_t references; /* atomic */
	uint32_t status;     /* enum session_status, atomic; changed under sessions_lock() */
	bool stop_wanted;    /* session_stop() was called before the session ran */
	bool aborted;        /* atomic */
	uint64_t id;
	uint32_t slot;
	struct session_config config;
	struct session_wants wants;
	struct sink *sink;

	/* Used by the loop thread only. */
	struct session_thread *threads;
	uint32_t thread_count;
	uint32_t thread_room;
	/*
	 * Events of threads that are not known were lost. A reader counts a thread's losses from its
	 * first number on, so a sequence point with the number 0 must precede its first event.
	 */
	bool has_unknown;
	uint32_t *thread_table; /* open addressing by thread id: index in `threads` + 1 */
	uint32_t thread_table_room;
	uint64_t run; /* number of the run that its last event belonged to */
	uint64_t last_emit_ns;
	struct session_loss loss_event;
	struct session_loss loss_notice;
	uint64_t cleared_pass; /* the first pass that began when no mask had its bit */
	uint64_t cleared_ns;
	/* at its end a thread was inside a record that it began before */
	bool slot_held;
	uint64_t stall_progress; /* what sink_ops.progress() returned when it was last seen full */
	uint64_t end_since_ns;   /* time of the last progress of its end */
	uint64_t end_progress;   /* what sink_ops.progress() returned then */
	int failure; /* first error of the sink in this pass; session_turn() stops the session */
	int error;   /* why it has stopped; 0: no error */

	/*
	 * spoor_session_flush(): all events up to this time shall be with the sink; done when
	 * flushed_ns has reached it. Guarded by sessions_lock().
	 */
	uint64_t flush_ns;
	uint64_t flushed_ns;
	uint64_t flushing_ns; /* that the sink writes now; 0: none. Loop thread */

	uint64_t written; /* atomic */
	uint64_t lost;    /* atomic */

	struct session *next; /* list of all sessions */
	struct session *previous;
};

/* The session of a slot; NULL: none that takes events. Loop thread. */
extern struct session *session_active[SESSIONS_MAX];

struct session_thread *session_thread_of(struct session *session, uint64_t thread_id);

/* Counts `count` events of this thread as lost. NULL: of a thread without an entry. */
void session_lose(struct session *session, struct session_thread *thread, uint64_t count,
	uint64_t first_ns, uint64_t last_ns);

/* `count` more events of this thread are in the session's stream. */
static inline void session_thread_advance(struct session_thread *thread, uint32_t count)
{
	thread->sequence += count;
	thread->lost_pending = 0;
	thread->known = true;
}

/* The sink has taken `count` events of this thread. Those of the library itself are not counted. */
static inline void session_delivered(struct session *session, struct session_thread *thread,
	uint32_t count)
{
	session_thread_advance(thread, count);
	__atomic_store_n(&session->written, session->written + count, __ATOMIC_RELAXED);
}

/*
 * The sink has refused `count` events of this thread: they are lost. NULL: no memory for the thread's
 * entry. Ends the session if `error` is that of a sink that has failed.
 */
void session_not_delivered(struct session *session, struct session_thread *thread, uint64_t count,
	uint64_t first_ns, uint64_t last_ns, int error);

/*
 * Counts events as lost that the sink had taken (overwritten, or not written before the disk was
 * full). `tell`: report them in the stream and to the program.
 */
void session_unwrite(struct session *session, uint64_t count, bool tell, uint64_t first_ns,
	uint64_t last_ns);

/*
 * Appends a row of a nettrace sequence point for each thread: the thread id (8 bytes), the sequence
 * (4 bytes). The first row of a thread that is not known has the number 0. A thread that has ended
 * is in the next point for the last time. -ENOMEM.
 */
#define SESSION_POINT_ROW 12u
int session_point_rows(struct session *session, struct outbuf *rows);
bool session_threads_ending(
	const struct session *session); /* has any ended since the last point? */

#endif
