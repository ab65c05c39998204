/*
 * Chooses how much of the user stack to copy with each sample (record --call-graph auto).
 *
 * Where nearly all code keeps frame pointers, a few hundred bytes suffice: they hold the caller of a leaf
 * that has none, and the kernel's chain continues from there. So some of the large copies are walked a
 * second time as if they were small. When that finds the same frames nearly always, small ones are taken
 * from then on, until too many stacks end early. After each return to large copies, the next attempt waits
 * longer.
 */
#ifndef SPOOR_RECORDING_COPY_SIZE_H
#define SPOOR_RECORDING_COPY_SIZE_H

#include <stdbool.h>
#include <stdint.h>

#define COPY_SIZE_SMALL 512u

/* All zero is the beginning: large copies. */
struct copy_size {
	bool small;
	uint32_t seen;    /* samples of the current round */
	uint32_t judged;  /* of them, walked twice, or with small copies: all */
	uint32_t missing; /* of those, with frames that a small copy does not give */
	uint32_t wait;    /* rounds of large copies until the next attempt */
	uint32_t next_wait;
};

/* Whether to walk this sample, which has a large copy, as if it were small. */
bool copy_size_judges(struct copy_size *size);

/*
 * Notes a sample: `missing` if a small copy does not give all of its frames. True: size->small has changed.
 */
bool copy_size_note(struct copy_size *size, bool missing);

#endif
