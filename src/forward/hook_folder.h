/*
 * The folder in which `spoor inject` puts what a .NET process loads: the assembly of the startup
 * hook, libspoor, and its settings (managed/Spoor.Inject/README.md).
 *
 * It is below the process's own root. The process's user owns it, and may read and run its files.
 * A startup hook that cannot be loaded ends the process, so the assembly is checked before.
 */
#ifndef SPOOR_FORWARD_HOOK_FOLDER_H
#define SPOOR_FORWARD_HOOK_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bytes;
struct diag;

#define HOOK_ASSEMBLY     "Spoor.Inject.dll"
#define HOOK_LIBRARY      "libspoor.so.0"
#define HOOK_PATH_MAX     64u
#define HOOK_ASSEMBLY_MAX (1u << 20)
#define HOOK_LIBRARY_MAX  (64u << 20)

struct hook_folder {
	int fd;                   /* -1: not open */
	char path[HOOK_PATH_MAX]; /* as the process sees it */
	uint32_t uid;             /* whose it becomes */
	uint32_t gid;
};

/*
 * -EBADMSG unless these bytes are an assembly called Spoor.Inject with a class StartupHook. They are
 * foreign bytes.
 */
int hook_check(const void *data, size_t size, struct diag *diag);

/* The path of a new folder, whose name has this random number; false: there is no further `attempt` (0...). */
bool hook_folder_path(unsigned attempt, uint64_t number, char ret_path[HOOK_PATH_MAX]);

/*
 * Opens the folder `path` of the process, and makes it if it is gone. `path` may come from the
 * process: -EPERM if it is not such a folder of the process's user.
 */
int hook_folder_open(struct hook_folder *folder, uint32_t pid, const char *path, struct diag *diag);

/* Puts a file there, in place of an earlier one of this name. It belongs to the process's user. */
int hook_folder_put(const struct hook_folder *folder, const char *name, const void *data,
	size_t size, struct diag *diag);

/* Appends the file `state`. -ENOENT: it is not there yet. */
int hook_folder_state(const struct hook_folder *folder, struct bytes *out, struct diag *diag);

void hook_folder_forget_state(const struct hook_folder *folder);

/* Removes its files, and the folder if nothing else is in it. */
void hook_folder_remove(struct hook_folder *folder, uint32_t pid);

void hook_folder_close(struct hook_folder *folder);

#endif
