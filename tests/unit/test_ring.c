/*
 * ring.c with a simulated kernel: records that wrap around, space that is returned, and impossible
 * sizes.
 */
#include "unit/test.h"

#include <linux/perf_event.h>

#include "perf/ring.h"

#define SIZE 4096u

struct fake {
	struct perf_event_mmap_page control;
	_Alignas(8) uint8_t data[SIZE];
	uint8_t scratch[RING_RECORD_MAX];
	struct ring ring;
};

static struct fake *fake_new(void)
{
	struct fake *fake = calloc(1, sizeof(*fake));

	assert_non_null(fake);
	fake->ring = (struct ring){ .control = &fake->control,
		.data = fake->data,
		.size_bytes = SIZE,
		.scratch = fake->scratch };
	return fake;
}

static bool put(struct fake *fake, uint16_t size, uint8_t fill)
{
	struct perf_event_header header = { .type = PERF_RECORD_SAMPLE, .size = size };
	uint8_t record[2048];

	if (fake->control.data_head + size - fake->control.data_tail > SIZE)
		return false;
	memset(record, fill, sizeof(record));
	memcpy(record, &header, sizeof(header));
	for (size_t i = 0; i < size; i++)
		fake->data[(fake->control.data_head + i) % SIZE] = record[i];
	fake->control.data_head += size;
	return true;
}

/* The sizes have no common factor with the ring, so a record wraps at every offset. */
static void test_all_records_are_read(void **state)
{
	struct fake *fake = fake_new();
	uint8_t fill = 0, seen = 0;
	const uint8_t *record;
	uint32_t size;

	(void)state;
	for (unsigned round = 0; round < 2000; round++) {
		while (put(fake, (uint16_t)(24 + 8 * (round % 47)), fill))
			fill++;
		assert_true(ring_begin(&fake->ring) > 0);
		while (ring_next(&fake->ring, &record, &size)) {
			assert_int_equal(size, 24 + 8 * (round % 47));
			for (uint32_t i = sizeof(struct perf_event_header); i < size; i++)
				assert_int_equal(record[i], seen);
			seen++;
			/*
			 * Space is returned to the kernel in steps of an eighth of the ring plus a
			 * record.
			 */
			assert_true(fake->control.data_tail <= fake->ring.tail - size);
			assert_true(fake->ring.tail - fake->control.data_tail <=
				    SIZE / 8 + 2 * size);
		}
		ring_end(&fake->ring);
		assert_int_equal(fake->control.data_tail, fake->control.data_head);
	}
	assert_int_equal(seen, fill);
	assert_int_equal(fake->ring.torn_bytes, 0);
	free(fake);
}

/* Records that arrive during a drain are read by the next one. */
static void test_drain_has_an_end(void **state)
{
	struct fake *fake = fake_new();
	const uint8_t *record;
	uint32_t size;
	unsigned count = 0;

	(void)state;
	put(fake, 64, 1);
	put(fake, 64, 2);
	ring_begin(&fake->ring);
	while (ring_next(&fake->ring, &record, &size)) {
		put(fake, 64, 3);
		count++;
	}
	ring_end(&fake->ring);
	assert_int_equal(count, 2);
	assert_int_equal(ring_begin(&fake->ring), 128);
	free(fake);
}

/*
 * No record can be found after a broken size: the bytes are dropped and counted, and the ring
 * continues with later records.
 */
static void tear_with(uint16_t size)
{
	struct fake *fake = fake_new();
	const uint8_t *record;
	uint32_t got;

	put(fake, 64, 1);
	put(fake, 64, 2);
	put(fake, 64, 3);
	memcpy(fake->data + 64 + 6, &size, sizeof(size));
	ring_begin(&fake->ring);
	assert_true(ring_next(&fake->ring, &record, &got));
	assert_false(ring_next(&fake->ring, &record, &got));
	assert_int_equal(fake->ring.torn_bytes, 128);
	ring_end(&fake->ring);
	put(fake, 64, 4);
	ring_begin(&fake->ring);
	assert_true(ring_next(&fake->ring, &record, &got));
	assert_int_equal(record[10], 4);
	free(fake);
}

static void test_torn(void **state)
{
	(void)state;
	tear_with(0);
	tear_with(7);
	tear_with(65528);
	tear_with(136);
}

/* A size that makes the next record unaligned, and an impossible head. */
static void test_nonsense_head(void **state)
{
	struct fake *fake = fake_new();
	const uint8_t *record;
	uint32_t size;
	uint16_t odd = 61;

	(void)state;
	put(fake, 64, 1);
	put(fake, 64, 2);
	memcpy(fake->data + 6, &odd, sizeof(odd));
	ring_begin(&fake->ring);
	assert_true(ring_next(&fake->ring, &record, &size));
	assert_false(ring_next(&fake->ring, &record, &size));
	assert_true(fake->ring.torn_bytes > 0);
	fake->control.data_head += 100 * SIZE;
	ring_begin(&fake->ring);
	assert_false(ring_next(&fake->ring, &record, &size));
	free(fake);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_records_are_read),
		cmocka_unit_test(test_drain_has_an_end),
		cmocka_unit_test(test_torn),
		cmocka_unit_test(test_nonsense_head),
	};

	return cmocka_run_group_tests_name("ring", tests, NULL, NULL);
}
