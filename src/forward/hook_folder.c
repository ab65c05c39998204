/* See hook_folder.h. */
#include "forward/hook_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "base/write_all.h"
#include "code/metadata.h"
#include "image/image_file.h"
#include "image/pe.h"
#include "machine/kernel_file.h"
#include "machine/proc.h"
#include "machine/target_root.h"

#define PREFIX         "spoor-inject-"
#define RANDOM_DIGITS  16u
#define STATE          "state"
#define STATE_MAX      4096u
#define STATUS_ROOM    4096u
#define TOKEN_TYPE_DEF 0x02000000u
#define TYPES_MAX      4096u

static const char *const parents[] = { "/tmp", "/var/tmp", "/dev/shm" };
static const char *const files[] = { HOOK_ASSEMBLY, HOOK_LIBRARY, "settings", STATE, "state.new" };

/* ---- the assembly ---- */

static bool has_hook(const struct metadata *metadata)
{
	uint32_t count = metadata->rows[METADATA_TYPE_DEF];
	cleanup(bytes_done) struct bytes name = { 0 };

	if (!metadata_add_assembly(metadata, &name) || strcmp(bytes_z(&name), "Spoor.Inject") != 0)
		return false;
	for (uint32_t row = 1; row <= count && row <= TYPES_MAX; row++) {
		bytes_reset(&name);
		if (metadata_add_type(metadata, TOKEN_TYPE_DEF | row, &name) &&
			strcmp(bytes_z(&name), "StartupHook") == 0)
			return true;
	}
	return false;
}

int hook_check(const void *data, size_t size, struct diag *diag)
{
	struct image_file file;
	struct metadata metadata;
	struct pe pe = { 0 };
	uint64_t offset;

	image_file_from_memory(&file, data, size);
	int error = pe_read(&pe, &file, diag);
	if (error == 0 && (!pe.metadata_rva || !pe_offset_of_rva(&pe, pe.metadata_rva, &offset) ||
				  offset > size || pe.metadata_size > size - offset ||
				  metadata_read(&metadata, (const uint8_t *)data + offset,
					  pe.metadata_size) < 0 ||
				  !has_hook(&metadata)))
		error = diag_set(diag, -EBADMSG,
			"it is not the assembly Spoor.Inject with a class StartupHook");
	pe_done(&pe);
	return error;
}

/* ---- the folder ---- */

static int read_user(struct hook_folder *folder, uint32_t pid)
{
	struct proc_process process = { .uid = UINT32_MAX, .gid = UINT32_MAX };
	char path[64], text[STATUS_ROOM];

	snprintf(path, sizeof(path), "/proc/%u/status", pid);
	ssize_t n = kernel_file_read(AT_FDCWD, path, text, sizeof(text));
	if (n < 0)
		return (int)n;
	proc_parse_status(text, (size_t)n, &process);
	folder->uid = process.uid;
	folder->gid = process.gid;
	return process.uid == UINT32_MAX || process.gid == UINT32_MAX ? -ESRCH : 0;
}

/* The parent of a path that hook_folder_open() made, and the name below it; or NULL. */
static const char *parent_of(const char *path, const char **ret_name)
{
	for (size_t i = 0; i < sizeof(parents) / sizeof(*parents); i++) {
		size_t length = strlen(parents[i]);
		if (strncmp(path, parents[i], length) != 0 || path[length] != '/')
			continue;
		const char *name = path + length + 1;
		const char *digits = name + strlen(PREFIX);
		if (strncmp(name, PREFIX, strlen(PREFIX)) != 0 || strlen(digits) != RANDOM_DIGITS ||
			strspn(digits, "0123456789abcdef") != RANDOM_DIGITS)
			continue;
		*ret_name = name;
		return parents[i];
	}
	return NULL;
}

/* Makes the folder below `parent` unless it exists, and opens it. Negative errno. */
static int open_below(struct hook_folder *folder, int parent, const char *name)
{
	struct stat st;
	bool made = mkdirat(parent, name, 0700) == 0;

	if (!made && errno != EEXIST)
		return -errno;
	folder->fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (folder->fd < 0)
		return -errno;
	if (fstat(folder->fd, &st) < 0)
		return -errno;
	if (made)
		return fchmod(folder->fd, 0700) < 0 ||
				       (st.st_uid != folder->uid &&
					       fchown(folder->fd, folder->uid, folder->gid) < 0)
			       ? -errno
			       : 0;
	return st.st_uid == folder->uid ? 0 : -EPERM;
}

static int open_path(struct hook_folder *folder, const struct target_root *root, const char *path,
	struct diag *diag)
{
	const char *name = NULL;
	const char *above = parent_of(path, &name);
	int opened = -1;

	if (!above)
		return diag_set(diag, -EPERM, "'%s' is no folder of spoor inject", path);
	int error = target_root_open_folder(root, above, &opened, diag);
	cleanup(closep) int parent = opened;
	if (error < 0)
		return error;
	error = open_below(folder, parent, name);
	if (error < 0)
		return diag_set(diag, error, "cannot make the folder '%s' of process %u: %m", path,
			root->pid);
	snprintf(folder->path, sizeof(folder->path), "%s", path);
	return 0;
}

bool hook_folder_path(unsigned attempt, uint64_t number, char ret_path[HOOK_PATH_MAX])
{
	if (attempt >= sizeof(parents) / sizeof(*parents))
		return false;
	snprintf(ret_path, HOOK_PATH_MAX, "%s/" PREFIX "%016" PRIx64, parents[attempt], number);
	return true;
}

int hook_folder_open(struct hook_folder *folder, uint32_t pid, const char *path, struct diag *diag)
{
	struct target_root root = { .fd = -1 };

	*folder = (struct hook_folder){ .fd = -1 };
	int error = read_user(folder, pid);
	if (error < 0)
		return diag_set(diag, error, "cannot read the user of process %u: %m", pid);
	error = target_root_open(&root, pid, diag);
	if (error < 0)
		return error;
	error = open_path(folder, &root, path, diag);
	target_root_close(&root);
	if (error < 0)
		hook_folder_close(folder);
	return error;
}

/* ---- files ---- */

int hook_folder_put(const struct hook_folder *folder, const char *name, const void *data,
	size_t size, struct diag *diag)
{
	if (unlinkat(folder->fd, name, 0) < 0 && errno != ENOENT)
		return diag_set(diag, -errno, "cannot replace '%s/%s': %m", folder->path, name);
	cleanup(closep) int fd = openat(folder->fd, name,
		O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	int error = fd < 0 ? -errno : write_all(fd, data, size);

	if (error == 0 &&
		(fchmod(fd, 0700) < 0 ||
			(geteuid() != folder->uid && fchown(fd, folder->uid, folder->gid) < 0)))
		error = -errno;
	return error < 0 ? diag_set(diag, error, "cannot write '%s/%s': %m", folder->path, name)
			 : 0;
}

int hook_folder_state(const struct hook_folder *folder, struct bytes *out, struct diag *diag)
{
	char text[STATE_MAX];
	struct stat st;
	cleanup(closep) int fd =
		openat(folder->fd, STATE, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT)
		return -ENOENT;
	if (fd < 0 || fstat(fd, &st) < 0)
		return diag_set(diag, -errno, "cannot read '%s/" STATE "': %m", folder->path);
	if (!S_ISREG(st.st_mode))
		return diag_set(diag, -EBADMSG, "'%s/" STATE "' is not a regular file",
			folder->path);
	ssize_t n = read(fd, text, sizeof(text));
	if (n < 0)
		return diag_set(diag, -errno, "cannot read '%s/" STATE "': %m", folder->path);
	bytes_add(out, text, (size_t)n);
	return out->failed ? -ENOMEM : 0;
}

void hook_folder_forget_state(const struct hook_folder *folder)
{
	(void)unlinkat(folder->fd, STATE, 0);
}

void hook_folder_remove(struct hook_folder *folder, uint32_t pid)
{
	struct target_root root = { .fd = -1 };
	const char *name;
	const char *above = parent_of(folder->path, &name);
	int opened = -1;

	for (size_t i = 0; folder->fd >= 0 && i < sizeof(files) / sizeof(*files); i++)
		(void)unlinkat(folder->fd, files[i], 0);
	if (above && target_root_open(&root, pid, NULL) == 0) {
		if (target_root_open_folder(&root, above, &opened, NULL) == 0)
			(void)unlinkat(opened, name, AT_REMOVEDIR);
		target_root_close(&root);
	}
	if (opened >= 0)
		close(opened);
	hook_folder_close(folder);
}

void hook_folder_close(struct hook_folder *folder)
{
	if (folder->fd >= 0)
		close(folder->fd);
	folder->fd = -1;
}
