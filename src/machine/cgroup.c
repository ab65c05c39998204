/* See cgroup.h. */
#include "machine/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "machine/kernel_file.h"

#define TEXT_MAX (256u << 10) /* mountinfo is the largest */

static char *read_proc(const char *root, const char *path)
{
	char whole[3 * CGROUP_PATH_MAX];
	char *text = malloc(TEXT_MAX);

	if (text && ((size_t)snprintf(whole, sizeof(whole), "%s%s", root, path) >= sizeof(whole) ||
			    kernel_file_read(AT_FDCWD, whole, text, TEXT_MAX) < 0)) {
		free(text);
		text = NULL;
	}
	return text;
}

/* The next line, terminated with NUL; NULL at the end of the text. */
static char *next_line(char **at)
{
	char *line = *at;

	if (!line || !*line)
		return NULL;
	char *end = strchr(line, '\n');

	if (end)
		*end = '\0';
	*at = end ? end + 1 : line + strlen(line);
	return line;
}

/* Whether a comma-separated list contains this word. */
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

/* "4:memory:/x" of version 1, else "0::/x". */
int cgroup_parse_path(char *text, const char *controller, struct cgroup *group)
{
	char *at = text;
	int result = -ENOENT;

	for (char *line; (line = next_line(&at));) {
		char *names = strchr(line, ':');
		char *path = names ? strchr(names + 1, ':') : NULL;
		if (!path || strlen(path + 1) >= CGROUP_PATH_MAX || strstr(path, "/../"))
			continue;
		bool unified = names + 1 == path;
		if (!unified && !has_word(names + 1, (size_t)(path - names - 1), controller))
			continue;
		/* fits, as above */
		text_set(group->path, "%s", path + 1);
		group->unified = unified;
		result = 0;
		if (!unified)
			break;
	}
	return result;
}

static int find_path(const char *root, uint32_t pid, const char *controller, struct cgroup *group)
{
	char file[64];

	if (pid)
		text_set(file, "/proc/%u/cgroup", pid);
	else
		text_set(file, "/proc/self/cgroup");
	cleanup(freep) char *text = read_proc(root, file);

	return cgroup_parse_path(text, controller, group);
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

/* "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 none rw": root, mount point; then type, options */
int cgroup_parse_mount(char *text, const char *controller, struct cgroup *group)
{
	char *at = text;

	for (char *line; (line = next_line(&at));) {
		const char *dash = strstr(line, " - ");
		const char *wanted = group->unified ? "cgroup2" : "cgroup";
		size_t len;
		if (!dash)
			continue;
		const char *type = word(dash + 3, 0, &len);
		if (len != strlen(wanted) || memcmp(type, wanted, len) != 0)
			continue;
		const char *options = word(dash + 3, 2, &len);
		if (!group->unified && !has_word(options, len, controller))
			continue;
		const char *mounted = word(line, 3, &len);
		size_t hidden = len == 1 ? 0 : len; /* "/" hides nothing */
		/* /proc/PID/cgroup begins at the root, of which a container may mount a part. */
		bool below = strncmp(group->path, mounted, hidden) == 0 &&
			     (group->path[hidden] == '/' || !group->path[hidden]);
		const char *place = word(line, 4, &len);
		if (!len || len >= CGROUP_PATH_MAX)
			continue;
		group->hidden = below ? hidden : 0;
		memcpy(group->mount, place, len);
		group->mount[len] = '\0';
		return 0;
	}
	return -ENOENT;
}

static int find_mount(const char *controller, struct cgroup *group)
{
	cleanup(freep) char *text = read_proc(group->root, "/proc/self/mountinfo");

	return cgroup_parse_mount(text, controller, group);
}

static void drop_slash(struct cgroup *group)
{
	size_t len = strlen(group->path);

	if (len > group->hidden && group->path[len - 1] == '/')
		group->path[len - 1] = '\0';
}

int cgroup_find(const char *root, uint32_t pid, const char *controller, struct cgroup *ret_group)
{
	struct cgroup group = { .root = root };

	if (find_path(root, pid, controller, &group) < 0 || find_mount(controller, &group) < 0)
		return -ENOENT;
	drop_slash(&group);
	*ret_group = group;
	return 0;
}

bool cgroup_up(struct cgroup *group)
{
	if (strlen(group->path) <= group->hidden)
		return false;
	char *slash = strrchr(group->path, '/');

	if (!slash || (size_t)(slash - group->path) < group->hidden)
		return false;
	*slash = '\0';
	return true;
}

bool cgroup_read(const struct cgroup *group, const char *file, char *text, size_t room)
{
	char path[3 * CGROUP_PATH_MAX];

	if ((size_t)snprintf(path, sizeof(path), "%s%s%s/%s", group->root, group->mount,
		    group->path + group->hidden, file) >= sizeof(path))
		return false;
	return kernel_file_read(AT_FDCWD, path, text, room) >= 0;
}

/* Version 1 has a hierarchy for this; in version 2 each group but the topmost has the file. */
bool cgroup_find_freezable(const char *root, uint32_t pid, struct cgroup *ret_group)
{
	static const char *const controllers[] = { "freezer", "" };
	char text[64];

	for (size_t i = 0; i < sizeof(controllers) / sizeof(controllers[0]); i++)
		if (cgroup_find(root, pid, controllers[i], ret_group) == 0 &&
			cgroup_read(ret_group,
				ret_group->unified ? "cgroup.freeze" : "freezer.state", text,
				sizeof(text)))
			return true;
	return false;
}

bool cgroup_holds(const struct cgroup *group, uint32_t pid)
{
	struct cgroup other;
	size_t len = strlen(group->path);

	if (cgroup_find(group->root, pid, group->unified ? "" : "freezer", &other) < 0 ||
		other.unified != group->unified)
		return false;
	return strncmp(other.path, group->path, len) == 0 &&
	       (!other.path[len] || other.path[len] == '/');
}

bool cgroup_read_number(const struct cgroup *group, const char *file, uint64_t *ret_value)
{
	char text[64];

	if (!cgroup_read(group, file, text, sizeof(text)))
		return false;
	text[strcspn(text, "\n")] = '\0';
	/* "max" and "-1" are not numbers: they mean that there is no limit */
	return text_parse_u64(text, ret_value);
}

bool cgroup_parse_key(const char *text, const char *key, uint64_t *ret_value)
{
	size_t len = strlen(key);

	for (const char *line = text; *line;) {
		if (strncmp(line, key, len) == 0 && line[len] == ' ') {
			char number[24];
			size_t digits = strcspn(line + len + 1, "\n");
			if (digits >= sizeof(number))
				return false;
			memcpy(number, line + len + 1, digits);
			number[digits] = '\0';
			return text_parse_u64(number, ret_value);
		}
		line += strcspn(line, "\n");
		line += *line == '\n';
	}
	return false;
}
