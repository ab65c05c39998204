/*
 * What people call a container: the name that docker, podman, cri-o, containerd's Kubernetes plugin and nerdctl keep for an id.
 *
 * They keep it in files of their own, which only root may read mostly; whoever may not has the id.
 */
#ifndef SPOOR_MACHINE_CONTAINER_H
#define SPOOR_MACHINE_CONTAINER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONTAINER_NAME_ROOM 256u

/*
 * Calls `each` with every name that is known for the container of this id, until it returns true, which is then returned. `root` stands before the paths:
 * "" but in tests.
 */
bool container_names(const char *root, const char *id, bool (*each)(void *user, const char *name), void *user);

/* Whether a process has a host name of its own: another UTS namespace than the caller. False also if that is unknown. */
bool container_has_host_name(uint32_t pid);

/* That host name. False without CAP_SYS_ADMIN. A thread of its own enters the namespace to read it, so the caller stays where it is. */
bool container_host_name(uint32_t pid, char ret_name[CONTAINER_NAME_ROOM]);

/*
 * The text of the first member `key` in JSON, from *at on, which moves behind it. False: none. Escapes other than of quote, slash and backslash are left as they
 * are. Nothing is known of nesting, so that the key must be one that means the same wherever it stands.
 */
bool container_find_text(const char *json, size_t len, size_t *at, const char *key,
	char ret_text[CONTAINER_NAME_ROOM]);

#endif
