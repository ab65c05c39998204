/* spoor_payload.c: what goes into a payload and comes out of it again. */
#include "unit/test.h"

#include "base/bytes.h"
#include "base/strtab.h"
#include "model/spoor_payload.h"

/* The end of a symbol is exclusive here and inclusive in the file, where it must lie behind the begin. */
static void test_symbol_range(void **state)
{
	static const struct {
		uint64_t begin, end, read_end;
	} cases[] = {
		{ 0x1000, 0x1040, 0x1040 },
		{ 0x1000, 0x1002, 0x1002 },
		{ 0x1000, 0x1001, 0x1002 }, /* of one byte: TraceEvent would pass over it */
		{ 0x1000, 0x1000, 0x1002 },
		{ 0x1000, 0x0fff, 0x1002 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct bytes out = { 0 };
		struct strtab strings = { 0 };
		struct payload_symbol read;
		const struct payload_symbol symbol = {
			.id = 1, .mapping_id = 2, .begin = cases[i].begin, .end = cases[i].end, .name = "f", .name_len = 1
		};

		(void)payload_symbol(&out, &symbol);
		assert_int_equal(payload_read_symbol(out.data, out.len, &strings, &read), 0);
		assert_int_equal(read.begin, cases[i].begin);
		assert_int_equal(read.end, cases[i].read_end);
		assert_string_equal(read.name, "f");
		strtab_done(&strings);
		bytes_done(&out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_symbol_range),
	};

	return cmocka_run_group_tests_name("spoor_payload", tests, NULL, NULL);
}
