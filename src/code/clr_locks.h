/*
 * Which thread holds the monitor of an object, in the memory of a .NET process (9 and newer).
 *
 * Nothing is believed that does not agree with all the rest: the header of the object, the table of sync
 * blocks, the number that the block has of itself, the monitor, and the runtime's list of threads.
 */
#ifndef SPOOR_CODE_CLR_LOCKS_H
#define SPOOR_CODE_CLR_LOCKS_H

#include <stdbool.h>
#include <stdint.h>

struct clr_layout;
struct clr_memory;

#define SYNC_BLOCK_BYTES 32u /* those of a sync block that are read */

/*
 * The thread, by the system's id, that holds the object's monitor while others wait for it. False: no
 * object with such a monitor is at this address, or its owner is not certain.
 */
bool clr_locks_owner(const struct clr_layout *layout, struct clr_memory *memory, uint64_t object,
	uint64_t *ret_tid);

/*
 * The parser, separate from the memory; it accepts any bytes. *ret_holder is the owner as the runtime
 * has it. False: the block is not of this number, or its monitor has no owner or no waiters.
 */
bool clr_locks_parse_block(const uint8_t block[SYNC_BLOCK_BYTES], uint32_t number,
	uint64_t *ret_tid, uint64_t *ret_holder);

#endif
