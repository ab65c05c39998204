/*
 * The sessions that peers of the diagnostics server have started: each writes to a connection, and
 * ends with the rundown that its request asks for. All functions are for the loop thread, except
 * server_sessions_reset().
 *
 * server_session_new(), then the reply is sent, then server_session_begin() or
 * server_session_cancel().
 */
#ifndef SPOOR_LIB_SERVER_SERVER_SESSION_H
#define SPOOR_LIB_SERVER_SERVER_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/server/server_request.h"

/* if the peer of an ending session reads nothing for this time, the connection is closed */
#define SERVER_STOP_NS 10000000000u
/*
 * Maximum buffer of a session. Memory is allocated as needed, but a tool may request a larger
 * buffer than a program should use.
 */
#define SERVER_BUFFER_MAX (UINT64_C(1) << 30)

struct server_session;

/*
 * Makes a session whose stream is a copy of this connection. No event flows yet. `ended` is called
 * with its id after its last byte was sent, or the peer has closed the connection. 0 or a negative
 * errno.
 */
int server_session_new(const struct server_request *request, int fd, void (*ended)(uint64_t id),
	struct server_session **ret_session);
uint64_t server_session_id(const struct server_session *session);
/* Events flow from here on. If that fails, the stream is closed. */
void server_session_begin(struct server_session *session, uint64_t rundown_keywords);
/* The peer did not get the reply: ends a session that has not begun. */
void server_session_cancel(struct server_session *session);

/* A session that has not ended; NULL: none. */
struct server_session *server_session_find(uint64_t id);
/*
 * Ends a session; does not wait. If its peer reads nothing for SERVER_STOP_NS, the connection is
 * closed.
 */
void server_session_stop(struct server_session *session);

void server_sessions_stop(void);
/* The number of sessions that have not ended. `abort`: closes their connections. */
unsigned server_sessions_count(bool abort);
/* Forgets all sessions: at the start of the server, and in the child of fork(). */
void server_sessions_reset(void);

#endif
