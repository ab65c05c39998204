/*
 * A BPF program (bpf_program.h) with many branches: its jumps lead to labels.
 *
 *   struct bpf_labels *labels = bpf_labels_new();
 *   bpf_set(&labels->program, BPF_REG_1, 0);
 *   bpf_jump_if(labels, BPF_REG_1, BPF_JEQ, 0, OUT);      forward, to a label that follows
 *   bpf_label(labels, OUT);
 *   int fd = bpf_labels_load(labels, BPF_PROG_TYPE_RAW_TRACEPOINT);
 *   free(labels);
 *
 * Comparisons are the constants of <linux/bpf.h>, such as BPF_JNE. Too many labels are a mistake of the
 * caller.
 */
#ifndef SPOOR_MACHINE_BPF_LABELS_H
#define SPOOR_MACHINE_BPF_LABELS_H

#include <stdint.h>

#include "machine/bpf_program.h"

#define BPF_LABELS_INSNS_MAX 1024u
#define BPF_LABELS_JUMPS_MAX 96u

struct bpf_labels {
	struct bpf_program program;
	struct bpf_insn insns[BPF_LABELS_INSNS_MAX];
	/* jumps whose label has not followed yet: bpf_label() sets their distance */
	struct {
		uint32_t at;
		unsigned label;
	} jumps[BPF_LABELS_JUMPS_MAX];
	uint32_t jump_count;
};

/* An empty program, freed with free(3); NULL: no memory. */
struct bpf_labels *bpf_labels_new(void);

/* The descriptor of the loaded program, or a negative errno. */
int bpf_labels_load(const struct bpf_labels *labels, enum bpf_prog_type type);

/* Jumps to the next bpf_label() of this number, if a `comparison` b holds. Numbers may be used again after it. */
void bpf_jump_to(struct bpf_labels *labels, unsigned label);
void bpf_jump_if(struct bpf_labels *labels, unsigned a, unsigned comparison, int b, unsigned label);
void bpf_jump_if_register(struct bpf_labels *labels, unsigned a, unsigned comparison, unsigned b,
	unsigned label);
void bpf_label(struct bpf_labels *labels, unsigned label);

/*
 * Jumps if the bit of the number in the upper half of register `a` is set: of a set of `bits`, a power
 * of two, at `offset` in the value of an array map. Larger numbers begin again at 0. Uses registers 1
 * to 3; `a` is another one.
 */
void bpf_jump_if_bit(struct bpf_labels *labels, unsigned a, int map_fd, size_t offset,
	uint32_t bits, unsigned label);

/* to = *(from + offset), `size` BPF_DW, BPF_W, BPF_H or BPF_B; and *(to + offset) = from */
void bpf_read(struct bpf_labels *labels, unsigned size, unsigned to, unsigned from, int offset);
void bpf_write(struct bpf_labels *labels, unsigned size, unsigned to, int offset, unsigned from);

/* *(to + offset) = immediate, of 64 bits */
void bpf_write_number(struct bpf_labels *labels, unsigned to, int offset, int immediate);

/*
 * *(to + offset) = it `operation` from, of 64 bits, in one step for all CPUs. With BPF_FETCH `from`
 * becomes the earlier value. BPF_CMPXCHG compares that with BPF_REG_0, which then becomes the earlier value.
 */
void bpf_atomic(struct bpf_labels *labels, int operation, unsigned to, int offset, unsigned from);

#endif
