/*
 * The rundown of a session: at its end, the names of all code that occurred in its stacks. They are
 * written as the events with which .NET names methods (provider
 * Microsoft-Windows-DotNETRuntimeRundown), so that tools for .NET also name C functions.
 *
 * Names come from the ELF objects of the process and from spoor_code_add(). A C++ name is demangled
 * if the process has a C++ runtime. A function without a symbol has one name, "sub_..." with its
 * address in the file, if the unwind tables have its bounds; else each address is "+0x...". Loop
 * thread only.
 */
#ifndef SPOOR_LIB_CODE_RUNDOWN_H
#define SPOOR_LIB_CODE_RUNDOWN_H

#include <stdint.h>

struct session;
struct rundown;

#define RUNDOWN_LOADER  0x8u /* modules */
#define RUNDOWN_METHODS 0x30u

/*
 * Makes a rundown and starts to store the addresses of stacks. NULL: the keywords contain none of a
 * rundown, or no memory.
 */
struct rundown *rundown_new(uint64_t keywords);
void rundown_free(struct rundown *rundown);

/*
 * Writes a part of it. 1: call again; 0: done; negative: failed. Takes a few hundred microseconds.
 */
int rundown_step(struct rundown *rundown, struct session *session);

#endif
