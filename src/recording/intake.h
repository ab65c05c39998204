/*
 * Moves records from the perf rings into the reorder window: they are decoded in place, their call
 * chains are interned, and the space of a ring is released when all its records have been read.
 */
#ifndef SPOOR_RECORDING_INTAKE_H
#define SPOOR_RECORDING_INTAKE_H

struct live;

/* Reads all records that are in the rings now. */
void intake_drain(struct live *live);

#endif
