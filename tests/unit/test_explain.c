/* explain.c: finds the missing right for a refusal, and the remedy. */
#include "unit/test.h"

#include <errno.h>
#include <unistd.h>

#include "base/diag.h"
#include "machine/rights.h"
#include "perf/explain.h"

static void check(const struct rights *rights, enum explain_what what, const char *text,
	const char *remedy)
{
	struct diag diag = { 0 };

	assert_int_equal(explain_rights(rights, what, -EACCES, &diag), -EACCES);
	assert_int_equal(diag.error, -EACCES);
	assert_string_equal(diag.text, text);
	if (!remedy)
		assert_string_equal(diag.remedy, "");
	else if (!strstr(diag.remedy, remedy))
		fail_msg("'%s' lacks '%s'", diag.remedy, remedy);
}

static void test_missing_capability(void **state)
{
	struct rights rights = { .euid = 1000, .perf_event_paranoid = 2 };

	(void)state;
	check(&rights, EXPLAIN_MACHINE,
		"cannot sample the kernel or other users' processes: perf_event_paranoid is 2 and "
		"CAP_PERFMON is missing",
		"run it with sudo");
	check(&rights, EXPLAIN_KERNEL,
		"cannot sample the kernel or other users' processes: perf_event_paranoid is 2 and "
		"CAP_PERFMON is missing",
		"run it with sudo");
	rights.perf_event_paranoid = 1;
	check(&rights, EXPLAIN_MACHINE,
		"cannot sample other users' processes or the whole machine: perf_event_paranoid is "
		"1 and CAP_PERFMON is missing",
		"run it with sudo");
	rights.perf_event_paranoid = 3;
	rights.euid = 0;
	check(&rights, EXPLAIN_ANY,
		"cannot sample anything: perf_event_paranoid is 3 and CAP_PERFMON is missing",
		"--cap-add PERFMON");
}

/* The sysctl or a capability allows it, so something else forbids it. */
static void test_forbidden_all_the_same(void **state)
{
	static const struct {
		enum explain_what what;
		int paranoid;
		uint32_t effective;
	} cases[] = {
		{ EXPLAIN_MACHINE, 0, 0 },
		{ EXPLAIN_MACHINE, -1, 0 },
		{ EXPLAIN_KERNEL, 1, 0 },
		{ EXPLAIN_ANY, 2, 0 },
		{ EXPLAIN_ANY, 4, RIGHT_PERFMON },
		{ EXPLAIN_MACHINE, 4, RIGHT_SYS_ADMIN },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rights rights = { .perf_event_paranoid = cases[i].paranoid,
			.effective = cases[i].effective };
		struct diag diag = { 0 };
		assert_int_equal(explain_rights(&rights, cases[i].what, -EPERM, &diag), -EPERM);
		assert_non_null(strstr(diag.text, "perf_event_open is forbidden here"));
		assert_int_equal(strstr(diag.text, "and CAP_PERFMON is there") != NULL,
			cases[i].effective != 0);
		assert_non_null(strstr(diag.remedy, "seccomp"));
	}
}

static void test_kernel_without_perf_events(void **state)
{
	struct rights rights = { .perf_event_paranoid = RIGHTS_PARANOID_UNKNOWN,
		.effective = RIGHT_PERFMON };

	(void)state;
	check(&rights, EXPLAIN_ANY, "cannot sample anything: this kernel has no perf events", NULL);
}

static void test_process_of_another_user(void **state)
{
	uint32_t pids[] = { 0x3fffffffu, (uint32_t)getpid() }; /* the first does not exist */
	struct rights rights = { .euid = geteuid() + 1, .perf_event_paranoid = 2 };
	struct diag diag = { 0 };
	char text[128];

	(void)state;
	assert_int_equal(explain_target(&rights, EXPLAIN_ANY, pids, 2, -EACCES, &diag), -EACCES);
	snprintf(text, sizeof(text),
		"cannot record process %u: it belongs to user %u, and we are not root", pids[1],
		(unsigned)geteuid());
	assert_string_equal(diag.text, text);
	assert_string_equal(diag.remedy, "run it with sudo");

	/* A process of the same user: the caller lacks rights. */
	rights.euid = geteuid();
	diag = (struct diag){ 0 };
	assert_int_equal(explain_target(&rights, EXPLAIN_KERNEL, pids, 2, -EACCES, &diag), -EACCES);
	assert_non_null(strstr(diag.text, "CAP_PERFMON is missing"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_missing_capability),
		cmocka_unit_test(test_forbidden_all_the_same),
		cmocka_unit_test(test_kernel_without_perf_events),
		cmocka_unit_test(test_process_of_another_user),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
