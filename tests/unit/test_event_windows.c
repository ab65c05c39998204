/* event_windows.c: above a rate events are observed in windows, and the rest of the time is in gaps. */
#include "unit/test.h"

#include "recording/event_windows.h"

#define MS UINT64_C(1000000)
#define S  UINT64_C(1000000000)

struct fixture {
	struct event_windows windows;
	uint64_t now_ns;
	uint64_t observed;
	uint64_t gaps_ns;
	unsigned gaps;
	bool open;
};

static void take(struct fixture *f)
{
	struct windows_gap gap;

	while (event_windows_take(&f->windows, &gap)) {
		assert_true(gap.from_ns < gap.to_ns);
		f->gaps_ns += gap.to_ns - gap.from_ns;
		f->gaps++;
	}
}

/* So many milliseconds with `count` events in each. */
static void run(struct fixture *f, uint32_t ms, uint32_t count)
{
	for (uint32_t i = 0; i < ms; i++) {
		f->now_ns += MS;
		for (uint32_t k = 0; k < count && f->open; k++, f->observed++)
			event_windows_event(&f->windows, f->now_ns - MS / 2 + k);
		f->open = event_windows_advance(&f->windows, f->open, f->now_ns);
		take(f);
	}
}

static struct fixture begin(uint32_t rate)
{
	return (struct fixture){ .windows = { .rate = rate }, .now_ns = 100 * S, .open = true };
}

static void test_below_rate(void **state)
{
	struct fixture f = begin(2000);

	(void)state;
	run(&f, 5000, 1);
	assert_int_equal(f.observed, 5000);
	assert_int_equal(f.gaps, 0);
	f = begin(0);
	run(&f, 5000, 10);
	assert_int_equal(f.observed, 50000);
}

/* The observed events, scaled by the time, are as many as there were. */
static void test_windows(void **state)
{
	struct fixture f = begin(500);

	(void)state;
	run(&f, 20000, 5);
	event_windows_end(&f.windows, f.now_ns);
	take(&f);
	assert_in_range(f.gaps, 17, 21);
	assert_true(f.observed < 10000);
	uint64_t all = (uint64_t)((double)f.observed * 20e9 / (double)(20 * S - f.gaps_ns));
	assert_in_range(all, 95000, 105000);
}

/* All are observed again when there are fewer, and the gap ends when the session was open. */
static void test_return(void **state)
{
	struct fixture f = begin(500);

	(void)state;
	run(&f, 5000, 5);
	run(&f, 8000, 0);
	assert_true(f.open);
	uint64_t observed = f.observed;
	uint64_t gaps_ns = f.gaps_ns;
	for (unsigned i = 0; i < 300; i++)
		run(&f, 10, i % 3 == 0);
	assert_int_equal(f.observed, observed + 1000);
	event_windows_end(&f.windows, f.now_ns);
	take(&f);
	assert_true(f.gaps_ns >= gaps_ns && f.gaps_ns < 14 * S);
	/* the end in a gap */
	f = begin(500);
	run(&f, 1000, 5);
	assert_false(f.open);
	event_windows_end(&f.windows, f.now_ns);
	take(&f);
	assert_in_range(f.gaps_ns, 850 * MS, 950 * MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_below_rate),
		cmocka_unit_test(test_windows),
		cmocka_unit_test(test_return),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
