/* events.c with a mock runtime, and a list that has every type of field (all_types.def). */
#include "unit/test.h"

#include <errno.h>
#include <float.h>
#include <pthread.h>
#include <stdlib.h>

#include "gc/mock_runtime.h"

static int setup(void **state)
{
	(void)state;
	memset(&mock, 0, sizeof(mock));
	gc_events_init(&mock_ee);
	gc_events_control(GC_EVENT_DEFAULT, 0, 0);
	gc_events_control(GC_EVENT_PRIVATE, 0, 0);
	return 0;
}

/* Must run first: the library has no runtime yet. */
static void test_before_init(void **state)
{
	(void)state;
	gc_events_control(GC_EVENT_DEFAULT, 1, 5);
	assert_false(gc_event_on_GCStart_V2());
	gc_event_GCStart_V2(1, 2, 3, 4);
	assert_int_equal(gc_event_send(4, 1, "x", NULL, 0), 0);
	assert_int_equal(mock.start + mock.dynamic, 0);
}

static void test_status(void **state)
{
	(void)state;
	assert_false(gc_event_on_GCStart_V2());
	gc_events_control(GC_EVENT_DEFAULT, 1, 4);
	assert_true(gc_event_on_GCStart_V2());
	assert_true(gc_event_on_Nothing());
	assert_false(gc_event_on_GCAllocationTick_V4());
	assert_false(gc_event_on_Verbose());
	assert_false(gc_event_on_BGCBegin());
	gc_events_control(GC_EVENT_DEFAULT, 9, 5);
	assert_true(gc_event_on_GCAllocationTick_V4());
	assert_true(gc_event_on_Verbose());
	gc_events_control(GC_EVENT_DEFAULT, 8, 3);
	assert_false(gc_event_on_Verbose());
	assert_false(gc_event_on_GCStart_V2());
	gc_events_control(GC_EVENT_DEFAULT, 0, 5);
	assert_false(gc_event_on_GCStart_V2());
	gc_events_control(GC_EVENT_PRIVATE, 1, 4);
	assert_true(gc_event_on_BGCBegin());
	assert_false(gc_event_on_GCStart_V2());
	/* Level 0 with a keyword is every level. */
	gc_events_control(GC_EVENT_DEFAULT, 1, 0);
	assert_true(gc_event_on_GCAllocationTick_V4());
	gc_events_control(GC_EVENT_DEFAULT, 0, 0);
	assert_false(gc_event_on_GCAllocationTick_V4());
	/* The highest keyword bit is a sign. */
	gc_events_control(GC_EVENT_DEFAULT, INT32_MIN | 1, 4);
	assert_true(gc_event_on_GCStart_V2());
}

static void test_poll(void **state)
{
	(void)state;
	/*
	 * Two sessions, one after the other; the status at the end of one is outdated until a poll.
	 */
	gc_events_control(GC_EVENT_DEFAULT, 1, 4);
	mock.truth[0] = (struct gc_event_status){ 4, 1 };
	gc_events_poll();
	assert_true(gc_event_on_GCStart_V2());
	gc_events_control(GC_EVENT_DEFAULT, 9, 5);
	mock.truth[0] = (struct gc_event_status){ 5, 9 };
	gc_events_poll();
	assert_int_equal(mock.polled[0], 5);
	assert_int_equal(mock.polled[1], 9);
	assert_true(gc_event_on_Verbose());
	mock.truth[0] = (struct gc_event_status){ 4, 1 };
	gc_events_poll();
	assert_false(gc_event_on_Verbose());
	assert_true(gc_event_on_GCStart_V2());
	mock.truth[0] = (struct gc_event_status){ 0, 0 };
	mock.truth[1] = (struct gc_event_status){ 5, 0x4000 };
	gc_events_poll();
	assert_false(gc_event_on_GCStart_V2());
	assert_int_equal(gc_event_status[GC_EVENT_PRIVATE].keyword, 0x4000);
	/*
	 * A poll sends back the status as it was received, also where level 0 was stored as level
	 * 5.
	 */
	gc_events_control(GC_EVENT_DEFAULT, 2, 0);
	gc_events_poll();
	assert_int_equal(mock.polled[0], 0);
	assert_int_equal(mock.polled[1], 2);
	assert_int_equal(mock.polls, 5);
}

static void test_known(void **state)
{
	int object;

	(void)state;
	gc_event_GCStart_V2(1, 2, 3, 4);
	gc_event_BGCBegin();
	assert_int_equal(mock.start + mock.background_begin, 0);
	gc_events_control(GC_EVENT_DEFAULT, 1, 5);
	gc_events_control(GC_EVENT_PRIVATE, 1, 5);
	gc_event_GCStart_V2(1, 2, 3, 4);
	gc_event_BGCBegin();
	gc_event_GCAllocationTick_V4(UINT64_MAX, 1, 2, &object, 7);
	assert_int_equal(mock.start, 1);
	assert_int_equal(mock.start_arguments[0], 1);
	assert_int_equal(mock.start_arguments[3], 4);
	assert_int_equal(mock.background_begin, 1);
	assert_int_equal(mock.tick, 1);
	assert_true(mock.tick_arguments[0] == UINT64_MAX);
	assert_true(mock.tick_arguments[3] == (uint64_t)(uintptr_t)&object);
	assert_int_equal(mock.tick_arguments[4], 7);
	assert_int_equal(mock.dynamic, 0);
}

static void test_numbers(void **state)
{
	static const uint8_t expected[] = { 3, 0, 0xfe, 2, 1, 4, 3, 2, 1, 8, 7, 6, 5, 4, 3, 2, 1,
		0xff, 0xfe, 0xff, 0xfd, 0xff, 0xff, 0xff, 0xfc, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
		0xff, 0, 0, 0xc0, 0x3f, 0, 0, 0, 0, 0, 0, 4, 0xc0, 0x10, 0, 0, 0, 0, 0, 0, 0, 0x20,
		0, 0, 0, 0, 0, 0, 0 };

	(void)state;
	gc_event_Numbers(0xfe, 0x102, 0x1020304, 0x102030405060708, -1, -2, -3, -4, 1.5f, -2.5,
		(void *)0x10, 0x20);
	assert_int_equal(mock.dynamic, 0);
	gc_events_control(GC_EVENT_DEFAULT, 1, 4);
	gc_event_Numbers(0xfe, 0x102, 0x1020304, 0x102030405060708, -1, -2, -3, -4, 1.5f, -2.5,
		(void *)0x10, 0x20);
	assert_string_equal(mock.name, "Numbers_V3");
	assert_int_equal(mock.size, sizeof(expected));
	assert_memory_equal(mock.data, expected, sizeof(expected));
	gc_event_Nothing();
	assert_string_equal(mock.name, "Nothing");
	assert_int_equal(mock.size, 2);
	gc_events_control(GC_EVENT_DEFAULT, 8, 5);
	gc_event_Verbose(1);
	assert_string_equal(mock.name, "Verbose_V65535");
	assert_memory_equal(mock.data, "\xff\xff\1\0\0\0", 6);
}

static void test_text(void **state)
{
	static const uint8_t expected[] = { 1, 0, 'a', 0, 0x3d, 0xd8, 0, 0xde, 0, 0, 9, 0, 0, 0, 0,
		0 };

	(void)state;
	gc_events_control(GC_EVENT_DEFAULT, 1, 4);
	gc_event_Text(u"a\U0001F600", 9, NULL);
	assert_int_equal(mock.size, sizeof(expected));
	assert_memory_equal(mock.data, expected, sizeof(expected));
}

static void test_arrays(void **state)
{
	static const uint64_t values[3] = { 1, 2, 3 };
	static const double numbers[1] = { 1 };
	size_t at = 2;

	(void)state;
	gc_events_control(GC_EVENT_DEFAULT, 1, 4);
	gc_event_Arrays((const uint8_t *)values, 1, NULL, 0, (const uint32_t *)values, 2, values, 3,
		NULL, 0, NULL, 0, NULL, 0, NULL, 0, NULL, 0, numbers, 1);
	assert_int_equal(mock.size, 2 + 2 + 1 + 2 + 2 + 8 + 2 + 24 + 5 * 2 + 2 + 8);
	assert_memory_equal(mock.data + at, "\1\0\1", 3);
	assert_memory_equal(mock.data + at + 3, "\0\0\2\0\1\0\0\0\0\0\0\0\3\0\1", 15);
}

/* A payload of the maximum size is sent; one byte more is counted and reported. */
static void test_limits(void **state)
{
	static uint8_t bytes[GC_EVENT_DATA_MAX];
	static char16_t text[2 * GC_EVENT_DATA_MAX];
	const size_t fits = GC_EVENT_DATA_MAX - 2 - 10 * 2;
	struct gc_events_lost before = gc_events_lost();

	(void)state;
	gc_events_control(GC_EVENT_DEFAULT, 1, 4);
	mock.truth[0] = (struct gc_event_status){ 4, 1 };
	gc_event_Arrays(bytes, fits, NULL, 0, NULL, 0, NULL, 0, NULL, 0, NULL, 0, NULL, 0, NULL, 0,
		NULL, 0, NULL, 0);
	assert_int_equal(mock.dynamic, 1);
	assert_int_equal(mock.size, GC_EVENT_DATA_MAX);
	gc_event_Arrays(bytes, fits + 1, NULL, 0, NULL, 0, NULL, 0, NULL, 0, NULL, 0, NULL, 0, NULL,
		0, NULL, 0, NULL, 0);
	gc_event_Arrays(bytes, SIZE_MAX / 2, NULL, 0, NULL, 0, NULL, 0, NULL, 0, NULL, 0, NULL, 0,
		NULL, 0, NULL, 0, NULL, 0);
	for (size_t i = 0; i + 1 < sizeof(text) / sizeof(*text); i++)
		text[i] = u'x';
	gc_event_Text(text, 0, NULL);
	gc_event_Text(u"", 0, text);
	assert_int_equal(mock.dynamic, 1);
	assert_int_equal(gc_events_lost().long_payloads - before.long_payloads, 4);
	gc_events_poll();
	assert_int_equal(mock.dynamic, 2);
	assert_string_equal(mock.name, "SpoorGCLost");
	assert_int_equal(mock.data[2], 0);
	assert_int_equal(mock.data[10], 4);
	gc_events_poll();
	assert_int_equal(mock.dynamic, 2);
}

static void test_send(void **state)
{
	static uint8_t bytes[GC_EVENT_WIRE_MAX];
	struct gc_events_lost before = gc_events_lost();
	char name[600];

	(void)state;
	assert_int_equal(gc_event_send(4, 1, "Off", bytes, 1), 0);
	assert_int_equal(mock.dynamic, 0);
	gc_events_control(GC_EVENT_DEFAULT, 1, 4);
	assert_int_equal(gc_event_send(4, 1, "", NULL, 0), 0);
	assert_int_equal(mock.dynamic, 1);

	/* 254 units: of ASCII, of two bytes each, of a surrogate pair each, of broken bytes. */
	memset(name, 'n', 255);
	name[254] = '\0';
	assert_int_equal(gc_event_send(4, 1, name, NULL, 0), 0);
	name[254] = 'n';
	name[255] = '\0';
	assert_int_equal(gc_event_send(4, 1, name, NULL, 0), -ENAMETOOLONG);
	for (size_t i = 0; i < 127; i++)
		memcpy(name + 4 * i, "\xf0\x9f\x98\x80", 4);
	name[508] = '\0';
	assert_int_equal(gc_event_send(4, 1, name, NULL, 0), 0);
	strcpy(name + 508, "n");
	assert_int_equal(gc_event_send(4, 1, name, NULL, 0), -ENAMETOOLONG);
	memset(name, 0x80, 255);
	name[255] = '\0';
	assert_int_equal(gc_event_send(4, 1, name, NULL, 0), -ENAMETOOLONG);
	memset(name, 0xe2, 254);
	name[254] = '\0';
	assert_int_equal(gc_event_send(4, 1, name, NULL, 0), 0);

	assert_int_equal(gc_event_send(4, 1, "Big", bytes, 65536 - 6 - 2 * 4), 0);
	assert_int_equal(mock.size, 65536 - 14);
	assert_int_equal(gc_event_send(4, 1, "Big", bytes, 65536 - 6 - 2 * 4 + 1), -EMSGSIZE);
	assert_int_equal(gc_events_lost().long_names - before.long_names, 3);
	assert_int_equal(gc_events_lost().long_payloads - before.long_payloads, 1);
}

/*
 * Threads fire while the status changes: fired events arrive, and the thread sanitizer reports no
 * race.
 */
static unsigned arrived;

static void count_dynamic(struct gc_sink *self, const char *name, void *data, uint32_t size)
{
	(void)self;
	(void)name;
	(void)data;
	(void)size;
	__atomic_fetch_add(&arrived, 1, __ATOMIC_RELAXED);
}

static void count_start(struct gc_sink *self, uint32_t count, uint32_t depth, uint32_t reason,
	uint32_t type)
{
	count_dynamic(self, NULL, &depth, count + reason + type);
}

static void *fire_many(void *argument)
{
	static uint8_t bytes[GC_EVENT_DATA_MAX];

	(void)argument;
	for (uint32_t i = 0; i < 20000; i++) {
		gc_event_Numbers(1, 2, i, 4, 5, 6, 7, 8, 9, 10, NULL, 0);
		gc_event_GCStart_V2(i, 0, 0, 0);
		if (i % 64 == 0)
			gc_event_Arrays(bytes, sizeof(bytes), NULL, 0, NULL, 0, NULL, 0, NULL, 0,
				NULL, 0, NULL, 0, NULL, 0, NULL, 0, NULL, 0);
	}
	return NULL;
}

static void test_threads(void **state)
{
	static const struct gc_sink_table table = { .FireDynamicEvent = count_dynamic,
		.FireGCStart_V2 = count_start };
	static struct gc_sink sink = { &table };
	struct gc_events_lost before = gc_events_lost();
	pthread_t threads[4];

	(void)state;
	gc_event_sink = &sink;
	gc_events_control(GC_EVENT_DEFAULT, 1, 5);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, fire_many, NULL), 0);
	for (int i = 0; i < 2000; i++) {
		gc_events_control(GC_EVENT_DEFAULT, i & 1, 4 + (i & 1));
		gc_events_tell_lost();
	}
	gc_events_control(GC_EVENT_DEFAULT, 1, 5);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	gc_events_tell_lost();
	assert_true(arrived > 0 && arrived <= 4 * 2 * 20000 + 2001);
	assert_true(gc_events_lost().long_payloads - before.long_payloads <= 4 * 313);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_before_init),
		cmocka_unit_test_setup(test_status, setup),
		cmocka_unit_test_setup(test_poll, setup),
		cmocka_unit_test_setup(test_known, setup),
		cmocka_unit_test_setup(test_numbers, setup),
		cmocka_unit_test_setup(test_text, setup),
		cmocka_unit_test_setup(test_arrays, setup),
		cmocka_unit_test_setup(test_limits, setup),
		cmocka_unit_test_setup(test_send, setup),
		cmocka_unit_test_setup(test_threads, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
