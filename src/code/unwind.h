/*
 * Walks the stack of a thread from its registers and a copy of the end of its stack.
 *
 * One walk for all code: by the unwind table where the image has one for the address, else by the
 * frame pointer. For JIT and ReadyToRun code, which has no table here, the caller may give rules: most
 * of it has a frame pointer, but small optimized methods do not. The result for an address is kept as a
 * row of 32 bytes in a cache of fixed size, so that a frame costs some ten loads,
 * and less if the last walk of the same stack had it too (walk_memo.h).
 *
 *   unwind_init(&unwind, arch, locate, context);
 *   end = unwind_walk(&unwind, space, &registers, &stack, frames, room, &count);
 *   unwind_done(&unwind);
 *
 * `space`, not 0, is the caller's number of an address space and its mappings: it takes another one, or
 * calls unwind_forget_range(), when code at known addresses was replaced. Not thread-safe.
 */
#ifndef SPOOR_CODE_UNWIND_H
#define SPOOR_CODE_UNWIND_H

#include <stdbool.h>
#include <stdint.h>

#include "code/unwind_state.h"

struct arch_unwind;
struct unwind_table;
struct unwind_trace;

enum unwind_end {
#define UNWIND_END(name, text, word) UNWIND_##name,
#include "code/unwind_ends.def"
#undef UNWIND_END
	UNWIND_END_COUNT
};

/* What holds an address. */
struct unwind_place {
	const struct unwind_table *table; /* NULL: none; borrowed for the walk */
	uint64_t vaddr;                   /* the address in the file's own numbering */
	/* where no table has the address; NULL: code with frame pointers. Borrowed until the next call */
	const struct unwind_rules *rules;
	bool stub;      /* a leaf there may have no frame */
	bool transient; /* the table may still come, or the code may change: nothing is kept */
};

/*
 * False: the address is in no executable mapping. `exact`: it is that of an instruction to come, else it is
 * within a call.
 */
typedef bool unwind_locate_fn(void *context, uint64_t address, bool exact,
	struct unwind_place *ret_place);

struct unwind_cache_entry;
struct walk_memo;

struct unwind {
	const struct arch_unwind *arch;
	unwind_locate_fn *locate;
	void *context;
	struct unwind_cache_entry *cache;
	struct walk_memo *memos;
	uint64_t rows_made; /* addresses that were not in the cache */
};

int unwind_init(struct unwind *unwind, const struct arch_unwind *arch, unwind_locate_fn *locate,
	void *context);
void unwind_done(struct unwind *unwind);

/* Drops all rows. */
void unwind_forget(struct unwind *unwind);

/* Drops the rows of the addresses from `begin` to `end` of a space. */
void unwind_forget_range(struct unwind *unwind, uint16_t space, uint64_t begin, uint64_t end);

/*
 * Frames leaf first: the address of the thread, then return addresses, at most `room`.
 * The stack pointer in `registers` becomes that of the last frame; the others change.
 */
enum unwind_end unwind_walk(struct unwind *unwind, uint16_t space,
	struct unwind_registers *registers, const struct unwind_stack *stack, uint64_t *frames,
	uint32_t room, uint32_t *ret_count);

/*
 * The same, and what the chain depends on. It is more than *ret_trace has if that has failed, or the walk does not
 * end with UNWIND_START. Slower.
 */
enum unwind_end unwind_walk_traced(struct unwind *unwind, uint16_t space,
	struct unwind_registers *registers, const struct unwind_stack *stack, uint64_t *frames,
	uint32_t room, uint32_t *ret_count, struct unwind_trace *ret_trace);

/* Whether the function that holds the return address is the first one of its thread. */
bool unwind_is_start(struct unwind *unwind, uint16_t space, uint64_t return_address);

#endif
