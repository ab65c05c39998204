/* See switch_ring.h. Positions only grow; their low bits are the place in the ring. */
#include "perf/switch_ring.h"

#define ENTRIES_MIN 256u

_Static_assert(sizeof(struct switch_entry) == 40, "as the program writes it");
_Static_assert(sizeof(struct switch_ring_head) == 128, "two cache lines");

uint64_t switch_ring_heads_bytes(uint32_t cpu_count)
{
	return (uint64_t)cpu_count * sizeof(struct switch_ring_head);
}

uint32_t switch_ring_entries(uint32_t cpu_count)
{
	uint32_t entries = SWITCH_RING_ENTRIES;

	while (entries >= ENTRIES_MIN &&
		switch_ring_heads_bytes(cpu_count) +
				(uint64_t)cpu_count * entries * sizeof(struct switch_entry) >
			SWITCH_RING_BYTES_MAX)
		entries /= 2;
	return cpu_count && entries >= ENTRIES_MIN ? entries : 0;
}

uint64_t switch_ring_bytes(uint32_t cpu_count)
{
	return switch_ring_heads_bytes(cpu_count) +
	       (uint64_t)cpu_count * switch_ring_entries(cpu_count) * sizeof(struct switch_entry);
}

struct switch_ring switch_ring_at(void *memory, uint32_t cpu_count, uint32_t cpu)
{
	uint32_t entries = switch_ring_entries(cpu_count);
	uint8_t *bytes = memory;

	return (struct switch_ring){ .head = (struct switch_ring_head *)memory + cpu,
		.entries =
			(const struct switch_entry *)(bytes + switch_ring_heads_bytes(cpu_count)) +
			(uint64_t)cpu * entries,
		.mask = entries - 1 };
}

void switch_ring_begin(struct switch_ring *ring)
{
	ring->end = __atomic_load_n(&ring->head->written, __ATOMIC_ACQUIRE);
	/* A program that overwrites entries before they were read would be a fault; the limit keeps the loop bounded then. */
	if (ring->end - ring->head->taken > ring->mask + UINT64_C(1))
		ring->head->taken = ring->end - ring->mask - 1;
}

bool switch_ring_next(struct switch_ring *ring, struct switch_entry *ret_entry)
{
	uint64_t taken = ring->head->taken;

	if (taken == ring->end)
		return false;
	*ret_entry = ring->entries[taken & ring->mask];
	__atomic_store_n(&ring->head->taken, taken + 1, __ATOMIC_RELEASE);
	return true;
}

uint64_t switch_ring_lost(struct switch_ring *ring)
{
	uint64_t lost = __atomic_load_n(&ring->head->lost, __ATOMIC_RELAXED);
	uint64_t more = lost - ring->lost;

	ring->lost = lost;
	return more;
}

void switch_ring_open(struct switch_ring *ring, bool open)
{
	__atomic_store_n(&ring->head->open, open, __ATOMIC_RELAXED);
}
