/*
 * One ring of the kernel's, mapped: records come out in place, space goes back as they are consumed.
 *
 *   ring_begin(ring);                                     takes note of how far the kernel has got
 *   while (ring_next(ring, &record, &size)) ...           a whole record each, borrowed until the next call
 *   ring_end(ring);                                       gives all of it back
 *
 * What comes in while draining waits for the next ring_begin(), so a drain has an end however busy the machine is. Space is given back every
 * eighth of the ring on the way, so the kernel never waits for a whole pass. Nothing is parsed but the 8-byte header that all records have.
 */
#ifndef SPOOR_PERF_RING_H
#define SPOOR_PERF_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct perf_event_mmap_page;
struct twins;

#define RING_RECORD_MAX 65536u

struct ring {
	struct perf_event_mmap_page *control;
	const uint8_t *data;
	uint64_t size_bytes;     /* of data, a power of two */
	uint64_t head;           /* the kernel's, as of ring_begin() */
	uint64_t tail;           /* behind the record handed out last */
	uint64_t released;       /* given back so far */
	uint64_t torn_bytes;     /* thrown away behind a record of impossible size */
	uint8_t *scratch;        /* RING_RECORD_MAX bytes, for records that wrap; shared by the rings of a recorder */
	struct twins *twins;     /* samples that may be doubles, left out; NULL: none. Borrowed */
	int fd;                  /* to poll, -1 when it hung up; borrowed from the recorder */
	int32_t cpu;
};

/* Bytes that wait. */
uint64_t ring_begin(struct ring *ring);

/* False at the end of what ring_begin() saw. `record` is 8-byte aligned. */
bool ring_next(struct ring *ring, const uint8_t **ret_record, uint32_t *ret_size);

void ring_end(struct ring *ring);

/* Maps the ring of an event. -EPERM: over the limit on locked memory. */
int ring_map(struct ring *ring, int fd, int32_t cpu, size_t size_bytes);
void ring_unmap(struct ring *ring);

#endif
