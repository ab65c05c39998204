/*
 * Stack walks: a provider may have an event with the stack of the thread, as .NET's CLRStackWalk.
 * The generated code fires it after each event that wants one, for sessions that enable both.
 *
 *   stack_walks_leave_out(&manifest, list, size)    optional: which events want none
 *   ... writers: stack_walk_of(), stack_walk_is_wanted() ...
 */
#ifndef SPOOR_GEN_STACK_WALKS_H
#define SPOOR_GEN_STACK_WALKS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"
#include "gen/manifest.h"

/* A list that is larger is refused. */
#define STACK_LIST_BYTES_MAX (1u << 20)

/*
 * Finds the provider's event with a stack: its last two fields are a UInt32 called FrameCount and an array
 * of pointers called Stack, all others integers. The first one of several. manifest_resolve() calls it.
 */
void stack_walk_find(struct man_provider *p);

/* The event that was found; NULL: none. */
const struct man_event *stack_walk_of(const struct man_provider *p);

/* Does the event get a stack walk? Not one that has a stack, or that the list leaves out. */
bool stack_walk_is_wanted(const struct man_provider *p, const struct man_event *event);

/*
 * Reads a list as .NET's ClrEtwAllMeta.lst: lines "nostack:task:provider:version:symbol". An event
 * with this symbol wants no stack walk; without a symbol, all of that task or provider. Other lines
 * and unknown names are ignored. Any bytes.
 */
void stack_walks_leave_out(struct manifest *manifest, const char *list, size_t size);

/* The function that fires the provider's stack walk, for its header. Nothing without one. */
void stack_walk_add_function(struct bytes *out, const struct man_provider *p);

/* The statement after the event, in its function; `PREFIX_SYMBOL_event` has just been fired. */
void stack_walk_add_call(struct bytes *out, const struct man_provider *p,
	const struct man_event *event);

#endif
