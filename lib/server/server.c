/*
 * Connections and ports of the diagnostics server. All of it runs on the loop thread,
 * except start() and stop().
 *
 * A connection is in one of three states: it receives its request (until SERVER_REQUEST_NS), sends
 * its reply (until SERVER_REPLY_NS), or waits for a session to end (which is bounded as well). When
 * the table is full, the connection that has been receiving its request for longest is closed: a
 * working client sends its request without delay. A connection that starts a session leaves the
 * table; the session owns its fd from then on.
 *
 * For a port of DOTNET_DiagnosticPorts the server connects to the tool: it sends an advertise
 * message and then receives a request as on any connection, but without a time limit. After each
 * request it connects again.
 */
#include "lib/server/server.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/platform/loop.h"
#include "lib/platform/platform.h"
#include "lib/server/server_reply.h"
#include "lib/server/server_request.h"
#include "lib/server/server_session.h"

/* as in the runtime: 10 ms, 1.25 times as long after each failure, at most 500 ms */
#define PORT_RETRY_MIN_NS 10000000u
#define PORT_RETRY_MAX_NS 500000000u
#define ACCEPT_PAUSE_NS   100000000u /* no file descriptors left: accept again after this time */
#define READ_STEP         4096u

enum server_connection_state {
	CONNECTION_FREE,
	CONNECTION_REQUEST,
	CONNECTION_REPLY,
	CONNECTION_WAIT,
};

struct server_connection {
	struct loop_watch watch; /* first */
	struct loop_timer timer;
	enum server_connection_state state;
	struct port *port; /* NULL: a peer has connected to the socket */
	uint64_t began_ns;
	uint8_t header[SERVER_HEADER_SIZE];
	uint8_t *payload; /* exactly as long as the header says */
	size_t payload_size;
	size_t got; /* bytes of header and payload */
	enum server_command command;
	struct server_reply reply;
	size_t sent;
	uint64_t session_id; /* the session that CONNECTION_WAIT waits for */
};

struct port {
	char *path;
	bool suspend;
	bool resumed;
	uint64_t retry_ns;
	struct loop_timer timer;
	struct server_connection *connection; /* NULL: not connected */
};

static struct {
	bool running;
	enum server_runtime runtime;
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	char directory[4096];
	/* of the socket's file, so that only the own file is removed */
	struct stat bound;
	struct loop_watch listener;
	struct loop_timer accept_timer;
	struct server_connection connections[SERVER_CONNECTIONS_MAX];
	struct port ports[SERVER_PORTS_MAX];
	unsigned port_count;
	struct server_identity identity;
	char command_line[65536];
	char entry[256];
	bool default_suspend;
	bool default_resumed;
} server;

static pthread_mutex_t resume_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t resume_changed = PTHREAD_COND_INITIALIZER;
static bool resume_all;

static void port_connect(struct port *port);
static void connection_ready(struct loop_watch *watch, short revents);

/* ---- Connections ---- */

static void connection_close(struct server_connection *connection)
{
	struct port *port = connection->port;

	loop_watch_remove(&connection->watch);
	loop_timer_clear(&connection->timer);
	if (connection->watch.fd >= 0)
		platform_close(connection->watch.fd);
	free(connection->payload);
	server_reply_done(&connection->reply);
	connection->payload = NULL;
	connection->port = NULL;
	connection->state = CONNECTION_FREE;
	if (port) {
		port->connection = NULL;
		loop_timer_set(&port->timer, platform_now_ns() + port->retry_ns);
	}
}

static void connection_expired(struct loop_timer *timer)
{
	connection_close((struct server_connection *)((char *)timer -
						      offsetof(struct server_connection, timer)));
}

/*
 * A free entry of the table; if there is none, the connection that has been idle for longest is
 * closed. NULL: all entries are sending replies.
 */
static struct server_connection *connection_new(int fd)
{
	struct server_connection *oldest = NULL, *found = NULL;

	for (unsigned i = 0; i < SERVER_CONNECTIONS_MAX && !found; i++) {
		struct server_connection *connection = &server.connections[i];
		if (connection->state == CONNECTION_FREE)
			found = connection;
		else if (connection->state == CONNECTION_REQUEST && !connection->port &&
			 (!oldest || connection->began_ns < oldest->began_ns))
			oldest = connection;
	}
	if (!found && oldest) {
		connection_close(oldest);
		found = oldest;
	}
	if (!found)
		return NULL;
	*found = (struct server_connection){
		.watch = { .fd = fd, .events = POLLIN, .ready = connection_ready },
		.timer = { .expired = connection_expired },
		.state = CONNECTION_REQUEST,
		.began_ns = platform_now_ns(),
	};
	loop_watch_add(&found->watch);
	return found;
}

/* Sends as many bytes as the peer has room for; closes after the last byte. */
static void connection_send(struct server_connection *connection)
{
	while (connection->sent < connection->reply.size) {
		ssize_t sent = send(connection->watch.fd,
			connection->reply.bytes + connection->sent,
			connection->reply.size - connection->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
			connection->watch.events = POLLOUT;
			return;
		}
		if (sent < 0)
			break;
		connection->sent += (size_t)sent;
	}
	connection_close(connection);
}

static void connection_reply(struct server_connection *connection)
{
	if (connection->reply.failed) {
		connection_close(connection);
		return;
	}
	connection->state = CONNECTION_REPLY;
	loop_timer_set(&connection->timer, platform_now_ns() + SERVER_REPLY_NS);
	connection_send(connection);
}

static void connection_refuse(struct server_connection *connection, uint32_t error)
{
	server_reply_error(&connection->reply, error);
	connection_reply(connection);
}

/* ---- Sessions ---- */

/* Connections that wait for the end of this session are answered. */
static void server_session_ended(uint64_t id)
{
	for (unsigned i = 0; i < SERVER_CONNECTIONS_MAX; i++) {
		struct server_connection *connection = &server.connections[i];
		if (connection->state != CONNECTION_WAIT || connection->session_id != id)
			continue;
		server_reply_session(&connection->reply, id);
		connection_reply(connection);
	}
}

/* Makes a session whose stream is this connection. */
static void server_collect(struct server_connection *connection,
	const struct server_request *request)
{
	struct server_session *session;
	int fd = connection->watch.fd;

	if (server_session_new(request, fd, server_session_ended, &session) < 0) {
		connection_refuse(connection, SERVER_FAIL);
		return;
	}
	server_reply_session(&connection->reply, server_session_id(session));
	/*
	 * 28 bytes into the empty buffer of a socket: a short write means that the peer has closed
	 * it.
	 */
	bool sent = !connection->reply.failed &&
		    send(fd, connection->reply.bytes, connection->reply.size,
			    MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)connection->reply.size;
	if (!sent) {
		server_session_cancel(session);
		connection_close(connection);
		return;
	}
	connection_close(connection);
	server_session_begin(session, request->rundown_keywords);
}

static void server_stop_tracing(struct server_connection *connection, uint64_t id)
{
	struct server_session *session = server_session_find(id);

	/* The session is unknown or has ended: like in the runtime, stopping it succeeds. */
	if (!session) {
		server_reply_session(&connection->reply, id);
		connection_reply(connection);
		return;
	}
	/*
	 * The reply follows the last byte of the stream, but not later than the time limit for a
	 * reader that has stopped.
	 */
	connection->state = CONNECTION_WAIT;
	connection->session_id = id;
	connection->watch.events = 0;
	loop_timer_clear(&connection->timer);
	server_session_stop(session);
}

/* ---- Requests ---- */

static void server_resume(const struct server_connection *connection)
{
	bool all = !server.default_suspend || server.default_resumed;

	if (connection && connection->port)
		connection->port->resumed = true;
	else if (connection)
		all = server.default_resumed = true;
	for (unsigned i = 0; i < server.port_count; i++)
		all = all && (!server.ports[i].suspend || server.ports[i].resumed);
	(void)pthread_mutex_lock(&resume_lock);
	resume_all = all;
	(void)pthread_cond_broadcast(&resume_changed);
	(void)pthread_mutex_unlock(&resume_lock);
}

static void server_answer(struct server_connection *connection)
{
	struct server_request request;
	uint32_t error = server_request_read(connection->command, connection->payload,
		connection->payload_size, &request);

	loop_timer_clear(&connection->timer);
	if (error) {
		connection_refuse(connection, error);
		return;
	}
	switch (request.command) {
	case SERVER_PROCESS_INFO:
	case SERVER_PROCESS_INFO_2:
	case SERVER_PROCESS_INFO_3:
		server_reply_info(&connection->reply, request.command, &server.identity);
		connection_reply(connection);
		break;
	case SERVER_RESUME:
		server_resume(connection);
		server_reply_u32(&connection->reply, 0);
		connection_reply(connection);
		break;
	case SERVER_ENVIRONMENT: {
		size_t size = 0;
		char *environment = server_system_environment(&size);
		server_reply_environment(&connection->reply, environment, environment ? size : 0);
		free(environment);
		connection_reply(connection);
		break;
	}
	case SERVER_STOP_TRACING:
		server_stop_tracing(connection, request.session_id);
		break;
	default:
		server_collect(connection, &request);
		break;
	}
	server_request_done(&request);
}

/* Receives bytes of the request; answers when it is complete. */
static void connection_receive(struct server_connection *connection)
{
	for (;;) {
		bool head = connection->got < SERVER_HEADER_SIZE;
		uint8_t *to = head ? connection->header + connection->got
				   : connection->payload + (connection->got - SERVER_HEADER_SIZE);
		size_t want =
			head ? SERVER_HEADER_SIZE - connection->got
			     : connection->payload_size - (connection->got - SERVER_HEADER_SIZE);
		ssize_t got = want ? recv(connection->watch.fd, to, want, MSG_DONTWAIT) : 0;

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return;
		if (want && got <= 0) {
			connection_close(connection);
			return;
		}
		connection->got += (size_t)got;
		if (connection->got < SERVER_HEADER_SIZE)
			continue;
		if (head) {
			uint32_t error = server_request_header(connection->header,
				&connection->command, &connection->payload_size);
			if (error) {
				connection_refuse(connection, error);
				return;
			}
			connection->payload =
				malloc(connection->payload_size ? connection->payload_size : 1);
			if (!connection->payload) {
				connection_close(connection);
				return;
			}
		}
		if (connection->got == SERVER_HEADER_SIZE + connection->payload_size) {
			server_answer(connection);
			return;
		}
	}
}

static void connection_ready(struct loop_watch *watch, short revents)
{
	struct server_connection *connection = (struct server_connection *)watch;

	switch (connection->state) {
	case CONNECTION_REQUEST:
		connection_receive(connection);
		break;
	case CONNECTION_REPLY:
		connection_send(connection);
		break;
	case CONNECTION_WAIT:
		/*
		 * The peer that requested the stop has closed the connection; the session ends
		 * nevertheless.
		 */
		if (revents & (POLLHUP | POLLERR | POLLNVAL))
			connection_close(connection);
		break;
	case CONNECTION_FREE:
		break;
	}
}

/* ---- The socket that tools find ---- */

static void accept_resume(struct loop_timer *timer)
{
	(void)timer;
	server.listener.events = POLLIN;
}

static void listener_ready(struct loop_watch *watch, short revents)
{
	(void)revents;
	/* At most 16 connections in one turn: the loop also has to drain rings. */
	for (unsigned i = 0; i < 16; i++) {
		uint32_t uid = UINT32_MAX;
		int fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0) {
			if (errno == EMFILE || errno == ENFILE || errno == ENOMEM ||
				errno == ENOBUFS) {
				watch->events = 0;
				loop_timer_set(&server.accept_timer,
					platform_now_ns() + ACCEPT_PAUSE_NS);
			}
			return;
		}
		/*
		 * The file's mode excludes other users. This check also holds where the mode is
		 * ignored or was changed. root can inspect any process.
		 */
		if (server_system_peer(fd, &uid) < 0 || (uid != geteuid() && uid != 0)) {
			platform_close(fd);
			continue;
		}
		struct server_connection *connection = connection_new(fd);
		if (connection)
			loop_timer_set(&connection->timer,
				connection->began_ns + SERVER_REQUEST_NS);
		else
			platform_close(fd);
	}
}

/*
 * Removes the socket's file if it is still the one that was bound. Another one may be in its place,
 * for example a runtime's.
 */
static void server_unlink(void)
{
	struct stat now;

	if (*server.path && lstat(server.path, &now) == 0 && now.st_ino == server.bound.st_ino &&
		now.st_dev == server.bound.st_dev)
		(void)unlink(server.path);
	server.path[0] = '\0';
}

static void server_listen(void)
{
	char path[sizeof(server.directory) + 128];
	int fd;

	(void)snprintf(path, sizeof(path), "%s%s-diagnostic-%llu-%s%llu-socket", server.directory,
		server.runtime == SERVER_RUNTIME_HERE ? "spoor" : "dotnet",
		(unsigned long long)server.identity.pid,
		server.runtime == SERVER_RUNTIME_MAY_COME ? "0" : "",
		(unsigned long long)server_system_key());
	if (server_system_listen(path, &fd) < 0)
		return;
	/* Cut like the socket's name. */
	memcpy(server.path, path, strnlen(path, sizeof(server.path) - 1));
	(void)lstat(server.path, &server.bound);
	server.listener =
		(struct loop_watch){ .fd = fd, .events = POLLIN, .ready = listener_ready };
	loop_watch_add(&server.listener);
}

/* ---- Ports that we connect to ---- */

static void port_retry(struct loop_timer *timer)
{
	port_connect((struct port *)((char *)timer - offsetof(struct port, timer)));
}

static void port_connect(struct port *port)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	uint8_t advertise[SERVER_ADVERTISE_SIZE];
	size_t length = strlen(port->path);
	struct server_connection *connection = NULL;

	int fd = length < sizeof(address.sun_path)
			 ? socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)
			 : -1;
	if (fd >= 0) {
		memcpy(address.sun_path, port->path, length);
		server_advertise(advertise, &server.identity);
		if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 &&
			send(fd, advertise, sizeof(advertise), MSG_NOSIGNAL | MSG_DONTWAIT) ==
				(ssize_t)sizeof(advertise))
			connection = connection_new(fd);
		if (!connection)
			platform_close(fd);
	}
	if (connection) {
		connection->port = port;
		port->connection = connection;
		port->retry_ns = PORT_RETRY_MIN_NS;
		return;
	}
	loop_timer_set(&port->timer, platform_now_ns() + port->retry_ns);
	port->retry_ns += port->retry_ns / 4;
	if (port->retry_ns > PORT_RETRY_MAX_NS)
		port->retry_ns = PORT_RETRY_MAX_NS;
}

/*
 * PATH[,TAG]... of DOTNET_DiagnosticPorts. The first tag of a kind is used; a port with "listen" is
 * ignored, as in the runtime.
 */
static void port_parse(const char *text, size_t length)
{
	struct port port = {
		.suspend = true, .retry_ns = PORT_RETRY_MIN_NS, .timer = { .expired = port_retry }
	};
	bool has_path = false, has_suspend = false, has_kind = false, listens = false;

	for (size_t at = 0; at <= length;) {
		size_t end = at;
		while (end < length && text[end] != ',')
			end++;
		const char *piece = text + at;
		size_t size = end - at;
		at = end + 1;
		if (size == 0)
			continue;
		if (!has_path) {
			port.path = strndup(piece, size);
			if (!port.path)
				return;
			has_path = true;
		} else if (size == 7 && strncasecmp(piece, "suspend", size) == 0) {
			port.suspend = has_suspend ? port.suspend : true;
			has_suspend = true;
		} else if (size == 9 && strncasecmp(piece, "nosuspend", size) == 0) {
			port.suspend = has_suspend ? port.suspend : false;
			has_suspend = true;
		} else if (size == 6 && strncasecmp(piece, "listen", size) == 0) {
			listens = has_kind ? listens : true;
			has_kind = true;
		} else if (size == 7 && strncasecmp(piece, "connect", size) == 0) {
			has_kind = true;
		}
	}
	if (!has_path)
		return;
	if (listens || server.port_count == SERVER_PORTS_MAX)
		free(port.path);
	else
		server.ports[server.port_count++] = port;
}

static const char *server_setting(const char *name)
{
	static const char *const prefixes[] = { "DOTNET_", "COMPlus_" };
	char full[128];

	for (unsigned i = 0; i < 2; i++) {
		(void)snprintf(full, sizeof(full), "%s%s", prefixes[i], name);
		const char *value = getenv(full);
		if (value)
			return value;
	}
	return NULL;
}

/* "0" in any number of digits; the runtime reads its switches as hexadecimal numbers. */
static bool server_setting_is(const char *name, unsigned long wanted)
{
	const char *value = server_setting(name);
	char *end;

	if (!value || !*value)
		return false;
	return strtoul(value, &end, 16) == wanted && *end == '\0';
}

static void server_ports_read(void)
{
	const char *text = server_setting("DiagnosticPorts");

	while (text && *text) {
		size_t length = strcspn(text, ";");
		port_parse(text, length);
		text += length;
		text += *text == ';';
	}
}

/* ---- Start and end ---- */

/* On the loop thread. */
static void server_open(void *context)
{
	(void)context;
	server_listen();
	for (unsigned i = 0; i < server.port_count; i++)
		port_connect(&server.ports[i]);
	server.accept_timer.expired = accept_resume;
	server_resume(NULL);
}

static int server_start(const struct spoor_options *options)
{
	const char *directory;

	memset(&server, 0, sizeof(server));
	server_sessions_reset();
	server.listener.fd = -1;
	if ((options->flags & SPOOR_START_NO_SERVER) || platform_is_secure() ||
		server_setting_is("EnableDiagnostics", 0) ||
		server_setting_is("EnableDiagnostics_IPC", 0))
		return 0;
	server.runtime = server_system_runtime();
	server.default_suspend = server.runtime != SERVER_RUNTIME_HERE &&
				 server_setting_is("DefaultDiagnosticPortSuspend", 1);
	directory = getenv("TMPDIR");
	if (!directory || !*directory)
		directory = "/tmp/";
	size_t length = strlen(directory);
	if (length + 2 > sizeof(server.directory))
		return 0;
	(void)snprintf(server.directory, sizeof(server.directory), "%s%s", directory,
		directory[length - 1] == '/' ? "" : "/");

	platform_command_line(server.command_line, sizeof(server.command_line));
	const char *end = strchrnul(server.command_line, ' ');
	const char *name = end;
	while (name > server.command_line && name[-1] != '/')
		name--;
	(void)snprintf(server.entry, sizeof(server.entry), "%.*s", (int)(end - name), name);
	server.identity = (struct server_identity){
		.pid = platform_process_id(),
		.command_line = server.command_line,
		.system = server_system_name(),
		.architecture = platform_architecture(),
		.entry = server.entry,
		.version = SERVER_VERSION,
		.rid = server_system_rid(),
	};
	platform_random(server.identity.cookie, sizeof(server.identity.cookie));
	if (server.runtime != SERVER_RUNTIME_HERE)
		server_ports_read();

	resume_all = false;
	int error = loop_call(server_open, NULL);
	if (error < 0)
		return error;
	server.running = true;
	(void)pthread_mutex_lock(&resume_lock);
	while (!resume_all)
		(void)pthread_cond_wait(&resume_changed, &resume_lock);
	(void)pthread_mutex_unlock(&resume_lock);
	return 0;
}

/*
 * On the loop thread: accepts no further connection and no further request, and stops all sessions.
 */
static void server_close(void *context)
{
	(void)context;
	loop_timer_clear(&server.accept_timer);
	if (server.listener.fd >= 0) {
		loop_watch_remove(&server.listener);
		platform_close(server.listener.fd);
		server.listener.fd = -1;
	}
	server_unlink();
	for (unsigned i = 0; i < SERVER_CONNECTIONS_MAX; i++)
		if (server.connections[i].state == CONNECTION_REQUEST)
			connection_close(&server.connections[i]);
	for (unsigned i = 0; i < server.port_count; i++)
		loop_timer_clear(&server.ports[i].timer);
	server_sessions_stop();
}

/*
 * On the loop thread: `context` gets the number of sessions that have not ended; those beyond their
 * time limit are aborted.
 */
static void server_count(void *context)
{
	unsigned *count = context;
	bool abort = *count;

	*count = server_sessions_count(abort);
}

static void server_forget(void *context)
{
	(void)context;
	for (unsigned i = 0; i < SERVER_CONNECTIONS_MAX; i++)
		if (server.connections[i].state != CONNECTION_FREE)
			connection_close(&server.connections[i]);
	for (unsigned i = 0; i < server.port_count; i++) {
		loop_timer_clear(&server.ports[i].timer);
		free(server.ports[i].path);
	}
	server.port_count = 0;
}

/*
 * Ends all sessions of the server. Their last bytes have two seconds: exit() does not wait longer
 * for a peer.
 */
static void server_stop(void)
{
	unsigned count = 1;

	if (!server.running)
		return;
	server.running = false;
	if (loop_call(server_close, NULL) < 0)
		return;
	for (unsigned i = 0; i < 2200 && count; i++) {
		count = i >= 2000;
		if (loop_call(server_count, &count) < 0)
			break;
		if (count)
			platform_sleep_ns(1000000);
	}
	(void)loop_call(server_forget, NULL);
}

static void server_child(void)
{
	if (server.listener.fd >= 0 && server.running)
		platform_close(server.listener.fd);
	for (unsigned i = 0; i < SERVER_CONNECTIONS_MAX; i++)
		if (server.connections[i].state != CONNECTION_FREE)
			platform_close(server.connections[i].watch.fd);
	memset(&server, 0, sizeof(server));
	server_sessions_reset();
	server.listener.fd = -1;
	resume_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	resume_changed = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
}

const struct module server_module = {
	.name = "server",
	.start = server_start,
	.stop = server_stop,
	.child = server_child,
};
