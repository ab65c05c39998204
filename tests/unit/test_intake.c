/* intake.c: converts records in simulated perf rings into items of the reorder window. */
#include "unit/test.h"

#include <inttypes.h>
#include <sys/sysmacros.h>

#include "perf/ring.h"
#include "recording/intake.h"
#include "trace/spoor_payload.h"
#include "unit/live_fixture.h"

#define MARK_USER ((uint64_t)-512)

static int open_machine(void **state)
{
	static const struct live_options options = { .machine = true };

	(void)state;
	fixture_open(&options, false);
	return 0;
}

static int open_filtered(void **state)
{
	static const uint32_t pids[] = { 100 };
	static const struct live_options options = { .pids = pids, .pid_count = 1 };

	(void)state;
	fixture_open(&options, true);
	return 0;
}

static int close_fixture(void **state)
{
	(void)state;
	fixture_close();
	return 0;
}

/* ---- the kernel ---- */

struct place {
	uint32_t pid;
	uint32_t tid;
	uint64_t time_ns;
	uint32_t cpu;
};

static void put_record(uint32_t ring_number, uint32_t type, uint16_t misc, const struct bytes *body)
{
	struct ring *ring = recorder_ring(fixture.live->recorder, ring_number);
	struct bytes record = { 0 };

	assert_int_equal(body->len % 8, 0);
	bytes_u32(&record, type);
	bytes_u16(&record, misc);
	bytes_u16(&record, (uint16_t)(8 + body->len));
	bytes_add(&record, body->data, body->len);
	for (size_t i = 0; i < record.len; i++)
		/* the test writes into the ring as the kernel does */
		((uint8_t *)(uintptr_t)
				ring->data)[(ring->control->data_head + i) % ring->size_bytes] =
			record.data[i];
	ring->control->data_head += record.len;
	bytes_done(&record);
}

/* The fields that sample_id_all adds: TID TIME CPU after every record except samples. */
static void add_place(struct bytes *body, struct place place)
{
	bytes_u32(body, place.pid);
	bytes_u32(body, place.tid);
	bytes_u64(body, place.time_ns);
	bytes_u32(body, place.cpu);
	bytes_u32(body, 0);
}

static void add_padded(struct bytes *body, const char *text)
{
	static const uint8_t zeros[8] = { 0 };

	bytes_add(body, text, strlen(text));
	bytes_add(body, zeros, 8 - body->len % 8);
}

static void put_sample(uint32_t ring, struct place place, const uint64_t *chain, uint32_t count)
{
	struct bytes body = { 0 };

	add_place(&body, place);
	bytes_u64(&body, count);
	for (uint32_t i = 0; i < count; i++)
		bytes_u64(&body, chain[i]);
	put_record(ring, PERF_TYPE_SAMPLE, PERF_MISC_USER, &body);
	bytes_done(&body);
}

enum { WITH_BUILD_ID = 1, NOT_EXECUTABLE = 2, DATA = 4, EMPTY = 8 };

static void put_mapping(struct place place, const char *path, unsigned how)
{
	struct bytes body = { 0 };

	bytes_u32(&body, place.pid);
	bytes_u32(&body, place.tid);
	bytes_u64(&body, 0x400000);
	bytes_u64(&body, how & EMPTY ? 0 : 0x1000);
	bytes_u64(&body, 0x2000);
	if (how & WITH_BUILD_ID) {
		bytes_u32(&body, 4);
		bytes_add(&body, "\xde\xad\xbe\xef", 4);
		bytes_u64(&body, 0);
		bytes_u64(&body, 0);
	} else {
		bytes_u32(&body, 8);
		bytes_u32(&body, 1);
		bytes_u64(&body, 42);
		bytes_u64(&body, 0);
	}
	bytes_u32(&body, how & NOT_EXECUTABLE ? 1 : 5);
	bytes_u32(&body, 2);
	add_padded(&body, path);
	add_place(&body, place);
	put_record(0, PERF_TYPE_MMAP2,
		(uint16_t)(PERF_MISC_USER | (how & WITH_BUILD_ID ? PERF_MISC_MMAP_BUILD_ID : 0u) |
			   (how & DATA ? PERF_MISC_MMAP_DATA : 0u)),
		&body);
	bytes_done(&body);
}

static void put_comm(struct place place, const char *name, bool exec)
{
	struct bytes body = { 0 };

	bytes_u32(&body, place.pid);
	bytes_u32(&body, place.tid);
	add_padded(&body, name);
	add_place(&body, place);
	put_record(0, PERF_TYPE_COMM, exec ? PERF_MISC_COMM_EXEC : 0, &body);
	bytes_done(&body);
}

static void put_task(uint32_t type, struct place place, uint32_t parent)
{
	struct bytes body = { 0 };

	bytes_u32(&body, place.pid);
	bytes_u32(&body, parent);
	bytes_u32(&body, place.tid);
	bytes_u32(&body, parent);
	bytes_u64(&body, place.time_ns);
	add_place(&body, place);
	put_record(0, type, 0, &body);
	bytes_done(&body);
}

/* A record with two numbers, such as LOST, LOST_SAMPLES and THROTTLE. */
static void put_numbers(uint32_t type, struct place place, uint64_t first, uint64_t second)
{
	struct bytes body = { 0 };

	bytes_u64(&body, first);
	if (type != PERF_TYPE_LOST_SAMPLES)
		bytes_u64(&body, second);
	if (type == PERF_TYPE_THROTTLE || type == PERF_TYPE_UNTHROTTLE)
		bytes_u64(&body, 0);
	add_place(&body, place);
	put_record(0, type, 0, &body);
	bytes_done(&body);
}

/* ---- the window ---- */

static const struct pending *next(enum pending_kind kind)
{
	uint64_t late_ns;
	const struct pending *item = reorder_window_next(&fixture.live->window, &late_ns);

	assert_non_null(item);
	assert_int_equal(item->kind, kind);
	return item;
}

static void read_all(void)
{
	intake_drain(&fixture.live->intake);
	reorder_window_sort(&fixture.live->window, UINT64_MAX);
}

static void nothing_more(void)
{
	uint64_t late_ns;

	assert_null(reorder_window_next(&fixture.live->window, &late_ns));
}

static void test_samples_of_all_rings_leave_by_time(void **state)
{
	struct live_parts *live = fixture.live;
	static const uint64_t chain[] = { MARK_USER, 0x401000, 0x402000 };
	uint32_t rings = recorder_info(live->recorder)->ring_count;
	uint32_t count;

	(void)state;
	for (uint32_t i = 0; i < rings; i++) { /* the later ring has the earlier time */
		put_sample(i, (struct place){ 100, 101, 900 - i, i }, chain, 3);
		put_sample(i, (struct place){ 100, 102, 2000 - i, i }, chain, 2);
	}
	read_all();
	uint32_t stack = 0;
	for (uint32_t i = 0; i < rings; i++) {
		const struct pending *item = next(PENDING_SAMPLE);
		assert_int_equal(item->time_ns, 900 - (rings - 1 - i));
		assert_int_equal(item->cpu, rings - 1 - i);
		assert_int_equal(item->pid, 100);
		assert_int_equal(item->tid, 101);
		assert_int_equal(item->value, 0);
		if (i)
			assert_int_equal(item->stack_index, stack); /* stored once */
		stack = item->stack_index;
	}
	const uint64_t *frames = stack_table_get(&live->trace.stacks, stack, &count);
	assert_int_equal(count, 2);
	assert_int_equal(frames[0], 0x401000);
	assert_int_equal(frames[1], 0x402000);
	for (uint32_t i = 0; i < rings; i++)
		assert_int_not_equal(next(PENDING_SAMPLE)->stack_index, stack);
	nothing_more();
	/* The space of the rings is free again. */
	for (uint32_t i = 0; i < rings; i++) {
		const struct ring *ring = recorder_ring(live->recorder, i);
		assert_int_equal(ring->control->data_tail, ring->control->data_head);
	}
}

static void test_samples_without_a_thread_are_left_out(void **state)
{
	static const uint64_t chain[] = { MARK_USER, 0x401000 };

	(void)state;
	put_sample(0, (struct place){ 0, 0, 10, 0 }, chain, 2); /* the idle task */
	put_sample(0, (struct place){ UINT32_MAX, UINT32_MAX, 20, 0 }, chain, 2);
	read_all();
	nothing_more();
}

static void test_incomplete_stacks_are_marked(void **state)
{
	uint64_t chain[129] = { MARK_USER };

	(void)state;
	for (size_t i = 1; i < 129; i++)
		chain[i] = 0x401000 + 16 * i;
	put_sample(0, (struct place){ 100, 100, 10, 0 }, chain, 127); /* 126 frames */
	put_sample(0, (struct place){ 100, 100, 20, 0 }, chain, 128); /* the kernel's limit */
	chain[2] = 0x10;                                              /* cannot be code */
	put_sample(0, (struct place){ 100, 100, 30, 0 }, chain, 3);
	read_all();
	assert_int_equal(next(PENDING_SAMPLE)->value, 0);
	assert_int_equal(next(PENDING_SAMPLE)->value, SAMPLE_STACK_CUT);
	assert_int_equal(next(PENDING_SAMPLE)->value, SAMPLE_WALK_STOPPED);
	nothing_more();
}

static void test_mappings(void **state)
{
	struct live_parts *live = fixture.live;

	(void)state;
	put_mapping((struct place){ 100, 101, 10, 1 }, "/lib/a.so", 0);
	put_mapping((struct place){ 100, 101, 20, 1 }, "/lib/b.so (deleted)", WITH_BUILD_ID);
	put_mapping((struct place){ 100, 101, 30, 1 }, "/lib/c.so", NOT_EXECUTABLE);
	put_mapping((struct place){ 100, 101, 40, 1 }, "/lib/c.so", DATA);
	put_mapping((struct place){ UINT32_MAX, 0, 50, 1 }, "/lib/c.so", 0);
	put_mapping((struct place){ 100, 101, 60, 1 }, "/lib/c.so", EMPTY);
	read_all();
	const struct pending *item = next(PENDING_MAPPING);
	struct pending_mapping *side = item->side;
	assert_int_equal(item->time_ns, 10);
	assert_int_equal(item->pid, 100);
	assert_int_equal(item->tid, 101);
	assert_int_equal(item->cpu, 1);
	assert_int_equal(side->begin, 0x400000);
	assert_int_equal(side->end, 0x401000);
	assert_int_equal(side->file_offset, 0x2000);
	assert_int_equal(side->device, makedev(8, 1));
	assert_int_equal(side->inode, 42);
	assert_int_equal(side->build_id, 0);
	assert_string_equal(trace_text(&live->trace, side->path), "/lib/a.so");
	free(side); /* the code that takes an item from the window frees it */
	side = next(PENDING_MAPPING)->side;
	assert_string_equal(trace_text(&live->trace, side->path), "/lib/b.so");
	assert_string_equal(trace_text(&live->trace, side->build_id), "deadbeef");
	assert_int_equal(side->inode, 0);
	free(side);
	nothing_more();
}

static void test_sideband(void **state)
{
	struct live_parts *live = fixture.live;
	const struct pending *item;

	(void)state;
	put_comm((struct place){ 100, 101, 10, 0 }, "shop", false);
	put_comm((struct place){ 100, 100, 20, 0 }, "store", true);
	put_task(PERF_TYPE_FORK, (struct place){ 200, 201, 30, 0 }, 100);
	put_task(PERF_TYPE_EXIT, (struct place){ 200, 201, 40, 0 }, 100);
	put_numbers(PERF_TYPE_LOST, (struct place){ 100, 100, 50, 1 }, 77, 5);
	put_numbers(PERF_TYPE_LOST, (struct place){ 100, 100, 55, 1 }, 77, 0);
	put_numbers(PERF_TYPE_LOST_SAMPLES, (struct place){ 100, 100, 60, 1 }, 6, 0);
	put_numbers(PERF_TYPE_THROTTLE, (struct place){ 100, 100, 70, 1 }, 1, 2);
	put_numbers(PERF_TYPE_UNTHROTTLE, (struct place){ 100, 100, 80, 1 }, 1, 2);
	put_numbers(99, (struct place){ 100, 100, 90, 1 }, 1, 2); /* from a later kernel */
	read_all();
	item = next(PENDING_COMM);
	assert_int_equal(item->tid, 101);
	assert_false(item->flag);
	assert_string_equal(trace_text(&live->trace, (uint32_t)item->value), "shop");
	item = next(PENDING_COMM);
	assert_true(item->flag);
	assert_string_equal(trace_text(&live->trace, (uint32_t)item->value), "store");
	item = next(PENDING_FORK);
	assert_int_equal(item->pid, 200);
	assert_int_equal(item->tid, 201);
	assert_int_equal(item->value, 100ull << 32 | 100);
	item = next(PENDING_EXIT);
	assert_int_equal(item->pid, 200);
	assert_int_equal(item->tid, 201);
	item = next(PENDING_LOST);
	assert_int_equal(item->value, 5);
	assert_int_equal(item->cpu, 1);
	assert_int_equal(next(PENDING_LOST)->value, 6);
	assert_int_equal(next(PENDING_THROTTLE)->time_ns, 70);
	assert_int_equal(next(PENDING_UNTHROTTLE)->time_ns, 80);
	nothing_more();
}

static void test_malformed_record_is_skipped(void **state)
{
	static const uint64_t chain[] = { MARK_USER, 0x401000 };
	struct bytes body = { 0 };

	(void)state;
	add_place(&body, (struct place){ 100, 100, 10, 0 });
	bytes_u64(&body, 1000); /* the record has fewer frames */
	put_record(0, PERF_TYPE_SAMPLE, PERF_MISC_USER, &body);
	bytes_done(&body);
	put_sample(0, (struct place){ 100, 100, 20, 0 }, chain, 2);
	read_all();
	assert_int_equal(next(PENDING_SAMPLE)->time_ns, 20);
	nothing_more();
}

static void test_records_of_filtered_processes_are_dropped(void **state)
{
	static const uint64_t chain[] = { MARK_USER, 0x401000 };
	struct live_parts *live = fixture.live;

	(void)state;
	pid_filter_add(&live->table.filter, 300);
	put_sample(0, (struct place){ 300, 300, 10, 0 }, chain, 2);
	put_task(PERF_TYPE_FORK, (struct place){ 301, 301, 20, 0 }, 300);
	put_sample(0, (struct place){ 301, 301, 30, 0 }, chain, 2);
	put_sample(0, (struct place){ 100, 100, 40, 0 }, chain, 2);
	read_all();
	assert_int_equal(next(PENDING_SAMPLE)->pid, 100);
	nothing_more();
	assert_true(pid_filter_has(&live->table.filter, 301));
}

static void test_filter_is_for_single_processes_only(void **state)
{
	static const uint64_t chain[] = { MARK_USER, 0x401000 };

	(void)state;
	pid_filter_add(&fixture.live->table.filter, 300);
	put_sample(0, (struct place){ 300, 300, 10, 0 }, chain, 2);
	read_all();
	assert_int_equal(next(PENDING_SAMPLE)->pid, 300);
	nothing_more();
}

#define MACHINE(name)  cmocka_unit_test_setup_teardown(name, open_machine, close_fixture)
#define FILTERED(name) cmocka_unit_test_setup_teardown(name, open_filtered, close_fixture)

int main(void)
{
	const struct CMUnitTest tests[] = {
		MACHINE(test_samples_of_all_rings_leave_by_time),
		MACHINE(test_samples_without_a_thread_are_left_out),
		MACHINE(test_incomplete_stacks_are_marked),
		MACHINE(test_mappings),
		MACHINE(test_sideband),
		MACHINE(test_malformed_record_is_skipped),
		FILTERED(test_records_of_filtered_processes_are_dropped),
		MACHINE(test_filter_is_for_single_processes_only),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
