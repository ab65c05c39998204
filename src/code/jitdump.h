/*
 * Jitdump: the binary file in which runtimes tell what they compiled, with times (jit-PID.dump).
 *
 * Records CODE_LOAD, CODE_MOVE and CODE_CLOSE; the others (debug info, unwinding) are stepped over. Little-endian. Times are those of the file, usually
 * CLOCK_MONOTONIC nanoseconds: what is there when .NET is told to write the file late is stamped with that moment.
 */
#ifndef SPOOR_CODE_JITDUMP_H
#define SPOOR_CODE_JITDUMP_H

#include <stdint.h>

struct codemap;
struct diag;
struct input;

#define JITDUMP_RECORD_MAX (64u << 20)
#define JITDUMP_NAME_MAX (32u << 10)

struct jitdump_header {
	uint32_t version;
	uint32_t elf_machine;
	uint32_t pid;            /* as the writer saw itself */
	uint64_t time_ns;        /* when the file was begun */
	uint64_t flags;          /* bit 0: times are the processor's counter */
};

/*
 * Adds every body to the map. Returns how many, or a negative errno with what came before still standing; a file that ends inside a
 * record (it is still being written) ends there without error. `ret_header` may be NULL. The input stays the caller's.
 */
int jitdump_read(struct input *in, struct codemap *map, struct jitdump_header *ret_header,
	struct diag *diag);

#endif
