/* See bpf_program.h. */
#include "machine/bpf_program.h"

#include "machine/bpf.h"

void bpf_add(struct bpf_program *program, unsigned code, unsigned to, unsigned from, int offset,
	int immediate)
{
	if (program->count == program->room) {
		program->overflow = true;
		return;
	}
	program->insns[program->count++] = bpf_insn(code, to, from, offset, immediate);
}

void bpf_move(struct bpf_program *program, unsigned to, unsigned from)
{
	bpf_add(program, BPF_ALU64 | BPF_MOV | BPF_X, to, from, 0, 0);
}

void bpf_set(struct bpf_program *program, unsigned to, int immediate)
{
	bpf_add(program, BPF_ALU64 | BPF_MOV | BPF_K, to, 0, 0, immediate);
}

void bpf_set_u64(struct bpf_program *program, unsigned to, uint64_t value)
{
	bpf_add(program, BPF_LD | BPF_DW | BPF_IMM, to, 0, 0, (int)(uint32_t)value);
	bpf_add(program, 0, 0, 0, 0, (int)(uint32_t)(value >> 32));
}

void bpf_compute(struct bpf_program *program, unsigned operation, unsigned to, int immediate)
{
	bpf_add(program, BPF_ALU64 | operation | BPF_K, to, 0, 0, immediate);
}

void bpf_combine(struct bpf_program *program, unsigned operation, unsigned to, unsigned from)
{
	bpf_add(program, BPF_ALU64 | operation | BPF_X, to, from, 0, 0);
}

void bpf_load_u64(struct bpf_program *program, unsigned to, unsigned from, int offset)
{
	bpf_add(program, BPF_LDX | BPF_MEM | BPF_DW, to, from, offset, 0);
}

void bpf_store_u64(struct bpf_program *program, unsigned to, int offset, unsigned from)
{
	bpf_add(program, BPF_STX | BPF_MEM | BPF_DW, to, from, offset, 0);
}

void bpf_load_value(struct bpf_program *program, unsigned to, int map_fd, size_t offset)
{
	bpf_add(program, BPF_LD | BPF_DW | BPF_IMM, to, BPF_PSEUDO_MAP_VALUE, 0, map_fd);
	bpf_add(program, 0, 0, 0, 0, (int)offset);
}

void bpf_load_map(struct bpf_program *program, unsigned to, int map_fd)
{
	bpf_add(program, BPF_LD | BPF_DW | BPF_IMM, to, BPF_PSEUDO_MAP_FD, 0, map_fd);
	bpf_add(program, 0, 0, 0, 0, 0);
}

void bpf_call_helper(struct bpf_program *program, int helper)
{
	bpf_add(program, BPF_JMP | BPF_CALL, 0, 0, 0, helper);
}

uint32_t bpf_jump(struct bpf_program *program, unsigned comparison, unsigned a, int immediate)
{
	uint32_t jump = program->count;

	bpf_add(program, BPF_JMP | comparison | BPF_K, a, 0, 0, immediate);
	return jump;
}

void bpf_land(struct bpf_program *program, uint32_t jump)
{
	if (!program->overflow)
		program->insns[jump].off = (int16_t)(program->count - jump - 1);
}

void bpf_repeat(struct bpf_program *program, uint32_t to)
{
	bpf_add(program, BPF_JMP | BPF_JA, 0, 0, (int)to - (int)program->count - 1, 0);
}

void bpf_exit(struct bpf_program *program, int result)
{
	bpf_set(program, BPF_REG_0, result);
	bpf_add(program, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
}
