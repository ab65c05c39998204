/*
 * Blocked time as a profile, for trees and flame graphs: in place of CPU samples, or beside them.
 *
 *   blocked_profile_fill(&blocks, &stacks, BLOCKED_WAITS, &profile)    before profile_name()
 *   blocked_profile_mark(&profile, &names)                             after it
 */
#ifndef SPOOR_ANALYSIS_BLOCKED_PROFILE_H
#define SPOOR_ANALYSIS_BLOCKED_PROFILE_H

struct blocks;
struct event_stacks;
struct profile;
struct symbolmap;

enum blocked_form {
	BLOCKED_WAITS,  /* blocked time, by the stack that waited */
	BLOCKED_WAKERS, /* blocked time, by the stack that ended it */
	BLOCKED_WALL,   /* blocked and runnable time, beside the CPU samples */
};

/* 0, or -ENOMEM. */
int blocked_profile_fill(const struct blocks *blocks, const struct event_stacks *stacks,
	enum blocked_form form, struct profile *profile);

/*
 * The scheduler's frames at the leaf become a mark of the cause, "[lock]", and whole stacks of threads
 * without work become "[idle]". Stacks that are not of a block stay. 0, or -ENOMEM.
 */
int blocked_profile_mark(struct profile *profile, struct symbolmap *names);

#endif
