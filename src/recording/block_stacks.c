/* See block_stacks.h. */
#include "recording/block_stacks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "code/arch.h"
#include "code/unwind_state.h"
#include "code/unwind_trace.h"
#include "perf/known_block.h"
#include "recording/kernel_returns.h"

#define PASSES   2u    /* after two, all records that are older than the first one have been read */
#define SEEN_MAX 4096u /* a power of two */

enum row_state {
	ROW_FREE,
	ROW_NEW,    /* written, not matched */
	ROW_ACTIVE, /* matched */
	ROW_OLD,    /* not matched any more; blocks in the rings may refer to it */
};

/* What this process knows of a row beside its content. */
struct block_stack_row {
	uint8_t state; /* enum row_state */
	uint32_t matches;
	uint32_t frame_count;
	uint32_t stack_index; /* see struct block_found */
	uint64_t pass;        /* of the last change of `state` */
	uint64_t owner;       /* see struct known_block */
	uint64_t learned_ns;
	uint64_t *frames;
};

struct block_stacks {
	struct known_block *known;
	const struct arch_unwind *arch;
	struct block_stack_row rows[KNOWN_BLOCKS];
	uint32_t pids[KNOWN_BLOCKS]; /* of the rows that are NEW or ACTIVE; 0: another one */
	uint32_t seen[SEEN_MAX];     /* hashes of a thread and a chain */
	uint32_t refused[SEEN_MAX];  /* likewise */
	VEC(uint32_t) waiting;       /* rows that are NEW or OLD */
	uint64_t pass;
	uint64_t found;
	uint64_t frames_bytes;
	uint32_t active_count;
};

_Static_assert(UNWIND_TRACE_WORDS <= KNOWN_BLOCK_WORDS, "a trace fits a row");

int block_stacks_new(struct known_block *rows, const struct arch_unwind *arch,
	struct block_stacks **ret_stacks)
{
	struct block_stacks *stacks = calloc(1, sizeof(*stacks));

	if (!stacks)
		return -ENOMEM;
	stacks->known = rows;
	stacks->arch = arch;
	*ret_stacks = stacks;
	return 0;
}

/* An odd version while the row is written. */
static void change_version(struct known_block *known)
{
	(void)__atomic_fetch_add(&known->version, 1, __ATOMIC_SEQ_CST);
}

static void set_owner(struct known_block *known, uint64_t owner)
{
	change_version(known);
	__atomic_store_n(&known->owner, owner, __ATOMIC_RELAXED);
	change_version(known);
}

static void make_free(struct block_stacks *stacks, struct block_stack_row *row)
{
	stacks->frames_bytes -= row->frame_count * sizeof(*row->frames);
	free(row->frames);
	*row = (struct block_stack_row){ .state = ROW_FREE };
}

void block_stacks_free(struct block_stacks *stacks)
{
	if (!stacks)
		return;
	for (uint32_t i = 0; i < KNOWN_BLOCKS; i++)
		make_free(stacks, &stacks->rows[i]);
	vec_done(&stacks->waiting);
	free(stacks);
}

static uint64_t hash_of(uint32_t tid, uint64_t chain_hash)
{
	return (chain_hash * KNOWN_BLOCK_HASH ^ tid) * KNOWN_BLOCK_HASH;
}

bool block_stacks_wants(struct block_stacks *stacks, uint32_t tid, uint64_t chain_hash)
{
	uint64_t hash = hash_of(tid, chain_hash);
	uint32_t *seen = &stacks->seen[hash & (SEEN_MAX - 1)];
	uint32_t mark = (uint32_t)(hash >> 32);

	if (*seen == mark)
		return stacks->refused[hash & (SEEN_MAX - 1)] != mark;
	*seen = mark;
	return false;
}

void block_stacks_refuse(struct block_stacks *stacks, uint32_t tid, uint64_t chain_hash)
{
	uint64_t hash = hash_of(tid, chain_hash);

	stacks->refused[hash & (SEEN_MAX - 1)] = (uint32_t)(hash >> 32);
}

/* The row is not matched any more. */
static void retire(struct block_stacks *stacks, uint32_t number)
{
	struct block_stack_row *row = &stacks->rows[number];

	if (row->state == ROW_ACTIVE) {
		set_owner(&stacks->known[number], 0);
		stacks->active_count--;
		/* without memory its frames stay until the end */
		(void)vec_add(&stacks->waiting, number);
	}
	stacks->pids[number] = 0;
	/* One that was never matched is in `waiting` already, and in no ring. */
	row->state = ROW_OLD;
	row->pass = stacks->pass;
}

/*
 * A free row of the set, whose number is in *ret_number. If all are taken, the one recognized least often makes room
 * for the next attempt.
 */
static bool find_free(struct block_stacks *stacks, uint32_t first, uint32_t *ret_number)
{
	uint32_t fewest = first;
	bool waits = false;

	for (uint32_t i = first; i < first + KNOWN_BLOCK_WAYS; i++) {
		struct block_stack_row *row = &stacks->rows[i];
		if (row->state == ROW_FREE) {
			*ret_number = i;
			return true;
		}
		waits |= row->state != ROW_ACTIVE;
		if (row->matches < stacks->rows[fewest].matches)
			fewest = i;
	}
	for (uint32_t i = first; !waits && i < first + KNOWN_BLOCK_WAYS; i++)
		stacks->rows[i].matches /= 2;
	if (!waits)
		retire(stacks, fewest);
	return false;
}

/* Whether the chain depends on the register: always on the pc and the stack pointer. */
static bool is_used(const struct block_stacks *stacks, const struct unwind_trace *trace, uint32_t i)
{
	return i < 2 || trace->registers >> stacks->arch->block_registers[i] & 1;
}

/* Registers that the program does not compare cannot be part of a row. */
static bool compares_all(const struct arch_unwind *arch, uint32_t registers)
{
	for (uint32_t i = 0; i < arch->block_count; i++)
		if (arch->block_registers[i] < UNWIND_REGISTERS)
			registers &= ~(1u << arch->block_registers[i]);
	return !registers;
}

static bool fits(const struct block_stacks *stacks, const struct block_stack *block)
{
	const struct unwind_trace *trace = block->trace;

	if (trace->failed || !block->frame_count || block->frame_count > BLOCK_STACKS_FRAMES_MAX ||
		stacks->arch->block_count > KNOWN_BLOCK_REGISTERS ||
		!compares_all(stacks->arch, trace->registers))
		return false;
	for (uint32_t i = 0; i < trace->word_count; i++)
		if (trace->offsets[i] % 8 || trace->offsets[i] > KNOWN_BLOCK_SPAN - 8)
			return false;
	return true;
}

static uint64_t register_of(const struct block_stacks *stacks, const struct block_stack *block,
	uint32_t i)
{
	uint8_t number = stacks->arch->block_registers[i];

	return i ? block->registers->values[number] : block->registers->pc;
}

static void write_row(struct block_stacks *stacks, struct known_block *known,
	const struct block_stack *block)
{
	const struct kernel_places *places = block->kernel_places;
	const struct unwind_trace *trace = block->trace;
	uint32_t end = 0;

	change_version(known);
	known->owner = 0;
	known->return_count = places ? places->count : 0;
	known->kernel_bytes = 0;
	for (uint32_t i = 0; i < known->return_count; i++) {
		known->return_offsets[i] = places->offsets[i];
		known->returns[i] = places->returns[i];
		known->kernel_bytes = (places->offsets[i] + UINT64_C(1)) * 8;
	}
	for (uint32_t i = 0; i < stacks->arch->block_count; i++) {
		known->registers[i] = register_of(stacks, block, i);
		known->masks[i] = is_used(stacks, trace, i) ? UINT64_MAX : 0;
	}
	for (uint32_t i = 0; i < trace->word_count; i++) {
		known->offsets[i] = (uint16_t)(trace->offsets[i] / 8);
		known->values[i] = trace->values[i];
		if (trace->offsets[i] + 8 > end)
			end = trace->offsets[i] + 8;
	}
	known->word_count = trace->word_count;
	known->span_bytes = end;
	change_version(known);
}

bool block_stacks_add(struct block_stacks *stacks, const struct block_stack *block)
{
	uint64_t owner = (uint64_t)block->pid << 32 | block->tid;
	uint32_t number;

	if (!fits(stacks, block) || !find_free(stacks,
					    known_block_set(owner, register_of(stacks, block, 0),
						    register_of(stacks, block, 1)),
					    &number))
		return false;
	size_t bytes = block->frame_count * sizeof(*block->frames);
	uint64_t *frames = malloc(bytes);
	if (!frames || !vec_add(&stacks->waiting, number)) {
		free(frames);
		return false;
	}
	memcpy(frames, block->frames, bytes);
	stacks->frames_bytes += bytes;
	stacks->rows[number] = (struct block_stack_row){ .state = ROW_NEW,
		.frame_count = block->frame_count,
		.pass = stacks->pass,
		.owner = owner,
		.learned_ns = block->time_ns,
		.frames = frames };
	stacks->pids[number] = block->pid;
	write_row(stacks, &stacks->known[number], block);
	return true;
}

bool block_stacks_find(struct block_stacks *stacks, uint32_t row, uint32_t version,
	struct block_found *ret_found)
{
	struct block_stack_row *found = row < KNOWN_BLOCKS ? &stacks->rows[row] : NULL;

	if (!found || (found->state != ROW_ACTIVE && found->state != ROW_OLD))
		return false;
	/* retire() has changed it once more, by 2 */
	uint32_t expected = stacks->known[row].version - (found->state == ROW_OLD ? 2 : 0);
	if (version != expected)
		return false;
	found->matches += found->matches < UINT32_MAX;
	stacks->found++;
	*ret_found = (struct block_found){ .frames = found->frames,
		.frame_count = found->frame_count,
		.stack_index = &found->stack_index,
		.learned_ns = found->learned_ns };
	return true;
}

void block_stacks_forget(struct block_stacks *stacks)
{
	for (uint32_t i = 0; i < KNOWN_BLOCKS; i++)
		stacks->rows[i].stack_index = 0;
}

void block_stacks_drop(struct block_stacks *stacks, uint32_t pid)
{
	for (uint32_t i = 0; i < KNOWN_BLOCKS; i++)
		if (stacks->pids[i] == pid)
			retire(stacks, i);
}

void block_stacks_drop_all(struct block_stacks *stacks)
{
	for (uint32_t i = 0; i < KNOWN_BLOCKS; i++)
		if (stacks->pids[i])
			retire(stacks, i);
}

void block_stacks_pass(struct block_stacks *stacks)
{
	uint32_t left = 0;

	stacks->pass++;
	vec_each(number, &stacks->waiting) {
		struct block_stack_row *row = &stacks->rows[*number];
		if (stacks->pass - row->pass < PASSES) {
			stacks->waiting.items[left++] = *number;
		} else if (row->state == ROW_NEW) {
			row->state = ROW_ACTIVE;
			stacks->active_count++;
			set_owner(&stacks->known[*number], row->owner);
		} else {
			make_free(stacks, row);
		}
	}
	stacks->waiting.count = left;
}

uint32_t block_stacks_row_count(const struct block_stacks *stacks)
{
	return stacks->active_count;
}

uint64_t block_stacks_found(const struct block_stacks *stacks)
{
	return stacks->found;
}

size_t block_stacks_size_bytes(const struct block_stacks *stacks)
{
	return stacks ? sizeof(*stacks) + stacks->frames_bytes +
				stacks->waiting.capacity * sizeof(uint32_t)
		      : 0;
}
