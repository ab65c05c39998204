/*
 * The limit of open files of this process (RLIMIT_NOFILE). A session that is open needs free descriptors for its end, so the caller checks before it opens one.
 */
#ifndef SPOOR_MACHINE_DESCRIPTORS_H
#define SPOOR_MACHINE_DESCRIPTORS_H

#include <stdbool.h>
#include <stddef.h>

/* Whether at least `count` more can be opened now; at most 8 are looked for. */
bool descriptors_are_free(unsigned count);

/* "the limit of open files of spoor, 64, is reached: ulimit -n 1024 raises it": a sentence part for EMFILE. */
void descriptors_explain(char *out, size_t room);

#endif
