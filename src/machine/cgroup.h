/*
 * Control groups of both versions: the group of a process, and the files of it and its ancestors.
 *
 *   if (cgroup_find(root, pid, "cpu", &group) == 0)
 *           do
 *                   if (cgroup_read(&group, "cpu.max", text, sizeof(text))) ...
 *           while (cgroup_up(&group));
 *
 * `root` is a prefix of /proc and /sys: "" except in tests. A pid of 0 is this process.
 */
#ifndef SPOOR_MACHINE_CGROUP_H
#define SPOOR_MACHINE_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CGROUP_PATH_MAX 1024u

struct cgroup {
	const char *root;            /* borrowed */
	bool unified;                /* version 2, whose files have other names */
	char path[CGROUP_PATH_MAX];  /* as /proc/PID/cgroup would name it */
	char mount[CGROUP_PATH_MAX]; /* where the hierarchy is mounted */
	size_t hidden;               /* length of the prefix of `path` that is above the mount */
};

/*
 * Finds the group in the controller's hierarchy of version 1 if it exists, else in the unified one.
 * -ENOENT: the hierarchy does not exist or is not mounted here.
 */
int cgroup_find(const char *root, uint32_t pid, const char *controller, struct cgroup *ret_group);

/* The parsers of /proc/PID/cgroup and /proc/self/mountinfo; they change the text, or NULL. */
int cgroup_parse_path(char *text, const char *controller, struct cgroup *group);
int cgroup_parse_mount(char *text, const char *controller, struct cgroup *group);

/* Moves to the parent group; false if the group is the topmost visible one. */
bool cgroup_up(struct cgroup *group);

/* A file of the group as text, cut if it does not fit; false if the file does not exist. */
bool cgroup_read(const struct cgroup *group, const char *file, char *text, size_t room);

/* The number in a file; false also for "max", which is no limit. */
bool cgroup_read_number(const struct cgroup *group, const char *file, uint64_t *ret_value);

/*
 * Finds a group of the process that can be frozen. A frozen process cannot observe that. False for
 * the topmost group of the machine, and if groups cannot be frozen here.
 */
bool cgroup_find_freezable(const char *root, uint32_t pid, struct cgroup *ret_group);

/* Whether a process is in this group or below. False also if that is unknown. */
bool cgroup_holds(const struct cgroup *group, uint32_t pid);

/* The number after "key " at the begin of a line of the text. */
bool cgroup_parse_key(const char *text, const char *key, uint64_t *ret_value);

#endif
