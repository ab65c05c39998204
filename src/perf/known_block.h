/*
 * A place where a thread blocked before, in memory that the recorder shares with the program of sched_probe.h.
 *
 * The call chain of a blocked thread is a function of its registers and of the words of its stack that the
 * unwinder read. A row has exactly these. When a thread leaves the CPU and all of them are as in a row, its chain is
 * the one that the recorder found then, and its stack need not be copied. Rows are found by the thread, the pc and
 * the stack pointer, in one of KNOWN_BLOCK_WAYS places.
 *
 * The same holds in the kernel: from the place where a thread leaves the CPU, which is always the same, each return
 * address says how large its caller's frame is. A row has the return addresses, by their distance from that place.
 *
 * The recorder writes a row while `version` is odd. The program reads `version` before and after its comparison, and
 * reports it with the number of the row.
 */
#ifndef SPOOR_PERF_KNOWN_BLOCK_H
#define SPOOR_PERF_KNOWN_BLOCK_H

#include <stdint.h>

#define KNOWN_BLOCKS          4096u
#define KNOWN_BLOCK_WAYS      4u
#define KNOWN_BLOCK_SET_BITS  10u
#define KNOWN_BLOCK_WORDS     64u
#define KNOWN_BLOCK_REGISTERS 14u
#define KNOWN_BLOCK_SPAN      4096u /* bytes of the stack in which the words are; a power of two */
#define KNOWN_BLOCK_RETURNS   32u   /* return addresses in the kernel */
#define KNOWN_BLOCK_KERNEL    2048u /* bytes of the kernel's stack in which they are; a power of two */

struct known_block {
	uint32_t version;
	uint32_t word_count; /* at most KNOWN_BLOCK_WORDS */
	uint64_t owner;      /* pid << 32 | tid; 0: no thread matches */
	uint64_t span_bytes; /* from the stack pointer to the end of the last word */
	uint64_t registers[KNOWN_BLOCK_REGISTERS]; /* first the pc, then the stack pointer */
	uint64_t masks[KNOWN_BLOCK_REGISTERS]; /* 0: the chain does not depend on the register */
	uint16_t offsets[KNOWN_BLOCK_WORDS];   /* of the words from the stack pointer, in words */
	uint64_t values[KNOWN_BLOCK_WORDS];
	/* the kernel's stack: bytes up to the end of the last return address; 0: chains have no frames of the kernel */
	uint64_t kernel_bytes;
	uint32_t return_count;                        /* at most KNOWN_BLOCK_RETURNS */
	uint16_t return_offsets[KNOWN_BLOCK_RETURNS]; /* in words */
	uint64_t returns[KNOWN_BLOCK_RETURNS];
};

_Static_assert(1u << KNOWN_BLOCK_SET_BITS == KNOWN_BLOCKS / KNOWN_BLOCK_WAYS, "one number of sets");

#define KNOWN_BLOCK_HASH UINT64_C(0x9e3779b97f4a7c15)

/* The first of the rows that may have this block. */
static inline uint32_t known_block_set(uint64_t owner, uint64_t pc, uint64_t stack_pointer)
{
	uint64_t hash = (((owner * KNOWN_BLOCK_HASH ^ pc) * KNOWN_BLOCK_HASH) ^ stack_pointer) *
			KNOWN_BLOCK_HASH;

	return (uint32_t)(hash >> (64 - KNOWN_BLOCK_SET_BITS)) * KNOWN_BLOCK_WAYS;
}

#endif
