/* samples.c: the thread of a sample. */
#include "unit/test.h"

#include "recording/samples.h"
#include "unit/live_fixture.h"

#define SHOP    100 /* a process and its main thread */
#define EXITED  101 /* threads of it */
#define WORKING 102

static struct samples samples;

static int open_machine(void **state)
{
	static const struct live_options whole_machine = { .machine = true };

	(void)state;
	fixture_open(&whole_machine, false);
	fixture.live->writer.begin_ns = 1000;
	samples = (struct samples){ .table = &fixture.live->table, .period_ns = 1000000 };
	return 0;
}

static int close_fixture(void **state)
{
	(void)state;
	samples_done(&samples);
	fixture_close();
	return 0;
}

static void note(enum pending_kind kind, uint32_t pid, uint32_t tid, int16_t cpu)
{
	const struct pending item = {
		.kind = (uint8_t)kind, .time_ns = 2000, .pid = pid, .tid = tid, .cpu = cpu
	};

	if (kind == PENDING_SAMPLE)
		samples_write(&samples, &item, 0);
	samples_note(&samples, &item);
}

/* The thread of the last sample. */
static uint32_t last_tid(void)
{
	uint32_t tid = 0;

	vec_each(written, &fixture.written)
		if (written->known == EVENTS_CPU)
			tid = fixture.live->trace.threads.items[written->thread].tid;
	return tid;
}

/* The kernel has no id for a thread that has exited and still runs: it is the last one that exited on this CPU. */
static void test_exited(void **state)
{
	(void)state;
	note(PENDING_SAMPLE, SHOP, EXITED, 1);
	assert_int_equal(last_tid(), EXITED);
	note(PENDING_SAMPLE, SHOP, WORKING, 0);
	assert_int_equal(last_tid(), WORKING);
	note(PENDING_EXIT, SHOP, EXITED, 1);
	note(PENDING_SAMPLE, SHOP, UINT32_MAX, 1);
	assert_int_equal(last_tid(), EXITED);
	/* no thread of this process exited on the other CPU, and none of another process on this one */
	note(PENDING_SAMPLE, SHOP, UINT32_MAX, 0);
	assert_int_equal(last_tid(), UINT32_MAX);
	note(PENDING_EXIT, 200, 201, 1);
	note(PENDING_SAMPLE, SHOP, UINT32_MAX, 1);
	assert_int_equal(last_tid(), UINT32_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_exited, open_machine, close_fixture),
	};

	return cmocka_run_group_tests_name("samples", tests, NULL, NULL);
}
