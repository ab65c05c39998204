/*
 * A session ends while the loop thread is behind, because the sink of another session is slow: it
 * gets all its events, once and in order, without waiting for those of the other, which loses none.
 */
#include "lib/read_back.h"

#include <pthread.h>

#include <spoor/spoor.h>

#include "lib/pipe/pipe_session.h"
#include "lib/pipe/sink.h"

#define THREADS 3
#define EVENTS  80000u /* of a thread, for each of the two sessions */

SPOOR_PROVIDER(behind, "Behind")
/* `value`: the number of the event among those of its session, of the thread */
SPOOR_EVENT(behind, both, 1, SPOOR_INFO, 0x3, (u32, thread), (u64, value))
SPOOR_EVENT(behind, first, 2, SPOOR_INFO, 0x1, (u32, thread), (u64, value))
SPOOR_EVENT(behind, slow, 3, SPOOR_INFO, 0x2, (u32, thread), (u64, value))

static uint64_t slow_taken; /* atomic */
static uint64_t slow_last[THREADS];
static bool slow_out_of_order;

static int slow_event(struct sink *sink, const struct pipe_event *event)
{
	uint32_t thread;
	uint64_t value;

	(void)sink;
	memcpy(&thread, event->payload, sizeof(thread));
	memcpy(&value, event->payload + 4, sizeof(value));
	slow_out_of_order |= value != ++slow_last[thread];
	if (__atomic_fetch_add(&slow_taken, 1, __ATOMIC_RELAXED) % 64 == 0)
		usleep(1000);
	return 0;
}

static void slow_free(struct sink *sink)
{
	(void)sink;
}

static struct spoor_session_options options_of(struct spoor_want *want, uint64_t keywords)
{
	*want = (struct spoor_want){ .size = sizeof(*want),
		.name = "Behind",
		.keywords = keywords,
		.level = SPOOR_VERBOSE };
	return (struct spoor_session_options){ .size = sizeof(struct spoor_session_options),
		.wants = want,
		.want_count = 1,
		.buffer_bytes = 256 << 20 };
}

static void *fire(void *context)
{
	uint32_t thread = (uint32_t)(uintptr_t)context;

	/* Both numbers are the same for the common event: the two others alternate. */
	for (uint64_t i = 1; i <= EVENTS; i += 2) {
		behind_both(thread, i);
		behind_first(thread, i + 1);
		behind_slow(thread, i + 1);
	}
	return NULL;
}

static void ends_without_the_others(void **state)
{
	static const struct session_sink_ops ops = {
		.name = "slow", .event = slow_event, .free = slow_free
	};
	static struct sink sink = { .ops = &ops };
	struct spoor_session_counts counts = { .size = sizeof(counts) };
	struct spoor_event_view view = { .size = sizeof(view) };
	struct spoor_session *first, *slow;
	uint64_t last[THREADS] = { 0 }, read = 0;
	pthread_t threads[THREADS];
	struct spoor_want want;

	(void)state;
	struct spoor_session_options options = options_of(&want, 0x2);
	assert_int_equal(session_start_public(&options, &sink, &slow), 0);
	options = options_of(&want, 0x1);
	assert_int_equal(spoor_session_start_listener(&options, &first), 0);
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, fire, (void *)i), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);

	assert_int_equal(spoor_session_stop(first), 0);
	uint64_t taken = __atomic_load_n(&slow_taken, __ATOMIC_RELAXED);
	spoor_session_count(first, &counts);
	assert_int_equal(counts.written, THREADS * EVENTS);
	while (spoor_listener_read(first, &view, 60000) == 1) {
		struct spoor_value thread, value;
		assert_int_equal(spoor_event_field(&view, "thread", &thread), 0);
		assert_int_equal(spoor_event_field(&view, "value", &value), 0);
		assert_int_equal(value.u64, ++last[thread.u64]);
		read++;
	}
	assert_int_equal(read, counts.written);
	spoor_session_free(first);

	assert_int_equal(spoor_session_stop(slow), 0);
	spoor_session_count(slow, &counts);
	print_message("the slow session had %llu of %llu events when the other one ended\n",
		(unsigned long long)taken, (unsigned long long)counts.written);
	assert_int_equal(counts.written, THREADS * EVENTS);
	assert_int_equal(counts.written, slow_taken);
	assert_true(taken < counts.written / 4 * 3);
	assert_false(slow_out_of_order);
	spoor_session_free(slow);
}

static int set_up(void **state)
{
	/* Rings that hold all events: nothing is lost. */
	struct spoor_options options = {
		.size = sizeof(options), .flags = SPOOR_START_NO_SERVER, .ring_bytes = 16 << 20
	};

	(void)state;
	return spoor_start(&options) || spoor_provider_register(&behind);
}

static int tear_down(void **state)
{
	(void)state;
	spoor_stop();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ends_without_the_others),
	};

	return cmocka_run_group_tests_name("stop behind", tests, set_up, tear_down);
}
