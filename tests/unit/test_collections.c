/* Garbage collections from the runtime's events: pauses, background collections, filters. */
#include "unit/test.h"

#include "analysis/collections.h"
#include "base/bytes.h"
#include "trace/clr_event.h"
#include "unit/sample_trace.h"

#define MS UINT64_C(1000000)

struct fixture {
	struct trace trace;
	struct profile profile;
	struct collections collections;
	uint32_t thread;
};

static void set_up(struct fixture *f)
{
	*f = (struct fixture){ 0 };
	sample_trace(&f->trace);
	f->profile.trace = &f->trace;
	f->collections.trace = &f->trace;
	f->thread = trace_thread(&f->trace, 4711, 4711);
}

static void tear_down(struct fixture *f)
{
	collections_done(&f->collections);
	profile_done(&f->profile);
	trace_done(&f->trace);
}

/* Passes an event of the runtime on, and frees its payload. */
static void pass(struct fixture *f, uint64_t at_ms, uint32_t id, uint8_t version,
	struct bytes *payload)
{
	struct schema *schema = vec_push(&f->trace.schemas);

	*schema = (struct schema){
		.provider_kind = PROVIDER_CLR, .event_id = id, .version = version
	};
	const struct event event = { .time_ns = BEGIN_NS + at_ms * MS,
		.thread_index = f->thread,
		.schema_index = f->trace.schemas.count - 1,
		.payload = payload->data,
		.payload_size = (uint32_t)payload->len };
	assert_int_equal(collections_event(&f->collections, &event), 0);
	bytes_done(payload);
}

/* With these u32 as its payload and then `zeros` bytes. */
static void add(struct fixture *f, uint64_t at_ms, uint32_t id, uint8_t version,
	const uint32_t *values, uint32_t count, uint32_t zeros)
{
	struct bytes payload = { 0 };

	for (uint32_t i = 0; i < count; i++)
		bytes_u32(&payload, values[i]);
	for (uint32_t i = 0; i < zeros; i++)
		bytes_u8(&payload, 0);
	pass(f, at_ms, id, version, &payload);
}

static void suspend(struct fixture *f, uint64_t at_ms, uint32_t reason)
{
	add(f, at_ms, CLR_ID_GCSuspendEEBegin, 1, (const uint32_t[]){ reason, 0 }, 2, 2);
	add(f, at_ms + 1, CLR_ID_GCSuspendEEEnd, 1, NULL, 0, 2);
}

static void restart(struct fixture *f, uint64_t at_ms)
{
	add(f, at_ms, CLR_ID_GCRestartEEEnd, 1, NULL, 0, 2);
}

static void start(struct fixture *f, uint64_t at_ms, uint32_t number, uint32_t generation,
	uint32_t reason, uint32_t type)
{
	add(f, at_ms, CLR_ID_GCStart, 2, (const uint32_t[]){ number, generation, reason, type }, 4,
		10);
}

static void end(struct fixture *f, uint64_t at_ms, uint32_t number)
{
	add(f, at_ms, CLR_ID_GCEnd, 1, (const uint32_t[]){ number, 0 }, 2, 2);
}

/* Sizes 1, 2, 4, 8 and 16 kB, promoted 100, 200, 400, 800 and 1600 bytes. */
static void stats(struct fixture *f, uint64_t at_ms)
{
	static const uint32_t front[] = { 1000, 0, 100, 0, 2000, 0, 200, 0, 4000, 0, 400, 0, 8000,
		0, 800, 0, 9, 9, 9, 9, 9, 9, 9 };
	struct bytes payload = { 0 };

	for (uint32_t i = 0; i < sizeof(front) / sizeof(front[0]); i++)
		bytes_u32(&payload, front[i]);
	bytes_u16(&payload, 9);
	bytes_u64(&payload, 16000);
	bytes_u64(&payload, 1600);
	pass(f, at_ms, CLR_ID_GCHeapStats, 2, &payload);
}

/* Of one heap with two generations: 100 and 20 bytes, and 3 bytes, are free after it. */
static void history(struct fixture *f, uint64_t at_ms)
{
	struct bytes payload = { 0 };

	for (uint32_t i = 0; i < 2 + 6 * 8 + 6 * 4 + 8; i++)
		bytes_u8(&payload, 1);
	bytes_u32(&payload, 2);
	for (uint64_t i = 0; i < 20; i++)
		bytes_u64(&payload, i == 4 ? 100 : i == 5 ? 20 : i == 14 ? 3 : i == 15 ? 0 : 7777);
	pass(f, at_ms, CLR_ID_GCPerHeapHistory_V3, 3, &payload);
}

static void finish(struct fixture *f)
{
	assert_int_equal(collections_finish(&f->collections, &f->profile, 1000 * MS), 0);
}

static void test_blocking(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f);
	/* The restart before the others, as a file that is not sorted by time has it. */
	restart(&f, 20);
	suspend(&f, 10, 1);
	start(&f, 12, 7, 1, 4, COLLECTION_BLOCKING);
	history(&f, 16);
	history(&f, 16);
	end(&f, 17, 7);
	stats(&f, 18);
	/* Threads are suspended for something else. */
	suspend(&f, 30, 2);
	restart(&f, 90);
	finish(&f);
	assert_int_equal(f.collections.rows.count, 1);
	const struct collection *row = &f.collections.rows.items[0];
	assert_int_equal(row->number, 7);
	assert_int_equal(row->generation, 1);
	assert_string_equal(collection_reason(row->reason), "large objects");
	assert_int_equal(row->pause_ns, 10 * MS);
	assert_int_equal(row->suspend_ns, 1 * MS);
	assert_int_equal(row->begin_ns, BEGIN_NS + 12 * MS);
	assert_int_equal(row->end_ns, BEGIN_NS + 17 * MS);
	assert_true(row->has_stats);
	assert_int_equal(row->heap_bytes, 31000);
	for (uint32_t i = 0; i < COLLECTION_HEAPS; i++)
		assert_int_equal(row->part_bytes[i], 1000u << i);
	/* None before its end, then what it left. */
	uint64_t levels[4];
	f.collections.span_ns = 24 * MS;
	collections_levels(&f.collections, &f.collections.processes.items[0], 2, BEGIN_NS, 4,
		levels);
	assert_int_equal(levels[1], 0);
	assert_int_equal(levels[2], 4000);
	assert_int_equal(levels[3], 4000);
	collections_levels(&f.collections, &f.collections.processes.items[0], COLLECTION_HEAPS,
		BEGIN_NS, 4, levels);
	assert_int_equal(levels[3], 31000);
	f.collections.span_ns = 1000 * MS;
	assert_int_equal(row->promoted_bytes, 3100);
	assert_true(row->has_free);
	assert_int_equal(row->free_bytes, 2 * 123);
	assert_int_equal(f.collections.span_ns, 1000 * MS);
	const struct collections_process *process = &f.collections.processes.items[0];
	assert_int_equal(process->pause_ns, 10 * MS);
	assert_int_equal(process->by_generation[1], 1);
	assert_int_equal(process->heap_most_bytes, 31000);
	tear_down(&f);
}

/* Two pauses of its own; the one between them belongs to the foreground collection. */
static void test_background(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f);
	suspend(&f, 10, 1);
	start(&f, 12, 1, 2, 1, COLLECTION_BACKGROUND);
	restart(&f, 15);
	suspend(&f, 20, 6);
	start(&f, 22, 2, 0, 0, COLLECTION_FOREGROUND);
	end(&f, 23, 2);
	stats(&f, 23);
	restart(&f, 24);
	suspend(&f, 30, 6);
	restart(&f, 37);
	end(&f, 50, 1);
	finish(&f);
	assert_int_equal(f.collections.rows.count, 2);
	assert_int_equal(f.collections.rows.items[0].pause_ns, (5 + 7) * MS);
	assert_int_equal(f.collections.rows.items[0].suspend_ns, 2 * MS);
	assert_int_equal(f.collections.rows.items[0].end_ns, BEGIN_NS + 50 * MS);
	assert_false(f.collections.rows.items[0].has_stats);
	assert_int_equal(f.collections.rows.items[1].pause_ns, 4 * MS);
	assert_true(f.collections.rows.items[1].has_stats);
	const struct collections_process *process = &f.collections.processes.items[0];
	assert_int_equal(process->background_count, 1);
	assert_int_equal(process->longest, 0);
	assert_int_equal(process->pause_ns, 16 * MS);
	tear_down(&f);
}

/* The recording begins and ends inside a collection, and payloads are cut. */
static void test_parts(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f);
	end(&f, 1, 41); /* of one that began before */
	stats(&f, 1);
	restart(&f, 2);
	add(&f, 3, CLR_ID_GCStart, 2, (const uint32_t[]){ 42, 0 }, 2, 3);
	suspend(&f, 90, 1);
	start(&f, 91, 43, 0, 99, COLLECTION_BLOCKING);
	finish(&f);
	assert_int_equal(f.collections.rows.count, 1);
	assert_int_equal(f.collections.rows.items[0].number, 43);
	assert_int_equal(f.collections.rows.items[0].end_ns, 0);
	assert_int_equal(f.collections.rows.items[0].pause_ns, 0);
	assert_string_equal(collection_reason(f.collections.rows.items[0].reason), "other");
	tear_down(&f);
}

static void test_filter(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f);
	for (uint32_t i = 0; i < 4; i++) {
		suspend(&f, 10 + i * 20, 1);
		start(&f, 12 + i * 20, i + 1, 0, 0, COLLECTION_BLOCKING);
		end(&f, 13 + i * 20, i + 1);
		restart(&f, 14 + i * 20 + i);
	}
	f.profile.filter.from_ns = 20 * MS;
	f.profile.filter.to_ns = 60 * MS;
	finish(&f);
	assert_int_equal(f.collections.rows.count, 2);
	assert_int_equal(f.collections.rows.items[0].number, 2);
	assert_int_equal(f.collections.processes.items[0].pause_ns, (5 + 6) * MS);
	assert_int_equal(f.collections.processes.items[0].pause_p95_ns, 6 * MS);
	/* Shares are of the selected time, not of the recording's 1,000 ms. */
	assert_int_equal(f.collections.span_ns, 40 * MS);
	tear_down(&f);

	set_up(&f);
	suspend(&f, 10, 1);
	start(&f, 12, 1, 0, 0, COLLECTION_BLOCKING);
	restart(&f, 14);
	assert_true(vec_add(&f.profile.filter.pids, 4802));
	finish(&f);
	assert_int_equal(f.collections.rows.count, 0);
	assert_int_equal(f.collections.processes.count, 0);
	tear_down(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_blocking),
		cmocka_unit_test(test_background),
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_filter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
