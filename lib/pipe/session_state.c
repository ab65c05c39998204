/* See session_state.h. */
#include "lib/pipe/session_state.h"

#include <errno.h>
#include <stdlib.h>

struct session *session_active[SESSIONS_MAX];

/* ---- Threads of a session ---- */

static bool thread_table_grow(struct session *session)
{
	uint32_t room = session->thread_table_room ? session->thread_table_room * 2 : 32;
	uint32_t *table = calloc(room, sizeof(*table));

	if (!table)
		return false;
	for (uint32_t i = 0; i < session->thread_count; i++) {
		uint32_t at =
			(uint32_t)(session->threads[i].thread_id * UINT64_C(0x9e3779b97f4a7c15) >>
				   32) &
			(room - 1);
		while (table[at])
			at = (at + 1) & (room - 1);
		table[at] = i + 1;
	}
	free(session->thread_table);
	session->thread_table = table;
	session->thread_table_room = room;
	return true;
}

struct session_thread *session_thread_of(struct session *session, uint64_t thread_id)
{
	if (session->thread_count * 2 >= session->thread_table_room && !thread_table_grow(session))
		return NULL;
	uint32_t room = session->thread_table_room;
	uint32_t at = (uint32_t)(thread_id * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (room - 1);
	for (; session->thread_table[at]; at = (at + 1) & (room - 1)) {
		struct session_thread *thread = &session->threads[session->thread_table[at] - 1];
		if (thread->thread_id == thread_id)
			return thread;
	}
	if (session->thread_count == session->thread_room) {
		uint32_t more = session->thread_room ? session->thread_room * 2 : 16;
		struct session_thread *threads = realloc(session->threads, more * sizeof(*threads));
		if (!threads)
			return NULL;
		session->threads = threads;
		session->thread_room = more;
	}
	session->threads[session->thread_count] = (struct session_thread){ .thread_id = thread_id };
	session->thread_table[at] = ++session->thread_count;
	return &session->threads[session->thread_count - 1];
}

int session_point_rows(struct session *session, struct outbuf *rows)
{
	for (uint32_t i = 0; i < session->thread_count; i++) {
		struct session_thread *thread = &session->threads[i];
		uint32_t sequence = thread->known ? thread->sequence : 0;
		if (thread->tombstone)
			continue;
		outbuf_add(rows, &thread->thread_id, sizeof(thread->thread_id));
		outbuf_add(rows, &sequence, sizeof(sequence));
		if (rows->failed)
			return -ENOMEM;
		thread->tombstone = thread->ending && sequence == thread->sequence;
		thread->known = true;
	}
	session->has_unknown = false;
	return 0;
}

bool session_threads_ending(const struct session *session)
{
	for (uint32_t i = 0; i < session->thread_count; i++)
		if (session->threads[i].ending && !session->threads[i].tombstone)
			return true;
	return false;
}

/* ---- Losses ---- */

static void loss_add(struct session_loss *loss, uint64_t count, uint64_t first_ns, uint64_t last_ns)
{
	if (!loss->count || first_ns < loss->first_ns)
		loss->first_ns = first_ns;
	if (!loss->count || last_ns > loss->last_ns)
		loss->last_ns = last_ns;
	loss->count += count;
}

void session_lose(struct session *session, struct session_thread *thread, uint64_t count,
	uint64_t first_ns, uint64_t last_ns)
{
	__atomic_store_n(&session->lost, session->lost + count, __ATOMIC_RELAXED);
	if (thread) {
		session->has_unknown = session->has_unknown || !thread->known;
		thread->lost_pending += count;
		thread->sequence += (uint32_t)count;
	}
	loss_add(&session->loss_event, count, first_ns, last_ns);
	loss_add(&session->loss_notice, count, first_ns, last_ns);
}

void session_not_delivered(struct session *session, struct session_thread *thread, uint64_t count,
	uint64_t first_ns, uint64_t last_ns, int error)
{
	session_lose(session, thread, count, first_ns, last_ns);
	if (error && error != -ENOBUFS && error != -EMSGSIZE)
		session->failure = session->failure ? session->failure : error;
}

void session_unwrite(struct session *session, uint64_t count, bool tell, uint64_t first_ns,
	uint64_t last_ns)
{
	__atomic_store_n(&session->written, session->written - count, __ATOMIC_RELAXED);
	__atomic_store_n(&session->lost, session->lost + count, __ATOMIC_RELAXED);
	if (tell) {
		loss_add(&session->loss_event, count, first_ns, last_ns);
		loss_add(&session->loss_notice, count, first_ns, last_ns);
	}
}
