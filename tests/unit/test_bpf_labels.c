/* Jumps of programs that are written instruction by instruction: to the label that follows, each the right distance. */
#include "unit/test.h"

#include <stdlib.h>

#include "machine/bpf_labels.h"

enum { OUT, ELSE };

static void test_jumps(void **state)
{
	struct bpf_labels *p = bpf_labels_new();

	(void)state;
	assert_non_null(p);
	bpf_jump_if(p, BPF_REG_1, BPF_JEQ, 7, ELSE); /* 0 */
	bpf_jump_to(p, OUT);                         /* 1 */
	bpf_label(p, ELSE);
	bpf_jump_if_register(p, BPF_REG_1, BPF_JNE, BPF_REG_2, ELSE); /* 2 */
	bpf_set(&p->program, BPF_REG_0, -1);                          /* 3 */
	bpf_label(p, ELSE);                                           /* a label is used again */
	assert_int_equal(p->jump_count, 1);
	bpf_label(p, OUT);
	bpf_exit(&p->program, 5); /* 4, 5 */
	assert_int_equal(p->jump_count, 0);
	assert_int_equal(p->program.count, 6);
	assert_int_equal(p->insns[0].off, 1);
	assert_int_equal(p->insns[0].imm, 7);
	assert_int_equal(p->insns[1].off, 2);
	assert_int_equal(p->insns[2].off, 1);
	assert_int_equal(p->insns[2].src_reg, BPF_REG_2);
	assert_int_equal(p->insns[3].imm, -1);
	assert_int_equal(p->insns[4].imm, 5);
	assert_int_equal(p->insns[5].code, BPF_JMP | BPF_EXIT);
	free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_jumps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
