/*
 * A second tool at the diagnostics port of a .NET process. The tests check with it whether the port
 * works while a recorder is stopped or dead.
 *
 *   probe ask PID       one ProcessInfo: prints the milliseconds until the answer
 *   probe session PID   one session, stopped immediately and read to its end: prints the milliseconds until then
 *   probe slots PID     prints how many sessions can be opened before the runtime refuses one, and ends them all
 *
 * Exit 1 with a line on stderr if there is no answer within 60 seconds. ipc_encode() makes all
 * requests, because a malformed request ends the process that receives it.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/diag.h"
#include "dotnet/ipc.h"
#include "dotnet/port.h"

#define PATIENCE_MS 60000
#define SLOTS_MAX   200u

struct session {
	int fd;
	uint64_t id;
	bool ended;
};

static struct dotnet_target target;

__attribute__((format(printf, 1, 2))) static _Noreturn void fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* Reads exactly `size` bytes. */
static void take(int fd, uint8_t *to, size_t size, const char *what)
{
	for (size_t got = 0; got < size;) {
		struct pollfd ready = { .fd = fd, .events = POLLIN };
		if (poll(&ready, 1, PATIENCE_MS) <= 0)
			fail("no answer to %s within %d ms", what, PATIENCE_MS);
		ssize_t n = recv(fd, to + got, size - got, 0);
		if (n <= 0)
			fail("no whole answer to %s", what);
		got += (size_t)n;
	}
}

static int send_request(const struct ipc_request *request, const char *what)
{
	struct bytes out = { 0 };
	struct diag diag = { 0 };
	int fd = dotnet_port_connect(&target, &diag);

	if (fd < 0)
		fail("cannot connect for %s: %s", what, diag.text);
	if (ipc_encode(request, &out, &diag) < 0 ||
		send(fd, out.data, out.len, MSG_NOSIGNAL) != (ssize_t)out.len)
		fail("cannot send %s: %s", what, diag.text);
	bytes_done(&out);
	return fd;
}

/* Returns the size of the payload; 0 with *ret_error set: the request was refused. */
static size_t answer(int fd, uint8_t payload[IPC_MESSAGE_MAX], uint32_t *ret_error,
	const char *what)
{
	uint8_t header[IPC_HEADER_SIZE];
	size_t size;
	bool ok;

	take(fd, header, sizeof(header), what);
	if (ipc_decode_header(header, &size, &ok, NULL) < 0)
		fail("the answer to %s is none", what);
	take(fd, payload, size, what);
	*ret_error = 0;
	if (ok)
		return size;
	if (ipc_decode_error(payload, size, ret_error, NULL) < 0)
		fail("the answer to %s is no error either", what);
	return 0;
}

static void ask(void)
{
	static uint8_t payload[IPC_MESSAGE_MAX];
	const struct ipc_request request = { .command = IPC_PROCESS_INFO };
	uint32_t error;
	double begin = now_ms();
	int fd = send_request(&request, "ProcessInfo");

	if (!answer(fd, payload, &error, "ProcessInfo"))
		fail("ProcessInfo was refused: 0x%08x", error);
	close(fd);
	printf("%.0f\n", now_ms() - begin);
}

/* False: the runtime has no free session. */
static bool open_session(struct session *session)
{
	static uint8_t payload[IPC_MESSAGE_MAX];
	static const struct ipc_provider quiet = { .name = "Microsoft-DotNETCore-EventPipe",
		.level = 1 };
	const struct ipc_request request = { .command = IPC_COLLECT_TRACING_3,
		.buffer_mb = 1,
		.providers = &quiet,
		.provider_count = 1 };
	const struct ipc_request older = { .command = IPC_COLLECT_TRACING_2,
		.buffer_mb = 1,
		.providers = &quiet,
		.provider_count = 1 };
	uint32_t error;

	session->fd = send_request(&request, "a session");
	size_t size = answer(session->fd, payload, &error, "a session");

	if (error == IPC_ERROR_UNKNOWN_COMMAND) {
		close(session->fd);
		session->fd = send_request(&older, "a session");
		size = answer(session->fd, payload, &error, "a session");
	}
	if (error == IPC_ERROR_FAIL) {
		close(session->fd);
		return false;
	}
	if (!size || ipc_decode_session(payload, size, &session->id, NULL) < 0)
		fail("a session was refused: 0x%08x", error);
	return true;
}

/* Stops all sessions, and reads all of them until they end. */
static void end_sessions(struct session *sessions, unsigned count)
{
	static uint8_t bytes[64 << 10];
	double until = now_ms() + PATIENCE_MS;
	int *stops = calloc(count + 1, sizeof(*stops));
	struct pollfd *fds = calloc(count + 1, sizeof(*fds));

	for (unsigned i = 0; i < count; i++) {
		const struct ipc_request request = { .command = IPC_STOP_TRACING,
			.session_id = sessions[i].id };
		stops[i] = send_request(&request, "a stop");
	}
	for (unsigned left = count; left;) {
		left = 0;
		for (unsigned i = 0; i < count; i++) {
			fds[i] = (struct pollfd){ .fd = sessions[i].ended ? -1 : sessions[i].fd,
				.events = POLLIN };
			left += !sessions[i].ended;
		}
		if (now_ms() > until)
			fail("%u of %u sessions have not ended within %d ms", left, count,
				PATIENCE_MS);
		(void)poll(fds, count, 100);
		for (unsigned i = 0; i < count; i++) {
			if (!fds[i].revents || recv(fds[i].fd, bytes, sizeof(bytes), 0) > 0)
				continue;
			sessions[i].ended = true;
			/* they end one after the other, each within 100 ms */
			until = now_ms() + PATIENCE_MS;
		}
	}
	for (unsigned i = 0; i < count; i++) {
		close(stops[i]);
		close(sessions[i].fd);
	}
	free(stops);
	free(fds);
}

static void try_session(void)
{
	struct session session = { 0 };
	double begin = now_ms();

	if (!open_session(&session))
		fail("no place for a session");
	end_sessions(&session, 1);
	printf("%.0f\n", now_ms() - begin);
}

static void count_slots(void)
{
	static struct session sessions[SLOTS_MAX];
	unsigned count = 0;

	while (count < SLOTS_MAX && open_session(&sessions[count]))
		count++;
	end_sessions(sessions, count);
	printf("%u\n", count);
}

int main(int argc, char **argv)
{
	struct diag diag = { 0 };

	if (argc != 3)
		fail("probe ask|session|slots PID");
	if (dotnet_target_read((uint32_t)strtoul(argv[2], NULL, 10), &target, &diag) < 0)
		fail("%s", diag.text);
	if (!strcmp(argv[1], "ask"))
		ask();
	else if (!strcmp(argv[1], "session"))
		try_session();
	else if (!strcmp(argv[1], "slots"))
		count_slots();
	else
		fail("probe ask|session|slots PID");
	return 0;
}
