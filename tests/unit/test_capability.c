/* capability.c: the meaning of each trial's result for the user, and the right to grant. */
#include "unit/test.h"

#include <errno.h>

#include "perf/capability.h"

static struct capability table[CAPABILITY_COUNT];

/* Everything works for a user other than root. */
static struct capability_trials all_right(void)
{
	return (struct capability_trials){
		.rights = { .euid = 1000,
			.effective = RIGHT_PERFMON | RIGHT_SYS_PTRACE | RIGHT_SYSLOG,
			.perf_event_paranoid = 2 },
		.has_tracefs = true,
		.has_build_ids = true,
	};
}

static struct capability_trials plain_user(int paranoid)
{
	struct capability_trials trials = all_right();

	trials.rights.effective = 0;
	trials.rights.perf_event_paranoid = paranoid;
	trials.machine = paranoid > 0 ? -EACCES : 0;
	trials.kernel = paranoid > 1 ? -EACCES : 0;
	trials.own = paranoid > 2 ? -EACCES : 0;
	trials.has_tracefs = false;
	return trials;
}

static void check(const struct capability_trials *trials, const char *key,
	enum capability_answer answer, const char *reason, const char *remedy)
{
	capability_explain(trials, table);
	for (size_t i = 0; i < CAPABILITY_COUNT; i++) {
		if (strcmp(table[i].key, key) != 0)
			continue;
		assert_int_equal(table[i].answer, answer);
		assert_string_equal(table[i].reason, reason);
		assert_string_equal(table[i].remedy, remedy);
		return;
	}
	fail_msg("no row has the key '%s'", key);
}

static void test_everything(void **state)
{
	const struct capability_trials trials = all_right();

	(void)state;
	memset(table, 0xff, sizeof(table));
	capability_explain(&trials, table);
	for (size_t i = 0; i < CAPABILITY_COUNT; i++) {
		assert_int_equal(table[i].answer, CAPABILITY_YES);
		assert_string_equal(table[i].reason, "");
		assert_string_equal(table[i].remedy, "");
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(table[i].key, table[j].key);
	}
}

static void test_user_at_each_level(void **state)
{
	static const char sudo[] = "sudo, or a spoor for one group";
	struct capability_trials trials = plain_user(0);

	(void)state;
	check(&trials, "samples_machine", CAPABILITY_YES, "", "");
	check(&trials, "samples_own", CAPABILITY_YES, "", "");
	trials = plain_user(1);
	check(&trials, "samples_machine", CAPABILITY_NO,
		"needs CAP_PERFMON (perf_event_paranoid is 1)", sudo);
	check(&trials, "samples_own", CAPABILITY_YES, "", "");
	check(&trials, "context_switches", CAPABILITY_LIMITED, "own processes only", "");
	trials = plain_user(2);
	check(&trials, "samples_own", CAPABILITY_LIMITED,
		"user code only: perf_event_paranoid is 2", "");
	check(&trials, "kernel_stacks", CAPABILITY_NO,
		"needs CAP_PERFMON (perf_event_paranoid is 2)", sudo);
	trials = plain_user(3);
	static const char *const keys[] = { "samples_own", "samples_machine", "kernel_stacks",
		"hardware_cycles", "build_ids", "context_switches" };
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		check(&trials, keys[i], CAPABILITY_NO,
			"needs CAP_PERFMON (perf_event_paranoid is 3)", sudo);
	/* Root in a container. */
	trials.rights.euid = 0;
	check(&trials, "samples_own", CAPABILITY_NO, "needs CAP_PERFMON (perf_event_paranoid is 3)",
		"--cap-add PERFMON, or run it on the host");
}

/* The user has the rights, so a seccomp filter or a security module refused the event. */
static void test_forbidden_by_something_else(void **state)
{
	struct capability_trials trials = all_right();

	(void)state;
	trials.own = trials.kernel = trials.machine = trials.tracepoint = -EPERM;
	capability_explain(&trials, table);
	for (size_t i = 0; i < CAPABILITY_COUNT; i++) {
		if (!strcmp(table[i].key, "other_processes"))
			continue;
		assert_int_equal(table[i].answer, CAPABILITY_NO);
		assert_non_null(strstr(table[i].reason, "perf_event_open is forbidden here"));
		assert_non_null(strstr(table[i].remedy, "seccomp"));
	}
	/* The sysctl would allow it as well. */
	trials = plain_user(2);
	trials.own = -EPERM;
	capability_explain(&trials, table);
	assert_string_equal(table[0].key, "samples_own");
	assert_non_null(strstr(table[0].reason, "though perf_event_paranoid is 2"));
	trials = all_right();
	trials.rights.effective = 0;
	trials.rights.perf_event_paranoid = RIGHTS_PARANOID_UNKNOWN;
	trials.own = -ENOSYS;
	check(&trials, "samples_own", CAPABILITY_NO,
		"cannot sample anything: this kernel has no perf events", "");
}

static void test_names_of_the_kernel(void **state)
{
	static const char no_syslog[] =
		"without names: kptr_restrict is 1 and CAP_SYSLOG is missing";
	struct capability_trials trials = all_right();

	(void)state;
	trials.rights.kptr_restrict = 1;
	check(&trials, "kernel_stacks", CAPABILITY_YES, "", "");
	trials.rights.effective &= ~(uint32_t)RIGHT_SYSLOG;
	check(&trials, "kernel_stacks", CAPABILITY_LIMITED, no_syslog,
		"sudo, or a spoor for one group");
	trials.rights.euid = 0;
	check(&trials, "kernel_stacks", CAPABILITY_LIMITED, no_syslog,
		"--cap-add SYSLOG, or run it on the host");
	/* 0 leaves it to perf_event_paranoid */
	trials.rights.kptr_restrict = 0;
	check(&trials, "kernel_stacks", CAPABILITY_LIMITED,
		"without names: kptr_restrict is 0 and CAP_SYSLOG is missing",
		"--cap-add SYSLOG, or run it on the host");
	trials.rights.perf_event_paranoid = 1;
	check(&trials, "kernel_stacks", CAPABILITY_YES, "", "");
	trials.rights.kptr_restrict = 1;
	check(&trials, "kernel_stacks", CAPABILITY_LIMITED, no_syslog,
		"--cap-add SYSLOG, or run it on the host");
	/* 2 hides addresses from all readers of kallsyms, but not from BPF */
	trials = all_right();
	trials.rights.kptr_restrict = 2;
	check(&trials, "kernel_stacks", CAPABILITY_LIMITED, "without names: kptr_restrict is 2",
		"CAP_BPF and CAP_PERFMON name it all the same");
	trials.names_kernel = true;
	check(&trials, "kernel_stacks", CAPABILITY_YES, "", "");
}

static void test_what_the_machine_lacks(void **state)
{
	struct capability_trials trials = all_right();

	(void)state;
	trials.cycles = -ENOENT;
	check(&trials, "hardware_cycles", CAPABILITY_NO, "this machine has none; cpu-clock is used",
		"");
	trials.is_virtual = true;
	check(&trials, "hardware_cycles", CAPABILITY_NO,
		"this virtual machine has none; cpu-clock is used", "");
	trials.cycles = -EBUSY;
	check(&trials, "hardware_cycles", CAPABILITY_NO,
		"the counters are in use; cpu-clock is used", "");
	trials.has_build_ids = false;
	check(&trials, "build_ids", CAPABILITY_LIMITED,
		"the kernel is older than Linux 5.12: they are read from the files", "");
	trials.switches = -EINVAL;
	check(&trials, "context_switches", CAPABILITY_NO, "the kernel is older than Linux 4.3", "");
}

static void test_tracepoints_and_other_processes(void **state)
{
	struct capability_trials trials = plain_user(2);

	(void)state;
	check(&trials, "tracepoints", CAPABILITY_NO, "tracefs can be read by root only",
		"run it with sudo");
	check(&trials, "other_processes", CAPABILITY_LIMITED,
		"of this user only: CAP_SYS_PTRACE is missing", "sudo, or a spoor for one group");
	trials = all_right();
	trials.rights.effective &= ~(uint32_t)RIGHT_SYS_PTRACE;
	check(&trials, "other_processes", CAPABILITY_LIMITED,
		"of this user only: CAP_SYS_PTRACE is missing", "sudo, or a spoor for one group");
	trials = plain_user(2);
	trials.rights.euid = 0;
	check(&trials, "tracepoints", CAPABILITY_NO, "tracefs is not mounted",
		"mount -t tracefs tracefs /sys/kernel/tracing");
	check(&trials, "other_processes", CAPABILITY_LIMITED,
		"of this user only: CAP_SYS_PTRACE is missing",
		"--cap-add SYS_PTRACE, or run it on the host");
	trials.has_tracefs = true;
	trials.tracepoint = -EACCES;
	check(&trials, "tracepoints", CAPABILITY_NO, "needs CAP_PERFMON (perf_event_paranoid is 2)",
		"--cap-add PERFMON, or run it on the host");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_everything),
		cmocka_unit_test(test_user_at_each_level),
		cmocka_unit_test(test_forbidden_by_something_else),
		cmocka_unit_test(test_names_of_the_kernel),
		cmocka_unit_test(test_what_the_machine_lacks),
		cmocka_unit_test(test_tracepoints_and_other_processes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
