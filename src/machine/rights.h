/*
 * The rights of this process, the kernel settings that they depend on, and how rights are given up.
 *
 * A program whose file has capabilities has rights that its user lacks: they are called borrowed
 * here. A path that the user names must be opened with the user's own rights. So:
 *
 *   rights_begin(&diag)           first in main(): drops borrowed rights, refuses setuid
 *   rights_raise()                in verbs that inspect targets; the others never have these rights
 *   before = rights_lower(); ... rights_restore(before);       around files that the user names
 *   rights_return()               in a child, before it becomes the user's command
 *   rights_reduce(keep)           permanently: when only `keep` is still needed, as before reading a recording
 *
 * Rights that the user has without the file, and root's, are not borrowed. The kernel keeps
 * capabilities per thread, so these functions are called before other threads start; new threads
 * inherit.
 */
#ifndef SPOOR_MACHINE_RIGHTS_H
#define SPOOR_MACHINE_RIGHTS_H

#include <stdbool.h>
#include <stdint.h>

enum right {
	RIGHT_DAC_OVERRIDE = 1 << 0, /* read any file */
	RIGHT_DAC_READ_SEARCH = 1 << 1,
	RIGHT_SYS_PTRACE = 1 << 2, /* inspect processes of other users */
	RIGHT_SYS_ADMIN = 1 << 3,
	RIGHT_SYSLOG = 1 << 4,   /* kernel addresses */
	RIGHT_PERFMON = 1 << 5,  /* perf events; SYS_ADMIN implies it */
	RIGHT_IPC_LOCK = 1 << 6, /* exempts ring memory from the limit */
	RIGHT_SYS_NICE = 1 << 7,
	RIGHT_CHOWN = 1 << 8,
	RIGHT_FOWNER = 1 << 9, /* rename others' files in a sticky folder */
	RIGHT_KILL = 1 << 10,
	RIGHT_BPF = 1 << 11,                /* implied by SYS_ADMIN */
	RIGHT_CHECKPOINT_RESTORE = 1 << 12, /* /proc/PID/map_files; SYS_ADMIN implies it */
};

/* The capabilities with which root may read and write any file. */
#define RIGHTS_OF_FILES (RIGHT_DAC_OVERRIDE | RIGHT_DAC_READ_SEARCH | RIGHT_CHOWN | RIGHT_FOWNER)

/* All capabilities that a recording of the whole machine can use. */
#define RIGHTS_WANTED                                                                       \
	(RIGHT_PERFMON | RIGHT_BPF | RIGHT_SYSLOG | RIGHT_SYS_PTRACE | RIGHT_DAC_OVERRIDE | \
		RIGHT_DAC_READ_SEARCH | RIGHT_IPC_LOCK | RIGHT_CHECKPOINT_RESTORE)

struct diag;

#define RIGHTS_PARANOID_UNKNOWN 99

struct rights {
	uint32_t euid;
	uint32_t effective; /* of enum right */
	/* RIGHTS_PARANOID_UNKNOWN: no such file, perhaps no perf events */
	int perf_event_paranoid;
	int kptr_restrict;
	uint32_t perf_event_mlock_kb;
	uint32_t perf_event_max_stack;
	uint32_t perf_event_max_sample_rate;
	uint64_t open_files_max;   /* RLIMIT_NOFILE, soft */
	uint64_t locked_bytes_max; /* RLIMIT_MEMLOCK, soft; UINT64_MAX no limit */
};

/* Never fails: a value that cannot be read gets the kernel's default. */
void rights_read(struct rights *ret_rights);

/* CAP_PERFMON, or CAP_SYS_ADMIN, which implies it. */
bool rights_perfmon(const struct rights *rights);

/* Derived from sysctls and capabilities; a seccomp filter may still forbid it. */
bool rights_allow_kernel(const struct rights *rights);
bool rights_allow_machine(const struct rights *rights);

/* "CAP_PERFMON" */
const char *right_name(enum right right);

/* The program's file grants capabilities that its user does not have. */
bool rights_are_borrowed(void);

/* -EPERM and a sentence for a setuid or setgid program, else 0. */
int rights_begin(struct diag *diag);
void rights_raise(void);

/* Drops borrowed capabilities from the effective set; returns the set for rights_restore(). */
uint64_t rights_lower(void);

/* Drops some capabilities, borrowed or not, to find out whether they are needed. */
uint64_t rights_pause(uint32_t rights);
void rights_restore(uint64_t before);

/* Gives up borrowed capabilities permanently. Safe between fork and exec. */
void rights_return(void);

/*
 * Gives up all capabilities except `keep` (enum right) and sets no_new_privs for programs that we
 * start. Without PERFMON, SYS_ADMIN is kept in its place. Root without SYS_PTRACE keeps all if it
 * inspects processes: the kernel demands no fewer capabilities than theirs.
 */
int rights_reduce(uint32_t keep);

#endif
