/*
 * See server_session.h.
 */
#include "lib/server/server_session.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "lib/code/rundown.h"
#include "lib/pipe/pipe_session.h"
#include "lib/platform/loop.h"
#include "lib/platform/platform.h"
#include "lib/sink/sinks.h"

#define STOP_LOOK_NS 500000000u

struct server_session {
	struct session *session; /* NULL: free */
	uint64_t id;
	struct rundown *rundown;
	bool stopping;
	/* number of bytes at the last check, and the time when it last changed */
	uint64_t written;
	uint64_t progress_ns;
	struct loop_timer timer;
	void (*ended)(uint64_t id);
};

static struct server_session server_sessions[SESSIONS_MAX];

void server_sessions_reset(void)
{
	memset(server_sessions, 0, sizeof(server_sessions));
}

uint64_t server_session_id(const struct server_session *entry)
{
	return entry->id;
}

struct server_session *server_session_find(uint64_t id)
{
	for (unsigned i = 0; i < SESSIONS_MAX; i++)
		if (server_sessions[i].session && server_sessions[i].id == id)
			return &server_sessions[i];
	return NULL;
}

static void session_ended(struct session *session, int error, void *context)
{
	struct server_session *entry = context;

	/*
	 * the peer has closed the connection, or has the whole stream: no connection can report the
	 * error
	 */
	(void)error;
	loop_timer_clear(&entry->timer);
	rundown_free(entry->rundown);
	entry->rundown = NULL;
	entry->session = NULL;
	entry->ended(entry->id);
	session_unref(session);
}

static int server_session_rundown(struct session *session, void *context)
{
	struct server_session *entry = context;

	return entry->rundown ? rundown_step(entry->rundown, session) : 0;
}

/*
 * Checks a session that is ending: if its peer reads nothing for SERVER_STOP_NS, the connection is
 * closed.
 */
static void server_session_watch(struct loop_timer *timer)
{
	struct server_session *entry =
		(struct server_session *)((char *)timer - offsetof(struct server_session, timer));
	uint64_t now_ns = platform_now_ns();
	uint64_t written = sink_socket_sent(session_sink(entry->session));

	if (written != entry->written) {
		entry->written = written;
		entry->progress_ns = now_ns;
	}
	if (now_ns - entry->progress_ns >= SERVER_STOP_NS)
		session_stop(entry->session, true);
	loop_timer_set(&entry->timer, now_ns + STOP_LOOK_NS);
}

void server_session_stop(struct server_session *entry)
{
	if (entry->stopping)
		return;
	entry->stopping = true;
	entry->progress_ns = platform_now_ns();
	loop_timer_set(&entry->timer, entry->progress_ns + STOP_LOOK_NS);
	session_stop(entry->session, false);
}

int server_session_new(const struct server_request *request, int fd, void (*ended)(uint64_t id),
	struct server_session **ret_session)
{
	struct server_session *entry = NULL;
	struct spoor_want *wants = calloc(request->provider_count, sizeof(*wants));
	struct session_config config = { 0 };
	struct session *session;
	uint64_t buffer = (uint64_t)request->buffer_mb << 20;

	for (unsigned i = 0; i < SESSIONS_MAX && !entry; i++)
		if (!server_sessions[i].session)
			entry = &server_sessions[i];
	if (!wants)
		return -ENOMEM;
	if (!entry) {
		free(wants);
		return -EBUSY;
	}
	for (uint32_t i = 0; i < request->provider_count; i++) {
		const struct server_provider *provider = &request->providers[i];
		wants[i] = (struct spoor_want){
			.size = sizeof(wants[i]),
			.name = provider->name,
			.keywords = provider->keywords,
			.level = provider->level,
			.arguments = provider->arguments,
			.ids = provider->ids,
			.id_count = provider->id_count,
			.ids_allowed = provider->ids_only,
		};
	}
	if (buffer > SERVER_BUFFER_MAX)
		buffer = SERVER_BUFFER_MAX;
	*entry = (struct server_session){ .timer = { .expired = server_session_watch },
		.ended = ended };
	config = (struct session_config){
		.options = {
			.size = sizeof(config.options),
			.wants = wants,
			.want_count = request->provider_count,
			.policy = SPOOR_DROP_NEWEST,
			.stacks = request->stacks,
			.buffer_bytes = (size_t)buffer,
		},
		.rundown = server_session_rundown,
		.ended = session_ended,
		.context = entry,
	};
	/* The session gets a copy: the caller sends the reply, also if the session is refused. */
	int stream = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	int error = stream < 0 ? -errno : sink_socket_new(stream, (size_t)buffer, &config.sink);
	if (!error)
		error = session_new(&config, &session);
	free(wants);
	if (error < 0)
		return error;
	entry->session = session;
	entry->id = session_id(session);
	*ret_session = entry;
	return 0;
}

void server_session_cancel(struct server_session *entry)
{
	struct session *session = entry->session;

	entry->session = NULL;
	/* A session that is stopped before its start releases its slot when it is started. */
	session_stop(session, true);
	(void)session_enable(session);
	session_unref(session);
}

void server_session_begin(struct server_session *entry, uint64_t rundown_keywords)
{
	struct session *session = entry->session;

	entry->rundown = rundown_new(rundown_keywords);
	if (session_enable(session) < 0) {
		rundown_free(entry->rundown);
		entry->rundown = NULL;
		entry->session = NULL;
		session_unref(session);
	}
}

void server_sessions_stop(void)
{
	for (unsigned i = 0; i < SESSIONS_MAX; i++)
		if (server_sessions[i].session)
			server_session_stop(&server_sessions[i]);
}

unsigned server_sessions_count(bool abort)
{
	unsigned count = 0;

	for (unsigned i = 0; i < SESSIONS_MAX; i++) {
		if (!server_sessions[i].session)
			continue;
		count++;
		if (abort)
			session_stop(server_sessions[i].session, true);
	}
	return count;
}
