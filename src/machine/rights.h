/*
 * What this process may do, and the kernel's knobs that decide it.
 */
#ifndef SPOOR_MACHINE_RIGHTS_H
#define SPOOR_MACHINE_RIGHTS_H

#include <stdbool.h>
#include <stdint.h>

enum right {
	RIGHT_DAC_OVERRIDE = 1 << 0,    /* read any file */
	RIGHT_DAC_READ_SEARCH = 1 << 1,
	RIGHT_SYS_PTRACE = 1 << 2,      /* look into other users' processes */
	RIGHT_SYS_ADMIN = 1 << 3,
	RIGHT_SYSLOG = 1 << 4,          /* kernel addresses */
	RIGHT_PERFMON = 1 << 5,         /* perf events; SYS_ADMIN implies it */
	RIGHT_IPC_LOCK = 1 << 6,        /* no limit on ring memory */
	RIGHT_SYS_NICE = 1 << 7,
};

#define RIGHTS_PARANOID_UNKNOWN 99

struct rights {
	uint32_t euid;
	uint32_t effective;             /* of enum right */
	int perf_event_paranoid;        /* RIGHTS_PARANOID_UNKNOWN: no such file, so perhaps no perf events */
	int kptr_restrict;
	uint32_t perf_event_mlock_kb;
	uint32_t perf_event_max_stack;
	uint32_t perf_event_max_sample_rate;
	uint64_t open_files_max;        /* RLIMIT_NOFILE, soft */
	uint64_t locked_bytes_max;      /* RLIMIT_MEMLOCK, soft; UINT64_MAX no limit */
};

/* Never fails: what cannot be read has the kernel's default. */
void rights_read(struct rights *ret_rights);

/* PERFMON, or SYS_ADMIN that implies it. */
bool rights_perfmon(const struct rights *rights);

/* May sample the kernel; may sample the whole machine. Judged by knobs and capabilities; a seccomp filter may still refuse. */
bool rights_allow_kernel(const struct rights *rights);
bool rights_allow_machine(const struct rights *rights);

#endif
