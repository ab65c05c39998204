/*
 * Runs of records, decoded one by one and stored in chunks: for all sizes of chunks, reading from
 * the store gives the same events as reading the records. The records are of all kinds: with and
 * without stack and activity ids, small and large, of two events.
 */
#include "unit/test.h"

#include <spoor/spoor.h>

#include "lib/event/thread_ring.h"
#include "lib/sink/event_store.h"

SPOOR_PROVIDER(kept, "Kept")
SPOOR_EVENT(kept, one, 1, SPOOR_INFO, 0, (u32, index))
SPOOR_EVENT(kept, other, 2, SPOOR_INFO, 0, (text, words))

#define RECORDS 300u

/* The events that were read, as bytes that can be compared. */
struct seen {
	const struct event_entry *entry;
	uint64_t time_ns, thread_id, lost_before;
	uint32_t sequence, stack_count, payload_size;
	bool run_start, sorted, has_stack, has_activity;
	uint64_t stack[8];
	uint8_t activity[32];
	uint8_t payload[400];
};

static uint64_t bytes[RECORDS * 80];
static struct seen expected[RECORDS];
static struct seen found[RECORDS];

static void look(const struct pipe_event *event, struct seen *ret_seen)
{
	memset(ret_seen, 0, sizeof(*ret_seen));
	ret_seen->entry = event->entry;
	ret_seen->time_ns = event->time_ns;
	ret_seen->thread_id = event->thread_id;
	ret_seen->lost_before = event->lost_before;
	ret_seen->sequence = event->sequence;
	ret_seen->stack_count = event->stack_count;
	ret_seen->payload_size = event->payload_size;
	ret_seen->run_start = event->run_start;
	ret_seen->sorted = event->sorted;
	ret_seen->has_stack = event->stack != NULL;
	ret_seen->has_activity = event->activity_id != NULL;
	assert_int_equal(event->thread_id, event->capture_thread_id);
	assert_true(event->stack_count <= 8 && event->payload_size <= sizeof(ret_seen->payload));
	if (event->stack)
		memcpy(ret_seen->stack, event->stack, 8 * event->stack_count);
	if (event->activity_id) {
		memcpy(ret_seen->activity, event->activity_id, 16);
		memcpy(ret_seen->activity + 16, event->related_activity_id, 16);
	}
	memcpy(ret_seen->payload, event->payload, event->payload_size);
}

/* `kinds`: flags that records may have. */
static struct record_run run_make(unsigned kinds, bool stacks)
{
	struct record_run run = {
		.records = (const uint8_t *)bytes,
		.thread_id = 77,
		.next_stamp = 1100,
		.floor_ns = 50400,
		.clock = { .from_ticks = 1000, .from_ns = 50000, .scale = UINT64_C(3) << 31 },
		.sequence = 5000,
		.lost_before = 9,
		.run_start = true,
		.stacks = stacks,
	};
	uint8_t *at = (uint8_t *)bytes;
	uint32_t random = 12345;

	for (uint32_t i = 0; i < RECORDS; i++) {
		random = random * 1664525 + 1013904223;
		uint32_t flags = random >> 28 & kinds;
		uint32_t payload = random >> 8 & 0xff;
		uint64_t frames = random >> 20 & 7;
		size_t size = RECORD_HEADER + (flags & RECORD_ACTIVITY ? 32u : 0u) +
			      (flags & RECORD_STACK ? 8 + 8 * frames : 0) + payload;
		uint32_t units = (uint32_t)((size + 7) / 8);
		struct record record = {
			.stamp = 1000 + i,
			.sizes = units | (uint32_t)(units * 8 - size) << RECORD_PADDING_SHIFT |
				 flags << RECORD_FLAG_SHIFT,
			.event = random >> 16 & 3 ? kept_one_event.index : kept_other_event.index,
			.sessions = 1,
		};
		uint8_t *to = at + RECORD_HEADER;
		memset(at, (int)i, units * 8);
		memcpy(at, &record, sizeof(record));
		if (flags & RECORD_ACTIVITY)
			to += 32;
		if (flags & RECORD_STACK)
			memcpy(to, &frames, 8);
		at += units * 8;
		run.any_stack = run.any_stack || (flags & RECORD_STACK);
	}
	run.bytes = (uint32_t)(at - (uint8_t *)bytes);
	run.count = RECORDS;
	run.last_stamp = 1000 + RECORDS - 1;
	return run;
}

static void records_are_read_one_by_one(void **state)
{
	struct record_run run = run_make(RECORD_ACTIVITY | RECORD_STACK, true);
	struct pipe_event event;

	(void)state;
	assert_int_equal(record_run_first_ns(&run), 50400);
	assert_int_equal(record_run_last_ns(&run), 50000 + 299 * 3 / 2);
	for (uint32_t i = 0; i < RECORDS; i++) {
		uint64_t ns = 50000 + i * 3 / 2;
		assert_true(record_run_next(&run, &event));
		assert_int_equal(event.time_ns, ns < 50400 ? 50400 : ns);
		assert_int_equal(event.sequence, 5000 + i);
		assert_int_equal(event.lost_before, i ? 0 : 9);
		assert_int_equal(event.run_start, i == 0);
		assert_int_equal(event.sorted, 1000 + i <= 1100);
		assert_non_null(event.entry);
		for (uint32_t k = 0; k < event.payload_size; k++)
			assert_int_equal(event.payload[k], (uint8_t)i);
	}
	assert_false(record_run_next(&run, &event));
	assert_int_equal(run.bytes, 0);
}

static void what_is_kept_is_what_was_there(void **state)
{
	static const size_t rooms[] = { 700, 1000, 1500, 4000, 16000, 65000, 200000 };
	unsigned tries = 0;

	(void)state;
	for (unsigned kinds = 0; kinds < 4; kinds++) {
		for (unsigned stacks = 0; stacks < 2; stacks++) {
			struct record_run run = run_make(kinds, stacks);
			struct pipe_event event;
			struct record_run rest = run;
			for (uint32_t i = 0; record_run_next(&rest, &event); i++)
				look(&event, &expected[i]);
			for (size_t r = 0; r < sizeof(rooms) / sizeof(*rooms); r++, tries++) {
				uint32_t count = 0;
				uint64_t last_ns = 0;
				rest = run;
				while (rest.count) {
					struct store_chunk *chunk = store_chunk_new(rooms[r]);
					struct store_cursor cursor = { 0 };
					uint32_t before = count;
					assert_non_null(chunk);
					while (rest.count && store_append_run(chunk, &rest))
						;
					assert_true(chunk->used <= chunk->room);
					assert_true(chunk->first_ns >= last_ns);
					last_ns = chunk->last_ns;
					while (store_next(chunk, &cursor, &event)) {
						assert_true(count < RECORDS);
						look(&event, &found[count++]);
					}
					assert_int_equal(chunk->events, count - before);
					assert_true(count > before);
					assert_int_equal(found[before].time_ns, chunk->first_ns);
					assert_int_equal(found[count - 1].time_ns, chunk->last_ns);
					free(chunk);
				}
				assert_int_equal(count, RECORDS);
				assert_memory_equal(found, expected, sizeof(found));
			}
		}
	}
	assert_int_equal(tries, 56);
}

/* Stacks that this session does not record take no room: these events are stored one by one. */
static void unwanted_stacks_take_no_room(void **state)
{
	struct record_run run = run_make(RECORD_STACK, false);
	struct record_run rest = run;
	struct store_chunk *chunk = store_chunk_new(1 << 20);
	struct pipe_event event;
	size_t expected_bytes = 0;

	(void)state;
	assert_non_null(chunk);
	while (record_run_next(&rest, &event)) {
		assert_null(event.stack);
		expected_bytes += store_size(&event);
	}
	assert_true(store_append_run(chunk, &run));
	assert_int_equal(run.count, 0);
	assert_int_equal(chunk->used, expected_bytes);
	chunk->used = 0;
	run = run_make(RECORD_STACK, true);
	assert_true(store_append_run(chunk, &run));
	assert_true(chunk->used > run_make(RECORD_STACK, true).bytes);
	free(chunk);
}

static void no_room_takes_nothing(void **state)
{
	struct record_run run = run_make(0, false);
	struct store_chunk *chunk = store_chunk_new(40);

	(void)state;
	assert_non_null(chunk);
	assert_false(store_append_run(chunk, &run));
	assert_int_equal(run.count, RECORDS);
	assert_int_equal(chunk->used, 0);
	free(chunk);
	chunk = store_chunk_new(store_run_size(&run));
	assert_non_null(chunk);
	run.count = 1;
	assert_true(store_append_run(chunk, &run));
	assert_int_equal(run.count, 0);
	free(chunk);
}

static int set_up(void **state)
{
	(void)state;
	return spoor_start(NULL) || spoor_provider_register(&kept);
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
		cmocka_unit_test(records_are_read_one_by_one),
		cmocka_unit_test(what_is_kept_is_what_was_there),
		cmocka_unit_test(unwanted_stacks_take_no_room),
		cmocka_unit_test(no_room_takes_nothing),
	};

	return cmocka_run_group_tests_name("event_store", tests, set_up, tear_down);
}
