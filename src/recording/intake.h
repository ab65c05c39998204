/*
 * From the rings into the window: records are decoded in place, callchains interned, and ring space goes back at once.
 */
#ifndef SPOOR_RECORDING_INTAKE_H
#define SPOOR_RECORDING_INTAKE_H

struct live;

/* All that waits in the rings. */
void intake_drain(struct live *live);

#endif
