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
	expect((struct frame_evidence){ .before = true, .before_proved = true }, FRAMES_BEFORE,
		false);
	expect((struct frame_evidence){ .before = true }, FRAMES_BEFORE, true);
	expect((struct frame_evidence){ .runs = true, .before = true }, FRAMES_BEFORE, false);
	expect((struct frame_evidence){ .before = true, .after = true, .after_proved = true },
		FRAMES_AFTER, false);
	expect((struct frame_evidence){ .after = true }, FRAMES_AFTER, true);
	/*
	 * All managed frames are in the stack, which was the same before and after the frames were
	 * read.
	 */
	expect((struct frame_evidence){ .walked = true, .walked_managed = true, .before = true },
		FRAMES_WALKED, false);
	/* All frames since the start of the thread are native: it runs no managed code. */
	expect((struct frame_evidence){ .walked = true, .before = true }, FRAMES_NONE, false);
}

/* The leaf is not in the stack: it may come from an earlier wait with the same callers. */
static void test_leaf_of_an_earlier_wait(void **state)
{
	const struct frame_evidence earlier = {
		.walked = true, .walked_managed = true, .skipped = 1, .before = true
	};
	struct frame_evidence evidence = earlier;

	(void)state;
	expect(evidence, FRAMES_BEFORE, true);
	assert_true(frame_evidence_needs_more(&evidence));
	evidence.after = evidence.after_proved = true;
	expect(evidence, FRAMES_AFTER, false);
	evidence = earlier;
	evidence.before_proved = true;
	expect(evidence, FRAMES_WALKED, false);
	assert_false(frame_evidence_needs_more(&evidence));
}

static void test_needs_more(void **state)
{
	const struct frame_evidence runs = { .runs = true, .before = true };
	const struct frame_evidence unproved = { .before = true };
	const struct frame_evidence walked = {
		.walked = true, .walked_managed = true, .before = true
	};

	(void)state;
	assert_false(frame_evidence_needs_more(&runs));
	assert_true(frame_evidence_needs_more(&unproved));
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
