/* See bpf_labels.h. */
#include "machine/bpf_labels.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "machine/bpf.h"

struct bpf_labels *bpf_labels_new(void)
{
	struct bpf_labels *labels = calloc(1, sizeof(*labels));

	if (labels) {
		labels->program.insns = labels->insns;
		labels->program.room = BPF_LABELS_INSNS_MAX;
	}
	return labels;
}

int bpf_labels_load(const struct bpf_labels *labels, enum bpf_prog_type type)
{
	assert(!labels->jump_count);
	return labels->program.overflow
		       ? -E2BIG
		       : bpf_load(type, 0, labels->program.insns, labels->program.count);
}

static void note_jump(struct bpf_labels *labels, unsigned label)
{
	assert(labels->jump_count < BPF_LABELS_JUMPS_MAX);
	labels->jumps[labels->jump_count].at = labels->program.count;
	labels->jumps[labels->jump_count++].label = label;
}

void bpf_jump_to(struct bpf_labels *labels, unsigned label)
{
	note_jump(labels, label);
	bpf_add(&labels->program, BPF_JMP | BPF_JA, 0, 0, 0, 0);
}

void bpf_jump_if(struct bpf_labels *labels, unsigned a, unsigned comparison, int b, unsigned label)
{
	note_jump(labels, label);
	bpf_add(&labels->program, BPF_JMP | comparison | BPF_K, a, 0, 0, b);
}

void bpf_jump_if_register(struct bpf_labels *labels, unsigned a, unsigned comparison, unsigned b,
	unsigned label)
{
	note_jump(labels, label);
	bpf_add(&labels->program, BPF_JMP | comparison | BPF_X, a, b, 0, 0);
}

void bpf_label(struct bpf_labels *labels, unsigned label)
{
	uint32_t left = 0;

	for (uint32_t i = 0; i < labels->jump_count; i++)
		if (labels->jumps[i].label == label)
			bpf_land(&labels->program, labels->jumps[i].at);
		else
			labels->jumps[left++] = labels->jumps[i];
	labels->jump_count = left;
}

void bpf_jump_if_bit(struct bpf_labels *labels, unsigned a, int map_fd, size_t offset,
	uint32_t bits, unsigned label)
{
	struct bpf_program *p = &labels->program;

	bpf_load_value(p, BPF_REG_1, map_fd, offset);
	bpf_move(p, BPF_REG_2, a);
	bpf_compute(p, BPF_RSH, BPF_REG_2, 32 + 6);
	bpf_compute(p, BPF_AND, BPF_REG_2, (int)(bits / 64 - 1));
	bpf_compute(p, BPF_LSH, BPF_REG_2, 3);
	bpf_combine(p, BPF_ADD, BPF_REG_1, BPF_REG_2);
	bpf_load_u64(p, BPF_REG_3, BPF_REG_1, 0);
	bpf_move(p, BPF_REG_2, a);
	bpf_compute(p, BPF_RSH, BPF_REG_2, 32);
	bpf_compute(p, BPF_AND, BPF_REG_2, 63);
	bpf_combine(p, BPF_RSH, BPF_REG_3, BPF_REG_2);
	bpf_compute(p, BPF_AND, BPF_REG_3, 1);
	bpf_jump_if(labels, BPF_REG_3, BPF_JNE, 0, label);
}

void bpf_read(struct bpf_labels *labels, unsigned size, unsigned to, unsigned from, int offset)
{
	bpf_add(&labels->program, BPF_LDX | BPF_MEM | size, to, from, offset, 0);
}

void bpf_write(struct bpf_labels *labels, unsigned size, unsigned to, int offset, unsigned from)
{
	bpf_add(&labels->program, BPF_STX | BPF_MEM | size, to, from, offset, 0);
}

void bpf_write_number(struct bpf_labels *labels, unsigned to, int offset, int immediate)
{
	bpf_add(&labels->program, BPF_ST | BPF_MEM | BPF_DW, to, 0, offset, immediate);
}

void bpf_atomic(struct bpf_labels *labels, int operation, unsigned to, int offset, unsigned from)
{
	bpf_add(&labels->program, BPF_STX | BPF_ATOMIC | BPF_DW, to, from, offset, operation);
}
