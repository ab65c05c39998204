/*
 * Jitdump (jit-PID.dump): the binary, little-endian file in which runtimes record compiled code
 * with times, usually CLOCK_MONOTONIC. Records of debug info and unwinding are skipped. If .NET
 * begins the file late, code that exists already has the time of that begin.
 */
#ifndef SPOOR_CODE_JITDUMP_H
#define SPOOR_CODE_JITDUMP_H

#include <stdint.h>

struct codemap;
struct diag;
struct input;

#define JITDUMP_MAGIC       0x4a695444u
#define JITDUMP_HEADER_SIZE 40u
#define JITDUMP_RECORD_HEAD 16u /* type, size, time */
#define JITDUMP_LOAD_HEAD   40u /* pid to index */

/* A record's type. */
enum jitdump_record { JITDUMP_LOAD = 0, JITDUMP_MOVE = 1, JITDUMP_DEBUG = 2, JITDUMP_CLOSE = 3 };

#define JITDUMP_RECORD_MAX (64u << 20)
#define JITDUMP_NAME_MAX   (32u << 10)

struct jitdump_header {
	uint32_t version;
	uint32_t elf_machine;
	uint32_t pid;     /* in the writer's pid namespace */
	uint64_t time_ns; /* when the file was created */
	uint64_t flags;   /* bit 0: times are the processor's counter */
};

/*
 * Adds every body to the map. Returns their number, or a negative errno (earlier bodies remain). A
 * file that ends inside a record is still being written: no error. `ret_header` may be NULL.
 */
int jitdump_read(struct input *in, struct codemap *map, struct jitdump_header *ret_header,
	struct diag *diag);

#endif
