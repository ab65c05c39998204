/* reverse.c: a listen port, and runtimes that this test simulates. */
#include "unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clocks.h"
#include "base/diag.h"
#include "base/poll_set.h"
#include "dotnet/ipc.h"
#include "dotnet/path_endpoint.h"
#include "dotnet/reverse.h"

static char folder[] = "/tmp/spoor-reverse-XXXXXX";
static char path[64];

static int runtime_connect(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	strcpy(address.sun_path, path);
	assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static void advertise(int fd, char cookie, uint64_t pid, bool in_pieces)
{
	uint8_t message[34] = "ADVR_V1";

	memset(message + 8, cookie, 16);
	memcpy(message + 24, &pid, 8);
	for (size_t i = 0; i < sizeof(message); i += in_pieces ? 1 : sizeof(message))
		assert_true(send(fd, message + i, in_pieces ? 1 : sizeof(message), MSG_NOSIGNAL) >
			    0);
}

static struct reverse *begin(void)
{
	struct reverse *reverse;
	struct diag diag = { 0 };

	assert_int_equal(reverse_listen(path, &reverse, &diag), 0);
	return reverse;
}

static void test_connects_again(void **state)
{
	struct reverse *reverse = begin();
	struct stat st;
	uint32_t peer = 99;

	(void)state;
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	int fd = runtime_connect();
	reverse_advance(reverse);
	assert_false(reverse_next(reverse, &peer)); /* it has not sent its id yet */
	advertise(fd, 'a', 42, true);
	reverse_advance(reverse);
	assert_true(reverse_next(reverse, &peer));
	assert_false(reverse_next(reverse, &peer));
	assert_int_equal(reverse_peer(reverse, peer)->inner_pid, 42);
	assert_int_equal(reverse_peer(reverse, peer)->pid, getpid());

	/* Its connection is returned one time. Then the runtime connects again with the same id. */
	struct dotnet_endpoint endpoint = reverse_endpoint(reverse, peer);
	int ours = endpoint.connect(endpoint.context, NULL);

	assert_true(ours >= 0);
	assert_int_equal(endpoint.connect(endpoint.context, NULL), -EAGAIN);
	assert_true(endpoint.state(endpoint.context) != 0);
	close(ours);
	close(fd);
	fd = runtime_connect();
	advertise(fd, 'a', 42, false);
	reverse_advance(reverse);
	assert_false(reverse_next(reverse, &peer));
	ours = endpoint.connect(endpoint.context, NULL);
	assert_true(ours >= 0);
	close(ours);
	close(fd);
	reverse_close(reverse);
	assert_int_equal(stat(path, &st), -1);
}

static void test_other_programs(void **state)
{
	struct reverse *reverse = begin();
	struct reverse *second;
	struct poll_set set = { 0 };
	uint32_t peer;

	(void)state;
	/*
	 * Connections of a program that is no runtime, of one that closes immediately, and of one
	 * that closes after its id.
	 */
	int liar = runtime_connect();
	assert_int_equal(send(liar, "GET / HTTP/1.1\r\nHost: somewhere\r\n\r\n", 35, MSG_NOSIGNAL),
		35);
	close(runtime_connect());
	int gone = runtime_connect();
	advertise(gone, 'g', 7, false);
	reverse_advance(reverse);
	close(gone);
	reverse_advance(reverse);
	poll_set_begin(&set, UINT64_MAX);
	reverse_await(reverse, &set);
	assert_int_equal(set.fds.count, 1);
	poll_set_done(&set);
	assert_true(reverse_next(reverse, &peer)); /* it may connect again */
	assert_false(reverse_next(reverse, &peer));
	uint8_t byte;

	ssize_t n = recv(liar, &byte, 1, 0);
	assert_true(n == 0 || (n < 0 && errno == ECONNRESET)); /* closed by the port */
	close(liar);

	/* The path is in use while the port listens, and free afterwards. */
	struct diag diag = { 0 };
	assert_int_equal(reverse_listen(path, &second, &diag), -EADDRINUSE);
	assert_non_null(strstr(diag.text, path));
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int stale = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	reverse_close(reverse);
	strcpy(address.sun_path, path);
	assert_int_equal(bind(stale, (const struct sockaddr *)&address, sizeof(address)), 0);
	close(stale); /* its socket stays, as after a crash */
	reverse_close(begin());
	/* A file that is no socket is not touched. */
	int file = open(path, O_CREAT | O_WRONLY, 0600);
	close(file);
	assert_int_equal(reverse_listen(path, &second, NULL), -EADDRINUSE);
	assert_int_equal(unlink(path), 0);
}

static void assert_resumed(int fd)
{
	static const uint8_t expected[] = "DOTNET_IPC_V1\0\x14\0\4\1\0"; /* and a NUL: 20 bytes */
	uint8_t message[64];

	assert_int_equal(recv(fd, message, sizeof(message), 0), IPC_HEADER_SIZE);
	assert_memory_equal(message, expected, IPC_HEADER_SIZE);
}

/* Simulated runtimes, which send their advertisement and close the connection. */
static void come_and_go(struct reverse *reverse, uint32_t first, uint32_t count)
{
	for (uint32_t i = first; i < first + count; i++) {
		uint8_t message[REVERSE_ADVERTISE_SIZE] = "ADVR_V1";
		int fd = runtime_connect();
		memcpy(message + 8, &i, sizeof(i));
		assert_int_equal(send(fd, message, sizeof(message), MSG_NOSIGNAL), sizeof(message));
		if (reverse)
			reverse_advance(reverse);
		close(fd);
	}
}

/*
 * A runtime for which there is no slot is resumed immediately with one complete request, and
 * counted.
 */
static void test_no_place(void **state)
{
	struct reverse *reverse = begin();
	uint32_t peer;
	uint32_t given = 0;
	char byte;

	(void)state;
	come_and_go(reverse, 1, REVERSE_PEERS_MAX);
	while (reverse_next(reverse, &peer))
		given++;
	assert_int_equal(given, REVERSE_PEERS_MAX);
	int fd = runtime_connect();
	advertise(fd, 'z', 42, false);
	reverse_advance(reverse);
	assert_resumed(fd);
	assert_false(reverse_next(reverse, &peer));
	assert_int_equal(reverse_unplaced(reverse), 1);
	assert_true(send(fd, "!", 1, MSG_NOSIGNAL) == 1); /* it has answered and connects again */
	reverse_advance(reverse);
	close(fd);
	fd = runtime_connect();
	advertise(fd, 'z', 42, false);
	reverse_advance(reverse);
	assert_int_equal(recv(fd, &byte, 1, 0), -1);
	assert_int_equal(errno, EAGAIN); /* no second request, and the connection stays open */
	assert_int_equal(reverse_unplaced(reverse), 1);
	close(fd);
	reverse_close(reverse);
}

/* The slot of a runtime that was forgotten and has ended is reused. */
static void test_place_of_ended(void **state)
{
	struct reverse *reverse = begin();
	struct poll_set set = { 0 };
	uint32_t peer;
	int gate[2];

	(void)state;
	assert_int_equal(pipe(gate), 0);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		for (uint32_t i = 0; i < REVERSE_PEERS_MAX; i++) {
			char byte;
			if (read(gate[0], &byte, 1) != 1)
				_exit(1);
			come_and_go(NULL, i + 1, 1);
		}
		_exit(0);
	}
	for (uint32_t i = 0; i < REVERSE_PEERS_MAX; i++) {
		assert_int_equal(write(gate[1], "", 1), 1);
		while (!reverse_next(reverse, &peer)) {
			poll_set_begin(&set, clock_monotonic_ns() + UINT64_C(60000000000));
			reverse_await(reverse, &set);
			(void)poll_set_wait(&set);
			assert_true(set.ready > 0);
			reverse_advance(reverse);
		}
		reverse_resumed(reverse, peer);
		reverse_forget(reverse, peer);
	}
	poll_set_done(&set);
	assert_int_equal(waitpid(child, NULL, 0), child);
	close(gate[0]);
	close(gate[1]);
	int fd = runtime_connect();
	advertise(fd, 'z', 42, false);
	reverse_advance(reverse);
	assert_true(reverse_next(reverse, &peer));
	assert_int_equal(reverse_peer(reverse, peer)->pid, getpid());
	assert_int_equal(reverse_unplaced(reverse), 0);
	close(fd);
	reverse_close(reverse);
}

/* Each running runtime keeps a connection. The next connection is accepted as well. */
static void test_many_connected(void **state)
{
	struct reverse *reverse = begin();
	static int fds[REVERSE_CONNECTIONS_MAX];
	struct poll_set set = { 0 };
	uint32_t peer;

	(void)state;
	for (uint32_t i = 0; i < REVERSE_CONNECTIONS_MAX; i++) {
		uint8_t message[REVERSE_ADVERTISE_SIZE] = "ADVR_V1";
		memcpy(message + 8, &i, sizeof(i));
		fds[i] = runtime_connect();
		assert_int_equal(send(fds[i], message, sizeof(message), MSG_NOSIGNAL),
			sizeof(message));
		reverse_advance(reverse);
		assert_true(reverse_next(reverse, &peer));
		if (i) /* the first one stays open */
			reverse_resumed(reverse, peer);
	}
	int late = runtime_connect();
	advertise(late, 'z', 42, false);
	poll_set_begin(&set, UINT64_MAX);
	reverse_await(reverse, &set);
	/* The port's own descriptor is not polled, so the loop does not spin. */
	assert_int_equal(set.fds.count, REVERSE_CONNECTIONS_MAX);
	poll_set_done(&set);
	bool came = false;
	for (int i = 0; i < 6000 && !came; i++) {
		reverse_advance(reverse);
		came = reverse_next(reverse, &peer);
		(void)poll(NULL, 0, 10);
	}
	assert_true(came);
	char byte;
	assert_int_equal(recv(fds[0], &byte, 1, 0), -1);
	assert_int_equal(errno, EAGAIN);
	close(late);
	for (uint32_t i = 0; i < REVERSE_CONNECTIONS_MAX; i++)
		close(fds[i]);
	reverse_close(reverse);
}

/*
 * Kills a recorder, then ends its command. Returns the time until the helper ends, which removes
 * the socket at its end.
 */
static uint64_t helper_stays_ns(void)
{
	struct stat st;
	pid_t command;
	int report[2];

	assert_int_equal(pipe(report), 0);
	pid_t recorder = fork();
	if (!recorder) {
		struct reverse *reverse = begin();
		command = fork();
		if (!command) {
			close(report[0]);
			close(report[1]);
			for (;;)
				pause();
		}
		if (reverse_stand_in(reverse, (uint32_t)command, NULL) < 0)
			command = 0;
		if (write(report[1], &command, sizeof(command)) == sizeof(command))
			raise(SIGKILL);
		_exit(1);
	}
	close(report[1]);
	assert_int_equal(read(report[0], &command, sizeof(command)), sizeof(command));
	close(report[0]);
	assert_int_equal(waitpid(recorder, NULL, 0), recorder);
	assert_true(command > 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(kill(command, SIGKILL), 0);
	uint64_t begin_ns = clock_monotonic_ns();

	while (stat(path, &st) == 0 && clock_monotonic_ns() < begin_ns + UINT64_C(60000000000))
		usleep(10000);
	assert_int_equal(stat(path, &st), -1);
	return clock_monotonic_ns() - begin_ns;
}

/*
 * No process has the port in its environment, so the helper ends with the command. If the helper
 * gets no CPU it takes longer, and the test tries again.
 */
static void test_helper_ends(void **state)
{
	uint64_t least_ns = UINT64_MAX;

	(void)state;
	for (unsigned attempt = 0; least_ns > UINT64_C(4000000000) && attempt < 5; attempt++) {
		uint64_t stays_ns = helper_stays_ns();
		least_ns = stays_ns < least_ns ? stays_ns : least_ns;
	}
	assert_true(least_ns <= UINT64_C(4000000000));
}

static void test_path_too_long(void **state)
{
	char name[200];
	struct reverse *reverse;
	struct dotnet_endpoint endpoint;

	(void)state;
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(reverse_listen(name, &reverse, NULL), -ENAMETOOLONG);
	assert_int_equal(reverse_listen("", &reverse, NULL), -ENAMETOOLONG);
	endpoint = path_endpoint(name);
	assert_int_equal(endpoint.connect(endpoint.context, NULL), -ENAMETOOLONG);
	endpoint = path_endpoint(path);
	assert_int_equal(endpoint.connect(endpoint.context, NULL), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_connects_again),
		cmocka_unit_test(test_other_programs),
		cmocka_unit_test(test_no_place),
		cmocka_unit_test(test_place_of_ended),
		cmocka_unit_test(test_many_connected),
		cmocka_unit_test(test_helper_ends),
		cmocka_unit_test(test_path_too_long),
	};

	if (!mkdtemp(folder))
		return 1;
	snprintf(path, sizeof(path), "%s/port", folder);
	int failed = cmocka_run_group_tests_name("reverse", tests, NULL, NULL);

	rmdir(folder);
	return failed;
}
