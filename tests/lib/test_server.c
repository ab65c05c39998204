/*
 * The diagnostics server from outside: its socket, its replies, and malicious peers. The library
 * runs in this process; peers are sockets of it, or children.
 */
#include "unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <spoor/spoor.h>

#include "lib/pipe/pipe_session.h"
#include "lib/server/server.h"
#include "lib/server/server_request.h"

SPOOR_PROVIDER(test, "Test")
SPOOR_EVENT(test, flood, 1, SPOOR_INFO, 0x1, (u64, number), (text, words))

/*
 * A child that starts the library creates threads, which the thread sanitizer does not support
 * after fork().
 */
#if defined(__SANITIZE_THREAD__)
#define SKIP_IN_CHILD()                                                                       \
	(print_message("skipped: no threads in a forked child under the thread sanitizer\n"), \
		skip())
#else
#define SKIP_IN_CHILD() (void)0
#endif

static char folder[64];
static char path[108];

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void pause_ms(long ms)
{
	struct timespec time = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&time, NULL);
}

static int peer_of(const char *name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	strcpy(address.sun_path, name);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		int error = errno;
		close(fd);
		return -error;
	}
	return fd;
}

static int peer(void)
{
	int fd = peer_of(path);

	assert_true(fd >= 0);
	return fd;
}

static void peer_send(int fd, const void *bytes, size_t size)
{
	assert_int_equal(send(fd, bytes, size, MSG_NOSIGNAL), size);
}

/* Reads exactly so many bytes; false: end of stream, or timeout. */
static bool peer_read(int fd, void *to, size_t size, int timeout_ms)
{
	for (size_t got = 0; got < size;) {
		struct pollfd wait = { .fd = fd, .events = POLLIN };
		if (poll(&wait, 1, timeout_ms) <= 0)
			return false;
		ssize_t count = recv(fd, (char *)to + got, size - got, 0);
		if (count <= 0)
			return false;
		got += (size_t)count;
	}
	return true;
}

/* The path on which this process listens, or would listen. */
static void own_path(char *to, size_t size)
{
	snprintf(to, size, "%s/dotnet-diagnostic-%d-%s%llu-socket", folder, (int)getpid(),
		server_system_runtime() == SERVER_RUNTIME_MAY_COME ? "0" : "",
		(unsigned long long)server_system_key());
}

static size_t message(uint8_t *out, unsigned command, const void *payload, size_t size)
{
	memcpy(out, SERVER_MAGIC, 14);
	out[14] = (uint8_t)(size + 20);
	out[15] = (uint8_t)((size + 20) >> 8);
	out[16] = (uint8_t)(command >> 8);
	out[17] = (uint8_t)command;
	out[18] = out[19] = 0;
	if (size)
		memcpy(out + 20, payload, size);
	return size + 20;
}

/*
 * Sends a command and reads its reply: the command of the reply, its first 8 bytes of payload. 0:
 * no answer.
 */
static unsigned ask_on(int fd, unsigned command, const void *payload, size_t size,
	uint64_t *ret_value, int timeout_ms)
{
	static uint8_t out[65536 + 20], in[65536];

	peer_send(fd, out, message(out, command, payload, size));
	if (!peer_read(fd, in, 20, timeout_ms))
		return 0;
	assert_memory_equal(in, SERVER_MAGIC, 14);
	unsigned reply = (unsigned)in[16] << 8 | in[17];
	size_t length = (size_t)(in[14] | in[15] << 8);
	assert_true(length >= 20);
	if (command >= SERVER_COLLECT_TRACING && command <= SERVER_COLLECT_TRACING_5 &&
		reply == SERVER_REPLY_OK)
		assert_int_equal(length, 28); /* the stream follows */
	if (!peer_read(fd, in + 20, length - 20, timeout_ms))
		return 0;
	if (ret_value) {
		*ret_value = 0;
		memcpy(ret_value, in + 20, length - 20 < 8 ? length - 20 : 8);
	}
	return reply;
}

static unsigned ask(unsigned command, const void *payload, size_t size, uint64_t *ret_value)
{
	int fd = peer();
	unsigned reply = ask_on(fd, command, payload, size, ret_value, 15000);

	close(fd);
	return reply;
}

/* The server answers another client meanwhile. */
static void assert_answers(void)
{
	double begin = now_s();
	uint64_t pid;

	assert_int_equal(ask(SERVER_PROCESS_INFO, NULL, 0, &pid), SERVER_REPLY_OK);
	assert_int_equal(pid, getpid());
	assert_true(now_s() - begin < 2);
}

static size_t collect_payload(uint8_t *out, const char *name, uint32_t buffer_mb)
{
	uint8_t *at = out;
	uint32_t format = 1, one = 1, level = 5, units = (uint32_t)strlen(name) + 1, none = 0;
	uint64_t keywords = UINT64_MAX;

	memcpy(at, &buffer_mb, 4), at += 4;
	memcpy(at, &format, 4), at += 4;
	*at++ = 0;
	memcpy(at, &one, 4), at += 4;
	memcpy(at, &keywords, 8), at += 8;
	memcpy(at, &level, 4), at += 4;
	memcpy(at, &units, 4), at += 4;
	for (uint32_t i = 0; i < units; i++) {
		*at++ = (uint8_t)name[i];
		*at++ = 0;
	}
	memcpy(at, &none, 4), at += 4;
	return (size_t)(at - out);
}

/* Starts a session; *ret_id is its id. Returns the fd with its stream; negative: refused. */
static int collect(const char *name, uint32_t buffer_mb, uint64_t *ret_id)
{
	uint8_t payload[256];
	int fd = peer();
	size_t size = collect_payload(payload, name, buffer_mb);

	if (ask_on(fd, SERVER_COLLECT_TRACING_2, payload, size, ret_id, 10000) == SERVER_REPLY_OK)
		return fd;
	close(fd);
	return -1;
}

/* Reads a stream to its end; how many bytes. The last one is the end tag. */
static size_t drain(int fd)
{
	static uint8_t bytes[65536];
	size_t size = 0;
	uint8_t last = 0xff;

	for (;;) {
		struct pollfd wait = { .fd = fd, .events = POLLIN };
		assert_int_equal(poll(&wait, 1, 15000), 1);
		ssize_t got = recv(fd, bytes, sizeof(bytes), 0);
		assert_true(got >= 0);
		if (got == 0)
			break;
		if (size == 0)
			assert_memory_equal(bytes, "Nettrace", 8);
		size += (size_t)got;
		last = bytes[got - 1];
	}
	assert_int_equal(last, 1);
	return size;
}

static void test_socket(void **state)
{
	struct stat about;
	char wanted[256];
	char stat_line[1024];
	/*
	 * Under a sanitizer an object of the process calls dlopen(), so a runtime might be loaded
	 * later.
	 */
	bool may_come = server_system_runtime() == SERVER_RUNTIME_MAY_COME;
	FILE *file = fopen("/proc/self/stat", "r");

	(void)state;
	assert_non_null(fgets(stat_line, sizeof(stat_line), file));
	fclose(file);
	char *at = strrchr(stat_line, ')');
	unsigned long long key;
	assert_int_equal(
		sscanf(at + 2,
			"%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
			&key),
		1);
	snprintf(wanted, sizeof(wanted), "%s/dotnet-diagnostic-%d-%s%llu-socket", folder,
		(int)getpid(), may_come ? "0" : "", key);
	assert_string_equal(path, wanted);
	assert_int_equal(lstat(path, &about), 0);
	assert_true(S_ISSOCK(about.st_mode));
	assert_int_equal(about.st_mode & 07777, 0600);
	assert_answers();
}

static void test_refusals(void **state)
{
	static const struct {
		const char *head; /* of 20 bytes, instead of a right one */
		unsigned command;
		size_t size;
		uint32_t error;
	} cases[] = {
		{ "DOTNET_IPC_V2\0\x14\0\x04\0\0\0", 0, 0, SERVER_UNKNOWN_MAGIC },
		{ "GET / HTTP/1.1\r\nHost", 0, 0, SERVER_UNKNOWN_MAGIC },
		{ "DOTNET_IPC_V1\0\x13\0\x04\0\0\0", 0, 0, SERVER_BAD_ENCODING },
		{ "DOTNET_IPC_V1\0\0\0\x04\0\0\0", 0, 0, SERVER_BAD_ENCODING },
		/* where the runtime crashes */
		{ NULL, SERVER_COLLECT_TRACING, 0, SERVER_BAD_ENCODING },
		{ NULL, SERVER_COLLECT_TRACING_2, 0, SERVER_BAD_ENCODING },
		{ NULL, SERVER_COLLECT_TRACING_3, 1, SERVER_BAD_ENCODING },
		{ NULL, SERVER_COLLECT_TRACING_4, 4, SERVER_BAD_ENCODING },
		{ NULL, SERVER_COLLECT_TRACING_5, 65000, SERVER_BAD_ENCODING },
		{ NULL, SERVER_STOP_TRACING, 1, SERVER_BAD_ENCODING },
		{ NULL, 0x0101, 0, SERVER_UNKNOWN_COMMAND }, /* dumps */
		{ NULL, 0x0103, 1, SERVER_UNKNOWN_COMMAND },
		{ NULL, 0x0207, 100, SERVER_UNKNOWN_COMMAND },
		{ NULL, 0x0301, 0, SERVER_UNKNOWN_COMMAND }, /* profilers */
		{ NULL, 0x0403, 1, SERVER_UNKNOWN_COMMAND }, /* variables */
		{ NULL, 0x0407, 1, SERVER_UNKNOWN_COMMAND }, /* start-up hooks */
		{ NULL, 0xffff, 0, SERVER_UNKNOWN_COMMAND },
	};
	static uint8_t zeroes[65000];
	uint64_t value;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (cases[i].head) {
			uint8_t reply[24];
			int fd = peer();
			peer_send(fd, cases[i].head, 20);
			assert_true(peer_read(fd, reply, sizeof(reply), 5000));
			memcpy(&value, reply + 20, 4);
			assert_int_equal(reply[17], 0xff);
			assert_int_equal((uint32_t)value, cases[i].error);
			assert_false(peer_read(fd, reply, 1, 5000)); /* closed */
			close(fd);
		} else {
			assert_int_equal(ask(cases[i].command, zeroes, cases[i].size, &value),
				SERVER_REPLY_ERROR);
			assert_int_equal((uint32_t)value, cases[i].error);
		}
	}
	/*
	 * A payload for a command without one is ignored; stopping an unknown session succeeds with
	 * the id that was given.
	 */
	assert_int_equal(ask(SERVER_PROCESS_INFO, zeroes, 400, &value), SERVER_REPLY_OK);
	assert_int_equal(ask(SERVER_STOP_TRACING, "\x01\x02\x03\x04\x05\x06\x07\x08", 8, &value),
		SERVER_REPLY_OK);
	assert_int_equal(value, UINT64_C(0x0807060504030201));
	assert_int_equal(ask(SERVER_RESUME, NULL, 0, &value), SERVER_REPLY_OK);
	assert_int_equal(value, 0);
	assert_answers();
}

static void test_random(void **state)
{
	static const uint8_t commands[][2] = { { 2, 1 }, { 2, 2 }, { 2, 3 }, { 2, 4 }, { 2, 5 },
		{ 2, 6 }, { 4, 0 }, { 4, 2 }, { 4, 8 }, { 1, 1 } };
	uint64_t random = 88172645463325252u;
	uint8_t bytes[700];

	(void)state;
	for (int round = 0; round < 3000; round++) {
		for (size_t i = 0; i < sizeof(bytes); i++) {
			random ^= random << 13, random ^= random >> 7, random ^= random << 17;
			bytes[i] = (uint8_t)(random >> 32) & (round % 3 ? 0xff : 0x03);
		}
		size_t size = random % 600;
		int fd = peer();
		if (round % 8) {
			uint8_t payload[600];
			memcpy(payload, bytes + 20, size);
			message(bytes,
				(unsigned)commands[round % 10][0] << 8 | commands[round % 10][1],
				payload, size);
		}
		(void)send(fd, bytes, round % 5 ? size + 20 : size, MSG_NOSIGNAL);
		close(fd);
	}
	assert_answers();
}

/*
 * Half a header, a payload that never arrives, no byte at all: other clients are served, and these
 * connections are closed in time.
 */
static void test_silent(void **state)
{
	int half = peer(), header = peer(), nothing = peer(), slow = peer();
	uint8_t bytes[64], byte;
	double begin = now_s();

	(void)state;
	peer_send(half, "DOTNET_IPC_V1", 10);
	message(bytes, SERVER_COLLECT_TRACING_2, NULL, 0);
	bytes[14] = bytes[15] = 0xff; /* 65,515 more bytes are to come */
	peer_send(header, bytes, 20);
	/* Sending a byte every 100 ms does not extend the time limit. */
	message(bytes, SERVER_PROCESS_INFO, NULL, 0);
	for (int i = 0; i < 8; i++) {
		peer_send(slow, bytes + i, 1);
		assert_answers();
		pause_ms(100);
	}
	assert_false(peer_read(half, &byte, 1, 8000));
	assert_false(peer_read(header, &byte, 1, 3000));
	assert_false(peer_read(nothing, &byte, 1, 3000));
	assert_false(peer_read(slow, &byte, 1, 3000));
	assert_true(now_s() - begin > 4 && now_s() - begin < 10);
	close(half), close(header), close(nothing), close(slow);
	assert_answers();
}

static void test_thousand(void **state)
{
	enum { MANY = 1000 };
	static int fds[MANY];
	struct rlimit limit;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = limit.rlim_max < 4096 ? limit.rlim_max : 4096;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	if (limit.rlim_cur < 2 * MANY)
		skip();
	for (int i = 0; i < MANY; i++) {
		fds[i] = peer();
		if (i % 3 == 0)
			peer_send(fds[i], "DOTNET", 6);
		if (i % 100 == 99)
			assert_answers();
	}
	assert_answers();
	/* A session works meanwhile. */
	uint64_t id;
	int stream = collect("Test", 1, &id);
	assert_true(stream >= 0);
	assert_int_equal(ask(SERVER_STOP_TRACING, &id, 8, NULL), SERVER_REPLY_OK);
	assert_true(drain(stream) > 100);
	close(stream);
	for (int i = 0; i < MANY; i++)
		close(fds[i]);
	assert_answers();
}

/*
 * Without file descriptors no client is served, no loop spins, and service continues when
 * descriptors are available again.
 */
static void test_no_descriptors(void **state)
{
	static int fds[4096];
	int count = 0, waiting = socket(AF_UNIX, SOCK_STREAM, 0);
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct timespec cpu_before, cpu_after;

	(void)state;
	strcpy(address.sun_path, path);
	while (count < 4096 && (fds[count] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
		count++;
	assert_int_equal(connect(waiting, (struct sockaddr *)&address, sizeof(address)), 0);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu_before);
	pause_ms(500);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu_after);
	double cpu = (double)(cpu_after.tv_sec - cpu_before.tv_sec) +
		     (double)(cpu_after.tv_nsec - cpu_before.tv_nsec) / 1e9;
	while (count > 0)
		close(fds[--count]);
	assert_true(cpu < 0.25);
	uint64_t pid;
	assert_int_equal(ask_on(waiting, SERVER_PROCESS_INFO, NULL, 0, &pid, 5000),
		SERVER_REPLY_OK);
	close(waiting);
}

static bool flooding; /* atomic */

static void *flood(void *argument)
{
	(void)argument;
	for (uint64_t number = 0; __atomic_load_n(&flooding, __ATOMIC_RELAXED); number++)
		test_flood(number, "all work and no play makes Jack a dull boy");
	return NULL;
}

/*
 * A peer that never reads: its own session loses events, other sessions do not, and the request to
 * stop it is answered within a time limit.
 */
static void test_slow_reader(void **state)
{
	pthread_t thread;
	uint64_t slow_id, id;
	int slow = collect("Test", 1, &slow_id);

	(void)state;
	assert_true(slow >= 0);
	__atomic_store_n(&flooding, true, __ATOMIC_RELAXED);
	assert_int_equal(pthread_create(&thread, NULL, flood, NULL), 0);
	pause_ms(500); /* its buffer of 1 MB has been full for long */
	assert_answers();
	int stop = peer();
	uint8_t bytes[64];
	peer_send(stop, bytes, message(bytes, SERVER_STOP_TRACING, &slow_id, 8));
	double begin = now_s();
	for (int i = 0; i < 5; i++) {
		assert_answers();
		int stream = collect("Nobody", 16, &id);
		assert_true(stream >= 0);
		assert_int_equal(ask(SERVER_STOP_TRACING, &id, 8, NULL), SERVER_REPLY_OK);
		assert_true(drain(stream) > 100);
		close(stream);
	}
	assert_true(now_s() - begin < 5);
	assert_true(peer_read(stop, bytes, 28, 20000));
	assert_memory_equal(bytes + 20, &slow_id, 8);
	assert_true(now_s() - begin < 16);
	close(stop);
	close(slow);
	__atomic_store_n(&flooding, false, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	assert_answers();
}

/*
 * 64 sessions run, and the 65th is refused as the runtime refuses it. Each slot is free again, also
 * when its tool just closes the connection.
 */
static void test_slots(void **state)
{
	uint64_t ids[SESSIONS_MAX], id;
	int streams[SESSIONS_MAX];

	(void)state;
	/* Tools that close the connection before their session has started. */
	for (int i = 0; i < 300; i++) {
		uint8_t payload[256], bytes[300];
		int fd = peer();
		peer_send(fd, bytes,
			message(bytes, SERVER_COLLECT_TRACING_2, payload,
				collect_payload(payload, "Test", 1)));
		close(fd);
	}
	assert_answers();
	pause_ms(500);
	for (int round = 0; round < 2; round++) {
		for (unsigned i = 0; i < SESSIONS_MAX; i++) {
			streams[i] = collect("Test", 1, &ids[i]);
			assert_true(streams[i] >= 0);
			for (unsigned k = 0; k < i; k++)
				assert_int_not_equal(ids[k], ids[i]);
		}
		uint8_t payload[256];
		uint64_t error;
		assert_int_equal(ask(SERVER_COLLECT_TRACING_2, payload,
					 collect_payload(payload, "Test", 1), &error),
			SERVER_REPLY_ERROR);
		assert_int_equal((uint32_t)error, SERVER_FAIL);
		for (unsigned i = 0; i < SESSIONS_MAX; i++) {
			if (round == 0) {
				assert_int_equal(ask(SERVER_STOP_TRACING, &ids[i], 8, &id),
					SERVER_REPLY_OK);
				assert_int_equal(id, ids[i]);
				assert_true(drain(streams[i]) > 100);
			}
			close(streams[i]);
		}
	}
	/* No event is fired, so the library can only notice the closed connection. */
	double begin = now_s();
	int stream;
	while ((stream = collect("Test", 1, &id)) < 0 && now_s() - begin < 5)
		pause_ms(10);
	assert_true(stream >= 0);
	assert_int_equal(ask(SERVER_STOP_TRACING, &id, 8, NULL), SERVER_REPLY_OK);
	assert_true(drain(stream) > 100);
	close(stream);
	assert_answers();
}

static void test_environment(void **state)
{
	uint8_t out[64], head[26];
	int fd = peer();
	uint32_t size, count;
	bool found = false;

	(void)state;
	peer_send(fd, out, message(out, SERVER_ENVIRONMENT, NULL, 0));
	assert_true(peer_read(fd, head, sizeof(head), 5000));
	memcpy(&size, head + 20, 4);
	uint8_t *rest = malloc(size);
	assert_true(peer_read(fd, rest, size, 5000));
	memcpy(&count, rest, 4);
	size_t at = 4;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t units;
		memcpy(&units, rest + at, 4);
		at += 4;
		found = found || (units == 9 && memcmp(rest + at, "P\0A\0T\0H\0=\0", 10) == 0) ||
			memcmp(rest + at, "P\0A\0T\0H\0=\0", 10) == 0;
		at += 2 * (size_t)units;
	}
	assert_int_equal(at, size);
	assert_true(found || !getenv("PATH"));
	free(rest);
	assert_false(peer_read(fd, head, 1, 5000));
	close(fd);
}

/* Another user: the file's mode excludes it; otherwise the connection is closed without a reply. */
static void test_other_user(void **state)
{
	(void)state;
	if (geteuid() != 0) {
		print_message("skipped: only root can become another user\n");
		skip();
	}
	assert_int_equal(chmod(folder, 0755), 0);
	for (int open = 0; open < 2; open++) {
		assert_int_equal(chmod(path, open ? 0666 : 0600), 0);
		pid_t child = fork();
		if (child == 0) {
			uint8_t bytes[64];
			if (setgid(65534) < 0 || setuid(65534) < 0)
				_exit(2);
			int fd = peer_of(path);
			if (!open)
				_exit(fd == -EACCES ? 0 : 3);
			if (fd < 0)
				_exit(4);
			(void)send(fd, bytes, message(bytes, SERVER_PROCESS_INFO, NULL, 0),
				MSG_NOSIGNAL);
			_exit(peer_read(fd, bytes, 1, 5000) ? 5 : 0);
		}
		int status;
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
	}
	assert_int_equal(chmod(path, 0600), 0);
	assert_answers();
}

/*
 * A child of fork() has no server, and the parent's continues; a child that calls spoor_start() has
 * its own.
 */
static void test_fork(void **state)
{
	(void)state;
	SKIP_IN_CHILD();
	pid_t child = fork();
	if (child == 0) {
		char before[sizeof(path)];
		strcpy(before, path);
		int fd = peer_of(path); /* the parent's */
		if (fd < 0 || spoor_start(NULL) < 0)
			_exit(2);
		close(fd);
		char own[256];
		own_path(own, sizeof(own));
		fd = peer_of(own);
		uint64_t pid = 0;
		if (fd < 0 ||
			ask_on(fd, SERVER_PROCESS_INFO, NULL, 0, &pid, 5000) != SERVER_REPLY_OK ||
			pid != (uint64_t)getpid())
			_exit(3);
		spoor_stop();
		_exit(access(own, F_OK) == 0 ? 4 : access(before, F_OK) == 0 ? 0 : 5);
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_answers();
}

/*
 * A port of DOTNET_DiagnosticPorts: the child connects to it, identifies itself, and connects again
 * after each command. With `suspend` it waits until it is resumed on every port that requires it.
 */
static void test_ports(void **state)
{
	char first[80], second[80], variable[400];
	int listeners[2], status;

	(void)state;
	SKIP_IN_CHILD();
	snprintf(first, sizeof(first), "%s/first", folder);
	snprintf(second, sizeof(second), "%s/second", folder);
	snprintf(variable, sizeof(variable),
		"%s;%s,SUSPEND,connect;;%s/nowhere,nosuspend;%s/not,listen", first, second, folder,
		folder);
	for (int i = 0; i < 2; i++) {
		struct sockaddr_un address = { .sun_family = AF_UNIX };
		strcpy(address.sun_path, i ? second : first);
		listeners[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		assert_int_equal(bind(listeners[i], (struct sockaddr *)&address, sizeof(address)),
			0);
		assert_int_equal(listen(listeners[i], 5), 0);
	}
	int gone[2];
	assert_int_equal(pipe(gone), 0);
	pid_t child = fork();
	if (child == 0) {
		setenv("DOTNET_DiagnosticPorts", variable, 1);
		int error = spoor_start(NULL);
		(void)!write(gone[1], "s", 1);
		pause_ms(20000);
		_exit(error < 0);
	}
	uint8_t advertise[34], cookie[16];
	struct pollfd started = { .fd = gone[0], .events = POLLIN };
	for (int i = 0; i < 2; i++) {
		for (int command = 0; command < 2; command++) {
			struct pollfd wait = { .fd = listeners[i], .events = POLLIN };
			assert_int_equal(poll(&wait, 1, 5000), 1);
			int fd = accept(listeners[i], NULL, NULL);
			assert_true(peer_read(fd, advertise, sizeof(advertise), 5000));
			assert_memory_equal(advertise, "ADVR_V1", 8);
			uint64_t pid;
			memcpy(&pid, advertise + 24, 8);
			assert_int_equal(pid, child);
			assert_int_equal(advertise[32] | advertise[33], 0);
			if (i || command)
				assert_memory_equal(advertise + 8, cookie, 16);
			memcpy(cookie, advertise + 8, 16);
			assert_int_equal(poll(&started, 1, 0), 0); /* still waiting */
			/* An idle port has no time limit for a request. */
			if (i == 0 && command == 0)
				pause_ms(6000);
			assert_int_equal(ask_on(fd, command ? SERVER_RESUME : SERVER_PROCESS_INFO_3,
						 NULL, 0, NULL, 5000),
				SERVER_REPLY_OK);
			close(fd);
		}
	}
	assert_int_equal(poll(&started, 1, 5000), 1);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, &status, 0), child);
	for (int i = 0; i < 2; i++)
		close(listeners[i]), close(gone[i]);
	assert_answers();
}

/* Disabled by the environment, and by the program. */
static void test_off(void **state)
{
	static const char *const settings[] = { "DOTNET_EnableDiagnostics",
		"DOTNET_EnableDiagnostics_IPC", "COMPlus_EnableDiagnostics", NULL };

	(void)state;
	SKIP_IN_CHILD();
	for (int i = 0; i < 4; i++) {
		pid_t child = fork();
		if (child == 0) {
			struct spoor_options options = { .size = sizeof(options),
				.flags = settings[i] ? 0 : SPOOR_START_NO_SERVER };
			if (settings[i])
				setenv(settings[i], "0", 1);
			char own[256];
			own_path(own, sizeof(own));
			if (spoor_start(&options) < 0)
				_exit(2);
			int there = access(own, F_OK) == 0;
			spoor_stop();
			_exit(there ? 3 : 0);
		}
		int status;
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
	}
}

/*
 * exec() keeps process and start time: a name that was left behind is used again; one on which
 * another socket answers is not.
 */
static void test_name_taken(void **state)
{
	(void)state;
	SKIP_IN_CHILD();
	for (int live = 0; live < 2; live++) {
		pid_t child = fork();
		if (child == 0) {
			struct sockaddr_un address = { .sun_family = AF_UNIX };
			int fd = socket(AF_UNIX, SOCK_STREAM, 0);
			own_path(address.sun_path, sizeof(address.sun_path));
			if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
				listen(fd, 5) < 0)
				_exit(2);
			if (!live)
				close(fd);
			if (spoor_start(NULL) < 0)
				_exit(3);
			int other = peer_of(address.sun_path);
			if (other < 0)
				_exit(4);
			uint8_t bytes[64];
			(void)send(other, bytes, message(bytes, SERVER_PROCESS_INFO, NULL, 0),
				MSG_NOSIGNAL);
			bool answered = peer_read(other, bytes, 20, 1000);
			spoor_stop();
			/* The socket of another program is not removed. */
			_exit(answered != !live                                 ? 5
				: (access(address.sun_path, F_OK) == 0) != live ? 6
										: 0);
		}
		int status;
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
	}
}

static int begin(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/spoor-test-XXXXXX");
	if (!mkdtemp(folder) || setenv("TMPDIR", folder, 1) || unsetenv("DOTNET_DiagnosticPorts") ||
		spoor_start(NULL) < 0)
		return -1;
	own_path(path, sizeof(path));
	return spoor_provider_register(&test);
}

static int end(void **state)
{
	char command[128];

	(void)state;
	spoor_stop();
	int left = access(path, F_OK) == 0;
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command) || left;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_socket),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_environment),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_silent),
		cmocka_unit_test(test_thousand),
		cmocka_unit_test(test_no_descriptors),
		cmocka_unit_test(test_slow_reader),
		cmocka_unit_test(test_slots),
		cmocka_unit_test(test_other_user),
		cmocka_unit_test(test_fork),
		cmocka_unit_test(test_ports),
		cmocka_unit_test(test_off),
		cmocka_unit_test(test_name_taken),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
