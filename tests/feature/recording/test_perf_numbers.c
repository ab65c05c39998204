/*
 * perf/perf_record.h does not include the kernel's header, so that it can read recordings on any
 * system. This proves that its numbers are those of the kernel.
 */
#include "unit/test.h"

#include <assert.h>
#include <linux/perf_event.h>

#include "perf/perf_record.h"

#define SAME(ours, theirs) static_assert((uint64_t)(ours) == (uint64_t)(theirs), #ours)

SAME(PERF_TYPE_MMAP, PERF_RECORD_MMAP);
SAME(PERF_TYPE_LOST, PERF_RECORD_LOST);
SAME(PERF_TYPE_COMM, PERF_RECORD_COMM);
SAME(PERF_TYPE_EXIT, PERF_RECORD_EXIT);
SAME(PERF_TYPE_THROTTLE, PERF_RECORD_THROTTLE);
SAME(PERF_TYPE_UNTHROTTLE, PERF_RECORD_UNTHROTTLE);
SAME(PERF_TYPE_FORK, PERF_RECORD_FORK);
SAME(PERF_TYPE_SAMPLE, PERF_RECORD_SAMPLE);
SAME(PERF_TYPE_MMAP2, PERF_RECORD_MMAP2);
SAME(PERF_TYPE_LOST_SAMPLES, PERF_RECORD_LOST_SAMPLES);
SAME(PERF_TYPE_SWITCH, PERF_RECORD_SWITCH);
SAME(PERF_TYPE_SWITCH_CPU_WIDE, PERF_RECORD_SWITCH_CPU_WIDE);
SAME(PERF_BIT_IP, PERF_SAMPLE_IP);
SAME(PERF_BIT_TID, PERF_SAMPLE_TID);
SAME(PERF_BIT_TIME, PERF_SAMPLE_TIME);
SAME(PERF_BIT_ADDR, PERF_SAMPLE_ADDR);
SAME(PERF_BIT_CALLCHAIN, PERF_SAMPLE_CALLCHAIN);
SAME(PERF_BIT_ID, PERF_SAMPLE_ID);
SAME(PERF_BIT_CPU, PERF_SAMPLE_CPU);
SAME(PERF_BIT_PERIOD, PERF_SAMPLE_PERIOD);
SAME(PERF_BIT_STREAM_ID, PERF_SAMPLE_STREAM_ID);
SAME(PERF_BIT_USER_REGISTERS, PERF_SAMPLE_REGS_USER);
SAME(PERF_BIT_USER_STACK, PERF_SAMPLE_STACK_USER);
SAME(PERF_BIT_RAW, PERF_SAMPLE_RAW);
SAME(PERF_BIT_IDENTIFIER, PERF_SAMPLE_IDENTIFIER);
SAME(PERF_MISC_CPUMODE, PERF_RECORD_MISC_CPUMODE_MASK);
SAME(PERF_MISC_KERNEL, PERF_RECORD_MISC_KERNEL);
SAME(PERF_MISC_USER, PERF_RECORD_MISC_USER);
SAME(PERF_MISC_MMAP_DATA, PERF_RECORD_MISC_MMAP_DATA);
SAME(PERF_MISC_COMM_EXEC, PERF_RECORD_MISC_COMM_EXEC);
SAME(PERF_MISC_SWITCH_OUT, PERF_RECORD_MISC_SWITCH_OUT);
SAME(PERF_MISC_MMAP_BUILD_ID, PERF_RECORD_MISC_MMAP_BUILD_ID);
SAME(PERF_MISC_PREEMPTED, PERF_RECORD_MISC_SWITCH_OUT_PREEMPT);
SAME(PERF_RECORD_HEADER_SIZE, sizeof(struct perf_event_header));

/*
 * The markers are private to perf_record.c. Each must begin the part that it marks for the kernel.
 */
static void test_context_markers(void **state)
{
	static const uint64_t chain[] = { (uint64_t)PERF_CONTEXT_HV, 0x9000,
		(uint64_t)PERF_CONTEXT_KERNEL, 0xffffffff81000010, 0xffffffff81000020,
		(uint64_t)PERF_CONTEXT_USER, 0x401000, (uint64_t)PERF_CONTEXT_GUEST_KERNEL,
		0xffffffff82000000, (uint64_t)PERF_CONTEXT_GUEST_USER, 0x403000,
		(uint64_t)PERF_CONTEXT_GUEST, 0x404000 };
	struct perf_record record = { .callchain = (const uint8_t *)chain,
		.callchain_count = sizeof(chain) / sizeof(chain[0]) };
	uint64_t frames[16];

	(void)state;
	struct perf_callchain flat = perf_callchain_flatten(&record, 1ull << 63, 127, frames, 16);
	assert_int_equal(flat.count, 3);
	assert_int_equal(flat.kernel_count, 2);
	assert_int_equal(flat.flags, PERF_CHAIN_GUEST);
	assert_int_equal(frames[0], 0xffffffff81000010);
	assert_int_equal(frames[1], 0xffffffff81000020);
	assert_int_equal(frames[2], 0x401000);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_context_markers) };

	return cmocka_run_group_tests_name("perf_numbers", tests, NULL, NULL);
}
