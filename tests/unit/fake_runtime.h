/*
 * Simulated .NET runtimes for tests.
 *
 * First the parts of one that is served in the test's own turns: its requests (struct fake_asking), its
 * replies and its socket. Then a whole one that is a thread of the test (struct fake_runtime): it listens
 * at its diagnostics socket, where the code under test finds it by this process's pid, or at a path. It
 * answers ProcessInfo, opens sessions and sends `stream` into each, and ends a session at StopTracing. The
 * members above `listener` are set before fake_runtime_start(); the counts may be read after
 * fake_runtime_stop().
 */
#ifndef SPOOR_TESTS_UNIT_FAKE_RUNTIME_H
#define SPOOR_TESTS_UNIT_FAKE_RUNTIME_H

#include "unit/test.h"

#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/bytes.h"
#include "dotnet/ipc.h"
#include "dotnet/port.h"

/* ---- requests and replies ---- */

/* A connection to a runtime, and the bytes of its request that have arrived. */
struct fake_asking {
	int fd; /* -1: none */
	size_t size;
	uint8_t data[1024];
};

static inline enum ipc_command fake_command(const uint8_t *request)
{
	return (enum ipc_command)(request[16] << 8 | request[17]);
}

/* Receives bytes; true if they complete the request. A connection that was closed is closed here, too. */
static inline bool fake_receive(struct fake_asking *asking)
{
	uint8_t *data = asking->data;

	if (asking->fd < 0)
		return false;
	ssize_t n = recv(asking->fd, data + asking->size, sizeof(asking->data) - asking->size,
		MSG_DONTWAIT);
	if (n == 0) {
		close(asking->fd);
		asking->fd = -1;
	}
	if (n <= 0)
		return false;
	asking->size += (size_t)n;
	return asking->size >= 20 && asking->size == (size_t)(data[14] | data[15] << 8);
}

/* Accepts a connection that waits, if `asking` has none. */
static inline void fake_accept(struct fake_asking *asking, int listener)
{
	if (asking->fd >= 0)
		return;
	asking->fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	asking->size = 0;
}

/* A connection without a listening socket: returns the client's end, which is non-blocking. */
static inline int fake_connect(struct fake_asking *asking)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair),
		0);
	*asking = (struct fake_asking){ .fd = pair[1] };
	return pair[0];
}

static inline void fake_hang_up(struct fake_asking *asking, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (asking[i].fd >= 0)
			close(asking[i].fd);
}

/* Where the runtime of a process listens. */
static inline void fake_path(const struct dotnet_target *target, char *path, size_t room)
{
	int len = snprintf(path, room, "%s/dotnet-diagnostic-%u-%llu-socket",
		*target->tmpdir ? target->tmpdir : "/tmp", target->inner_pid,
		(unsigned long long)target->start_ticks);

	assert_true(len > 0 && (size_t)len < room);
}

/* A listening socket, non-blocking. */
static inline int fake_listen(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	assert_true(strlen(path) < sizeof(address.sun_path));
	strcpy(address.sun_path, path);
	unlink(path);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 16), 0);
	return fd;
}

/* The header goes byte by byte, because a reader must not expect whole messages. */
static inline void fake_reply(int fd, bool ok, const void *payload, size_t size)
{
	uint8_t header[20] = "DOTNET_IPC_V1";

	header[14] = (uint8_t)(20 + size);
	header[15] = (uint8_t)((20 + size) >> 8);
	header[16] = 0xff;
	header[17] = ok ? 0 : 0xff;
	for (unsigned i = 0; i < 20; i++)
		(void)send(fd, header + i, 1, MSG_NOSIGNAL); /* the client may have gone */
	if (size)
		(void)send(fd, payload, size, MSG_NOSIGNAL); /* likewise */
}

static inline void fake_error(int fd, uint32_t error)
{
	fake_reply(fd, false, &error, sizeof(error));
}

static inline void fake_text(struct bytes *out, const char *text)
{
	bytes_u32(out, (uint32_t)strlen(text) + 1);
	bytes_utf16z(out, text, strlen(text), SIZE_MAX);
}

/* The reply to ProcessInfo, in the requested version. */
static inline void fake_info(int fd, enum ipc_command command)
{
	struct bytes info = { 0 };

	if (command == IPC_PROCESS_INFO_3)
		bytes_u32(&info, 1);
	bytes_u64(&info, (uint64_t)getpid());
	bytes_add(&info, "0123456789abcdef", 16);
	fake_text(&info, "dotnet shop.dll");
	fake_text(&info, "Linux");
	fake_text(&info, "x64");
	if (command != IPC_PROCESS_INFO) {
		fake_text(&info, "shop");
		fake_text(&info, "10.0.12");
	}
	fake_reply(fd, true, info.data, info.len);
	bytes_done(&info);
}

/* ---- a whole runtime ---- */

enum { FAKE_SESSIONS = 16 };

struct fake_runtime {
	const uint8_t *stream; /* the bytes of each session */
	size_t stream_size;
	bool refuses;   /* sessions */
	bool is_silent; /* takes connections, and answers nothing */
	int listener;
	int quit[2];
	pthread_t thread;
	char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
	int sessions[FAKE_SESSIONS]; /* -1: ended */
	unsigned opened;
	unsigned rundowns; /* sessions that were requested with one */
	unsigned stops;
	unsigned infos;
};

/* Serves one connection; it stays open if it is a session's stream, or if the runtime is silent. */
static inline void fake_serve(struct fake_runtime *runtime, int fd)
{
	uint8_t head[20], rest[4096];
	uint64_t id;

	if (runtime->is_silent || recv(fd, head, 20, MSG_WAITALL) != 20)
		return;
	size_t size = (size_t)(head[14] | head[15] << 8) - 20;
	enum ipc_command command = fake_command(head);

	if (size && (size > sizeof(rest) || recv(fd, rest, size, MSG_WAITALL) != (ssize_t)size))
		return;
	if (command == IPC_PROCESS_INFO || command == IPC_PROCESS_INFO_2) {
		runtime->infos++;
		fake_info(fd, command);
	} else if (command == IPC_STOP_TRACING) {
		memcpy(&id, rest, 8);
		runtime->stops++;
		fake_reply(fd, true, rest, 8);
		if (id < runtime->opened && runtime->sessions[id] >= 0)
			close(runtime->sessions[id]);
		runtime->sessions[id % FAKE_SESSIONS] = -1;
	} else if (ipc_is_collect(command) && runtime->refuses) {
		fake_error(fd, IPC_ERROR_FAIL);
	} else if (ipc_is_collect(command) && runtime->opened < FAKE_SESSIONS) {
		/* after the size of the buffer and the format: one byte, or keywords */
		static const uint8_t none[8];
		size_t rundown_size = command == IPC_COLLECT_TRACING_4 ? 8 : 1;
		runtime->rundowns += memcmp(rest + 8, none, rundown_size) != 0;
		id = runtime->opened;
		fake_reply(fd, true, &id, 8);
		(void)send(fd, runtime->stream, runtime->stream_size, MSG_NOSIGNAL);
		runtime->sessions[runtime->opened++] = fd;
		return;
	} else {
		fake_error(fd, IPC_ERROR_UNKNOWN_COMMAND);
	}
	close(fd);
}

static inline void *fake_run(void *context)
{
	struct fake_runtime *runtime = context;
	struct pollfd fds[2] = { { runtime->listener, POLLIN, 0 },
		{ runtime->quit[0], POLLIN, 0 } };

	while (poll(fds, 2, -1) > 0 && !fds[1].revents) {
		int fd = accept(runtime->listener, NULL, NULL);
		if (fd >= 0)
			fake_serve(runtime, fd);
	}
	return NULL;
}

/* `path` NULL: the socket of this process. */
static inline void fake_runtime_start(struct fake_runtime *runtime, const char *path)
{
	struct dotnet_target self;

	assert_int_equal(dotnet_target_read((uint32_t)getpid(), &self, NULL), 0);
	if (path)
		snprintf(runtime->path, sizeof(runtime->path), "%s", path);
	else
		fake_path(&self, runtime->path, sizeof(runtime->path));
	runtime->listener = fake_listen(runtime->path);
	assert_int_equal(pipe(runtime->quit), 0);
	assert_int_equal(pthread_create(&runtime->thread, NULL, fake_run, runtime), 0);
}

static inline void fake_runtime_stop(struct fake_runtime *runtime)
{
	close(runtime->quit[1]);
	assert_int_equal(pthread_join(runtime->thread, NULL), 0);
	close(runtime->quit[0]);
	close(runtime->listener);
	for (unsigned i = 0; i < runtime->opened; i++)
		if (runtime->sessions[i] >= 0)
			close(runtime->sessions[i]);
	unlink(runtime->path);
}

/* Reads a file of tests/data, which the caller frees. */
static inline uint8_t *fake_stream(const char *name, size_t *ret_size)
{
	char path[256];
	uint8_t *data = malloc(1 << 20);

	snprintf(path, sizeof(path), TEST_DATA "/%s", name);
	FILE *file = fopen(path, "rb");
	assert_non_null(file);
	assert_non_null(data);
	*ret_size = fread(data, 1, 1 << 20, file);
	fclose(file);
	return data;
}

#endif
