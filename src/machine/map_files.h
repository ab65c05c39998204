/* The perf map and jitdump in a runtime's /tmp: found and removed, as the target sees them. */
#ifndef SPOOR_MACHINE_MAP_FILES_H
#define SPOOR_MACHINE_MAP_FILES_H

#include <stdint.h>

struct diag;

/*
 * Removes perf-PID.map, perfinfo-PID.map and jit-PID.dump of a process, in its own terms, from its
 * own /tmp: regular files that belong to its user only. `uid` is the process's. Returns how many,
 * or a negative errno.
 */
int map_files_remove(uint32_t pid, uint32_t inner_pid, uint32_t uid, struct diag *diag);

#endif
