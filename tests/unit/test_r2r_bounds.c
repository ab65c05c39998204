/* code/r2r_bounds.c: both layouts, encoded here bit by bit; special offsets, limits and truncation. */
#include "unit/test.h"

#include <errno.h>

#include "base/bytes.h"
#include "code/codemap.h"
#include "code/r2r_bounds.h"

struct nibble_writer {
	struct bytes out;
	unsigned count;
};

static void put_nibble(struct nibble_writer *w, unsigned nibble)
{
	if (w->count++ % 2)
		w->out.data[w->out.len - 1] |= (uint8_t)(nibble << 4);
	else
		bytes_u8(&w->out, (uint8_t)nibble);
}

static void put_number(struct nibble_writer *w, uint32_t value)
{
	unsigned digits = 1;

	while (digits < 11 && value >> (3 * digits))
		digits++;
	while (digits--)
		put_nibble(w, (value >> (3 * digits) & 7) | (digits ? 8 : 0));
}

static const struct il_offset wanted[] = { { 0, IL_PROLOG }, { 4, 0 }, { 4, 7 }, { 300, 0x1234 },
	{ 70000, IL_NO_MAPPING }, { 70001, 2 }, { 70010, IL_EPILOG } };
#define COUNT (sizeof(wanted) / sizeof(wanted[0]))

/* The head, and the bounds after it. */
static struct bytes with_head(const struct bytes *bounds)
{
	struct nibble_writer head = { 0 };

	put_number(&head, (uint32_t)bounds->len);
	put_number(&head, 3); /* bytes of variables */
	bytes_add(&head.out, bounds->data, bounds->len);
	bytes_add(&head.out, "abc", 3);
	return head.out;
}

static struct bytes make_plain(void)
{
	struct nibble_writer w = { 0 };
	uint32_t last = 0;

	put_number(&w, COUNT);
	for (size_t i = 0; i < COUNT; i++) {
		put_number(&w, wanted[i].native - last);
		put_number(&w, wanted[i].il + 3);
		put_number(&w, i % 8);
		last = wanted[i].native;
	}
	struct bytes all = with_head(&w.out);
	bytes_done(&w.out);
	return all;
}

static struct bytes make_packed(unsigned flag_bits)
{
	struct nibble_writer w = { 0 };
	uint64_t bits = 0;
	unsigned have = 0;
	uint32_t last = 0;

	put_number(&w, COUNT);
	put_number(&w, 17 - 1);
	put_number(&w, 13 - 1);
	for (size_t i = 0; i < COUNT; i++) {
		uint64_t entry = i % (1u << flag_bits) |
				 (uint64_t)(wanted[i].native - last) << flag_bits |
				 (uint64_t)(wanted[i].il + 3) << (flag_bits + 17);
		bits |= entry << have;
		have += flag_bits + 17 + 13;
		for (; have >= 8; have -= 8, bits >>= 8)
			bytes_u8(&w.out, (uint8_t)bits);
		last = wanted[i].native;
	}
	if (have)
		bytes_u8(&w.out, (uint8_t)bits);
	struct bytes all = with_head(&w.out);
	bytes_done(&w.out);
	return all;
}

static void check(struct bytes *data, unsigned major)
{
	struct il_offset offsets[COUNT + 1];

	assert_int_equal(r2r_bounds_read(data->data, data->len, major, offsets, COUNT + 1), COUNT);
	assert_memory_equal(offsets, wanted, sizeof(wanted));
	assert_int_equal(r2r_bounds_read(data->data, data->len, major, offsets, 2), 2);
	for (size_t len = 0; len + 3 < data->len; len++)
		assert_true(r2r_bounds_read(data->data, len, major, offsets, COUNT + 1) < 0);
	bytes_done(data);
}

static void test_plain(void **state)
{
	struct bytes data = make_plain();

	(void)state;
	check(&data, 6);
	data = make_plain();
	check(&data, 15);
}

static void test_packed(void **state)
{
	struct bytes data = make_packed(2);

	(void)state;
	check(&data, 16);
	data = make_packed(3);
	check(&data, 17);
}

static void test_refused(void **state)
{
	static const uint8_t none[] = { 0 };
	static const uint8_t large[] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
	struct bytes data = make_plain();
	struct il_offset offsets[4];

	(void)state;
	assert_int_equal(r2r_bounds_read(data.data, data.len, 18, offsets, 4), -ENOTSUP);
	assert_int_equal(r2r_bounds_read(none, 1, 9, offsets, 4), 0);
	assert_int_equal(r2r_bounds_read(large, sizeof(large), 9, offsets, 4), -EBADMSG);
	assert_int_equal(r2r_bounds_read(NULL, 0, 9, offsets, 4), -EBADMSG);
	bytes_done(&data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain),
		cmocka_unit_test(test_packed),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests_name("r2r_bounds", tests, NULL, NULL);
}
