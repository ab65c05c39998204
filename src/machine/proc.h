/*
 * Processes as /proc shows them.
 *
 *   struct proc_reader proc;
 *   proc_open(&proc, &diag);
 *   proc_list(&proc, &pids, &diag);                       every process
 *   proc_read(&proc, pid, &process);                      its facts
 *   proc_read_maps(&proc, pid, each_mapping, user);       its code
 *   proc_close(&proc);
 *
 * Every call reuses the reader's buffer: returned texts are borrowed until the next one. Calls
 * return -ESRCH once the process has ended (-ENOENT if it has no such item any more), -EACCES or
 * -EPERM if a right is missing. Only links that the kernel makes are followed, so a target cannot
 * redirect them.
 */
#ifndef SPOOR_MACHINE_PROC_H
#define SPOOR_MACHINE_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

struct diag;

/* with NUL; 15 characters for a program, more for a kernel worker */
#define PROC_COMM_MAX     64u
#define PROC_TEXT_MAX     (64u << 10) /* longest command line, environment or path that is read */
#define PROC_MAPPINGS_MAX (1u << 20)  /* executable mappings of a process that are read */
#define CONTAINER_ID_ROOM 65u         /* 64 hexadecimal digits and NUL */

struct proc_reader {
	uint8_t *buffer;
	size_t capacity;
	int fd;           /* of /proc */
	uint64_t tick_ns; /* length of a clock tick of stat's fields */
	/* CLOCK_BOOTTIME minus CLOCK_MONOTONIC: the time that the machine was suspended */
	int64_t boot_offset_ns;
	/* the kernel does not support queries of single mappings (before 6.11) */
	bool maps_as_text;
};

struct id_list {
	VEC(uint32_t) ids;
};

struct proc_process {
	uint32_t pid;
	uint32_t parent_pid;
	/* its pid in its own namespace (last of NSpid) */
	uint32_t inner_pid;
	uint32_t uid; /* effective */
	uint32_t gid;
	uint32_t thread_count;
	/* field 22 of stat, since boot: part of the name of its diagnostics socket */
	uint64_t start_ticks;
	/* the same on CLOCK_MONOTONIC, to within a tick; 0: before its begin */
	uint64_t start_ns;
	uint64_t resident_bytes;
	char state; /* R S D T t Z X I, as the two functions below take it */
	bool kernel_thread;
	char comm[PROC_COMM_MAX];
};

/* 0, the state of a process that could not be read, is neither. */
static inline bool proc_state_has_ended(char state)
{
	return state == 'Z' || state == 'X';
}

static inline bool proc_state_is_stopped(char state)
{
	return state == 'T' || state == 't';
}

struct proc_thread {
	uint32_t tid;
	uint32_t inner_tid;
	char comm[PROC_COMM_MAX];
};

struct proc_mapping {
	uint64_t begin;
	uint64_t end; /* exclusive */
	uint64_t file_offset;
	uint64_t inode; /* 0: no file */
	uint32_t device_major;
	uint32_t device_minor;
	bool readable;
	bool writable;
	bool executable;
	bool shared;
	bool deleted; /* the file was unlinked: path is its last name */
	/* "", "[vdso]", "/usr/bin/x": NUL-terminated, borrowed for the call */
	const char *path;
	size_t path_len;
};

/* A result other than 0 ends the walk and is returned. It must not use the reader. */
typedef int proc_mapping_fn(void *user, const struct proc_mapping *mapping);

int proc_open(struct proc_reader *proc, struct diag *diag);
void proc_close(struct proc_reader *proc);

/* Appends every process id, in the order of /proc. Freed with vec_done(&list.ids). */
int proc_list(struct proc_reader *proc, struct id_list *list, struct diag *diag);

/* Appends the thread ids of a process. */
int proc_list_threads(struct proc_reader *proc, uint32_t pid, struct id_list *list);

/* From stat and status. */
int proc_read(struct proc_reader *proc, uint32_t pid, struct proc_process *ret_process);
int proc_read_thread(struct proc_reader *proc, uint32_t pid, uint32_t tid,
	struct proc_thread *ret_thread);

/* The process of a thread. -ESRCH: the thread does not exist. */
int proc_read_thread_owner(struct proc_reader *proc, uint32_t tid, uint32_t *ret_pid);

/* Target of the exe link without " (deleted)". A kernel thread has none: -ENOENT. */
int proc_read_exe(struct proc_reader *proc, uint32_t pid, const char **ret_path, size_t *ret_len);

/* Each with a NUL, at most PROC_TEXT_MAX bytes. Length 0 for a kernel thread or a zombie. */
int proc_read_arguments(struct proc_reader *proc, uint32_t pid, const char **ret_args,
	size_t *ret_len);

/* One variable of the initial environment of the process. -ENOENT if it is not set. */
int proc_read_variable(struct proc_reader *proc, uint32_t pid, const char *name,
	const char **ret_value, size_t *ret_len);

/*
 * The path in the unified hierarchy, else the longest of the others. *ret_hash (may be NULL) covers
 * all: it is equal for processes in the same groups.
 */
int proc_read_cgroup(struct proc_reader *proc, uint32_t pid, const char **ret_path, size_t *ret_len,
	uint64_t *ret_hash);

/* The inodes of its pid and mount namespaces. Needs the right to inspect the process. */
int proc_read_namespaces(struct proc_reader *proc, uint32_t pid, uint64_t *ret_pid_namespace,
	uint64_t *ret_mount_namespace);

/* Calls `each` for each executable mapping, in order of address. */
int proc_read_maps(struct proc_reader *proc, uint32_t pid, proc_mapping_fn *each, void *user);

/* The current time in the unit of start_ticks. */
uint64_t proc_now_ticks(void);

/* 1: the process exists. 0: it has ended (a zombie has ended). Negative errno: unknown. */
int proc_alive(struct proc_reader *proc, uint32_t pid);

/* The parsers, separate from the files. They accept any bytes. */

/* All fields of stat but uid, gid, inner_pid and start_ns. False if malformed. */
bool proc_parse_stat(const char *text, size_t len, struct proc_process *ret_process);

/* status: uid, gid and inner_pid. A missing line leaves its field unchanged. */
void proc_parse_status(const char *text, size_t len, struct proc_process *process);

/* One line of maps without its newline. The path is unescaped and terminated in place. */
bool proc_parse_mapping(char *line, size_t len, struct proc_mapping *ret_mapping);

/* Picks the path of a cgroup file as proc_read_cgroup() does; NULL if it has none. In place. */
const char *proc_parse_cgroup(const char *text, size_t len, size_t *ret_len);

/*
 * The container that owns this cgroup: the last run of 64 hexadecimal digits, bare or between a
 * prefix and ".scope", as docker, podman, containerd and cri-o write it.
 */
bool container_id_from_cgroup(const char *path, size_t len, char ret_id[CONTAINER_ID_ROOM]);

/* Length of a path that the kernel printed, without its " (deleted)". */
size_t proc_strip_deleted(const char *path, size_t len, bool *ret_deleted);

#endif
