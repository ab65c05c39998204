/*
 * Processes as /proc tells of them.
 *
 * A reader owns one buffer that every call uses again, so texts it returns are borrowed until its next call. A process that
 * vanishes meanwhile is a normal day: such calls return -ESRCH (or -ENOENT, where it had not yet or no longer what was asked for), while
 * -EACCES and -EPERM mean a right is missing. Nothing here follows what a target could point elsewhere but the kernel's own links.
 *
 *   struct proc_reader proc;
 *   proc_open(&proc, &diag);
 *   proc_list(&proc, &pids, &diag);                       every process
 *   proc_read(&proc, pid, &process);                      who it is
 *   proc_read_maps(&proc, pid, each_mapping, user);       its code
 *   proc_close(&proc);
 */
#ifndef SPOOR_MACHINE_PROC_H
#define SPOOR_MACHINE_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

struct bytes;

struct diag;

#define PROC_COMM_MAX      64u          /* with NUL; 15 characters for a program, more for a kernel worker */
#define PROC_TEXT_MAX      (64u << 10)  /* of a command line, an environment or a path that is looked at */
#define PROC_MAPPINGS_MAX  (1u << 20)   /* executable mappings of a process that are looked at */
#define CONTAINER_ID_ROOM  65u          /* 64 hexadecimal digits and NUL */

struct proc_reader {
	uint8_t *buffer;
	size_t capacity;
	int fd;                  /* of /proc */
	uint64_t tick_ns;        /* length of a clock tick of stat's fields */
	int64_t boot_offset_ns;  /* CLOCK_BOOTTIME less CLOCK_MONOTONIC: time spent asleep */
	bool maps_as_text;       /* the kernel cannot be asked for single mappings (before 6.11) */
};

struct id_list {
	VEC(uint32_t) ids;
};

struct proc_process {
	uint32_t pid;
	uint32_t parent_pid;
	uint32_t inner_pid;      /* the last number of NSpid: as it sees itself; pid when there is no other namespace */
	uint32_t uid;            /* effective */
	uint32_t gid;
	uint32_t thread_count;
	uint64_t start_ticks;    /* field 22 of stat, since boot: the key of its diagnostics socket */
	uint64_t start_ns;       /* the same on CLOCK_MONOTONIC, to within a tick; 0 when it is before that clock's begin */
	uint64_t resident_bytes;
	char state;              /* R S D T t Z X I */
	bool kernel_thread;
	char comm[PROC_COMM_MAX];
};

struct proc_thread {
	uint32_t tid;
	uint32_t inner_tid;
	char comm[PROC_COMM_MAX];
};

struct proc_mapping {
	uint64_t begin;
	uint64_t end;            /* exclusive */
	uint64_t file_offset;
	uint64_t inode;          /* 0: no file */
	uint32_t device_major;
	uint32_t device_minor;
	bool readable;
	bool writable;
	bool executable;
	bool shared;
	bool deleted;            /* the file has no name any more: path is its last one */
	const char *path;        /* "", "[vdso]", "/usr/bin/x": NUL-terminated, borrowed for the call */
	size_t path_len;
};

/* Called for each mapping; anything but 0 ends the walk and is returned. It must not use the reader. */
typedef int proc_mapping_fn(void *user, const struct proc_mapping *mapping);

int proc_open(struct proc_reader *proc, struct diag *diag);
void proc_close(struct proc_reader *proc);

/* Appends every process id there is, in the order of /proc. The caller ends the list with vec_done(&list.ids). */
int proc_list(struct proc_reader *proc, struct id_list *list, struct diag *diag);

/* Appends the thread ids of a process. */
int proc_list_threads(struct proc_reader *proc, uint32_t pid, struct id_list *list);

/* From stat and status. */
int proc_read(struct proc_reader *proc, uint32_t pid, struct proc_process *ret_process);
int proc_read_thread(struct proc_reader *proc, uint32_t pid, uint32_t tid,
	struct proc_thread *ret_thread);

/* The process that a thread belongs to. -ESRCH: there is no such thread. */
int proc_read_thread_owner(struct proc_reader *proc, uint32_t tid, uint32_t *ret_pid);

/* Target of the exe link without " (deleted)". A kernel thread has none: -ENOENT. */
int proc_read_exe(struct proc_reader *proc, uint32_t pid, const char **ret_path,
	size_t *ret_len);

/* The arguments, each ended by NUL, at most PROC_TEXT_MAX bytes. None for a kernel thread or a zombie: length 0. */
int proc_read_arguments(struct proc_reader *proc, uint32_t pid, const char **ret_args,
	size_t *ret_len);

/* One variable of the environment the process began with. -ENOENT when it is not set. */
int proc_read_variable(struct proc_reader *proc, uint32_t pid, const char *name,
	const char **ret_value, size_t *ret_len);

/*
 * Its control group: the path of the unified hierarchy, or else the longest of the others. *ret_hash (may be NULL) is of all of them: equal for processes in
 * the same groups.
 */
int proc_read_cgroup(struct proc_reader *proc, uint32_t pid, const char **ret_path,
	size_t *ret_len, uint64_t *ret_hash);

/* Inodes of its pid and mount namespace. Needs the right to look into the process. */
int proc_read_namespaces(struct proc_reader *proc, uint32_t pid, uint64_t *ret_pid_namespace,
	uint64_t *ret_mount_namespace);

/* Each executable mapping, in order of address. */
int proc_read_maps(struct proc_reader *proc, uint32_t pid, proc_mapping_fn *each, void *user);

/* Now, as start_ticks counts. */
uint64_t proc_now_ticks(void);

/* Does the process exist (1), not any more (0), or is that not to be known (negative errno)? A zombie has ended. */
int proc_alive(struct proc_reader *proc, uint32_t pid);

/*
 * The parsers, apart from the files. They take any bytes.
 */

/* stat's one line: all but uid, gid, inner_pid and start_ns. False when it is not one. */
bool proc_parse_stat(const char *text, size_t len, struct proc_process *ret_process);

/* status: uid, gid and inner_pid. Lines that are missing leave what was there. */
void proc_parse_status(const char *text, size_t len, struct proc_process *process);

/* One line of maps without its newline. `line` is changed in place: the path is unescaped and ended. */
bool proc_parse_mapping(char *line, size_t len, struct proc_mapping *ret_mapping);

/* The path of a cgroup file as proc_read_cgroup() chooses it; NULL when there is none. In place. */
const char *proc_parse_cgroup(const char *text, size_t len, size_t *ret_len);

/*
 * The id of the container whose cgroup this is: the last run of 64 hexadecimal digits, as docker, podman, containerd and cri-o write it, bare
 * or between a prefix and ".scope". False when there is none.
 */
bool container_id_from_cgroup(const char *path, size_t len, char ret_id[CONTAINER_ID_ROOM]);

/*
 * The application that a .NET host runs, from its arguments (each ended by NUL): "Shop" for `dotnet /app/Shop.dll`. False when no argument
 * is an assembly. *ret_name points into the arguments.
 */
bool proc_parse_application(const char *args, size_t len, const char **ret_name, size_t *ret_len);

/*
 * The arguments as a table shows them, blanks between them: of the program only its file's name, and of a .NET host's application too.
 * "dotnet Shop.dll --urls URL"; options between the two are an ellipsis.
 */
void proc_shorten_command(const char *args, size_t len, struct bytes *out);

/* Length of a path that the kernel printed, without its " (deleted)". */
size_t proc_strip_deleted(const char *path, size_t len, bool *ret_deleted);

#endif
