/* poll_set.c: the end of a wait by a descriptor, by a time and by a signal, and reuse of the set. */
#include "unit/test.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clocks.h"
#include "base/poll_set.h"

#define MS UINT64_C(1000000)

static void on_signal(int signal)
{
	(void)signal;
}

static void test_descriptor_ends_the_wait(void **state)
{
	struct poll_set set = { 0 };
	int quiet[2];
	int ready[2];

	(void)state;
	assert_int_equal(pipe2(quiet, O_CLOEXEC), 0);
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	assert_int_equal(write(ready[1], "x", 1), 1);
	poll_set_begin(&set, UINT64_MAX);
	uint32_t none = poll_set_add(&set, -1, POLLIN);
	uint32_t first = poll_set_add(&set, quiet[0], POLLIN);
	uint32_t second = poll_set_add(&set, ready[0], POLLIN);
	uint32_t third = poll_set_add(&set, ready[1], POLLOUT);

	assert_true(poll_set_wait(&set) <= clock_monotonic_ns());
	assert_int_equal(set.ready, 2);
	assert_int_equal(poll_set_revents(&set, none), 0);
	assert_int_equal(poll_set_revents(&set, first), 0);
	assert_int_equal(poll_set_revents(&set, second), POLLIN);
	assert_int_equal(poll_set_revents(&set, third), POLLOUT);
	assert_int_equal(poll_set_revents(&set, 99), 0);

	/* Another wait has its own descriptors: the ready pipe is not among them. */
	poll_set_begin(&set, 0);
	assert_int_equal(poll_set_revents(&set, second), 0);
	first = poll_set_add(&set, quiet[0], POLLIN);
	(void)poll_set_wait(&set);
	assert_int_equal(set.ready, 0);
	assert_int_equal(poll_set_revents(&set, first), 0);
	close(quiet[1]);
	poll_set_begin(&set, UINT64_MAX);
	first = poll_set_add(&set, quiet[0], POLLIN);
	(void)poll_set_wait(&set);
	assert_int_equal(poll_set_revents(&set, first), POLLHUP);
	poll_set_done(&set);
	close(quiet[0]);
	close(ready[0]);
	close(ready[1]);
}

static void test_earliest_time_ends_the_wait(void **state)
{
	struct poll_set set = { 0 };
	uint64_t begin_ns = clock_monotonic_ns();
	uint64_t early_ns = begin_ns + 20 * MS;

	(void)state;
	poll_set_begin(&set, UINT64_MAX);
	poll_set_wake(&set, early_ns + 3600 * 1000 * MS);
	poll_set_wake(&set, early_ns);
	poll_set_wake(&set, UINT64_MAX);
	assert_true(poll_set_wait(&set) >= early_ns);
	assert_int_equal(set.ready, 0);

	/* A time in the past: the wait only checks the descriptors. */
	poll_set_begin(&set, begin_ns);
	poll_set_wake(&set, UINT64_MAX);
	assert_int_equal(set.wake_ns, begin_ns);
	(void)poll_set_wait(&set);
	poll_set_done(&set);
}

static void test_callers_get_their_events(void **state)
{
	struct poll_set set = { 0 };
	int fds[2];

	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	struct pollfd callers[3] = {
		{ .fd = fds[0], .events = POLLIN, .revents = POLLIN }, /* of an earlier wait */
		{ .fd = -1, .events = POLLIN, .revents = POLLIN },
		{ .fd = fds[1], .events = POLLOUT },
	};

	poll_set_begin(&set, UINT64_MAX);
	(void)poll_set_add(&set, fds[0], POLLIN);
	poll_set_add_callers(&set, callers, 3);
	uint32_t last = poll_set_add(&set, fds[1], POLLOUT);
	(void)poll_set_wait(&set);
	assert_int_equal(set.ready, 2);
	assert_int_equal(callers[0].revents, 0);
	assert_int_equal(callers[1].revents, 0);
	assert_int_equal(callers[2].revents, POLLOUT);
	assert_int_equal(poll_set_revents(&set, last), POLLOUT);

	/* A wait for other descriptors does not change them. */
	callers[2].revents = 0;
	poll_set_begin(&set, 0);
	(void)poll_set_add(&set, fds[1], POLLOUT);
	(void)poll_set_wait(&set);
	assert_int_equal(callers[2].revents, 0);
	poll_set_done(&set);
	close(fds[0]);
	close(fds[1]);
}

static void test_signal_ends_the_wait(void **state)
{
	struct sigaction action = { .sa_handler = on_signal };
	struct sigaction before;
	timer_t timer;
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	/* repeated, because the first signal may arrive before the wait */
	struct itimerspec often = { .it_value.tv_nsec = 1000000, .it_interval.tv_nsec = 1000000 };
	struct poll_set set = { 0 };
	int fds[2];

	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
	assert_int_equal(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
	assert_int_equal(timer_settime(timer, 0, &often, NULL), 0);
	struct pollfd caller = { .fd = fds[0], .events = POLLIN, .revents = POLLIN };

	poll_set_begin(&set, UINT64_MAX);
	poll_set_add_callers(&set, &caller, 1);
	(void)poll_set_wait(&set); /* a wait that continued would never end */
	assert_int_equal(set.ready, 0);
	assert_int_equal(caller.revents, 0);
	assert_int_equal(poll_one(fds[0], POLLIN, -1), 0);
	assert_int_equal(timer_delete(timer), 0);
	assert_int_equal(sigaction(SIGUSR1, &before, NULL), 0);
	poll_set_done(&set);
	close(fds[0]);
	close(fds[1]);
}

/* A kernel that refuses the wait (more descriptors than RLIMIT_NOFILE) makes no busy loop. */
static void test_refused_wait_takes_time(void **state)
{
	struct rlimit before;
	struct poll_set set = { 0 };

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	struct rlimit few = { .rlim_cur = 8, .rlim_max = before.rlim_max };
	poll_set_begin(&set, UINT64_MAX);
	for (int i = 0; i < 9; i++)
		(void)poll_set_add(&set, STDOUT_FILENO, POLLOUT);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	uint64_t begin_ns = clock_monotonic_ns();
	uint64_t end_ns = poll_set_wait(&set);

	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(set.ready, 0);
	assert_int_equal(poll_set_revents(&set, 0), 0);
	assert_true(end_ns >= begin_ns + POLL_SET_RETRY_MS * MS);
	poll_set_done(&set);
}

static void test_poll_one(void **state)
{
	int fds[2];

	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(poll_one(fds[0], POLLIN, 0), 0);
	assert_int_equal(poll_one(fds[0], POLLIN, 1), 0);
	assert_int_equal(poll_one(fds[1], POLLOUT, -1), POLLOUT);
	assert_int_equal(poll_one(-1, POLLIN, 0), 0);
	close(fds[1]);
	assert_int_equal(poll_one(fds[0], POLLIN, -1), POLLHUP);
	close(fds[0]);
	assert_int_equal(poll_one(fds[0], POLLIN, -1), POLLNVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_descriptor_ends_the_wait),
		cmocka_unit_test(test_earliest_time_ends_the_wait),
		cmocka_unit_test(test_callers_get_their_events),
		cmocka_unit_test(test_signal_ends_the_wait),
		cmocka_unit_test(test_refused_wait_takes_time),
		cmocka_unit_test(test_poll_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
