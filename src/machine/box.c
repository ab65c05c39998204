/*
 * Facts about the machine come from uname, /proc and /sys; those that a container hides are empty.
 *
 * The cache folder holds kernel symbols, which name every frame of a recording, so only our own
 * user may be able to write them. Each component of its path is opened without following links and
 * checked on the open descriptor.
 */
#include "machine/box.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "machine/kernel_file.h"

/* size limit of a file that is read; the values that we need are at its begin */
#define FILE_ROOM 16384u

/* The first line of a file, sanitized for a terminal. Empty if the file cannot be read. */
static void read_line(const char *path, char *out, size_t room)
{
	char text[512];
	size_t len = 0;

	out[0] = 0;
	if (kernel_file_read(AT_FDCWD, path, text, sizeof(text)) <= 0)
		return;
	for (const char *p = text; *p && *p != '\n' && len + 1 < room; p++)
		out[len++] = *p;
	out[len] = 0;
}

/* The text after `key` at the begin of a line, up to the end of the line, without quotes. */
static void find_value(const char *text, const char *key, char *out, size_t room)
{
	size_t key_len = strlen(key);
	size_t len = 0;

	for (const char *line = text; line && *line;) {
		if (!strncmp(line, key, key_len)) {
			for (const char *p = line + key_len; *p && *p != '\n' && len + 1 < room;
				p++)
				if (*p != '"')
					out[len++] = *p;
			break;
		}
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	out[len] = 0;
}

static void read_system(char *out, size_t room)
{
	char text[FILE_ROOM];

	out[0] = 0;
	if (kernel_file_read(AT_FDCWD, "/etc/os-release", text, sizeof(text)) > 0 ||
		kernel_file_read(AT_FDCWD, "/usr/lib/os-release", text, sizeof(text)) > 0)
		find_value(text, "PRETTY_NAME=", out, room);
	if (!out[0])
		snprintf(out, room, "Linux");
}

/* The model, whose key differs between architectures, and whether this is a virtual machine. */
static void read_processor(struct box *box)
{
	static const char *const keys[] = {
		"model name\t: ", "Model\t\t: ", "cpu\t\t: ", "uarch\t\t: "
	};
	char text[FILE_ROOM];
	char flags[4096];

	if (kernel_file_read(AT_FDCWD, "/proc/cpuinfo", text, sizeof(text)) <= 0)
		return;
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]) && !box->cpu_model[0]; i++)
		find_value(text, keys[i], box->cpu_model, sizeof(box->cpu_model));
	read_line("/sys/class/dmi/id/product_name", box->virtualization,
		sizeof(box->virtualization));
	find_value(text, "flags\t\t: ", flags, sizeof(flags));
	if (!strstr(flags, " hypervisor"))
		box->virtualization[0] = 0;
	else if (!box->virtualization[0])
		snprintf(box->virtualization, sizeof(box->virtualization), "hypervisor");
}

int box_parse_cpu_list(const char *text, size_t len, struct cpu_list *list)
{
	const char *at = text;
	const char *end = text + len;

	while (at < end && *at != '\n' && *at != 0) {
		uint32_t range[2];
		unsigned n = 0;
		do {
			uint32_t value = 0;
			const char *begin = at;
			for (; at < end && *at >= '0' && *at <= '9' && value < BOX_CPUS_MAX; at++)
				value = value * 10 + (uint32_t)(*at - '0');
			if (at == begin || value >= BOX_CPUS_MAX)
				return -EBADMSG;
			range[n++] = value;
		} while (n < 2 && at < end && *at == '-' && at++);
		if (n == 1)
			range[1] = range[0];
		if (range[1] < range[0] || (list->cpus.count && *vec_last(&list->cpus) >= range[0]))
			return -EBADMSG;
		for (uint32_t cpu = range[0]; cpu <= range[1]; cpu++)
			if (!vec_add(&list->cpus, cpu))
				return -ENOMEM;
		if (at < end && *at == ',')
			at++;
		else if (at < end && *at != '\n' && *at != 0)
			return -EBADMSG;
	}
	return 0;
}

static int read_cpus(const char *path, struct cpu_list *list)
{
	char text[FILE_ROOM];

	ssize_t n = kernel_file_read(AT_FDCWD, path, text, sizeof(text));
	return n < 0 ? (int)n : box_parse_cpu_list(text, (size_t)n, list);
}

int box_read_online_cpus(struct cpu_list *list, struct diag *diag)
{
	int r = read_cpus("/sys/devices/system/cpu/online", list);

	if (r == -ENOMEM)
		return diag_set(diag, r, "no memory for the list of CPUs");
	if (r >= 0 && list->cpus.count)
		return 0;
	/* This container has no /sys: the processors are assumed to be numbered from 0. */
	vec_reset(&list->cpus);
	long count = sysconf(_SC_NPROCESSORS_ONLN);
	if (count < 1 || count > (long)BOX_CPUS_MAX)
		return diag_set(diag, r < 0 ? r : -EBADMSG, "cannot tell which CPUs are online");
	for (uint32_t cpu = 0; cpu < (uint32_t)count; cpu++)
		if (!vec_add(&list->cpus, cpu))
			return diag_set(diag, -ENOMEM, "no memory for the list of CPUs");
	return 0;
}

uint32_t box_cpu_numbers(void)
{
	struct cpu_list list = { 0 };
	long count = sysconf(_SC_NPROCESSORS_CONF);

	if (read_cpus("/sys/devices/system/cpu/possible", &list) == 0 && list.cpus.count)
		count = (long)*vec_last(&list.cpus) + 1;
	vec_done(&list.cpus);
	return count > 0 ? (uint32_t)count : 0;
}

static uint32_t count_cpus(const char *path, int name)
{
	struct cpu_list list = { 0 };
	long count = sysconf(name);

	if (read_cpus(path, &list) == 0 && list.cpus.count)
		count = (long)list.cpus.count;
	vec_done(&list.cpus);
	return count > 0 ? (uint32_t)count : 0;
}

void box_read(struct box *ret_box)
{
	struct utsname name;
	struct box *box = ret_box;

	memset(box, 0, sizeof(*box));
	if (uname(&name) == 0) {
		snprintf(box->host, sizeof(box->host), "%s", name.nodename);
		snprintf(box->kernel, sizeof(box->kernel), "%s", name.release);
		snprintf(box->architecture, sizeof(box->architecture), "%s", name.machine);
	}
	read_system(box->system, sizeof(box->system));
	read_processor(box);
	read_line("/proc/sys/kernel/random/boot_id", box->boot_id, sizeof(box->boot_id));
	box->cpu_online = count_cpus("/sys/devices/system/cpu/online", _SC_NPROCESSORS_ONLN);
	box->cpu_possible = count_cpus("/sys/devices/system/cpu/possible", _SC_NPROCESSORS_CONF);
	long page = sysconf(_SC_PAGESIZE);
	long pages = sysconf(_SC_PHYS_PAGES);
	box->page_size_bytes = page > 0 ? (uint32_t)page : 0;
	box->memory_bytes = page > 0 && pages > 0 ? (uint64_t)page * (uint64_t)pages : 0;
}

/* Opens a folder, or creates it. Fails if another user owns it or may write to it. */
int box_open_own_folder(int parent, const char *name, bool make)
{
	struct stat st;

	if (make && mkdirat(parent, name, 0700) < 0 && errno != EEXIST)
		return -errno;
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0 || st.st_uid != geteuid() || (st.st_mode & 022)) {
		(void)close(fd); /* not ours: not to be used */
		return -EPERM;
	}
	return fd;
}

/* A name that this module may have created: hexadecimal digits and dashes. */
static bool is_boot_id(const char *name)
{
	return strlen(name) == 36 && strspn(name, "0123456789abcdef-") == 36;
}

/* Removes the folders of earlier boots, which are out of date. Failures are harmless. */
static void remove_old(int parent, const char *boot_id)
{
	int fd = openat(parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir) {
		closep(&fd);
		return;
	}
	for (const struct dirent *entry; (entry = readdir(dir));) {
		if (!is_boot_id(entry->d_name) || !strcmp(entry->d_name, boot_id))
			continue;
		int old = openat(parent, entry->d_name,
			O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		DIR *files = old < 0 ? NULL : fdopendir(old);
		if (!files) {
			closep(&old);
			continue;
		}
		for (const struct dirent *file; (file = readdir(files));)
			if (strcmp(file->d_name, ".") && strcmp(file->d_name, ".."))
				(void)unlinkat(dirfd(files), file->d_name, 0);
		(void)closedir(files);
		(void)unlinkat(parent, entry->d_name, AT_REMOVEDIR);
	}
	(void)closedir(dir);
}

int box_open_own_cache(bool make, char *ret_path, size_t room, int *ret_fd, struct diag *diag)
{
	char base[PATH_MAX];
	/* With borrowed capabilities it would be created wherever the user says. */
	const char *xdg = secure_getenv("XDG_CACHE_HOME");
	const char *home = secure_getenv("HOME");
	int len = -1;

	if (xdg && xdg[0] == '/' && geteuid() != 0)
		len = snprintf(base, sizeof(base), "%s", xdg);
	else if (geteuid() == 0)
		len = snprintf(base, sizeof(base), "/var/cache");
	else if (home && home[0] == '/')
		len = snprintf(base, sizeof(base), "%s/.cache", home);
	if (len < 0 || (size_t)len >= sizeof(base))
		return diag_set(diag, -ENOENT,
			"no cache: neither XDG_CACHE_HOME nor HOME names a folder");

	if (make && mkdir(base, 0700) < 0 && errno != EEXIST)
		return diag_set(diag, -errno, "no cache: cannot make '%s': %m", base);
	cleanup(closep) int parent = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (parent < 0)
		return diag_set(diag, -errno, "no cache: cannot open '%s': %m", base);
	int ours = box_open_own_folder(parent, "spoor", make);
	if (ours < 0)
		return diag_set(diag, ours, "no cache: '%s/spoor' cannot be trusted or made: %m",
			base);
	len = snprintf(ret_path, room, "%s/spoor", base);
	if (len < 0 || (size_t)len >= room) {
		closep(&ours);
		return diag_set(diag, -ENAMETOOLONG, "no cache: '%s' is too long", base);
	}
	*ret_fd = ours;
	return 0;
}

int box_open_cache(const struct box *box, int *ret_fd, struct diag *diag)
{
	char path[PATH_MAX];
	cleanup(closep) int ours = -1;

	if (!is_boot_id(box->boot_id))
		return diag_set(diag, -ENOENT, "no cache: this boot has no id");
	int result = box_open_own_cache(true, path, sizeof(path), &ours, diag);
	if (result < 0)
		return result;
	int fd = box_open_own_folder(ours, box->boot_id, true);
	if (fd < 0)
		return diag_set(diag, fd, "no cache: '%s/%s' cannot be trusted or made: %m", path,
			box->boot_id);
	remove_old(ours, box->boot_id);
	*ret_fd = fd;
	return 0;
}
