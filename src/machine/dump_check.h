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

/*
 * `folder` is the dump's, as the process sees it; `runtime_path` that of its libcoreclr.so, "" unknown. -ENOENT: no such folder, or createdump is missing beside the
 * runtime. -EPERM: ptrace is forbidden on this machine. -EACCES: we may not look into the process.
 */
int dump_check(uint32_t pid, const char *folder, const char *runtime_path, struct dump_facts *ret_facts, struct diag *diag);

/* The size of a file as the process sees it, and whether it is there. */
bool dump_find(uint32_t pid, const char *path, uint64_t *ret_size_bytes);

#endif
