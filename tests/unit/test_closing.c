/* Descriptors are closed for good, and the helper that closed them is no child of the caller. */
#include "unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "perf/closing.h"

static void test_closes(void **state)
{
	int ends[2], others[2];
	char byte;

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(pipe2(others, O_CLOEXEC), 0);
	int fds[] = { ends[1], dup(ends[1]), -1 };

	closing_finish(fds, 3);
	/* until the helper has closed them too */
	assert_int_equal(read(ends[0], &byte, 1), 0);
	assert_int_equal(fcntl(fds[0], F_GETFD), -1);
	/* what it was not given is not held open by it */
	(void)close(others[1]);
	assert_int_equal(read(others[0], &byte, 1), 0);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	closing_finish(NULL, 0);
	(void)close(ends[0]);
	(void)close(others[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_closes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
