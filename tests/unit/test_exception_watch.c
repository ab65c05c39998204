/* exception_watch.c: when exceptions are observed, and that observed and counted ones are all. */
#include "unit/test.h"

#include "recording/exception_watch.h"

#define MS UINT64_C(1000000)
#define S  UINT64_C(1000000000)

/* A process that throws, with its counter, and the sessions as they are opened and closed. */
struct fixture {
	struct exception_watch watch;
	struct exception_sessions sessions;
	uint64_t now_ns;
	uint64_t value_ns; /* of the last value; 0: the counter was not read */
	uint64_t thrown;   /* in all */
	uint64_t counted;  /* since the last value */
	uint64_t observed;
	uint64_t unseen;
	uint64_t estimated;
	unsigned windows;
	bool mute;   /* the counter sends no values */
	bool always; /* the counter is read for others, and sends values all the time */
};

static void take_gaps(struct fixture *f)
{
	struct exception_gap gap;

	while (exception_watch_take(&f->watch, f->now_ns, f->now_ns, &gap)) {
		assert_true(gap.count > 0);
		assert_true(gap.from_ns < gap.to_ns);
		f->unseen += gap.estimated ? 0 : gap.count;
		f->estimated += gap.estimated ? gap.count : 0;
	}
}

/* One millisecond: `count` exceptions, a value of the counter if it is due, and a turn. */
static void turn(struct fixture *f, uint32_t count)
{
	f->now_ns += MS;
	f->thrown += count;
	f->counted += count;
	for (uint32_t i = 0; i < count && f->sessions.observes; i++, f->observed++)
		exception_watch_event(&f->watch, f->now_ns - MS / 2 + i);
	bool first = f->sessions.counts && !f->value_ns;
	if ((f->sessions.counts || f->always) && !f->mute &&
		(first || f->now_ns >= f->value_ns + S / 2)) {
		/* what the first value has counted is not known */
		exception_watch_value(&f->watch, f->now_ns,
			first ? 20 * MS : f->now_ns - f->value_ns, first ? 7 : f->counted,
			f->now_ns);
		f->value_ns = f->now_ns;
		f->counted = 0;
	}
	f->sessions.counts |= f->always;
	bool observed = f->sessions.observes;
	exception_watch_advance(&f->watch, &f->sessions, f->now_ns);
	f->windows += f->watch.state == EXCEPTIONS_WINDOW && f->sessions.observe && !observed;
	if (f->sessions.count && !f->sessions.counts && !f->always)
		f->value_ns = 0;
	f->sessions.observes = f->sessions.observe;
	f->sessions.counts = f->sessions.count;
	take_gaps(f);
}

static void run(struct fixture *f, uint32_t ms, uint32_t count)
{
	for (uint32_t i = 0; i < ms; i++)
		turn(f, count);
}

static struct fixture begin(uint32_t rate)
{
	return (struct fixture){
		.watch = { .rate = rate }, .sessions = { .observes = true }, .now_ns = 100 * S
	};
}

static void test_below_rate(void **state)
{
	struct fixture f = begin(1000);

	(void)state;
	for (unsigned i = 0; i < 5000; i++)
		turn(&f, i % 2);
	assert_int_equal(f.observed, 2500);
	assert_int_equal(f.windows, 0);
	assert_false(f.sessions.counts);
	/* what is kept does not grow with the recording */
	assert_true(f.watch.times.count < 2000);
	exception_watch_done(&f.watch);
}

static void test_no_bound(void **state)
{
	struct fixture f = begin(0);

	(void)state;
	run(&f, 3000, 20);
	assert_int_equal(f.observed, f.thrown);
	assert_int_equal(f.watch.times.count, 0);
	exception_watch_done(&f.watch);
}

/* A flood of 5,000 a second: a twentieth of it is observed, and the sum is exact when it is over. */
static void test_flood(void **state)
{
	struct fixture f = begin(1000);

	(void)state;
	run(&f, 1000, 0);
	run(&f, 20000, 5);
	assert_in_range(f.windows, 8, 11);
	assert_true(f.observed < f.thrown / 10);
	assert_true(f.observed > f.thrown / 40);
	run(&f, 6000, 0);
	assert_int_equal(f.watch.state, EXCEPTIONS_ALL);
	assert_true(f.sessions.observes);
	assert_false(f.sessions.counts);
	assert_int_equal(f.observed + f.unseen, f.thrown);
	assert_int_equal(f.estimated, 0);
	run(&f, 1000, 1);
	assert_int_equal(f.observed + f.unseen, f.thrown);
	/* and again */
	run(&f, 5000, 50);
	run(&f, 6000, 0);
	assert_int_equal(f.observed + f.unseen, f.thrown);
	exception_watch_done(&f.watch);
}

/* The counter has no value for the last part: it is estimated, and said to be. */
static void test_end(void **state)
{
	struct fixture f = begin(1000);

	(void)state;
	run(&f, 5500, 5);
	exception_watch_limit(&f.watch, f.now_ns);
	exception_watch_end(&f.watch, f.now_ns);
	take_gaps(&f);
	assert_true(f.estimated > 0);
	assert_in_range(f.observed + f.unseen + f.estimated, f.thrown - 20, f.thrown + 20);
	exception_watch_done(&f.watch);
}

/* A burst that is over when the recording ends is not taken for a flood that goes on. */
static void test_burst_at_end(void **state)
{
	struct fixture f = begin(1000);

	(void)state;
	run(&f, 60, 20);
	run(&f, 20, 0);
	exception_watch_limit(&f.watch, f.now_ns);
	while (exception_watch_waits(&f.watch, f.now_ns))
		turn(&f, 0);
	exception_watch_end(&f.watch, f.now_ns);
	take_gaps(&f);
	assert_int_equal(f.observed + f.unseen + f.estimated, f.thrown);
	exception_watch_done(&f.watch);
}

/* A value that comes after the end of the recording counts for its part before it. */
static void test_value_after_end(void **state)
{
	struct fixture f = begin(1000);

	(void)state;
	run(&f, 5300, 5);
	exception_watch_limit(&f.watch, f.now_ns);
	uint64_t thrown = f.thrown;
	run(&f, 1000, 5);
	exception_watch_end(&f.watch, f.now_ns);
	take_gaps(&f);
	assert_in_range(f.observed + f.unseen + f.estimated, thrown - 20, thrown + 500);
	exception_watch_done(&f.watch);
}

/* A runtime without the counter is observed as a whole after some seconds, until the end. */
static void test_mute(void **state)
{
	struct fixture f = begin(1000);

	(void)state;
	f.mute = true;
	run(&f, 10000, 5);
	assert_false(f.sessions.counts);
	/* without a value it was always observed */
	assert_int_equal(f.observed, f.thrown);
	exception_watch_done(&f.watch);

	/* It falls silent later. */
	f = begin(1000);
	run(&f, 3000, 5);
	f.mute = true;
	run(&f, 10000, 5);
	assert_false(f.sessions.counts);
	assert_true(f.estimated > 0);
	assert_in_range(f.observed + f.unseen + f.estimated, f.thrown - 2500, f.thrown + 2500);
	uint64_t observed = f.observed;
	run(&f, 2000, 5);
	assert_int_equal(f.observed, observed + 10000);
	exception_watch_done(&f.watch);
}

/* The sessions are opened again, as after a pause: the watch is at its begin. */
static void test_again(void **state)
{
	struct fixture f = begin(1000);

	(void)state;
	run(&f, 3000, 5);
	exception_watch_end(&f.watch, f.now_ns);
	take_gaps(&f);
	exception_watch_begin(&f.watch);
	f.sessions = (struct exception_sessions){ .observes = true };
	uint64_t thrown = f.thrown;
	uint64_t known = f.observed + f.unseen + f.estimated;
	run(&f, 4000, 5);
	run(&f, 6000, 0);
	assert_int_equal(f.observed + f.unseen + f.estimated - known, f.thrown - thrown);
	exception_watch_done(&f.watch);
}

/* The counters are read for others, too: the interval of the first value began before the flood. */
static void test_other_reader(void **state)
{
	struct fixture f = begin(1000);

	(void)state;
	f.always = true;
	f.value_ns = f.now_ns;
	run(&f, 1500, 1);
	run(&f, 4000, 5);
	assert_true(f.watch.state != EXCEPTIONS_ALL);
	run(&f, 6000, 0);
	assert_true(f.unseen > 0);
	assert_int_equal(f.observed + f.unseen, f.thrown);
	exception_watch_done(&f.watch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_below_rate),
		cmocka_unit_test(test_no_bound),
		cmocka_unit_test(test_flood),
		cmocka_unit_test(test_end),
		cmocka_unit_test(test_burst_at_end),
		cmocka_unit_test(test_value_after_end),
		cmocka_unit_test(test_mute),
		cmocka_unit_test(test_again),
		cmocka_unit_test(test_other_reader),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
