/*
 * The head is loaded with acquire before the records are read, the tail is stored with release
 * after them: the pairing that the kernel documents. Positions only grow; their low bits are the
 * place in the ring. Invariant: released <= tail <= head, head - released <= size.
 */
#include "perf/ring.h"

#include <assert.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "perf/inherited_events.h"

#define RELEASE_EVERY 8u /* fraction of a ring */

static_assert(RING_RECORD_MAX > UINT16_MAX, "a record of any size fits the scratch buffer");

uint64_t ring_begin(struct ring *ring)
{
	ring->head = __atomic_load_n(&ring->control->data_head, __ATOMIC_ACQUIRE);
	return ring->head - ring->tail;
}

static void release(struct ring *ring)
{
	if (ring->released == ring->tail)
		return;
	ring->released = ring->tail;
	__atomic_store_n(&ring->control->data_tail, ring->tail, __ATOMIC_RELEASE);
}

/* Drops the rest of the pass: without a valid size the next record cannot be found. */
static bool tear(struct ring *ring)
{
	ring->torn_bytes += ring->head - ring->tail;
	ring->tail = ring->head;
	return false;
}

/* Returns the next record of any event. */
static bool next_record(struct ring *ring, const uint8_t **ret_record, uint32_t *ret_size)
{
	uint64_t left = ring->head - ring->tail;

	/* The caller has finished the previous record: its space may be released. */
	if (ring->tail - ring->released >= ring->size_bytes / RELEASE_EVERY)
		release(ring);
	if (!left)
		return false;

	uint64_t at = ring->tail & (ring->size_bytes - 1);
	struct perf_event_header header;
	/* Records are multiples of 8 bytes, so a header that seems to wrap is corrupt. */
	if (left > ring->size_bytes || (at & 7) || left < sizeof(header))
		return tear(ring);
	memcpy(&header, ring->data + at, sizeof(header));
	uint32_t size = header.size;
	if (size < sizeof(header) || size > left)
		return tear(ring);

	if (at + size <= ring->size_bytes) {
		*ret_record = ring->data + at;
	} else {
		size_t first = (size_t)(ring->size_bytes - at);
		memcpy(ring->scratch, ring->data + at, first);
		memcpy(ring->scratch + first, ring->data, size - first);
		*ret_record = ring->scratch;
	}
	*ret_size = size;
	ring->tail += size;
	return true;
}

bool ring_next(struct ring *ring, const uint8_t **ret_record, uint32_t *ret_size)
{
	while (next_record(ring, ret_record, ret_size))
		if (!ring->inherited_events || !inherited_events_drop(ring->inherited_events,
						       ring->cpu, *ret_record, *ret_size))
			return true;
	return false;
}

void ring_end(struct ring *ring)
{
	release(ring);
}

int ring_map(struct ring *ring, int fd, int32_t cpu, size_t size_bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *area = mmap(NULL, page + size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (area == MAP_FAILED)
		return -errno;
	ring->control = area;
	ring->data = (const uint8_t *)area + page;
	ring->size_bytes = size_bytes;
	ring->head = ring->tail = ring->released = 0;
	ring->fd = fd;
	ring->cpu = cpu;
	return 0;
}

void ring_unmap(struct ring *ring)
{
	if (!ring->control)
		return;
	size_t page = (size_t)(ring->data - (const uint8_t *)ring->control);
	(void)munmap(ring->control, page + (size_t)ring->size_bytes); /* mapped by this module */
	ring->control = NULL;
	ring->data = NULL;
}
