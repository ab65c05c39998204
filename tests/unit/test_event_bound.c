/* event_bound.c: how many events of a flood are written, and that written and counted are all. */
#include "unit/test.h"

#include "base/bytes.h"
#include "recording/event_bound.h"
#include "trace/clr_event.h"
#include "trace/event.h"
#include "trace/schema.h"

#define MS UINT64_C(1000000)

struct counts {
	uint64_t total;
	uint64_t by_type[3];
	unsigned rows;
	uint64_t first_ns;
	uint64_t last_ns;
};

static void add_row(void *context, const struct event_bound_row *row, const char *type)
{
	struct counts *counts = context;

	counts->total += row->count;
	counts->rows++;
	counts->by_type[strcmp(type, "A") == 0 ? 0 : strcmp(type, "B") == 0 ? 1 : 2] += row->count;
	if (!counts->first_ns || row->first_ns < counts->first_ns)
		counts->first_ns = row->first_ns;
	if (row->last_ns > counts->last_ns)
		counts->last_ns = row->last_ns;
}

/* `count` events, evenly spread over `ms` milliseconds from `from_ns`. Returns those that are kept. */
static uint32_t flood(struct event_bound *bound, uint32_t process, uint64_t from_ns, uint32_t count,
	uint64_t ms, const char *type)
{
	struct bytes payload = { 0 };
	uint32_t kept = 0;

	bytes_utf16z(&payload, type, strlen(type), SIZE_MAX);
	for (uint32_t i = 0; i < count; i++) {
		const struct event event = { .time_ns = from_ns + ms * MS * i / count,
			.schema_index = 7,
			.stack_index = 1 + i % 2,
			.payload = payload.data,
			.payload_size = (uint32_t)payload.len };
		if (event_bound_keeps(bound, process, &event))
			kept++;
		else
			assert_int_equal(event_bound_count(bound, process, &event), 0);
	}
	bytes_done(&payload);
	return kept;
}

static void test_below_rate(void **state)
{
	struct event_bound bound = { .rate = 1000 };
	struct counts counts = { 0 };

	(void)state;
	assert_int_equal(flood(&bound, 1, 1000 * MS, 900, 1000, "A"), 900);
	event_bound_write(&bound, add_row, &counts);
	assert_int_equal(counts.rows, 0);
	event_bound_done(&bound);
}

/* At most `rate` a second are written, of each process; the others are counted by type and stack. */
static void test_flood(void **state)
{
	struct event_bound bound = { .rate = 1000 };
	struct counts counts = { 0 };

	(void)state;
	uint32_t kept = flood(&bound, 1, 1000 * MS, 20000, 2000, "A");
	assert_in_range(kept, 1500, 2000);
	assert_int_equal(flood(&bound, 2, 1000 * MS, 500, 1000, "A"), 500);
	uint32_t more = flood(&bound, 1, 3000 * MS, 5000, 1000, "B");
	assert_in_range(more, 400, 1000);
	event_bound_write(&bound, add_row, &counts);
	assert_int_equal(counts.total, 25000 - kept - more);
	assert_int_equal(counts.by_type[0], 20000 - kept);
	assert_int_equal(counts.by_type[1], 5000 - more);
	assert_int_equal(counts.rows, 4); /* two types with two stacks each */
	assert_true(counts.first_ns >= 1000 * MS && counts.last_ns < 4000 * MS);
	assert_int_equal(bound.counted, counts.total);
	/* They are written once. */
	counts = (struct counts){ 0 };
	event_bound_write(&bound, add_row, &counts);
	assert_int_equal(counts.rows, 0);
	event_bound_done(&bound);
}

/* The events that are written are spread over a steady flood. */
static void test_fair(void **state)
{
	struct event_bound bound = { .rate = 1000 };

	(void)state;
	(void)flood(&bound, 1, 1000 * MS, 10000, 1000, "A");
	for (uint64_t at = 2000 * MS; at < 3000 * MS; at += 10 * MS) {
		uint32_t kept = flood(&bound, 1, at, 100, 10, "A");
		assert_in_range(kept, 9, 11);
	}
	event_bound_done(&bound);
}

/* More types than there are rows: the total stays exact. */
static void test_many_types(void **state)
{
	struct event_bound bound = { .rate = 1 };
	struct counts counts = { 0 };
	uint32_t kept = 0;
	char type[16];

	(void)state;
	for (unsigned i = 0; i < 3000; i++) {
		snprintf(type, sizeof(type), "Type%u", i);
		kept += flood(&bound, 1, 1000 * MS, 1, 1, type);
	}
	event_bound_write(&bound, add_row, &counts);
	assert_int_equal(counts.total + kept, 3000);
	assert_in_range(counts.rows, 2, 600);
	event_bound_done(&bound);
}

static void test_applies(void **state)
{
	struct event_bound bound = { .rate = 1000 };
	struct schema schema = { .provider_kind = PROVIDER_CLR,
		.event_id = CLR_ID_ExceptionThrown_V1 };

	(void)state;
	assert_true(event_bound_applies(&bound, &schema));
	bound.rate = 0;
	assert_false(event_bound_applies(&bound, &schema));
	bound.rate = 1;
	schema.event_id = CLR_ID_GCStart;
	assert_false(event_bound_applies(&bound, &schema));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_below_rate),
		cmocka_unit_test(test_flood),
		cmocka_unit_test(test_fair),
		cmocka_unit_test(test_many_types),
		cmocka_unit_test(test_applies),
	};
	return cmocka_run_group_tests_name("event_bound", tests, NULL, NULL);
}
