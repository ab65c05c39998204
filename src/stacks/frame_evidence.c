/* See frame_evidence.h. */
#include "stacks/frame_evidence.h"

/*
 * The frames at the leaf that are not in the stack come from the sample alone. Their callers may be
 * those of an earlier wait as well as of this one, so they prove nothing: a loop calls a method
 * that waits at several places.
 */
static bool is_walk_proved(const struct frame_evidence *evidence)
{
	return evidence->walk == STACK_WALK_MANAGED &&
	       (!evidence->skipped || evidence->stood_before);
}

enum frame_choice frame_evidence_choose(const struct frame_evidence *evidence, bool *ret_moved)
{
	*ret_moved = false;
	if (is_walk_proved(evidence))
		return FRAMES_WALKED;
	if (evidence->sampled_before && evidence->stood_before)
		return FRAMES_BEFORE;
	if (evidence->after == LATER_SAMPLE_PROVED)
		return FRAMES_AFTER;
	if (evidence->walk == STACK_WALK_NATIVE)
		return FRAMES_NONE;
	*ret_moved = !evidence->runs && (evidence->sampled_before || evidence->after);
	return evidence->sampled_before ? FRAMES_BEFORE
	       : evidence->after        ? FRAMES_AFTER
					: FRAMES_NONE;
}

bool frame_evidence_needs_more(const struct frame_evidence *evidence)
{
	return !evidence->runs && !evidence->stood_before &&
	       (evidence->walk == STACK_WALK_NONE ||
		       (evidence->walk == STACK_WALK_MANAGED && evidence->skipped));
}
