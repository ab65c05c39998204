/* The programs of io_probe.h, and the memory that they share with it. Only io_probe.c calls this. */
#ifndef SPOOR_PERF_IO_PROGRAM_H
#define SPOOR_PERF_IO_PROGRAM_H

#include <stdint.h>

#include "perf/io_sum.h"

#define IO_EPOCHS     1024u /* a power of two */
#define IO_NUMBERS    512u  /* of system calls; larger ones are not looked at */
#define IO_TEXT_BYTES 248u  /* of a name, with its NUL */

/* A map of one value. */
struct io_state {
	uint64_t active;    /* which of the two maps of sums is written */
	uint64_t waiting;   /* see io_probe_open(); 0 after its exec */
	uint64_t next_name; /* of the next new name */
	uint64_t instances; /* of the next new descriptor */
	uint64_t lost;      /* calls without a place in the map */
	/* increased when a process with such a pid (modulo IO_EPOCHS) ends: the entries of its descriptors become void */
	uint64_t epochs[IO_EPOCHS];
	uint64_t calls
		[IO_NUMBERS]; /* by number: enum io_call, and what its arguments are; 0: none */
	uint64_t muted[IO_PIDS_MAX / 64];
};

/* The key and the value of `sums`; the rest of struct io_sum is the value. */
#define IO_SUM_KEY_BYTES 16u

/* The key of `files`; the value is the name or class, and the instance above. */
struct io_file_key {
	uint32_t pid;
	uint32_t descriptor;
	uint32_t epoch;
	uint32_t unused;
};

/* The key of `names`; the value is the number, of 64 bits. */
struct io_name_key {
	uint64_t kind; /* 0: a path; 1, and the length above 8 bits: an address */
	char text[IO_TEXT_BYTES];
};

#define IO_KIND_ADDRESS   1u
#define IO_KIND_LEN_SHIFT 8u

struct io_maps {
	int state_fd;
	int sums_fd[2];
	int calls_fd; /* calls that have not returned, by thread */
	int files_fd; /* the file of each descriptor */
	int names_fd;
};

/* The key and the value of calls_fd. */
#define IO_RUNNING_KEY_BYTES   8u
#define IO_RUNNING_VALUE_BYTES 16u

/* Fills state->calls. -ENOTSUP: this processor is not supported. */
int io_program_fill_calls(struct io_state *state);

/* Descriptors of loaded programs, for sys_enter, sys_exit and sched_process_exit; or a negative errno. */
int io_program_load_enter(const struct io_maps *maps);
int io_program_load_exit(const struct io_maps *maps);
int io_program_load_end(const struct io_maps *maps);

#endif
