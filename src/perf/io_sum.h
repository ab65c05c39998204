/* What the programs of io_probe.h count: system calls of one kind of a process, on one file or descriptor. */
#ifndef SPOOR_PERF_IO_SUM_H
#define SPOOR_PERF_IO_SUM_H

#include <stdint.h>

#define IO_PIDS_MAX        (UINT32_C(1) << 22) /* PID_MAX_LIMIT of the kernel */
#define IO_PROBE_SMALL_MAX 16u                 /* bytes of a call that counts as small */
#define IO_PROBE_MIXED     UINT64_MAX

/* Values of io_sum.name; larger ones are names of io_probe_take_names(). */
enum io_class {
	IO_CLASS_NONE, /* it was open before the recording, or is no descriptor at all */
	IO_CLASS_FILE,
	IO_CLASS_SOCKET,
	IO_CLASS_ACCEPTED,
	IO_CLASS_PIPE,
	IO_CLASS_OTHER,  /* an eventfd, a timer, ... */
	IO_CLASS_COPIED, /* dup() of one of IO_CLASS_NONE */
	IO_CLASSES
};
#define IO_NAME_FIRST 16u

/* What the program counts, by its first four members. */
struct io_sum {
	uint32_t pid;
	uint32_t call;      /* enum io_call */
	int32_t descriptor; /* -1: the name says it, or there is none */
	uint32_t name;
	uint64_t count;
	uint64_t errors;
	uint64_t again; /* errors that say only "not yet": EAGAIN, EINPROGRESS */
	uint64_t bytes;
	uint64_t small; /* calls of 1 to IO_PROBE_SMALL_MAX bytes */
	uint64_t time_ns;
	uint64_t longest_ns;
	uint64_t last_error; /* the last one that is not in `again`; 0: none */
	/* which file the descriptor referred to; IO_PROBE_MIXED: more than one */
	uint64_t instance;
};

#endif
