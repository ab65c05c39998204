/*
 * Conversion of the counter to the clock: interpolation between two pairs, and its error on this
 * machine. An event is fired between two reads of the clock. The distance of the converted stamp
 * from that interval is the error, which must not exceed the time that reading a pair takes.
 */
#include "unit/test.h"

#include <pthread.h>
#include <unistd.h>

#include <spoor/spoor.h>

#include "lib/platform/clock.h"
#include "lib/platform/platform.h"

SPOOR_PROVIDER(clocked, "Clocked")
SPOOR_EVENT(clocked, between, 1, SPOOR_INFO, 0, (u32, index))

static void the_line_goes_through_its_pairs(void **state)
{
	struct clock_line line = { .counter = true,
		.count = 3,
		.pairs = { { 1000, 50000 }, { 2000, 50500 }, { 4000, 51600 } } };

	(void)state;
	line.scale = (uint64_t)(((unsigned __int128)1100 << 32) / 2000);
	assert_int_equal(clock_line_ns(&line, 2000), 50500);
	assert_in_range(clock_line_ns(&line, 4000), 51599, 51600);
	assert_in_range(clock_line_ns(&line, 3000), 51049, 51050);
	/*
	 * Older stamps are converted with older segments; before the first pair the first segment
	 * is extended.
	 */
	assert_in_range(clock_line_ns(&line, 1500), 50249, 50250);
	assert_int_equal(clock_line_ns(&line, 1000), 50000);
	assert_in_range(clock_line_ns(&line, 0), 49500, 49501);
	/* Converted times never decrease. */
	uint64_t before = 0;
	for (uint64_t ticks = 0; ticks < 5000; ticks++) {
		uint64_t ns = clock_line_ns(&line, ticks);
		assert_true(ns >= before);
		before = ns;
	}
	/* No overflow after a year without a pair. */
	line.pairs[2] = (struct clock_pair){ 2000 + UINT64_C(94608000000000000),
		50500 + UINT64_C(31536000000000000) };
	line.scale = (uint64_t)(((unsigned __int128)UINT64_C(31536000000000000) << 32) /
				UINT64_C(94608000000000000));
	uint64_t half = clock_line_ns(&line, 2000 + UINT64_C(47304000000000000));
	assert_in_range(half, UINT64_C(15768000000000000) - 20000000,
		UINT64_C(15768000000000000) + 20000000);
}

static void monotonic_is_itself(void **state)
{
	struct clock_line line;

	(void)state;
	clock_line_init(&line, false);
	assert_int_equal(clock_line_ns(&line, 12345), 12345);
	struct clock_pair pair = clock_line_advance(&line);
	assert_int_equal(pair.ns, pair.ticks);
}

static void pairs_keep_coming(void **state)
{
	struct clock_line line;
	uint64_t before = 0;

	(void)state;
	if (!platform_counter_is_clock()) {
		print_message("skipped: the kernel does not keep time with the counter here\n");
		skip();
	}
	clock_line_init(&line, true);
	for (int i = 0; i < 1000; i++) {
		struct clock_pair pair = clock_line_advance(&line);
		assert_true(pair.ns >= before);
		assert_true(clock_line_ns(&line, pair.ticks) <= pair.ns &&
			    clock_line_ns(&line, pair.ticks) + 2 >= pair.ns);
		before = pair.ns;
	}
	/*
	 * Where the kernel's clock uses the counter, the error within 1 ms is at most that of
	 * reading the two pairs.
	 */
	uint64_t most = 0;
	for (int i = 0; i < 50; i++) {
		usleep(1000);
		uint64_t low = platform_now_ns();
		uint64_t ticks = ticks_read();
		uint64_t high = platform_now_ns();
		usleep(500);
		(void)clock_line_advance(&line);
		uint64_t ns = clock_line_ns(&line, ticks);
		uint64_t off = ns < low ? low - ns : ns > high ? ns - high : 0;
		if (off > most)
			most = off;
	}
	print_message("a stamp was at most %lu ns outside of the reads around it\n",
		(unsigned long)most);
	assert_true(most <= 1000);
}

#define EVENTS 5000u

static uint64_t low[4][EVENTS];
static uint64_t high[4][EVENTS];
static uint64_t thread_ids[4];

static void *fire_between(void *context)
{
	uintptr_t which = (uintptr_t)context;

	thread_ids[which] = platform_thread_id();
	for (uint32_t i = 0; i < EVENTS; i++) {
		low[which][i] = spoor_now_ns();
		clocked_between(i);
		high[which][i] = spoor_now_ns();
		if (i % 50 == 0)
			usleep(300);
	}
	return NULL;
}

/* Through the whole pipe, several threads on all CPUs. */
static void events_lie_between_the_reads_around_them(void **state)
{
	struct spoor_want want = { .size = sizeof(want),
		.name = "Clocked",
		.keywords = UINT64_MAX,
		.level = SPOOR_VERBOSE };
	struct spoor_session_options options = {
		.size = sizeof(options), .wants = &want, .want_count = 1, .policy = SPOOR_BLOCK
	};
	struct spoor_session *session = NULL;
	struct spoor_event_view view = { .size = sizeof(view) };
	pthread_t threads[4];
	uint64_t most = 0;
	uint64_t last[4] = { 0 };

	(void)state;
	assert_int_equal(spoor_start(NULL), 0);
	assert_int_equal(spoor_provider_register(&clocked), 0);
	assert_int_equal(spoor_session_start_listener(&options, &session), 0);
	for (uintptr_t i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, fire_between, (void *)i), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	spoor_session_stop(session);
	uint32_t seen = 0;
	for (; spoor_listener_read(session, &view, 0) == 1; seen++) {
		struct spoor_value value;
		int which = 0;
		while (which < 3 && thread_ids[which] != view.thread_id)
			which++;
		assert_int_equal(spoor_event_field(&view, "index", &value), 0);
		uint64_t from = low[which][value.u64];
		uint64_t to = high[which][value.u64];
		uint64_t off = view.time_ns < from ? from - view.time_ns
			       : view.time_ns > to ? view.time_ns - to
						   : 0;
		if (off > most)
			most = off;
		assert_true(view.time_ns >= last[which]);
		last[which] = view.time_ns;
	}
	assert_int_equal(seen, 4 * EVENTS);
	print_message("an event was at most %lu ns outside of the reads around it\n",
		(unsigned long)most);
	assert_true(most <= 2000);
	spoor_session_free(session);
	spoor_stop();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_line_goes_through_its_pairs),
		cmocka_unit_test(monotonic_is_itself),
		cmocka_unit_test(pairs_keep_coming),
		cmocka_unit_test(events_lie_between_the_reads_around_them),
	};

	return cmocka_run_group_tests_name("clock", tests, NULL, NULL);
}
