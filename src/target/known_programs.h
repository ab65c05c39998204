/*
 * The kind of .NET and the architecture of programs, by their files. Each file is read once for all
 * processes that run it.
 */
#ifndef SPOOR_TARGET_KNOWN_PROGRAMS_H
#define SPOOR_TARGET_KNOWN_PROGRAMS_H

#include <stdint.h>

#include "base/vec.h"
#include "dotnet/kind.h"

struct known_program {
	uint64_t device;
	uint64_t inode;
	enum dotnet_kind kind; /* by its exports */
	uint16_t machine;      /* e_machine; 0: not an ELF file */
};

/* All zero is empty. */
struct known_programs {
	VEC(struct known_program) list;
};

/* The program of a process. Valid until the next call. NULL: not readable, or no memory. */
const struct known_program *known_program_find(struct known_programs *programs, uint32_t pid);
void known_programs_done(struct known_programs *programs);

#endif
