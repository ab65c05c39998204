/* See map_files.h. */
#include "machine/map_files.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "base/text.h"
#include "machine/target_root.h"

int map_files_remove(uint32_t pid, uint32_t inner_pid, uint32_t uid, struct diag *diag)
{
	static const char *const names[][2] = { { "perf-", ".map" }, { "perfinfo-", ".map" },
		{ "jit-", ".dump" } };
	struct target_root root;
	int removed = 0;
	int result = target_root_open(&root, pid, diag);

	if (result < 0)
		return result;
	/* Below its root, whatever links it has made of its /tmp. */
	struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	cleanup(closep) int folder = (int)syscall(SYS_openat2, root.fd, "tmp", &how, sizeof(how));

	if (folder < 0)
		result = diag_set(diag, -errno, "cannot look into /tmp of process %u: %m", pid);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && result == 0; i++) {
		char name[48];
		struct stat status;
		text_set(name, "%s%u%s", names[i][0], inner_pid, names[i][1]);
		if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) < 0 ||
			!S_ISREG(status.st_mode) || status.st_uid != uid)
			continue;
		if (unlinkat(folder, name, 0) < 0)
			result = diag_set(diag, -errno, "cannot remove '/tmp/%s' of process %u: %m",
				name, pid);
		else
			removed++;
	}
	target_root_close(&root);
	return result < 0 ? result : removed;
}
