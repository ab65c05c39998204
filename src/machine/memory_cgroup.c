/* See memory_cgroup.h. */
#include "machine/memory_cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"

#define TEXT_MAX   (256u << 10) /* of a file that is read: mountinfo is the largest */
#define LEVELS_MAX 64u

/* The hierarchy that has the memory controller, and the files it has. */
struct hierarchy {
	bool unified;
	char path[MEMORY_CGROUP_PATH_MAX];   /* of our group, in the hierarchy */
	char mount[MEMORY_CGROUP_PATH_MAX];  /* where it is mounted */
	char mounted[MEMORY_CGROUP_PATH_MAX]; /* which of its folders is mounted there */
};

/* A whole file as text, which the caller frees; NULL when it is not to be had. */
static char *read_text(const char *root, const char *path)
{
	char whole[3 * MEMORY_CGROUP_PATH_MAX];

	if ((size_t)snprintf(whole, sizeof(whole), "%s%s", root, path) >= sizeof(whole))
		return NULL;
	cleanup(closep) int fd = open(whole, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	cleanup(freep) char *text = fd >= 0 ? malloc(TEXT_MAX + 1) : NULL;
	size_t len = 0;

	while (text && len < TEXT_MAX) {
		ssize_t got = read(fd, text + len, TEXT_MAX - len);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return NULL;
		if (got == 0)
			break;
		len += (size_t)got;
	}
	if (text)
		text[len] = '\0';
	return TAKE(text);
}

/* Whether a list of words with commas between has this one. */
static bool has_word(const char *list, size_t len, const char *word)
{
	size_t word_len = strlen(word);

	while (len) {
		const char *comma = memchr(list, ',', len);
		size_t part = comma ? (size_t)(comma - list) : len;
		if (part == word_len && memcmp(list, word, part) == 0)
			return true;
		list += part + (comma ? 1 : 0);
		len -= part + (comma ? 1 : 0);
	}
	return false;
}

/* The next line, its end made a NUL; NULL when there is none. */
static char *next_line(char **at)
{
	char *line = *at;

	if (!*line)
		return NULL;
	char *end = strchr(line, '\n');

	if (end)
		*end = '\0';
	*at = end ? end + 1 : line + strlen(line);
	return line;
}

/* A process's group with the memory controller: "4:memory:/x" of version 1, else "0::/x". */
static int read_path(const char *root, const char *file, bool *ret_unified, char *out)
{
	cleanup(freep) char *text = read_text(root, file);
	char *at = text;
	int result = -ENOENT;

	if (!text)
		return -ENOENT;
	for (char *line; (line = next_line(&at));) {
		char *names = strchr(line, ':');
		char *path = names ? strchr(names + 1, ':') : NULL;
		if (!path || strlen(path + 1) >= MEMORY_CGROUP_PATH_MAX)
			continue;
		bool unified = names + 1 == path;
		if (!unified && !has_word(names + 1, (size_t)(path - names - 1), "memory"))
			continue;
		(void)snprintf(out, MEMORY_CGROUP_PATH_MAX, "%s", path + 1); /* fits, as above */
		*ret_unified = unified;
		result = 0;
		if (!unified)
			break;
	}
	return result;
}

/* The n-th word of a line; its length in *ret_len. */
static const char *word(const char *line, unsigned n, size_t *ret_len)
{
	while (n--) {
		line += strcspn(line, " ");
		line += strspn(line, " ");
	}
	*ret_len = strcspn(line, " ");
	return line;
}

static bool copy_word(const char *line, unsigned n, char *out)
{
	size_t len;
	const char *from = word(line, n, &len);

	if (!len || len >= MEMORY_CGROUP_PATH_MAX)
		return false;
	memcpy(out, from, len);
	out[len] = '\0';
	return true;
}

/* "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 none rw": root and place of the mount, behind the dash type and options. */
static int find_mount(const char *root, struct hierarchy *h)
{
	cleanup(freep) char *text = read_text(root, "/proc/self/mountinfo");
	char *at = text;

	if (!text)
		return -ENOENT;
	for (char *line; (line = next_line(&at));) {
		const char *dash = strstr(line, " - ");
		size_t len;
		if (!dash)
			continue;
		const char *type = word(dash + 3, 0, &len);
		const char *wanted = h->unified ? "cgroup2" : "cgroup";
		if (len != strlen(wanted) || memcmp(type, wanted, len) != 0)
			continue;
		const char *options = word(dash + 3, 2, &len);
		if (!h->unified && !has_word(options, len, "memory"))
			continue;
		if (copy_word(line, 3, h->mounted) && copy_word(line, 4, h->mount))
			return 0;
	}
	return -ENOENT;
}

static bool read_number(const char *root, const char *folder, const char *name, uint64_t *ret_value)
{
	char path[2 * MEMORY_CGROUP_PATH_MAX + 64];

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name); /* fits: `folder` is mount and path */
	cleanup(freep) char *text = read_text(root, path);

	if (!text)
		return false;
	text[strcspn(text, "\n")] = '\0';
	return text_parse_u64(text, ret_value); /* "max" is no number: no limit */
}

/* Pages of files that were not used lately: gone at once when somebody needs memory. */
static uint64_t read_reclaimable(const char *root, const char *folder, bool unified)
{
	const char *key = unified ? "inactive_file " : "total_inactive_file ";
	char path[2 * MEMORY_CGROUP_PATH_MAX + 64];
	uint64_t value = 0;

	(void)snprintf(path, sizeof(path), "%s/memory.stat", folder); /* as above */
	cleanup(freep) char *text = read_text(root, path);
	char *at = text;

	for (char *line; text && (line = next_line(&at));)
		if (strncmp(line, key, strlen(key)) == 0 && text_parse_u64(line + strlen(key), &value))
			return value;
	return 0;
}

static uint64_t machine_memory(const char *root)
{
	cleanup(freep) char *text = read_text(root, "/proc/meminfo");
	const char *line = text ? strstr(text, "MemTotal:") : NULL;

	return line ? strtoull(line + strlen("MemTotal:"), NULL, 10) * 1024 : UINT64_MAX;
}

int memory_cgroup_read(const char *root, struct memory_cgroup *ret_group)
{
	struct hierarchy h = { 0 };
	struct memory_cgroup best = { .left_bytes = UINT64_MAX };
	char inner[MEMORY_CGROUP_PATH_MAX] = "";
	uint64_t memory = machine_memory(root);

	if (read_path(root, "/proc/self/cgroup", &h.unified, h.path) < 0 || find_mount(root, &h) < 0)
		return -ENOENT;
	/* Where only a part of the hierarchy is mounted (a container), our group is named from the whole one's root. */
	size_t mounted_len = strcmp(h.mounted, "/") == 0 ? 0 : strlen(h.mounted);

	if (strncmp(h.path, h.mounted, mounted_len) == 0 && (h.path[mounted_len] == '/' || !h.path[mounted_len]))
		(void)snprintf(inner, sizeof(inner), "%s", h.path + mounted_len); /* shorter than path */
	else
		mounted_len = 0;
	for (unsigned i = 0; i < LEVELS_MAX; i++) {
		char folder[2 * MEMORY_CGROUP_PATH_MAX];
		uint64_t limit;
		uint64_t used;
		size_t len = strlen(inner);
		if (len && inner[len - 1] == '/')
			inner[--len] = '\0';
		(void)snprintf(folder, sizeof(folder), "%s%s", h.mount, inner); /* fits */
		if (read_number(root, folder, h.unified ? "memory.max" : "memory.limit_in_bytes", &limit) &&
			read_number(root, folder, h.unified ? "memory.current" : "memory.usage_in_bytes", &used) &&
			limit < memory) {
			uint64_t reclaimable = read_reclaimable(root, folder, h.unified);
			used = used > reclaimable ? used - reclaimable : 0;
			uint64_t left = limit > used ? limit - used : 0;
			if (left < best.left_bytes) {
				best.limit_bytes = limit;
				best.used_bytes = used;
				best.left_bytes = left;
				/* What is left of `inner` is a beginning of what was behind the mounted part. */
				memcpy(best.path, h.path, mounted_len + len);
				best.path[mounted_len + len] = '\0';
			}
		}
		if (!len)
			break;
		*strrchr(inner, '/') = '\0';
	}
	if (best.left_bytes == UINT64_MAX)
		return -ENOENT;
	*ret_group = best;
	return 0;
}

bool memory_cgroup_holds(const char *root, const struct memory_cgroup *group, uint32_t pid)
{
	char file[64];
	char path[MEMORY_CGROUP_PATH_MAX];
	bool unified;
	size_t len = strlen(group->path);

	(void)snprintf(file, sizeof(file), "/proc/%u/cgroup", pid); /* fits */
	if (read_path(root, file, &unified, path) < 0)
		return false;
	return strncmp(path, group->path, len) == 0 && (path[len] == '/' || !path[len]);
}
