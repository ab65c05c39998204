/*
 * frame_evidence.c: joins managed frames with a wait only if both are proved to be of the same
 * moment.
 */
#include "unit/test.h"

#include "stacks/frame_evidence.h"

static void expect(struct frame_evidence evidence, enum frame_choice choice, bool moved)
{
	bool is_moved;

	assert_int_equal(frame_evidence_choose(&evidence, &is_moved), choice);
	assert_int_equal(is_moved, moved);
}

static void test_proofs(void **state)
{
	(void)state;
	expect((struct frame_evidence){ 0 }, FRAMES_NONE, false);
	expect((struct frame_evidence){ .sampled_before = true, .stood_before = true },
		FRAMES_BEFORE, false);
	expect((struct frame_evidence){ .sampled_before = true }, FRAMES_BEFORE, true);
	expect((struct frame_evidence){ .runs = true, .sampled_before = true }, FRAMES_BEFORE,
		false);
	expect((struct frame_evidence){ .sampled_before = true, .after = LATER_SAMPLE_PROVED },
		FRAMES_AFTER, false);
	expect((struct frame_evidence){ .after = LATER_SAMPLE_SEEN }, FRAMES_AFTER, true);
	/*
	 * All managed frames are in the stack, which was the same before and after the frames were
	 * read.
	 */
	expect((struct frame_evidence){ .walk = STACK_WALK_MANAGED, .sampled_before = true },
		FRAMES_WALKED, false);
	/* All frames since the start of the thread are native: it runs no managed code. */
	expect((struct frame_evidence){ .walk = STACK_WALK_NATIVE, .sampled_before = true },
		FRAMES_NONE, false);
}

/* The leaf is not in the stack: it may come from an earlier wait with the same callers. */
static void test_leaf_of_an_earlier_wait(void **state)
{
	const struct frame_evidence earlier = {
		.walk = STACK_WALK_MANAGED, .skipped = 1, .sampled_before = true
	};
	struct frame_evidence evidence = earlier;

	(void)state;
	expect(evidence, FRAMES_BEFORE, true);
	assert_true(frame_evidence_needs_more(&evidence));
	evidence.after = LATER_SAMPLE_PROVED;
	expect(evidence, FRAMES_AFTER, false);
	evidence = earlier;
	evidence.stood_before = true;
	expect(evidence, FRAMES_WALKED, false);
	assert_false(frame_evidence_needs_more(&evidence));
}

static void test_needs_more(void **state)
{
	const struct frame_evidence runs = { .runs = true, .sampled_before = true };
	const struct frame_evidence unproved = { .sampled_before = true };
	const struct frame_evidence stood = { .stood_before = true };
	const struct frame_evidence native = { .walk = STACK_WALK_NATIVE };
	const struct frame_evidence walked = { .walk = STACK_WALK_MANAGED, .sampled_before = true };

	(void)state;
	assert_false(frame_evidence_needs_more(&runs));
	assert_true(frame_evidence_needs_more(&unproved));
	assert_false(frame_evidence_needs_more(&stood));
	assert_false(frame_evidence_needs_more(&native));
	assert_false(frame_evidence_needs_more(&walked));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_proofs),
		cmocka_unit_test(test_leaf_of_an_earlier_wait),
		cmocka_unit_test(test_needs_more),
	};

	return cmocka_run_group_tests_name("frame_evidence", tests, NULL, NULL);
}
