/* Lines to a collector that starts later, that closes the connection, and that never starts. */
#include "unit/test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clocks.h"
#include "base/diag.h"
#include "base/poll_set.h"
#include "counters/counting_push.h"

#define SECOND UINT64_C(1000000000)

/*
 * Creates a listener, or a UDP receiver, at `port` (0: any) of the loopback, and returns its port.
 */
static int serve(int type, uint16_t *port)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
		.sin_port = htons(*port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(address);
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
	const int on = 1;

	assert_true(fd >= 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
	if (type == SOCK_STREAM)
		assert_int_equal(listen(fd, 4), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
	*port = ntohs(address.sin_port);
	return fd;
}

static struct counting_push *open_push(enum counting_push_kind kind, uint16_t port)
{
	struct counting_push *push;
	struct diag diag = { 0 };
	char text[32];

	snprintf(text, sizeof(text), "127.0.0.1:%u", port);
	assert_int_equal(counting_push_open(kind, text, &push, &diag), 0);
	assert_string_equal(counting_push_address(push), text);
	return push;
}

static void drive(struct counting_push *push, uint64_t now)
{
	struct poll_set set = { 0 };

	for (int i = 0; i < 500 && !counting_push_is_empty(push); i++) {
		/* `now` is simulated, so the set's deadlines need no waiting. */
		poll_set_begin(&set, 0);
		counting_push_await(push, &set);
		set.wake_ns = clock_monotonic_ns() + UINT64_C(10000000);
		if (set.fds.count)
			(void)poll_set_wait(&set);
		counting_push_advance(push, now);
	}
	poll_set_done(&set);
}

static void test_late(void **state)
{
	uint16_t port = 0;
	char got[64] = "";

	(void)state;
	int listener = serve(SOCK_STREAM, &port);
	close(listener);
	struct counting_push *push = open_push(COUNTING_PUSH_GRAPHITE, port);
	counting_push_add(push, "a 1 1\n", 6, SECOND);
	drive(push, SECOND);
	assert_non_null(counting_push_problem(push));
	assert_false(counting_push_is_empty(push));
	struct poll_set set = { 0 };
	poll_set_begin(&set, UINT64_MAX);
	counting_push_await(push, &set);
	assert_int_equal(set.fds.count, 0);
	assert_in_range(set.wake_ns, SECOND + 1, 60 * SECOND);
	/* It does not connect before its next attempt is due. */
	listener = serve(SOCK_STREAM, &port);
	drive(push, SECOND + 1);
	assert_false(counting_push_is_empty(push));
	counting_push_add(push, "b 2 2\n", 6, 40 * SECOND);
	drive(push, 40 * SECOND);
	assert_true(counting_push_is_empty(push));
	assert_null(counting_push_problem(push));
	int peer = accept(listener, NULL, NULL);
	assert_true(peer >= 0);
	assert_int_equal(recv(peer, got, 12, MSG_WAITALL), 12);
	assert_string_equal(got, "a 1 1\nb 2 2\n");
	/*
	 * The collector closes the connection. The next line is kept and sent over the next
	 * connection.
	 */
	close(peer);
	usleep(200000); /* wait for the end of the connection to arrive */
	counting_push_add(push, "c 3 3\n", 6, 41 * SECOND);
	drive(push, 41 * SECOND);
	assert_non_null(counting_push_problem(push));
	drive(push, 80 * SECOND);
	peer = accept(listener, NULL, NULL);
	memset(got, 0, sizeof(got));
	assert_int_equal(recv(peer, got, 6, MSG_WAITALL), 6);
	assert_string_equal(got, "c 3 3\n");
	close(peer);
	close(listener);
	counting_push_free(push);
}

static void test_bounded(void **state)
{
	static char line[1000];
	uint16_t port = 0;

	(void)state;
	int listener = serve(SOCK_STREAM, &port);
	close(listener);
	struct counting_push *push = open_push(COUNTING_PUSH_GRAPHITE, port);
	memset(line, 'x', sizeof(line));
	line[sizeof(line) - 1] = '\n';
	uint32_t count = COUNTING_PUSH_QUEUE / sizeof(line) + 100;
	for (uint32_t i = 0; i < count; i++) {
		snprintf(line, 16, "%08u", i);
		line[8] = ' ';
		counting_push_add(push, line, sizeof(line), SECOND);
	}
	uint64_t dropped = counting_push_dropped(push);
	assert_true(dropped >= 100 && dropped < 110);
	listener = serve(SOCK_STREAM, &port);
	counting_push_advance(push, 100 * SECOND);
	int peer = accept(listener, NULL, NULL);
	uint64_t lines = 0, first = 0;
	char got[sizeof(line)];
	while (lines < count - dropped) {
		drive(push, 100 * SECOND);
		assert_int_equal(recv(peer, got, sizeof(got), MSG_WAITALL), sizeof(got));
		assert_int_equal(got[sizeof(got) - 1], '\n'); /* whole lines only */
		if (!lines++)
			first = strtoull(got, NULL, 10);
	}
	assert_int_equal(first, dropped); /* the oldest lines were dropped */
	close(peer);
	close(listener);
	counting_push_free(push);
}

static void test_datagrams(void **state)
{
	uint16_t port = 0;
	char lines[4000];
	char got[4000];
	size_t size = 0, total = 0;

	(void)state;
	int receiver = serve(SOCK_DGRAM, &port);
	struct counting_push *push = open_push(COUNTING_PUSH_STATSD, port);
	for (int i = 0; size < 3000; i++)
		size += (size_t)snprintf(lines + size, sizeof(lines) - size,
			"spoor.some.counter.%d:%d|g\n", i, i);
	counting_push_add(push, lines, size, SECOND);
	while (total < size) {
		ssize_t n = recv(receiver, got, sizeof(got), 0);
		assert_true(n > 0 && n <= 1400);
		assert_int_equal(got[n - 1], '\n');
		assert_memory_equal(got, lines + total, (size_t)n);
		total += (size_t)n;
	}
	/* A missing receiver is no error: the next lines are sent as well. */
	close(receiver);
	for (int i = 0; i < 4; i++)
		counting_push_add(push, "a:1|g\n", 6, SECOND);
	assert_true(counting_push_is_empty(push));
	counting_push_free(push);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_late),
		cmocka_unit_test(test_bounded),
		cmocka_unit_test(test_datagrams),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
