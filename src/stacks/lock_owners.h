/*
 * Owners of monitors, read from the memory of a .NET process: for threads whose wait began before
 * the session, so that the runtime announced no owner.
 *
 * The object is found on the stack of the waiting thread. Its header has the number of its sync
 * block, the sync block has the owner. Nothing is believed that does not agree with all the rest:
 * the table's entry names the object, the block names its own number, the monitor is held and has
 * waiters, and the owner is a thread of the process. Supported: .NET 9 and 10 on 64-bit machines;
 * elsewhere owners stay unknown. System.Threading.Lock is no monitor.
 */
#ifndef SPOOR_STACKS_LOCK_OWNERS_H
#define SPOOR_STACKS_LOCK_OWNERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct thread_dump;

/* After thread_waits_find(). Without the right to read the process's memory nothing changes. */
void lock_owners_find(struct thread_dump *dump);

/* The parsers, separate from the memory. They accept any bytes. */

/*
 * The runtime's description of itself, JSON: the slot of the pointer to the table of sync blocks.
 * False: it is missing, or sync blocks have another layout than is read here.
 */
bool lock_owners_parse_contract(const char *json, uint32_t *ret_slot);

#define SYNC_BLOCK_BYTES 32u /* those of a sync block that are read */

/* The owner's thread id of a sync block; false: not of this number, or no monitor with waiters. */
bool lock_owners_parse_block(const uint8_t block[SYNC_BLOCK_BYTES], uint32_t number,
	uint64_t *ret_tid);

#endif
