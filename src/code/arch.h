/* All properties of processor architectures that the program depends on. */
#ifndef SPOOR_CODE_ARCH_H
#define SPOOR_CODE_ARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A piece of code that the runtime writes without an event. It is recognized by its first bytes. */
struct arch_stub {
	const char *kind; /* "interface dispatch stub" */
	uint8_t bytes[20];
	uint8_t mask[20];    /* 0xff: the byte must be equal, 0: any */
	uint8_t len;         /* of bytes and mask */
	uint16_t size_bytes; /* of the whole stub */
};

#define ARCH_UNWIND_SLOTS_MAX 12u
#define ARCH_NO_REGISTER      0xffu

/* What an unwinder needs to know; registers have their DWARF numbers, below 32. */
struct arch_unwind {
	uint64_t kernel_mask; /* of PERF_SAMPLE_REGS_USER: all registers that follow */
	/* for each bit of the mask, in order; ARCH_NO_REGISTER: the pc, if it has no number */
	const uint8_t *kernel_order;
	uint8_t kernel_count;
	uint8_t stack_register;
	uint8_t frame_register;
	uint8_t pc_register; /* ARCH_NO_REGISTER: the pc has no number */
	/* what unwind tables save: first the return address, then what a function must preserve */
	uint8_t slots[ARCH_UNWIND_SLOTS_MAX];
	uint8_t slot_count;
	uint32_t preserved;  /* bit i: a function returns with register i as it was */
	bool managed_unwind; /* code/clr_unwind.h is for this processor */
	uint64_t code_mask;  /* of an address in code without a signature in its upper bits */
	/*
	 * the registers with which a function begins to unwind: the pc, the stack pointer, and what a function must
	 * preserve; and their offsets in the kernel's struct pt_regs
	 */
	const uint8_t *block_registers; /* the pc as in kernel_order */
	const uint16_t *block_offsets;
	uint8_t block_count;
};

#define ARCH_CALL_PARTS     2u
#define ARCH_CALL_ARGUMENTS 4u
#define ARCH_CALL_BYTES     88u

/*
 * The registers of a system call: parts of the kernel's struct pt_regs that are copied one after the other, together at
 * most ARCH_CALL_BYTES, and where in the copy they are, after the call too.
 */
struct arch_system_call {
	struct {
		uint16_t from; /* in struct pt_regs; a multiple of 8, as the sizes */
		uint16_t size; /* 0: no part */
	} parts[ARCH_CALL_PARTS];
	uint8_t arguments[ARCH_CALL_ARGUMENTS];
	uint8_t number; /* 32 bits */
	uint8_t mode;   /* 64 bits, of which those of mode_mask are mode_64 in 64-bit programs */
	uint16_t mode_mask;
	uint16_t mode_64;
};

struct arch {
	const char *name;              /* "x86_64", as uname(2) reports it */
	uint64_t kernel_begin;         /* addresses from here on belong to the kernel */
	const struct arch_stub *stubs; /* most specific first */
	size_t stub_count;
	uint8_t stub_search_back_bytes; /* how far before an address its stub may begin */
	/*
	 * Whether a call instruction ends before code[size]; NULL: unknown for this architecture.
	 * *ret_offset is the distance from there to its target; 0: the code does not contain it.
	 */
	bool (*ends_with_call)(const uint8_t *code, size_t size, int64_t *ret_offset);
	const struct arch_unwind *unwind;           /* NULL: unknown */
	const struct arch_system_call *system_call; /* NULL: unknown */
};

/* By uname's machine name; an unknown one has the usual 64-bit split and no stubs. */
const struct arch *arch_by_name(const char *machine);

/* The architecture that this program was built for. */
const struct arch *arch_here(void);

/* The stub that holds code[at] and begins at *ret_begin; NULL: none. `code` is memory around it. */
const struct arch_stub *arch_find_stub(const struct arch *arch, const uint8_t *code, size_t size,
	size_t at, size_t *ret_begin);

/* Calls the architecture's ends_with_call(); false if it has none. */
bool arch_ends_with_call(const struct arch *arch, const uint8_t *code, size_t size,
	int64_t *ret_offset);

#endif
