/*
 * The requirements of the .NET features beyond those of recording, on this machine and for this
 * user: rows of `spoor doctor`. Found by trying system calls and reading files; nothing is sent to
 * a process.
 */
#ifndef SPOOR_TARGET_DOTNET_NEEDS_H
#define SPOOR_TARGET_DOTNET_NEEDS_H

#include "perf/capability.h"

#define DOTNET_NEEDS_COUNT 9u

void dotnet_needs_probe(struct capability ret_table[DOTNET_NEEDS_COUNT]);

#endif
