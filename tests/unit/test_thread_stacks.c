/* thread_stacks.c of this process, whose runtime is simulated or absent, and of one that has ended. */
#include "unit/fake_runtime.h"

#include <sys/wait.h>

#include "base/diag.h"
#include "base/strtab.h"
#include "stacks/thread_dump.h"
#include "stacks/thread_stacks.h"
#include "target/targets.h"

static void take(uint32_t pid, struct thread_dump *ret_dump)
{
	const struct thread_stacks_options options = { .timeout_ns = 300000000 };
	struct dotnet_target self;
	struct thread_stacks *stacks;
	struct diag diag = { 0 };

	assert_int_equal(dotnet_target_read((uint32_t)getpid(), &self, NULL), 0);
	const struct target target = { .pid = pid,
		.inner_pid = pid,
		.start_ticks = self.start_ticks,
		.state = 'S',
		.reachable = true,
		.name = "shop",
		.program = "shop",
		.container = "",
		.cgroup = "",
		.command_line = "",
		.short_command = "",
		.runtime_path = "",
		.runtime_version = "",
		.architecture = "",
		.remedy = "",
		.reason = "" };

	assert_int_equal(thread_stacks_new(&options, &stacks, &diag), 0);
	assert_int_equal(thread_stacks_take(stacks, &target, 1, ret_dump, &diag), 0);
	thread_stacks_free(stacks);
}

static const struct dump_thread *thread_of(const struct thread_dump *dump, uint32_t tid)
{
	vec_each(thread, &dump->threads)
		if (thread->tid == tid)
			return thread;
	return NULL;
}

static void test_without_runtime(void **state)
{
	struct thread_dump dump;

	(void)state;
	take((uint32_t)getpid(), &dump);
	const struct dump_thread *own = thread_of(&dump, (uint32_t)getpid());

	assert_non_null(own);
	assert_int_equal(own->mode, THREAD_UNSAMPLED);
	assert_string_equal(strtab_get(&dump.texts, own->name), "test_thread_sta");
	assert_true(dump.unsampled_reason);
	thread_dump_done(&dump);
}

/* The session has no sample. It is ended, and the threads are there all the same. */
static void test_without_samples(void **state)
{
	struct fake_runtime runtime = { 0 };
	struct thread_dump dump;

	(void)state;
	fake_runtime_start(&runtime, NULL);
	take((uint32_t)getpid(), &dump);
	assert_true(dump.threads.count >= 2);
	assert_non_null(thread_of(&dump, (uint32_t)getpid()));
	assert_true(dump.unsampled_reason);
	thread_dump_done(&dump);
	fake_runtime_stop(&runtime);
	assert_int_equal(runtime.opened, 1);
	assert_int_equal(runtime.stops, 1);
}

static void test_ended(void **state)
{
	struct thread_dump dump;
	pid_t pid = fork();

	(void)state;
	if (!pid)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	take((uint32_t)pid, &dump);
	assert_int_equal(dump.threads.count, 0);
	assert_string_equal(strtab_get(&dump.texts, dump.unsampled_reason), "it has ended");
	thread_dump_done(&dump);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_without_runtime),
		cmocka_unit_test(test_without_samples),
		cmocka_unit_test(test_ended),
	};

	return cmocka_run_group_tests_name("thread_stacks", tests, NULL, NULL);
}
