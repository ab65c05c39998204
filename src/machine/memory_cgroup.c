/* See memory_cgroup.h. */
#include "machine/memory_cgroup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "machine/cgroup.h"

#define TEXT_ROOM 8192u

/* Pages of files that were not used lately: the kernel reclaims them first. */
static uint64_t read_reclaimable(const struct cgroup *group)
{
	char text[TEXT_ROOM];
	uint64_t value;

	if (!cgroup_read(group, "memory.stat", text, sizeof(text)) ||
		!cgroup_parse_key(text, group->unified ? "inactive_file" : "total_inactive_file",
			&value))
		return 0;
	return value;
}

/* A value of /proc/meminfo in bytes; UINT64_MAX if the line is missing. */
static uint64_t machine_memory(const char *root, const char *key)
{
	char path[256];
	char line[256];
	uint64_t bytes = UINT64_MAX;

	if ((size_t)snprintf(path, sizeof(path), "%s/proc/meminfo", root) >= sizeof(path))
		return bytes;
	FILE *file = fopen(path, "re");

	while (file && fgets(line, sizeof(line), file)) {
		if (strncmp(line, key, strlen(key)) != 0)
			continue;
		bytes = strtoull(line + strlen(key), NULL, 10) * 1024;
		break;
	}
	if (file)
		(void)fclose(file); /* only read */
	return bytes;
}

/* pid 0: this process. */
static int read_group(const char *root, uint32_t pid, struct memory_cgroup *ret_group)
{
	struct cgroup group;
	struct memory_cgroup best = { .left_bytes = UINT64_MAX };
	uint64_t memory = machine_memory(root, "MemTotal:");

	if (cgroup_find(root, pid, "memory", &group) < 0)
		return -ENOENT;
	do {
		uint64_t limit;
		uint64_t used;
		if (!cgroup_read_number(&group,
			    group.unified ? "memory.max" : "memory.limit_in_bytes", &limit) ||
			!cgroup_read_number(&group,
				group.unified ? "memory.current" : "memory.usage_in_bytes",
				&used) ||
			limit >= memory)
			continue;
		uint64_t reclaimable = read_reclaimable(&group);
		used = used > reclaimable ? used - reclaimable : 0;
		uint64_t left = limit > used ? limit - used : 0;
		if (left >= best.left_bytes)
			continue;
		best = (struct memory_cgroup){
			.limit_bytes = limit, .used_bytes = used, .left_bytes = left
		};
		_Static_assert(sizeof(best.path) >= sizeof(group.path), "a path fits");
		memcpy(best.path, group.path, sizeof(group.path));
	} while (cgroup_up(&group));
	if (best.left_bytes == UINT64_MAX)
		return -ENOENT;
	*ret_group = best;
	return 0;
}

int memory_cgroup_read(const char *root, struct memory_cgroup *ret_group)
{
	return read_group(root, 0, ret_group);
}

uint64_t memory_cgroup_left(const char *root, uint32_t pid)
{
	struct memory_cgroup group;
	uint64_t available = machine_memory(root, "MemAvailable:");

	return read_group(root, pid, &group) == 0 && group.left_bytes < available ? group.left_bytes
										  : available;
}

bool memory_cgroup_holds(const char *root, const struct memory_cgroup *group, uint32_t pid)
{
	struct cgroup theirs;
	size_t len = strlen(group->path);

	if (cgroup_find(root, pid, "memory", &theirs) < 0)
		return false;
	return strncmp(theirs.path, group->path, len) == 0 &&
	       (theirs.path[len] == '/' || !theirs.path[len]);
}
