/* spoor_payload.c: payloads read back as they were written. */
#include "unit/test.h"

#include "base/bytes.h"
#include "base/strtab.h"
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_symbol_range),
		cmocka_unit_test(test_thread_clock),
	};

	return cmocka_run_group_tests_name("spoor_payload", tests, NULL, NULL);
}
