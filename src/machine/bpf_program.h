/*
 * Writes a BPF program, one instruction after the other.
 *
 *   struct bpf_insn insns[ROOM];
 *   struct bpf_program program = { .insns = insns, .room = ROOM };
 *   bpf_move(&program, BPF_REG_6, BPF_REG_1); ...
 *   uint32_t jump = bpf_jump(&program, BPF_JEQ, BPF_REG_0, 0); ... bpf_land(&program, jump);
 *   if (!program.overflow) bpf_load(type, flags, program.insns, program.count);
 *
 * Registers are BPF_REG_*, operations and comparisons BPF_ADD, BPF_JEQ and so on.
 */
#ifndef SPOOR_MACHINE_BPF_PROGRAM_H
#define SPOOR_MACHINE_BPF_PROGRAM_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bpf_program {
	struct bpf_insn *insns; /* room for `room`; the caller's */
	uint32_t room;
	uint32_t count;
	bool overflow; /* there was no room for an instruction: the program is unusable */
};

/* Any instruction. */
void bpf_add(struct bpf_program *program, unsigned code, unsigned to, unsigned from, int offset,
	int immediate);

/* Moves between registers; a register becomes a number, which is sign-extended. */
void bpf_move(struct bpf_program *program, unsigned to, unsigned from);
void bpf_set(struct bpf_program *program, unsigned to, int immediate);
void bpf_set_u64(struct bpf_program *program, unsigned to, uint64_t value);

/* to = to OPERATION number, or register. */
void bpf_compute(struct bpf_program *program, unsigned operation, unsigned to, int immediate);
void bpf_combine(struct bpf_program *program, unsigned operation, unsigned to, unsigned from);

/* Eight bytes from or to memory at a register + `offset`. */
void bpf_load_u64(struct bpf_program *program, unsigned to, unsigned from, int offset);
void bpf_store_u64(struct bpf_program *program, unsigned to, int offset, unsigned from);

/* The address of `offset` in the value of an array map; and the map itself, for a helper. */
void bpf_load_value(struct bpf_program *program, unsigned to, int map_fd, size_t offset);
void bpf_load_map(struct bpf_program *program, unsigned to, int map_fd);

void bpf_call_helper(struct bpf_program *program, int helper);

/* Jumps if the register compares with the number; BPF_JA: always. The index is for bpf_land(). */
uint32_t bpf_jump(struct bpf_program *program, unsigned comparison, unsigned a, int immediate);

/* The jump leads to the next instruction. */
void bpf_land(struct bpf_program *program, uint32_t jump);

/* Jumps back to the instruction that was number `to`, a value of program->count. */
void bpf_repeat(struct bpf_program *program, uint32_t to);

/* Returns `result`. */
void bpf_exit(struct bpf_program *program, int result);

#endif
