/*
 * What this process may do, the kernel's knobs that decide it, and how rights are laid down.
 *
 * A program whose file has capabilities has rights that its user lacks: they are borrowed. What the user names (where to write, where debug files
 * are, what to report) must be opened with the user's own rights, or spoor would read and write for him what he may not. So:
 *
 *   rights_begin(&diag)           first thing in main(): borrowed rights are laid aside, setuid is refused
 *   rights_raise()                a verb that looks at targets takes them up; the others never have them
 *   before = rights_lower(); ... rights_restore(before);       around what the user names
 *   rights_return()               in a child, before it becomes the user's command
 *   rights_reduce(keep)           for good: when only `keep` is still needed, as before reading a recording
 *
 * For root, and for rights the user has himself, rights_raise(), rights_lower() and rights_return() do nothing. The kernel keeps capabilities
 * per thread: all this is called before there are other threads, which then inherit.
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
	RIGHT_CHOWN = 1 << 8,
	RIGHT_FOWNER = 1 << 9,          /* rename others' files in a sticky folder */
	RIGHT_KILL = 1 << 10,
	RIGHT_BPF = 1 << 11,            /* SYS_ADMIN implies it */
	RIGHT_CHECKPOINT_RESTORE = 1 << 12, /* /proc/PID/map_files; SYS_ADMIN implies it */
};

/* What reading and writing files takes, for a root without anything else. */
#define RIGHTS_OF_FILES (RIGHT_DAC_OVERRIDE | RIGHT_DAC_READ_SEARCH | RIGHT_CHOWN | RIGHT_FOWNER)

/* All that a recording of the whole machine can use. */
#define RIGHTS_WANTED                                                                              \
	(RIGHT_PERFMON | RIGHT_BPF | RIGHT_SYSLOG | RIGHT_SYS_PTRACE | RIGHT_DAC_OVERRIDE | RIGHT_DAC_READ_SEARCH |     \
		RIGHT_IPC_LOCK | RIGHT_CHECKPOINT_RESTORE)

struct diag;

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

/* "CAP_PERFMON" */
const char *right_name(enum right right);

/* Capabilities of the program's file, which its user lacks. */
bool rights_are_borrowed(void);

/* -EPERM and a sentence for a setuid or setgid program, else 0. */
int rights_begin(struct diag *diag);
void rights_raise(void);

/* Lays borrowed rights aside; rights_restore() takes up what was there before. */
uint64_t rights_lower(void);

/* Likewise some rights, borrowed or not: to see whether they are needed. */
uint64_t rights_pause(uint32_t rights);
void rights_restore(uint64_t before);

/* Gives borrowed rights up for good. Safe between fork and exec. */
void rights_return(void);

/*
 * Gives up all capabilities but `keep` (of enum right), for good: no_new_privs too, so no program we might start gets any. Kept in place of PERFMON
 * where that is missing: SYS_ADMIN. A root that wants to look into processes but lacks SYS_PTRACE keeps all it has, because the kernel then
 * lets it look only into processes with no more than its own.
 */
int rights_reduce(uint32_t keep);

#endif
