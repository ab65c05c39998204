/* The ring of switches: each entry of the program is read once, in order, and each that did not fit is counted. */
#include "perf/switch_ring.h"

#include <stdlib.h>

#include "unit/test.h"

#define CPUS 3u

/* As the program of the kernel does it. */
static void put(struct switch_ring *ring, uint64_t time_ns)
{
	struct switch_ring_head *head = ring->head;

	if (!head->open)
		return;
	if (head->written - head->taken > ring->mask) {
		head->lost++;
		return;
	}
	struct switch_entry *entries = (struct switch_entry *)(uintptr_t)ring->entries;

	entries[head->written & ring->mask] = (struct switch_entry){ .time_ns = time_ns };
	head->written++;
}

static void test_order(void **state)
{
	void *memory = calloc(1, (size_t)switch_ring_bytes(CPUS));
	struct switch_entry entry;

	(void)state;
	assert_non_null(memory);
	for (uint32_t cpu = 0; cpu < CPUS; cpu++) {
		struct switch_ring ring = switch_ring_at(memory, CPUS, cpu);
		uint32_t room = ring.mask + 1;
		uint64_t next = 0;
		uint64_t from = 0;
		put(&ring, 99);
		switch_ring_begin(&ring);
		assert_false(switch_ring_next(&ring, &entry));
		switch_ring_open(&ring, true);
		/* more than it holds, in several passes */
		for (unsigned pass = 0; pass < 5; pass++) {
			for (uint32_t i = 0; i < room / 2 + 7; i++)
				put(&ring, next++);
			switch_ring_begin(&ring);
			put(&ring, next++); /* after the begin: it waits for the next pass */
			for (uint64_t to = next - 1; from < to; from++) {
				assert_true(switch_ring_next(&ring, &entry));
				assert_int_equal(entry.time_ns, from);
			}
			assert_false(switch_ring_next(&ring, &entry));
		}
		assert_int_equal(switch_ring_lost(&ring), 0);
		for (uint32_t i = 0; i < room + 10; i++)
			put(&ring, next++);
		/* one of the last pass is in it */
		assert_int_equal(switch_ring_lost(&ring), 11);
		assert_int_equal(switch_ring_lost(&ring), 0);
		switch_ring_begin(&ring);
		for (uint32_t i = 0; i < room; i++)
			assert_true(switch_ring_next(&ring, &entry));
		assert_false(switch_ring_next(&ring, &entry));
		switch_ring_open(&ring, false);
		put(&ring, 99);
		switch_ring_begin(&ring);
		assert_false(switch_ring_next(&ring, &entry));
	}
	free(memory);
}

static void test_sizes(void **state)
{
	(void)state;
	assert_int_equal(switch_ring_entries(0), 0);
	assert_int_equal(switch_ring_entries(2), SWITCH_RING_ENTRIES);
	for (uint32_t cpus = 1; cpus <= 4096; cpus *= 2)
		assert_true(switch_ring_bytes(cpus) <= SWITCH_RING_BYTES_MAX);
	assert_true(switch_ring_entries(512) < SWITCH_RING_ENTRIES);
	assert_int_equal(switch_ring_entries(8192), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_sizes),
	};

	return cmocka_run_group_tests_name("switch_ring", tests, NULL, NULL);
}
