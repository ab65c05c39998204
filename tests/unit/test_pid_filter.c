/*
 * pid_filter.c: drops the records of processes outside the pid filter, according to the kernel's
 * fork and exit records.
 */
#include "unit/test.h"

#include "perf/perf_record.h"
#include "recording/pid_filter.h"

static bool sift(struct pid_filter *filter, uint32_t type, uint32_t pid, uint32_t tid,
	uint32_t parent_pid)
{
	const struct perf_record record = {
		.type = type, .pid = pid, .tid = tid, .parent_pid = parent_pid
	};

	return pid_filter_sift(filter, &record);
}

static void test_bits(void **unused)
{
	struct pid_filter filter = { 0 };

	(void)unused;
	assert_false(pid_filter_has(&filter, 0));
	pid_filter_remove(&filter, 70);
	for (uint32_t pid = 63; pid <= 64; pid++)
		pid_filter_add(&filter, pid);
	pid_filter_add(&filter, 4194303);
	assert_true(pid_filter_has(&filter, 63));
	assert_true(pid_filter_has(&filter, 64));
	assert_true(pid_filter_has(&filter, 4194303));
	assert_false(pid_filter_has(&filter, 62));
	assert_false(pid_filter_has(&filter, 65));
	pid_filter_remove(&filter, 64);
	assert_false(pid_filter_has(&filter, 64));
	assert_true(pid_filter_has(&filter, 63));
	/* Above the kernel's greatest pid: uses no memory. */
	pid_filter_add(&filter, UINT32_MAX);
	pid_filter_add(&filter, 4194304);
	assert_false(pid_filter_has(&filter, UINT32_MAX));
	assert_int_equal(filter.words.count, 4194304 / 64);
	pid_filter_done(&filter);
}

static void test_sift(void **unused)
{
	struct pid_filter filter = { 0 };

	(void)unused;
	pid_filter_add(&filter, 10);
	assert_true(sift(&filter, PERF_TYPE_SAMPLE, 10, 11, 0));
	assert_true(sift(&filter, PERF_TYPE_MMAP2, 10, 11, 0));
	assert_true(sift(&filter, PERF_TYPE_COMM, 10, 11, 0));
	assert_false(sift(&filter, PERF_TYPE_SAMPLE, 20, 20, 0));
	/* A record of a CPU, not of a process. */
	assert_false(sift(&filter, PERF_TYPE_LOST, 10, 10, 0));
	assert_false(sift(&filter, PERF_TYPE_LOST_SAMPLES, 10, 10, 0));
	assert_false(sift(&filter, PERF_TYPE_THROTTLE, 10, 10, 0));
	assert_false(sift(&filter, PERF_TYPE_UNTHROTTLE, 10, 10, 0));
	/* A thread of a filtered process; a child of it; a grandchild. */
	assert_true(sift(&filter, PERF_TYPE_FORK, 10, 12, 10));
	assert_true(pid_filter_has(&filter, 10));
	assert_true(sift(&filter, PERF_TYPE_FORK, 13, 13, 10));
	assert_true(sift(&filter, PERF_TYPE_FORK, 14, 14, 13));
	assert_true(sift(&filter, PERF_TYPE_SAMPLE, 14, 14, 0));
	/* The exit of a thread, then of its process: now no process has the pid. */
	assert_true(sift(&filter, PERF_TYPE_EXIT, 14, 15, 13));
	assert_true(pid_filter_has(&filter, 14));
	assert_true(sift(&filter, PERF_TYPE_EXIT, 14, 14, 13));
	assert_false(sift(&filter, PERF_TYPE_SAMPLE, 14, 14, 0));
	/*
	 * The kernel reuses a pid for a child of a recorded process, without an exit record of the
	 * first process.
	 */
	assert_false(sift(&filter, PERF_TYPE_FORK, 13, 13, 20));
	assert_false(sift(&filter, PERF_TYPE_SAMPLE, 13, 13, 0));
	assert_false(sift(&filter, PERF_TYPE_EXIT, 20, 20, 1));
	pid_filter_done(&filter);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bits),
		cmocka_unit_test(test_sift),
	};

	return cmocka_run_group_tests_name("filter", tests, NULL, NULL);
}
