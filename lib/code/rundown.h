/*
 * The rundown of a session: at its end, the names of all code that occurred in its stacks, in the events by which .NET names methods (provider
 * Microsoft-Windows-DotNETRuntimeRundown), so that tools that know nothing of C name C functions.
 *
 * Functions come out of the process's ELF objects and out of what spoor_code_add() said. A C++ name is made readable where the process has a C++ runtime. An address that
 * no symbol covers is named "+0x..." in its module.
 */
#ifndef SPOOR_LIB_CODE_RUNDOWN_H
#define SPOOR_LIB_CODE_RUNDOWN_H

#include <stdint.h>

struct session;
struct rundown;

#define RUNDOWN_LOADER  0x8u  /* modules */
#define RUNDOWN_METHODS 0x30u

/* From the session's start on addresses are noted. NULL: these keywords ask for nothing, or no memory. Loop thread only, like the others. */
struct rundown *rundown_new(uint64_t keywords);
void rundown_free(struct rundown *rundown);

/* Writes some of it; 1: call again, 0: done, negative: given up. Takes a few hundred microseconds. */
int rundown_step(struct rundown *rundown, struct session *session);

#endif
