/* A session from inside: shared by pipe_session.c (its life) and pipe.c (its events). */
#ifndef SPOOR_LIB_PIPE_SESSION_STATE_H
#define SPOOR_LIB_PIPE_SESSION_STATE_H

#include "lib/event/thread_ring.h"
#include "lib/pipe/session_config.h"

enum session_status {
	SESSION_NEW,
	SESSION_STARTING,
	SESSION_RUNNING,
	SESSION_STOPPING, /* asked to stop; masks may not be clear yet */
	SESSION_CLEARED,  /* masks are clear: the next quiet pass brings its last events */
	SESSION_RUNDOWN,
	SESSION_ENDING,
	SESSION_ENDED,
};

/* A thread as this session knows it. An entry stays for the life of the session: a thread id that is used again goes on with its sequence. */
struct session_thread {
	uint64_t thread_id;
	uint64_t lost_pending; /* since the last event that was written */
	uint32_t sequence;
	bool gone;             /* ended, and a sequence point has said so */
	bool going;            /* ended */
};

/* What was lost and not yet told. */
struct session_loss {
	uint64_t count;
	uint64_t first_ns;
	uint64_t last_ns;
};

struct session {
	uint32_t references; /* atomic */
	uint32_t status;     /* enum session_status, atomic; changed under sessions_lock() */
	bool stop_wanted;    /* while starting */
	bool aborted;        /* atomic */
	uint64_t id;
	uint32_t slot;
	struct session_config config;
	struct session_wants wants;
	struct sink *sink;

	/* The loop thread's. */
	struct session_thread *threads;
	uint32_t thread_count;
	uint32_t thread_room;
	uint32_t *thread_table; /* by thread id: index + 1 */
	uint32_t thread_table_room;
	uint64_t run;           /* number of the run its last event was of */
	uint64_t last_emit_ns;
	struct session_loss loss_event;
	struct session_loss loss_notice;
	uint64_t cleared_pass; /* the first pass that began with its masks clear */
	uint64_t cleared_ns;
	uint32_t quiet_passes; /* since then */
	uint64_t end_since_ns;
	int failure; /* first error of the sink in this pass; session_turn() stops the session */
	int error;   /* why it has stopped; 0: no error */

	/* Asked for by others: all up to this time shall be with the sink; done when flushed_ns has reached it. Under sessions_lock(). */
	uint64_t flush_ns;
	uint64_t flushed_ns;

	uint64_t written; /* atomic */
	uint64_t lost;    /* atomic */

	struct session *next; /* of all */
	struct session *previous;
};

/* Loop thread: the session of a slot, NULL when there is none that takes events. */
extern struct session *session_active[SESSIONS_MAX];

struct session_thread *session_thread_of(struct session *session, uint64_t thread_id);

/* `count` events of this thread are lost. */
void session_lose(struct session *session, struct session_thread *thread, uint64_t count, uint64_t first_ns, uint64_t last_ns);

/* Events that its sink had taken are gone after all (overwritten, or not written before the disk was full). Loop thread. */
void session_unwrite(struct session *session, uint64_t count, bool tell, uint64_t first_ns, uint64_t last_ns);

/* Rows for a sequence point; `gone` threads are left out. */
struct session_thread *session_threads(struct session *session, uint32_t *ret_count);

#endif
