/*
 * Source lines in the stacks of a profile: each frame whose line is known becomes that line of its
 * function, after the functions that were inlined there.
 */
#ifndef SPOOR_ANALYSIS_PROFILE_LINES_H
#define SPOOR_ANALYSIS_PROFILE_LINES_H

struct profile;
struct symbolmap;

/*
 * After profile_name(), before all functions that fold or add frames: stacks must have the frames
 * that were recorded. Lines come from trace.lines. 0 or -ENOMEM.
 */
int profile_add_lines(struct profile *profile, struct symbolmap *names);

#endif
