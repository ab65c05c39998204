/* rights.c: dropped rights never return; suspended rights can be enabled again. */
#include "unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "machine/rights.h"

static uint32_t effective(void)
{
	struct rights rights;

	rights_read(&rights);
	return rights.effective;
}

/* Runs in a child process, because dropped rights cannot be restored. */
static void in_child(bool (*check)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(check() ? 0 : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static bool check_reduce(void)
{
	const uint32_t keep = RIGHT_SYS_PTRACE | RIGHT_KILL;

	if (rights_reduce(keep) != 0 || effective() != keep ||
		prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
		return false;
	/* No right can be restored. */
	rights_raise();
	if (effective() != keep)
		return false;
	return rights_reduce(keep | RIGHT_CHOWN) == 0 && effective() == keep &&
	       rights_reduce(0) == 0 && effective() == 0;
}

/* Root in a container must stay root to have access to processes with the same rights. */
static bool check_without_ptrace(void)
{
	const uint32_t container = RIGHT_KILL | RIGHT_CHOWN | RIGHT_DAC_OVERRIDE;

	return rights_reduce(container) == 0 && rights_reduce(RIGHT_SYS_PTRACE | RIGHT_KILL) == 0 &&
	       effective() == container && rights_reduce(RIGHT_KILL) == 0 &&
	       effective() == RIGHT_KILL;
}

/* CAP_PERFMON does not exist before Linux 5.8. */
static bool check_without_perfmon(void)
{
	return rights_reduce(RIGHT_SYS_ADMIN | RIGHT_SYS_PTRACE) == 0 &&
	       rights_reduce(RIGHT_PERFMON | RIGHT_SYS_PTRACE) == 0 &&
	       effective() == (RIGHT_SYS_ADMIN | RIGHT_SYS_PTRACE);
}

static void test_reduce(void **state)
{
	(void)state;
	uint32_t all = effective();
	uint32_t wanted =
		RIGHT_SYS_PTRACE | RIGHT_KILL | RIGHT_CHOWN | RIGHT_DAC_OVERRIDE | RIGHT_SYS_ADMIN;
	if ((all & wanted) != wanted)
		skip(); /* this user has no rights to drop */
	in_child(check_reduce);
	in_child(check_without_ptrace);
	in_child(check_without_perfmon);
	assert_int_equal(effective(), all);
}

static void test_pause(void **state)
{
	(void)state;
	uint32_t all = effective();
	uint64_t before = rights_pause(RIGHT_DAC_OVERRIDE | RIGHT_SYS_ADMIN);
	assert_int_equal(effective(), all & ~(uint32_t)(RIGHT_DAC_OVERRIDE | RIGHT_SYS_ADMIN));
	rights_restore(before);
	assert_int_equal(effective(), all);

	/* These rights belong to the user, so none is suspended. */
	assert_false(rights_are_borrowed());
	before = rights_lower();
	assert_int_equal(effective(), all);
	rights_restore(before);
	assert_int_equal(rights_begin(NULL), 0);
	rights_return();
	assert_int_equal(effective(), all);
}

static void test_names(void **state)
{
	(void)state;
	assert_string_equal(right_name(RIGHT_PERFMON), "CAP_PERFMON");
	for (uint32_t right = 1; right <= RIGHT_CHECKPOINT_RESTORE; right <<= 1)
		assert_int_equal(strncmp(right_name((enum right)right), "CAP_", 4), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reduce),
		cmocka_unit_test(test_pause),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests_name("rights", tests, NULL, NULL);
}
