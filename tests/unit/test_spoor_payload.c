/* spoor_payload.c: payloads read back as they were written. */
#include "unit/test.h"

#include "base/bytes.h"
#include "base/strtab.h"
#include "trace/line_table.h"
#include "trace/spoor_payload.h"

/*
 * The end of a symbol is exclusive here and inclusive in the file, where it must be greater than
 * the begin.
 */
static void test_symbol_range(void **state)
{
	static const struct {
		uint64_t begin, end, read_end;
	} cases[] = {
		{ 0x1000, 0x1040, 0x1040 },
		{ 0x1000, 0x1002, 0x1002 },
		{ 0x1000, 0x1001, 0x1002 }, /* one byte: TraceEvent must not skip it */
		{ 0x1000, 0x1000, 0x1002 },
		{ 0x1000, 0x0fff, 0x1002 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct bytes out = { 0 };
		struct strtab strings = { 0 };
		struct payload_symbol read;
		const struct payload_symbol symbol = { .id = 1,
			.mapping_id = 2,
			.begin = cases[i].begin,
			.end = cases[i].end,
			.name = "f",
			.name_len = 1 };

		(void)payload_symbol(&out, &symbol);
		assert_int_equal(payload_read_symbol(out.data, out.len, &strings, &read), 0);
		assert_int_equal(read.begin, cases[i].begin);
		assert_int_equal(read.end, cases[i].read_end);
		assert_string_equal(read.name, "f");
		strtab_done(&strings);
		bytes_done(&out);
	}
}

static void test_thread_clock(void **state)
{
	const struct payload_thread_clock clocks[] = { { .run_ns = 0 },
		{ .run_ns = UINT64_MAX, .rest = true } };

	(void)state;
	for (size_t i = 0; i < sizeof(clocks) / sizeof(clocks[0]); i++) {
		struct bytes out = { 0 };
		struct payload_thread_clock read;
		payload_thread_clock(&out, &clocks[i]);
		assert_int_equal(payload_read_thread_clock(out.data, out.len, NULL, &read), 0);
		assert_int_equal(read.run_ns, clocks[i].run_ns);
		assert_int_equal(read.rest, clocks[i].rest);
		assert_true(payload_read_thread_clock(out.data, out.len - 1, NULL, &read) < 0);
		bytes_done(&out);
	}
}

static void test_looks(void **state)
{
	static const char *const frames[] = { "Wait", "Shop.Load" };
	const struct payload_process_use use = { .time_ns = 1,
		.known = PROCESS_USE_MEMORY | PROCESS_USE_WRITES,
		.private_bytes = UINT64_MAX,
		.written_bytes = 300 };
	const struct payload_look_thread thread = { .look = 2,
		.tid = 4711,
		.stack = 3,
		.flags = LOOK_THREAD_WORKER | LOOK_THREAD_AT_TASK,
		.waits_for = "for a task",
		.io = "" };
	const struct payload_look_stack stack = {
		.look = 2, .stack = 3, .own = 2, .frames = frames, .frame_count = 2
	};
	const char *read_frames[PAYLOAD_LOOK_FRAMES_MAX];
	struct payload_process_use use_read;
	struct payload_look_thread thread_read;
	struct payload_look_stack stack_read;
	struct strtab strings = { 0 };
	struct bytes out = { 0 };

	(void)state;
	payload_process_use(&out, &use);
	assert_int_equal(payload_read_process_use(out.data, out.len, NULL, &use_read), 0);
	assert_memory_equal(&use, &use_read, sizeof(use));
	assert_true(payload_read_process_use(out.data, out.len - 1, NULL, &use_read) < 0);

	bytes_reset(&out);
	assert_false(payload_look_thread(&out, &thread));
	assert_int_equal(payload_read_look_thread(out.data, out.len, &strings, &thread_read), 0);
	assert_int_equal(thread_read.tid, thread.tid);
	assert_int_equal(thread_read.flags, thread.flags);
	assert_string_equal(thread_read.waits_for, "for a task");

	bytes_reset(&out);
	assert_false(payload_look_stack(&out, &stack));
	assert_int_equal(
		payload_read_look_stack(out.data, out.len, &strings, read_frames, &stack_read), 0);
	assert_int_equal(stack_read.own, 2);
	assert_int_equal(stack_read.frame_count, 2);
	assert_string_equal(stack_read.frames[1], "Shop.Load");
	assert_true(payload_read_look_stack(out.data, out.len - 1, &strings, read_frames,
			    &stack_read) < 0);
	strtab_done(&strings);
	bytes_done(&out);
}

static void test_source_lines(void **state)
{
	static const char *const texts[] = { "inner", "/src/a.c", "/src/b.h" };
	static const uint32_t offsets[] = { 16, 32 };
	static const uint32_t frame_counts[] = { 2, 1 };
	static const uint32_t functions[] = { 1, 0, 0 };
	static const uint32_t files[] = { 3, 2, 2 };
	static const uint32_t lines[] = { 7, 40, 41 };
	const struct payload_source_lines written = { .mapping_id = 5,
		.begin = 0x1000,
		.method_id = 9,
		.texts = texts,
		.offsets = offsets,
		.frame_counts = frame_counts,
		.functions = functions,
		.files = files,
		.lines = lines,
		.text_count = 3,
		.offset_count = 2,
		.frame_count = 3 };
	struct line_place place = {
		.mapping_id = 5, .begin = 0x1000, .method_id = 9, .offset = 16
	};
	struct line_table table = { 0 };
	struct strtab strings = { 0 };
	struct bytes out = { 0 };
	uint32_t count;

	(void)state;
	assert_false(payload_source_lines(&out, &written));
	assert_int_equal(payload_read_source_lines(out.data, out.len, &strings, &table), 0);
	const struct line_frame *frames = line_table_find(&table, &place, &count);
	assert_int_equal(count, 2);
	assert_string_equal(strtab_get(&strings, frames[0].function), "inner");
	assert_string_equal(strtab_get(&strings, frames[0].file), "/src/b.h");
	assert_int_equal(frames[0].line, 7);
	assert_int_equal(frames[1].function, 0);
	assert_string_equal(strtab_get(&strings, frames[1].file), "/src/a.c");
	assert_int_equal(frames[1].line, 40);
	place.offset = 32;
	frames = line_table_find(&table, &place, &count);
	assert_int_equal(count, 1);
	assert_int_equal(frames[0].line, 41);
	place.method_id = 8; /* another method at the same address */
	assert_null(line_table_find(&table, &place, &count));
	for (size_t len = 0; len < out.len; len++)
		assert_true(payload_read_source_lines(out.data, len, &strings, &table) < 0);
	line_table_done(&table);
	strtab_done(&strings);
	bytes_done(&out);
}

static void test_il_offsets(void **state)
{
	static const uint32_t native[] = { 0, 9, 40 };
	static const uint32_t il[] = { UINT32_MAX - 1, 0, 17 };
	const struct payload_il_offsets written = { .mapping_id = 5,
		.begin = 0x1000,
		.method_id = 9,
		.token = 0x06000001,
		.assembly = "/app/Shop.dll",
		.pdb_id = { 1, 2, 3 },
		.native = native,
		.il = il,
		.count = 3 };
	uint32_t natives[PAYLOAD_LINES_MAX];
	uint32_t ils[PAYLOAD_LINES_MAX];
	struct payload_il_offsets read;
	struct strtab strings = { 0 };
	struct bytes out = { 0 };

	(void)state;
	assert_false(payload_il_offsets(&out, &written));
	assert_int_equal(payload_read_il_offsets(out.data, out.len, &strings, natives, ils, &read),
		0);
	assert_int_equal(read.token, written.token);
	assert_string_equal(read.assembly, written.assembly);
	assert_memory_equal(read.pdb_id, written.pdb_id, sizeof(read.pdb_id));
	assert_int_equal(read.count, 3);
	assert_memory_equal(natives, native, sizeof(native));
	assert_memory_equal(ils, il, sizeof(il));
	for (size_t len = 0; len < out.len; len++)
		assert_true(payload_read_il_offsets(out.data, len, &strings, natives, ils, &read) <
			    0);
	strtab_done(&strings);
	bytes_done(&out);
}

static void test_code_bytes(void **state)
{
	static const uint8_t bytes[] = { 0x55, 0x48, 0x89, 0xe5, 0xc3 };
	const struct payload_code_bytes written = { .mapping_id = 300,
		.begin = 0x7f0000001000,
		.method_id = 9,
		.offset = PAYLOAD_CODE_MAX,
		.bytes = bytes,
		.size = sizeof(bytes) };
	struct payload_code_bytes read;
	struct bytes out = { 0 };

	(void)state;
	payload_code_bytes(&out, &written);
	assert_int_equal(payload_read_code_bytes(out.data, out.len, &read), 0);
	assert_int_equal(read.mapping_id, 300);
	assert_int_equal(read.begin, written.begin);
	assert_int_equal(read.method_id, 9);
	assert_int_equal(read.offset, PAYLOAD_CODE_MAX);
	assert_int_equal(read.size, sizeof(bytes));
	assert_memory_equal(read.bytes, bytes, sizeof(bytes));
	for (size_t len = 0; len < out.len; len++)
		assert_true(payload_read_code_bytes(out.data, len, &read) < 0);
	bytes_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_symbol_range),
		cmocka_unit_test(test_thread_clock),
		cmocka_unit_test(test_looks),
		cmocka_unit_test(test_source_lines),
		cmocka_unit_test(test_il_offsets),
		cmocka_unit_test(test_code_bytes),
	};

	return cmocka_run_group_tests_name("spoor_payload", tests, NULL, NULL);
}
