/* This machine: name, system, processors, and a cache folder that is valid until the next boot. */
#ifndef SPOOR_MACHINE_BOX_H
#define SPOOR_MACHINE_BOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

struct diag;

#define BOX_CPUS_MAX 16384u /* a higher number means that the list is malformed */

struct box {
	char host[256];
	char kernel[128];        /* "6.18.44" as uname says it */
	char system[256];        /* PRETTY_NAME of os-release, or "Linux" */
	char architecture[72];   /* "x86_64" */
	char cpu_model[128];     /* "" unknown */
	char boot_id[40];        /* "" unknown */
	char virtualization[64]; /* "", "hypervisor", or the vendor's product name */
	uint32_t cpu_online;
	uint32_t cpu_possible;
	uint64_t memory_bytes;
	uint32_t page_size_bytes;
};

/* Never fails: an unknown value is "" or 0. */
void box_read(struct box *ret_box);

struct cpu_list {
	VEC(uint32_t) cpus; /* ascending */
};

/* CPUs online now. Ended with vec_done(&list.cpus). */
int box_read_online_cpus(struct cpu_list *list, struct diag *diag);

/*
 * One more than the highest number that a CPU of this machine can have, also one that is offline: the
 * numbers may have gaps. 0: unknown.
 */
uint32_t box_cpu_numbers(void);

/* "0-3,8,10-11" */
int box_parse_cpu_list(const char *text, size_t len, struct cpu_list *list);

/*
 * Opens this user's cache folder: /var/cache/spoor for root, else $XDG_CACHE_HOME/spoor or
 * ~/.cache/spoor. With `make` creates it with mode 0700. Fails if another user owns it or may write to it, or
 * if its last component is a link. The caller closes *ret_fd; ret_path is for messages.
 */
int box_open_own_cache(bool make, char *ret_path, size_t room, int *ret_fd, struct diag *diag);

/* Opens the folder `name` of `parent`, by the same rules: a descriptor, or a negative errno. */
int box_open_own_folder(int parent, const char *name, bool make);

/*
 * The cache folder of this boot, in box_open_own_cache(). Removes those of earlier boots. The
 * caller closes *ret_fd, and uses openat() on it with O_NOFOLLOW, never the path.
 */
int box_open_cache(const struct box *box, int *ret_fd, struct diag *diag);

#endif
