/* runtime_info.c with a runtime that this test simulates: one that answers, and one that does not. */
#include "unit/fake_runtime.h"

#include "target/runtime_info.h"
#include "target/targets.h"

static struct target *add_self(struct targets *targets)
{
	struct dotnet_target self;
	struct target *target = vec_push(&targets->list);

	assert_non_null(target);
	assert_int_equal(dotnet_target_read((uint32_t)getpid(), &self, NULL), 0);
	target->pid = target->inner_pid = (uint32_t)getpid();
	target->start_ticks = self.start_ticks;
	target->state = 'S';
	target->reachable = true;
	target->name = target->program = "shop";
	target->runtime_version = target->architecture = target->remedy = target->reason = "";
	target->container = target->cgroup = target->command_line = "";
	return target;
}

static void test_answer(void **state)
{
	struct fake_runtime runtime = { 0 };
	struct targets targets = { 0 };

	(void)state;
	fake_runtime_start(&runtime, NULL);
	struct target *target = add_self(&targets);

	assert_int_equal(runtime_info(&targets, UINT64_C(120000000000)), 0);
	assert_true(target->reachable);
	assert_string_equal(target->runtime_version, "10.0.12");
	assert_string_equal(target->architecture, "x64");
	fake_runtime_stop(&runtime);
	assert_int_equal(runtime.infos, 1);
	targets_done(&targets);
}

static void test_silence(void **state)
{
	struct fake_runtime runtime = { .is_silent = true };
	struct targets targets = { 0 };

	(void)state;
	fake_runtime_start(&runtime, NULL);
	struct target *target = add_self(&targets);

	assert_int_equal(runtime_info(&targets, 100000000), 0);
	assert_false(target->reachable);
	assert_true(*target->reason);
	assert_string_equal(target->runtime_version, "");
	fake_runtime_stop(&runtime);
	targets_done(&targets);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answer),
		cmocka_unit_test(test_silence),
	};

	return cmocka_run_group_tests_name("runtime_info", tests, NULL, NULL);
}
