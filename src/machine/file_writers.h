/* Whether a file is open for writing anywhere on this machine. */
#ifndef SPOOR_MACHINE_FILE_WRITERS_H
#define SPOOR_MACHINE_FILE_WRITERS_H

#include <stdbool.h>

/*
 * `fd` is open for reading only. False also if that is unknown: another user's file, a file system
 * without leases.
 */
bool file_has_writers(int fd);

#endif
