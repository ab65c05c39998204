/*
 * The states of the sources of a process's names, each an enum that changes in one function. The
 * function asserts that the new state may follow the present one, by the rule beside it.
 */
#ifndef SPOOR_SYMBOLIZE_NAME_STATES_H
#define SPOOR_SYMBOLIZE_NAME_STATES_H

#include <stdbool.h>

/*
 * The state of the names of a process's managed code. Set by recording/connection.c, and by
 * recording/process_table.c if they are read from memory.
 */
enum managed_state {
	MANAGED_NONE,    /* no .NET process found so far */
	MANAGED_ASKING,  /* its runtime is sending the names */
	MANAGED_KNOWN,   /* all methods up to now are in the codemap */
	MANAGED_REFUSED, /* there is no runtime connection */
};

/* The perf map and jitdump of a process, which the symbol worker reads into the codemap. */
enum maps_state {
	MAPS_UNREAD,
	MAPS_ASKED, /* they were requested from the worker */
	MAPS_READ,  /* they are in the codemap, or cannot be read */
};

/* A process's memory, which is opened to read the machine code of sampled methods. */
enum code_memory_state {
	CODE_MEMORY_UNOPENED,
	CODE_MEMORY_OPEN,
	CODE_MEMORY_UNREADABLE, /* it could not be opened, or the process has ended */
};

/* A table of names that is opened by the first question for it, one time. */
enum source_state {
	SOURCE_UNTRIED,
	SOURCE_OPEN,
	SOURCE_FAILED,
};

/* MANAGED_NONE is left permanently; names become known only after they were requested. */
bool managed_state_may_follow(enum managed_state from, enum managed_state to);
void managed_state_enter(enum managed_state *state, enum managed_state next);

bool maps_state_may_follow(enum maps_state from, enum maps_state to);
void maps_state_enter(enum maps_state *state, enum maps_state next);

bool code_memory_may_follow(enum code_memory_state from, enum code_memory_state to);
void code_memory_enter(enum code_memory_state *state, enum code_memory_state next);

/* The one try is over: enters SOURCE_OPEN or SOURCE_FAILED. */
void source_state_enter(enum source_state *state, bool opened);

#endif
