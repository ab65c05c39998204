/* counting.c with a runtime that this test simulates: its sessions, its refusal, and its end. */
#include "unit/fake_runtime.h"

#include "base/clocks.h"
#include "base/diag.h"
#include "base/poll_set.h"
#include "counters/counter_choice.h"
#include "counters/counting.h"

#define LIMIT_NS UINT64_C(120000000000) /* reached only if the test fails */

static void ignore_ready(void *context, uint32_t process)
{
	(void)context;
	(void)process;
}

static void ignore_sentence(void *context, uint32_t process, const char *sentence)
{
	(void)context;
	(void)process;
	(void)sentence;
}

static struct counting_process step(struct counting *counting, struct poll_set *set)
{
	struct counting_process process;

	poll_set_begin(set, clock_monotonic_ns() + 50000000);
	assert_true(counting_step(counting, set) >= 0);
	counting_process(counting, 0, &process);
	return process;
}

/* Counts until the process reaches `wanted`, then ends; returns its state at the end. */
static struct counting_process count_until(struct fake_runtime *runtime, enum counting_state wanted)
{
	struct counter_choice choice = { 0 };
	const struct counting_options options = { .choice = &choice,
		.interval_ns = COUNTING_INTERVAL_MIN_NS,
		.max_histograms = 10,
		.max_time_series = 100,
		.ready = ignore_ready,
		.tell = ignore_sentence };
	struct counting *counting;
	struct poll_set set = { 0 };
	struct diag diag = { 0 };
	char path[64];
	uint64_t limit_ns = clock_monotonic_ns() + LIMIT_NS;

	snprintf(path, sizeof(path), "/tmp/spoor-counting-%d.socket", (int)getpid());
	fake_runtime_start(runtime, path);
	assert_int_equal(counter_choice_add(&choice, "Shop", &diag), 0);
	assert_int_equal(counting_new(&options, &counting, &diag), 0);
	assert_int_equal(counting_add_path(counting, path, &diag), 0);
	struct counting_process process = step(counting, &set);

	while (process.state != wanted && clock_monotonic_ns() < limit_ns)
		process = step(counting, &set);
	assert_int_equal(process.state, wanted);
	assert_int_equal(process.pid, getpid());
	counting_stop(counting);
	while (process.state != COUNTING_ENDED && process.state != COUNTING_FAILED &&
		clock_monotonic_ns() < limit_ns)
		process = step(counting, &set);
	counting_free(counting);
	counter_choice_done(&choice);
	poll_set_done(&set);
	fake_runtime_stop(runtime);
	return process;
}

static void test_session(void **state)
{
	struct fake_runtime runtime = { 0 };

	(void)state;
	struct counting_process process = count_until(&runtime, COUNTING_RUNNING);

	assert_int_equal(process.state, COUNTING_ENDED);
	assert_int_equal(process.intervals, 0);
	assert_true(runtime.opened > 0);
	assert_int_equal(runtime.stops, runtime.opened);
}

static void test_refused(void **state)
{
	struct fake_runtime runtime = { .refuses = true };

	(void)state;
	struct counting_process process = count_until(&runtime, COUNTING_FAILED);

	assert_string_equal(reason_word(process.reason_kind), "slots");
	assert_int_equal(runtime.stops, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_session),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests_name("counting", tests, NULL, NULL);
}
