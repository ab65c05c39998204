/* The limit of open files (RLIMIT_NOFILE). Ending a session needs some: check before opening. */
#ifndef SPOOR_MACHINE_DESCRIPTORS_H
#define SPOOR_MACHINE_DESCRIPTORS_H

#include <stdbool.h>
#include <stddef.h>

/* Whether `count` more descriptors can be opened now. At most 8 are tried. */
bool descriptors_are_free(unsigned count);

/* For EMFILE: "the limit of open files of spoor, 64, is reached: ulimit -n 1024 raises it" */
void descriptors_explain(char *out, size_t room);

#endif
