/*
 * Files and memory as a target sees them.
 *
 * target_root_open() opens the target's own root, and paths are resolved inside it, so that no link
 * leads outside. Only regular files of bounded size are opened, without blocking. The target may
 * still change or truncate one, so it is read with pread(2) and never mapped. Without openat2
 * (before Linux 5.6) no path is opened: -ENOSYS, which the caller reports.
 */
#ifndef SPOOR_MACHINE_TARGET_ROOT_H
#define SPOOR_MACHINE_TARGET_ROOT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct diag;

struct target_root {
	uint32_t pid;
	int fd; /* -1: not open */
};

/* -ESRCH: the process has ended. -EACCES: we may not inspect the process. */
int target_root_open(struct target_root *root, uint32_t pid, struct diag *diag);
void target_root_close(struct target_root *root);

/* Our own root (pid 0), by the same rules: for paths that a target reported before it ended. */
int target_root_open_here(struct target_root *root, struct diag *diag);

/* Whether it is our own root, with our mounts. False also if that is unknown. */
bool target_root_is_ours(const struct target_root *root);

/* The caller closes *ret_fd. -EFBIG: larger than `size_max`. -EINVAL: not a regular file. */
int target_root_open_file(const struct target_root *root, const char *path, uint64_t size_max,
	int *ret_fd, uint64_t *ret_size_bytes, struct diag *diag);

/*
 * The same in one step, for one file of a target (pid 0: of our own root). /proc/PID/maps prints paths
 * from our root and perf events print them from the target's, so where the path does not exist it is
 * tried without the target's root. The target's program is found by its link in /proc as well.
 */
int target_file_open(uint32_t pid, const char *path, uint64_t size_max, int *ret_fd,
	uint64_t *ret_size_bytes, struct diag *diag);

/*
 * A path of /proc/PID/maps or /proc/PID/exe as the target sees it: without the target's root, if that is
 * a folder in our own (chroot). Else the same path.
 */
const char *target_path_in_root(uint32_t pid, const char *path);

/* *ret_fd is an O_PATH descriptor, which the caller closes. */
int target_root_open_folder(const struct target_root *root, const char *path, int *ret_fd,
	struct diag *diag);

/*
 * For a file that must come from the target itself (perf map, jitdump), as others could forge it in
 * /tmp. -EINVAL: the last component is a link. -EPERM: it is neither the target user's nor root's.
 */
int target_root_open_word(const struct target_root *root, const char *path, uint64_t size_max,
	int *ret_fd, uint64_t *ret_size_bytes, struct diag *diag);

/*
 * Opens a mapping's file, even if renamed or unlinked. -EINVAL: it is a memfd. Needs CAP_SYS_ADMIN
 * or CAP_CHECKPOINT_RESTORE.
 */
int target_map_file_open(uint32_t pid, uint64_t begin, uint64_t end, uint64_t size_max, int *ret_fd,
	uint64_t *ret_size_bytes, struct diag *diag);

/* The same, also for a memfd, for images of code that are made at run time. */
int target_image_open(uint32_t pid, uint64_t begin, uint64_t end, uint64_t size_max, int *ret_fd,
	uint64_t *ret_size_bytes, struct diag *diag);

/* The inode of its mount namespace; 0 if it is unknown. */
uint64_t target_mount_namespace(uint32_t pid);

/* Opens the target's memory; the caller closes *ret_fd. -EACCES or -EPERM: we may not trace it. */
int target_memory_open(uint32_t pid, int *ret_fd);

/* The number of bytes, 0 if the process has ended, -EIO if nothing is mapped at `address`. */
ssize_t target_memory_read(int fd, uint64_t address, void *buffer, size_t size);

#endif
