/*
 * strangers.c: drops the records of processes outside the pid filter, according to the kernel's
 * fork and exit records.
 */
#include "unit/test.h"

#include "perf/perf_record.h"
#include "recording/pid_filter.h"

static bool sift(struct strangers *strangers, uint32_t type, uint32_t pid, uint32_t tid,
	uint32_t parent_pid)
{
	const struct perf_record record = {
		.type = type, .pid = pid, .tid = tid, .parent_pid = parent_pid
	};

	return strangers_sift(strangers, &record);
}

static void test_bits(void **unused)
{
	struct strangers strangers = { 0 };

	(void)unused;
	assert_false(strangers_has(&strangers, 0));
	strangers_remove(&strangers, 70);
	for (uint32_t pid = 63; pid <= 64; pid++)
		strangers_add(&strangers, pid);
	strangers_add(&strangers, 4194303);
	assert_true(strangers_has(&strangers, 63));
	assert_true(strangers_has(&strangers, 64));
	assert_true(strangers_has(&strangers, 4194303));
	assert_false(strangers_has(&strangers, 62));
	assert_false(strangers_has(&strangers, 65));
	strangers_remove(&strangers, 64);
	assert_false(strangers_has(&strangers, 64));
	assert_true(strangers_has(&strangers, 63));
	/* Above the kernel's greatest pid: uses no memory. */
	strangers_add(&strangers, UINT32_MAX);
	strangers_add(&strangers, 4194304);
	assert_false(strangers_has(&strangers, UINT32_MAX));
	assert_int_equal(strangers.words.count, 4194304 / 64);
	strangers_done(&strangers);
}

static void test_sift(void **unused)
{
	struct strangers strangers = { 0 };

	(void)unused;
	strangers_add(&strangers, 10);
	assert_true(sift(&strangers, PERF_TYPE_SAMPLE, 10, 11, 0));
	assert_true(sift(&strangers, PERF_TYPE_MMAP2, 10, 11, 0));
	assert_true(sift(&strangers, PERF_TYPE_COMM, 10, 11, 0));
	assert_false(sift(&strangers, PERF_TYPE_SAMPLE, 20, 20, 0));
	/* A record of a CPU, not of a process. */
	assert_false(sift(&strangers, PERF_TYPE_LOST, 10, 10, 0));
	assert_false(sift(&strangers, PERF_TYPE_LOST_SAMPLES, 10, 10, 0));
	assert_false(sift(&strangers, PERF_TYPE_THROTTLE, 10, 10, 0));
	assert_false(sift(&strangers, PERF_TYPE_UNTHROTTLE, 10, 10, 0));
	/* A thread of a filtered process; a child of it; a grandchild. */
	assert_true(sift(&strangers, PERF_TYPE_FORK, 10, 12, 10));
	assert_true(strangers_has(&strangers, 10));
	assert_true(sift(&strangers, PERF_TYPE_FORK, 13, 13, 10));
	assert_true(sift(&strangers, PERF_TYPE_FORK, 14, 14, 13));
	assert_true(sift(&strangers, PERF_TYPE_SAMPLE, 14, 14, 0));
	/* The exit of a thread, then of its process: now the pid belongs to no process. */
	assert_true(sift(&strangers, PERF_TYPE_EXIT, 14, 15, 13));
	assert_true(strangers_has(&strangers, 14));
	assert_true(sift(&strangers, PERF_TYPE_EXIT, 14, 14, 13));
	assert_false(sift(&strangers, PERF_TYPE_SAMPLE, 14, 14, 0));
	/*
	 * The kernel reuses a pid for a child of a recorded process, without an exit record of the
	 * first process.
	 */
	assert_false(sift(&strangers, PERF_TYPE_FORK, 13, 13, 20));
	assert_false(sift(&strangers, PERF_TYPE_SAMPLE, 13, 13, 0));
	assert_false(sift(&strangers, PERF_TYPE_EXIT, 20, 20, 1));
	strangers_done(&strangers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bits),
		cmocka_unit_test(test_sift),
	};

	return cmocka_run_group_tests_name("strangers", tests, NULL, NULL);
}
