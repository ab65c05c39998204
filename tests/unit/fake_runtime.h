/*
 * A .NET runtime that is a thread of the test: it listens at its diagnostics socket, where the code
 * under test finds it by this process's pid, or at a path. It answers ProcessInfo, opens sessions and
 * sends `stream` into each, and ends a session at StopTracing. The members above `listener` are set
 * before fake_runtime_start(); the counts may be read after fake_runtime_stop().
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
	unsigned stops;
	unsigned infos;
};

static void fake_reply(int fd, bool ok, const void *payload, size_t size)
{
	uint8_t message[512] = "DOTNET_IPC_V1";

	message[14] = (uint8_t)(20 + size);
	message[16] = 0xff;
	message[17] = ok ? 0 : 0xff;
	memcpy(message + 20, payload, size);
	(void)send(fd, message, 20 + size, MSG_NOSIGNAL); /* the client may have gone */
}

static void fake_text(struct bytes *out, const char *text)
{
	bytes_u32(out, (uint32_t)strlen(text) + 1);
	bytes_utf16z(out, text, strlen(text), SIZE_MAX);
}

static void fake_info(int fd)
{
	struct bytes info = { 0 };

	bytes_u64(&info, (uint64_t)getpid());
	bytes_add(&info, "0123456789abcdef", 16);
	fake_text(&info, "shop --all");
	fake_text(&info, "Linux");
	fake_text(&info, "x64");
	fake_text(&info, "shop");
	fake_text(&info, "10.0.12");
	fake_reply(fd, true, info.data, info.len);
	bytes_done(&info);
}

/* Serves one connection; it stays open if it is a session's stream, or if the runtime is silent. */
static void fake_serve(struct fake_runtime *runtime, int fd)
{
	static const uint32_t unknown = IPC_ERROR_UNKNOWN_COMMAND, full = IPC_ERROR_FAIL;
	uint8_t head[20], rest[4096];
	uint64_t id;

	if (runtime->is_silent || recv(fd, head, 20, MSG_WAITALL) != 20)
		return;
	size_t size = (size_t)(head[14] | head[15] << 8) - 20;
	enum ipc_command command = (enum ipc_command)(head[16] << 8 | head[17]);

	if (size && (size > sizeof(rest) || recv(fd, rest, size, MSG_WAITALL) != (ssize_t)size))
		return;
	if (command == IPC_PROCESS_INFO || command == IPC_PROCESS_INFO_2) {
		runtime->infos++;
		fake_info(fd);
	} else if (command == IPC_STOP_TRACING) {
		memcpy(&id, rest, 8);
		runtime->stops++;
		fake_reply(fd, true, rest, 8);
		if (id < runtime->opened && runtime->sessions[id] >= 0)
			close(runtime->sessions[id]);
		runtime->sessions[id % FAKE_SESSIONS] = -1;
	} else if (ipc_is_collect(command) && runtime->refuses) {
		fake_reply(fd, false, &full, 4);
	} else if (ipc_is_collect(command) && runtime->opened < FAKE_SESSIONS) {
		id = runtime->opened;
		fake_reply(fd, true, &id, 8);
		(void)send(fd, runtime->stream, runtime->stream_size, MSG_NOSIGNAL);
		runtime->sessions[runtime->opened++] = fd;
		return;
	} else {
		fake_reply(fd, false, &unknown, 4);
	}
	close(fd);
}

static void *fake_run(void *context)
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
static void fake_runtime_start(struct fake_runtime *runtime, const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct dotnet_target self;

	assert_int_equal(dotnet_target_read((uint32_t)getpid(), &self, NULL), 0);
	char own[DOTNET_DIR_MAX + 64];

	snprintf(own, sizeof(own), "%s/dotnet-diagnostic-%u-%llu-socket",
		*self.tmpdir ? self.tmpdir : "/tmp", self.inner_pid,
		(unsigned long long)self.start_ticks);
	path = path ? path : own;
	assert_true(strlen(path) < sizeof(runtime->path));
	strcpy(runtime->path, path);
	strcpy(address.sun_path, runtime->path);
	runtime->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	unlink(runtime->path);
	assert_int_equal(bind(runtime->listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(runtime->listener, 16), 0);
	assert_int_equal(pipe(runtime->quit), 0);
	assert_int_equal(pthread_create(&runtime->thread, NULL, fake_run, runtime), 0);
}

static void fake_runtime_stop(struct fake_runtime *runtime)
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
