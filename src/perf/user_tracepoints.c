/* See user_tracepoints.h. */
#include "perf/user_tracepoints.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "machine/kernel_file.h"

#define PATH_ROOM 640u

static const char multi[] = "user_events_multi";

static int refuse(int error, struct diag *diag)
{
	if (error == -EACCES || error == -EPERM) {
		diag_set(diag, -EACCES,
			"cannot record user_events: this user may not read the tracepoints in /sys/kernel/tracing");
		diag_remedy(diag, "record with sudo");
		return -EACCES;
	}
	diag_set(diag, -EOPNOTSUPP, "cannot record user_events: tracefs is not mounted");
	diag_remedy(diag, "mount it: sudo mount -t tracefs nodev /sys/kernel/tracing");
	return -EOPNOTSUPP;
}

int user_tracepoints_open(struct user_tracepoints *ret_tracepoints, struct diag *diag)
{
	static const char *const roots[] = { "/sys/kernel/tracing", "/sys/kernel/debug/tracing" };
	struct stat status;
	int error = -ENOENT;

	for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++) {
		cleanup(closep) int root = open(roots[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		/* An empty folder is where tracefs is mounted. */
		if (root < 0 || fstatat(root, "events", &status, 0) < 0) {
			if (errno != ENOENT)
				error = -errno;
			continue;
		}
		if (fstatat(root, "user_events_data", &status, 0) < 0) {
			diag_set(diag, -ENOSYS,
				"cannot record user_events: this kernel has none (CONFIG_USER_EVENTS, Linux 6.4 or newer)");
			diag_remedy(diag,
				"--usdt and --lttng record the events of programs with other tracers");
			return -ENOSYS;
		}
		ret_tracepoints->root = TAKE_FD(root);
		return 0;
	}
	return refuse(error, diag);
}

static int list_group(int root, const char *group, unsigned *left, user_tracepoint_fn *each,
	void *context)
{
	char path[PATH_ROOM];

	(void)snprintf(path, sizeof(path), "events/%s", group); /* of our own names: it fits */
	int fd = openat(root, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	DIR *folder = fdopendir(fd);
	if (!folder) {
		(void)close(fd); /* nothing was written */
		return -ENOMEM;
	}
	for (struct dirent *entry; *left && (entry = readdir(folder));) {
		if (entry->d_name[0] == '.' || (entry->d_type != DT_DIR && entry->d_type))
			continue; /* enable, filter */
		--*left;
		each(context, group, entry->d_name);
	}
	closedir(folder);
	return 0;
}

int user_tracepoints_list(const struct user_tracepoints *tracepoints, user_tracepoint_fn *each,
	void *context)
{
	unsigned left = USER_TRACEPOINTS_LISTED_MAX;
	int result = list_group(tracepoints->root, "user_events", &left, each, context);

	return result < 0 ? result : list_group(tracepoints->root, multi, &left, each, context);
}

ssize_t user_tracepoints_read(const struct user_tracepoints *tracepoints, const char *group,
	const char *entry, char *text, size_t room)
{
	char path[PATH_ROOM];
	int len = snprintf(path, sizeof(path), "events/%s/%s/format", group, entry);

	if (len < 0 || (size_t)len >= sizeof(path))
		return -ENAMETOOLONG;
	return kernel_file_read(tracepoints->root, path, text, room);
}

size_t user_tracepoint_name_len(const char *group, const char *entry)
{
	const char *dot = strrchr(entry, '.');

	return dot && dot > entry && strcmp(group, multi) == 0 ? (size_t)(dot - entry)
							       : strlen(entry);
}

int user_tracepoints_open_data(const struct user_tracepoints *tracepoints, struct diag *diag)
{
	int fd = openat(tracepoints->root, "user_events_data", O_RDWR | O_CLOEXEC);

	if (fd >= 0)
		return fd;
	int error = -errno;
	diag_set(diag, error, "cannot register tracepoints with user_events_data: %m");
	if (error == -EACCES || error == -EPERM)
		diag_remedy(diag, "record with sudo");
	return error;
}

/* As the kernel has it (linux/user_events.h, which older headers lack). */
struct registration {
	uint32_t size;
	uint8_t enable_bit;
	uint8_t enable_size;
	uint16_t flags;
	uint64_t enable_address;
	uint64_t description;
	uint32_t index; /* written by the kernel */
} __attribute__((packed));

_Static_assert(sizeof(struct registration) == 28, "as the kernel has it");

int user_tracepoint_register(int data_fd, const char *description, uint32_t *word)
{
	struct registration request = { .size = sizeof(request),
		.enable_bit = 31,
		.enable_size = sizeof(*word),
		.enable_address = (uintptr_t)word,
		.description = (uintptr_t)description };

	return ioctl(data_fd, _IOWR('*', 0, void *), &request) < 0 ? -errno : 0;
}

void user_tracepoints_close(struct user_tracepoints *tracepoints)
{
	closep(&tracepoints->root);
	tracepoints->root = -1;
}
