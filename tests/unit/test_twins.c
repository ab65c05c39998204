/* inherited_events.c: a sample that two inherited events of a thread record is returned once. */
#include "unit/test.h"

#include "perf/inherited_events.h"
#include "unit/fake_events.h"

struct sample {
	struct perf_event_header header;
	uint64_t id;
	uint32_t pid;
	uint32_t tid;
};

static struct sample sample_of(uint64_t id, uint32_t tid)
{
	return (struct sample){ .header = { .type = PERF_RECORD_SAMPLE,
					.size = sizeof(struct sample) },
		.id = id,
		.pid = 7,
		.tid = tid };
}

static bool drop(struct inherited_events *inherited_events, int32_t cpu, struct sample sample)
{
	return inherited_events_drop(inherited_events, cpu, (const uint8_t *)&sample,
		sizeof(sample));
}

static void test_own_event_is_dropped_once_inheritance_is_proved(void **state)
{
	struct perf_event_attr attr = { .size = sizeof(attr) };
	struct inherited_events inherited_events = { 0 };

	(void)state;
	fake_events_reset();
	int fd = event_open(&attr, 70, 3);
	assert_true(inherited_events_add(&inherited_events, 70, 3, 500, fd));
	assert_true(inherited_events_add(&inherited_events, 70, 4, 501, fd));
	/* No proof yet: the samples of its own event count. */
	assert_false(drop(&inherited_events, 3, sample_of(500, 70)));
	assert_int_equal(fake_events.items[0].disabled, 0);
	/* Other threads and CPUs are no proof. */
	assert_false(drop(&inherited_events, 3, sample_of(400, 71)));
	assert_false(drop(&inherited_events, 5, sample_of(400, 70)));
	assert_int_equal(fake_events.items[0].disabled, 0);
	/* The inherited event: its samples stay, those of its own event are duplicates. */
	assert_false(drop(&inherited_events, 3, sample_of(400, 70)));
	assert_int_equal(fake_events.items[0].disabled, 1);
	assert_true(drop(&inherited_events, 3, sample_of(500, 70)));
	assert_false(drop(&inherited_events, 3, sample_of(400, 70)));
	assert_int_equal(fake_events.items[0].disabled, 1);
	/* The proof is needed again on each CPU. */
	assert_false(drop(&inherited_events, 4, sample_of(501, 70)));
	inherited_events_done(&inherited_events);
	close(fd);
}

static void test_other_records_stay(void **state)
{
	struct inherited_events inherited_events = { 0 };
	struct sample record = sample_of(400, 70);

	(void)state;
	fake_events_reset();
	assert_true(inherited_events_add(&inherited_events, 70, 3, 500, -1));
	assert_false(drop(&inherited_events, 3, record));
	record = sample_of(500, 70);
	assert_true(drop(&inherited_events, 3, record));
	record.header.type = PERF_RECORD_COMM;
	assert_false(drop(&inherited_events, 3, record));
	record.header.type = PERF_RECORD_SAMPLE;
	assert_false(inherited_events_drop(&inherited_events, 3, (const uint8_t *)&record,
		sizeof(record) - 1));
	inherited_events_done(&inherited_events);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own_event_is_dropped_once_inheritance_is_proved),
		cmocka_unit_test(test_other_records_stay),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
