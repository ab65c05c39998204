/*
 * Container names, as docker, podman, cri-o, containerd's Kubernetes plugin and nerdctl store them
 * for each id, usually readable only by root. Other users see the id.
 */
#ifndef SPOOR_MACHINE_CONTAINER_H
#define SPOOR_MACHINE_CONTAINER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONTAINER_NAME_ROOM 256u

/* Calls `each` with every known name until it returns true, and returns that. `root`: cgroup.h. */
bool container_names(const char *root, const char *id, bool (*each)(void *user, const char *name),
	void *user);

/* Whether its UTS namespace is not the caller's. False also if that is unknown. */
bool container_has_host_name(uint32_t pid);

/* The host name of that namespace, which a temporary thread enters. False without CAP_SYS_ADMIN. */
bool container_host_name(uint32_t pid, char ret_name[CONTAINER_NAME_ROOM]);

/*
 * The text of the first member `key` in JSON from *at on, which moves past it. False if there is
 * none. Only the escapes of quote, slash and backslash are decoded. Nesting is ignored, so the key
 * must have the same meaning at every level.
 */
bool container_find_text(const char *json, size_t len, size_t *at, const char *key,
	char ret_text[CONTAINER_NAME_ROOM]);

#endif
