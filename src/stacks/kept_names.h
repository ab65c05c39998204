/*
 * The names of methods that a round of thread stacks leaves for the next ones: the code map of each
 * process, from one round to the next. A process is identified by its pid and its start.
 *
 *   kept_names_take(&list, taking)          before its session is opened; sets has_kept_names
 *   kept_names_are_short(taking)            when the session is over: another rundown is needed
 *   kept_names_keep(&list, taking)          at the end of the round
 *   kept_names_done(&list)
 *
 * All zero is an empty list. Not thread-safe.
 */
#ifndef SPOOR_STACKS_KEPT_NAMES_H
#define SPOOR_STACKS_KEPT_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"
#include "code/codemap.h"

struct stacks_taking;

struct kept_names {
	uint32_t pid;
	uint64_t start_ticks;
	struct codemap codemap;
	struct map nameless; /* addresses that no rundown names, such as those of stubs */
};

struct kept_names_list {
	VEC(struct kept_names) items; /* of processes that no round is about now */
};

/* Moves the names of this process, if there are any, into its code map. */
void kept_names_take(struct kept_names_list *list, struct stacks_taking *t);

/* Whether a managed frame of a sample has no name, although a rundown may have one. */
bool kept_names_are_short(struct stacks_taking *t);

/* After a rundown: code that has no name now gets none by another rundown. */
void kept_names_note_nameless(struct stacks_taking *t);

/* Moves its code map into the list; without memory the caller keeps it. */
void kept_names_keep(struct kept_names_list *list, struct stacks_taking *t);

void kept_names_done(struct kept_names_list *list);

#endif
