/*
 * The limit of open files (RLIMIT_NOFILE): ending a session needs some, so check before opening. And
 * what a forked helper must not keep open.
 */
#ifndef SPOOR_MACHINE_DESCRIPTORS_H
#define SPOOR_MACHINE_DESCRIPTORS_H

#include <stdbool.h>
#include <stddef.h>

/* Whether `count` more descriptors can be opened now. At most 8 are tried. */
bool descriptors_are_free(unsigned count);

/* For EMFILE: "the limit of open files of spoor, 64, is reached: ulimit -n 1024 raises it" */
void descriptors_explain(char *out, size_t room);

/* Closes all descriptors but `kept`, which it sorts: for a helper that was just forked. */
void descriptors_close_but(int *kept, size_t count);

#endif
