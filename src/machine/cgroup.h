/*
 * Control groups, of either version, in a container or not: where a process's group stands, and the files of it and of those above.
 *
 *   if (cgroup_find(root, pid, "cpu", &group) == 0)
 *           do
 *                   if (cgroup_read(&group, "cpu.max", text, sizeof(text))) ...
 *           while (cgroup_up(&group));
 *
 * `root` stands before /proc and /sys: "" but in tests.
 */
#ifndef SPOOR_MACHINE_CGROUP_H
#define SPOOR_MACHINE_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CGROUP_PATH_MAX 1024u

struct cgroup {
	const char *root;              /* borrowed */
	bool unified;                  /* version 2: other names of files */
	char path[CGROUP_PATH_MAX];    /* as /proc/PID/cgroup would name it */
	char mount[CGROUP_PATH_MAX];   /* where the hierarchy is mounted */
	size_t hidden;                 /* length of what `path` begins with that is above the mount */
};

/*
 * The group of a process (0: our own) in the hierarchy of a controller: that of version 1 where there is one, else the unified one. -ENOENT: there is none, or it
 * is not mounted here.
 */
int cgroup_find(const char *root, uint32_t pid, const char *controller, struct cgroup *ret_group);

/*
 * The two parsers of that, apart from the files, in place: /proc/PID/cgroup, then /proc/self/mountinfo for the group so found. NULL is an empty text.
 */
int cgroup_parse_path(char *text, const char *controller, struct cgroup *group);
int cgroup_parse_mount(char *text, const char *controller, struct cgroup *group);

/* To the group above; false when it was the topmost that is seen here. */
bool cgroup_up(struct cgroup *group);

/* A file of the group as text; false when there is none. What does not fit is cut. */
bool cgroup_read(const struct cgroup *group, const char *file, char *text, size_t room);

/* The number in a file; false also for "max", which is no limit. */
bool cgroup_read_number(const struct cgroup *group, const char *file, uint64_t *ret_value);

/*
 * The group of a process (0: our own) that can be frozen: then nothing in it runs, and that is not seen from within. False for the machine's topmost group,
 * and where nothing freezes groups.
 */
bool cgroup_find_freezable(const char *root, uint32_t pid, struct cgroup *ret_group);

/* Whether a process (0: our own) is in this group or in one below it. False also if that is unknown. */
bool cgroup_holds(const struct cgroup *group, uint32_t pid);

/* The number behind "key " at the begin of a line of the text. */
bool cgroup_parse_key(const char *text, const char *key, uint64_t *ret_value);

#endif
