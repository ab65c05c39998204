/*
 * See clr_locks.h. The header of an object is the u32 before it: bit 27 set and bit 26 clear: the lower 26 bits
 * are the number of its sync block. An entry of the table: u64 sync block, u64 object.
 *
 * Sync block, the part that is read:
 *
 *   offset  size  field
 *   0       4     state of the monitor: bit 0 a thread holds it, from bit 6 on the number of waiters
 *   4       4     recursion
 *   8       8     holder, as the runtime has it: .NET 10 the u32 id of a thread, 9 its address
 *   16      8     thread id of the holder, as the system has it
 *   28      4     number of the block; the highest bit is not part of it
 */
#include "code/clr_locks.h"

#include "base/cursor.h"
#include "code/clr_layout.h"
#include "code/clr_memory.h"

#define HEADER_IS_INDEX 0x08000000u
#define HEADER_IS_HASH  0x04000000u
#define HEADER_INDEX    0x03ffffffu
#define ENTRY_BYTES     16u
#define MONITOR_IS_HELD 1u
#define MONITOR_WAITERS 6u
#define BLOCK_INTEROP   56u /* the field after the monitor: the layout is the known one */
#define THREADS_MAX     65536u
#define THREADS_SLACK   64u /* that start while the list is walked, which has no lock */

bool clr_locks_parse_block(const uint8_t block[SYNC_BLOCK_BYTES], uint32_t number,
	uint64_t *ret_tid, uint64_t *ret_holder)
{
	struct cursor c = cursor_of(block, SYNC_BLOCK_BYTES);
	uint32_t state = cursor_u32(&c);

	cursor_skip(&c, 4);
	*ret_holder = cursor_u64(&c);
	*ret_tid = cursor_u64(&c);
	cursor_skip(&c, 4);
	uint32_t own = cursor_u32(&c) & INT32_MAX;
	return own == number && (state & MONITOR_IS_HELD) && state >> MONITOR_WAITERS &&
	       *ret_holder && *ret_tid;
}

/* Whether the runtime has a thread that is known to it as `holder`, and to the system as `tid`. */
static bool has_thread(const struct clr_layout *l, struct clr_memory *memory, uint64_t holder,
	uint64_t tid)
{
	if (!l->thread_store || l->store_first == CLR_NO || l->store_count == CLR_NO ||
		l->thread_next == CLR_NO || l->thread_id == CLR_NO || l->thread_os_id == CLR_NO)
		return false;
	uint64_t most = clr_memory_u32(memory, l->thread_store + l->store_count) + THREADS_SLACK;
	uint64_t link = clr_memory_u64(memory, l->thread_store + l->store_first);
	for (uint64_t i = 0; link && i < most && i < THREADS_MAX && !memory->failed; i++) {
		uint64_t thread = link - l->thread_next;
		uint64_t own = l->version == CLR_VERSION_10
				       ? clr_memory_u32(memory, thread + l->thread_id)
				       : thread;
		if (own == (l->version == CLR_VERSION_10 ? (uint32_t)holder : holder))
			return clr_memory_u64(memory, thread + l->thread_os_id) == tid &&
			       !memory->failed;
		link = clr_memory_u64(memory, link);
	}
	return false;
}

bool clr_locks_owner(const struct clr_layout *l, struct clr_memory *memory, uint64_t object,
	uint64_t *ret_tid)
{
	uint8_t block[SYNC_BLOCK_BYTES];
	uint64_t holder;

	memory->failed = false;
	if (!l->sync_table || l->block_interop != BLOCK_INTEROP || object % 8 ||
		object < CLR_ADDRESS_MIN)
		return false;
	uint32_t header = clr_memory_u32(memory, object - sizeof(header));
	if (memory->failed || !(header & HEADER_IS_INDEX) || header & HEADER_IS_HASH)
		return false;
	uint32_t number = header & HEADER_INDEX;
	uint64_t entry = l->sync_table + number * (uint64_t)ENTRY_BYTES;
	uint64_t at = clr_memory_pointer(memory, entry);
	return clr_memory_u64(memory, entry + 8) == object &&
	       clr_memory_bytes(memory, at, block, sizeof(block)) &&
	       clr_locks_parse_block(block, number, ret_tid, &holder) &&
	       has_thread(l, memory, holder, *ret_tid);
}
