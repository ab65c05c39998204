/*
 * Whether a .NET process can write a core dump of itself: what its runtime would only find out half-way, or say in other words.
 */
#ifndef SPOOR_MACHINE_DUMP_CHECK_H
#define SPOOR_MACHINE_DUMP_CHECK_H

#include <stdbool.h>
#include <stdint.h>

struct diag;

struct dump_facts {
	uint64_t free_bytes;      /* where the dump would go */
	bool seccomp;             /* the process has a filter, which may forbid ptrace */
	bool other_mounts;        /* the process sees other files than we do */
};

struct dump_question {
	uint32_t pid;
	const char *folder;       /* the dump's, as the process sees it */
	const char *runtime_path; /* of its libcoreclr.so; "" unknown */
	bool single_file;         /* the runtime is inside the program */
	bool all_memory;          /* a full dump: it needs no knowledge of the runtime's own structures */
};

/*
 * -ENOENT: no such folder, or what writes the dump is missing beside the runtime. -EPERM: ptrace is forbidden on this machine. -EACCES: we may not look into the
 * process.
 */
int dump_check(const struct dump_question *question, struct dump_facts *ret_facts, struct diag *diag);

/*
 * Single files of .NET 8 and 9 write their dump in a copy of the process (its fork), which then goes on as a second one that answers at the same socket and holds
 * every descriptor. Ends such a copy that was born at or after `since_ticks` (proc_now_ticks()): how many; -EPERM when we
 * may not, with its number in *ret_copy_pid.
 */
int dump_end_copy(uint32_t pid, uint64_t since_ticks, uint32_t *ret_copy_pid);

#endif
