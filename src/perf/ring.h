/*
 * One mapped ring of the kernel: returns the records in place, and releases their space.
 *
 *   ring_begin(ring);                                     reads the position of the kernel
 *   while (ring_next(ring, &record, &size)) ...           a whole record each, borrowed until the next call
 *   ring_end(ring);                                       releases the space of the records
 *
 * Records that arrive during a pass wait for the next ring_begin(), so a pass ends however busy the
 * machine is. Space is released after each eighth of the ring. Only the record's header is parsed.
 */
#ifndef SPOOR_PERF_RING_H
#define SPOOR_PERF_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct perf_event_mmap_page;
struct inherited_events;

#define RING_RECORD_MAX 65536u

struct ring {
	struct perf_event_mmap_page *control;
	const uint8_t *data;
	uint64_t size_bytes; /* of data, a power of two */
	uint64_t head;       /* the kernel's, as of ring_begin() */
	uint64_t tail;       /* position after the last returned record */
	uint64_t released;   /* position up to which the space was released */
	uint64_t torn_bytes; /* dropped after a record of impossible size */
	/* RING_RECORD_MAX bytes, for records that wrap; shared by the rings of a recorder */
	uint8_t *scratch;
	/* detects duplicate samples, which are omitted; NULL: none. Borrowed */
	struct inherited_events *inherited_events;
	int fd; /* to poll; -1 after it hung up; borrowed from the recorder */
	int32_t cpu;
};

/* Begins a pass; returns the number of bytes in it. */
uint64_t ring_begin(struct ring *ring);

/* False at the end of the pass. `record` is 8-byte aligned. */
bool ring_next(struct ring *ring, const uint8_t **ret_record, uint32_t *ret_size);

void ring_end(struct ring *ring);

/* Maps the ring of an event. -EPERM: over the limit on locked memory. */
int ring_map(struct ring *ring, int fd, int32_t cpu, size_t size_bytes);
void ring_unmap(struct ring *ring);

#endif
