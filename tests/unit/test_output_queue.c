/* output_queue.c: a reader that is slow, goes away, or reads on at the end. */
#include "unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "base/poll_set.h"
#include "cli/output_queue.h"

struct fixture {
	struct output_queue queue;
	int reader;
	int writer;
};

static int set_up(void **state)
{
	static struct fixture fixture;
	int ends[2];

	(void)signal(SIGPIPE, SIG_IGN);
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	fixture.reader = ends[0];
	fixture.writer = ends[1];
	output_queue_open(&fixture.queue, fixture.writer);
	*state = &fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	output_queue_close(&fixture->queue, 0);
	close(fixture->writer);
	if (fixture->reader >= 0)
		close(fixture->reader);
	return 0;
}

/* Bytes of one queue form a sequence, so that a lost or repeated one shows. */
static void add_numbers(struct output_queue *queue, uint32_t begin, uint32_t count, bool fits)
{
	uint32_t *numbers = malloc(count * sizeof(*numbers));

	assert_non_null(numbers);
	for (uint32_t i = 0; i < count; i++)
		numbers[i] = begin + i;
	assert_int_equal(output_queue_add(queue, numbers, count * sizeof(*numbers)), fits);
	free(numbers);
}

/* Reads what the pipe has now. */
static uint32_t read_numbers(int fd, uint32_t expected)
{
	uint32_t numbers[1024];
	ssize_t n = read(fd, numbers, sizeof(numbers));

	assert_true(n >= 0 && n % 4 == 0);
	for (size_t i = 0; i < (size_t)n / 4; i++)
		assert_int_equal(numbers[i], expected + i);
	return (uint32_t)n / 4;
}

static void test_slow_reader(void **state)
{
	struct fixture *fixture = *state;
	struct output_queue *queue = &fixture->queue;
	const uint32_t part = 64 * 1024; /* 256 KiB, more than a pipe holds */
	uint32_t added = 0, got = 0;

	/* The shared descriptor stays as it was: other processes may write to it. */
	assert_false(fcntl(fixture->writer, F_GETFL) & O_NONBLOCK);
	assert_true(fcntl(queue->fd, F_GETFL) & O_NONBLOCK);
	assert_true(output_queue_is_empty(queue));
	for (; added < 8 * part; added += part)
		add_numbers(queue, added, part, true);
	assert_false(output_queue_is_empty(queue));
	while (got < added) {
		got += read_numbers(fixture->reader, got);
		if (got == added / 2) { /* later bytes follow the waiting ones */
			add_numbers(queue, added, 100, true);
			added += 100;
		}
		output_queue_advance(queue);
	}
	assert_true(output_queue_is_empty(queue));
	assert_int_equal(queue->refused, 0);
}

static void test_full_queue_takes_nothing(void **state)
{
	struct fixture *fixture = *state;
	struct output_queue *queue = &fixture->queue;
	const uint32_t most = OUTPUT_QUEUE_MAX / 4;
	uint32_t got = 0;

	add_numbers(queue, 0, most + 1, false);
	assert_int_equal(queue->refused, 1);
	assert_true(output_queue_is_empty(queue));
	add_numbers(queue, 0, most, true);
	uint32_t sent = (uint32_t)queue->sent / 4;
	assert_true(sent > 0);
	add_numbers(queue, most, sent + 1, false);
	assert_int_equal(queue->refused, 2);
	add_numbers(queue, most, sent, true); /* the room of what was sent */
	while (got < most + sent) {
		got += read_numbers(fixture->reader, got);
		output_queue_advance(queue);
	}
	assert_true(output_queue_is_empty(queue));
}

static void test_reader_goes_away(void **state)
{
	struct fixture *fixture = *state;
	struct output_queue *queue = &fixture->queue;
	struct poll_set set = { 0 };

	close(fixture->reader);
	fixture->reader = -1;
	/* An empty queue notices it too. */
	poll_set_begin(&set, UINT64_MAX);
	output_queue_await(queue, &set);
	assert_int_equal(set.fds.count, 1);
	(void)poll_set_wait(&set);
	assert_true(poll_set_revents(&set, 0) & POLLERR);
	add_numbers(queue, 0, 1, true);
	assert_int_equal(queue->error, -EPIPE);
	add_numbers(queue, 0, 1, false);
	assert_int_equal(queue->refused, 0);
	poll_set_begin(&set, UINT64_MAX);
	output_queue_await(queue, &set);
	assert_int_equal(set.fds.count, 0);
	poll_set_done(&set);
}

static void test_what_the_wait_asks_for(void **state)
{
	struct fixture *fixture = *state;
	struct poll_set set = { 0 };

	poll_set_begin(&set, 0);
	output_queue_await(&fixture->queue, &set);
	assert_int_equal(set.fds.items[0].events, 0);
	add_numbers(&fixture->queue, 0, 256 * 1024, true);
	poll_set_begin(&set, 0);
	output_queue_await(&fixture->queue, &set);
	assert_int_equal(set.fds.items[0].events, POLLOUT);
	poll_set_done(&set);
}

/* A file cannot delay: it is written to directly. */
static void test_file(void **state)
{
	struct output_queue queue;
	char path[] = "/tmp/spoor-unit-XXXXXX";
	char text[8] = "";
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	unlink(path);
	output_queue_open(&queue, fd);
	assert_int_equal(queue.fd, fd);
	assert_true(output_queue_add(&queue, "shop", 4));
	assert_true(output_queue_is_empty(&queue));
	output_queue_close(&queue, 0);
	assert_int_equal(pread(fd, text, sizeof(text), 0), 4); /* it is still open */
	assert_string_equal(text, "shop");
	close(fd);
}

#define PIPED(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		PIPED(test_slow_reader),
		PIPED(test_full_queue_takes_nothing),
		PIPED(test_reader_goes_away),
		PIPED(test_what_the_wait_asks_for),
		cmocka_unit_test(test_file),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
