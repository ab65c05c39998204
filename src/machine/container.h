/*
 * The name of a container: docker, podman, cri-o, containerd's Kubernetes plugin and nerdctl store
 * it for each container id.
 *
 * The files that store it can usually be read only by root. Other users see the id.
 */
#ifndef SPOOR_MACHINE_CONTAINER_H
#define SPOOR_MACHINE_CONTAINER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONTAINER_NAME_ROOM 256u

/*
 * Calls `each` with every known name of the container, until it returns true. Returns whether it
 * did. `root` is a prefix of the paths: "" except in tests.
 */
bool container_names(const char *root, const char *id, bool (*each)(void *user, const char *name),
	void *user);

/*
 * Whether a process has its own host name: another UTS namespace than the caller. False also if
 * that is unknown.
 */
bool container_has_host_name(uint32_t pid);

/*
 * The host name of that namespace. False without CAP_SYS_ADMIN. A temporary thread enters the
 * namespace to read it; the caller's namespace does not change.
 */
bool container_host_name(uint32_t pid, char ret_name[CONTAINER_NAME_ROOM]);

/*
 * Finds the first member `key` in JSON, starting at *at, and returns its text; *at moves past the
 * member. False if there is none. Only the escapes of quote, slash and backslash are decoded.
 * Nesting is ignored, so the key must have the same meaning at every level.
 */
bool container_find_text(const char *json, size_t len, size_t *at, const char *key,
	char ret_text[CONTAINER_NAME_ROOM]);

#endif
