/* Whether a .NET process can dump itself: the runtime reports failures late or misleadingly. */
#ifndef SPOOR_MACHINE_DUMP_CHECK_H
#define SPOOR_MACHINE_DUMP_CHECK_H

#include <stdbool.h>
#include <stdint.h>

struct diag;

struct dump_facts {
	uint64_t free_bytes; /* in the folder of the dump */
	bool seccomp;        /* the process has a seccomp filter, which may forbid ptrace */
	bool other_mounts;   /* the process is in another mount namespace */
};

struct dump_question {
	uint32_t pid;
	const char *folder;       /* of the dump, as the process sees it */
	const char *runtime_path; /* of its libcoreclr.so; "" unknown */
	bool single_file;         /* the runtime is part of the program file */
	/* a full dump, which does not need the library that knows the runtime's structures */
	bool all_memory;
};

/*
 * -ENOENT: the folder does not exist, or the runtime has no dump writer. -EPERM: ptrace is
 * forbidden on this machine. -EACCES: we may not inspect the process.
 */
int dump_check(const struct dump_question *question, struct dump_facts *ret_facts,
	struct diag *diag);

/*
 * Single-file programs of .NET 8 and 9 write their dump in a fork, which does not exit, answers at
 * the same socket and holds every descriptor. Ends such copies that started at or after
 * `since_ticks` (proc_now_ticks()) and returns their number; -EPERM if we may not, with the pid in
 * *ret_copy_pid.
 */
int dump_end_copy(uint32_t pid, uint64_t since_ticks, uint32_t *ret_copy_pid);

#endif
