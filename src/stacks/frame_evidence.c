/* See frame_evidence.h. */
#include "stacks/frame_evidence.h"

/*
 * The frames at the leaf that are not in the stack come from the sample alone. Their callers may be
 * those of an earlier wait as well as of this one, so they prove nothing: a loop calls a method
 * that waits at several places.
 */
static bool is_walk_proved(const struct frame_evidence *evidence)
{
	return evidence->walked && evidence->walked_managed &&
	       (!evidence->skipped || evidence->before_proved);
}

enum frame_choice frame_evidence_choose(const struct frame_evidence *evidence, bool *ret_moved)
{
	*ret_moved = false;
	if (is_walk_proved(evidence))
		return FRAMES_WALKED;
	if (evidence->before && evidence->before_proved)
		return FRAMES_BEFORE;
	if (evidence->after && evidence->after_proved)
		return FRAMES_AFTER;
	if (evidence->walked && !evidence->walked_managed)
		return FRAMES_NONE; /* native frames only, from the thread's start */
	*ret_moved = !evidence->runs && (evidence->before || evidence->after);
	return evidence->before ? FRAMES_BEFORE : evidence->after ? FRAMES_AFTER : FRAMES_NONE;
}

bool frame_evidence_needs_more(const struct frame_evidence *evidence)
{
	return !evidence->runs && !evidence->before_proved &&
	       (!evidence->walked || (evidence->walked_managed && evidence->skipped));
}
