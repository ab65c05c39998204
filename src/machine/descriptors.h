/*
 * The limit of open files of this process (RLIMIT_NOFILE). To end a session, spoor needs free
 * descriptors, so the caller checks the limit before it opens one.
 */
#ifndef SPOOR_MACHINE_DESCRIPTORS_H
#define SPOOR_MACHINE_DESCRIPTORS_H

#include <stdbool.h>
#include <stddef.h>

/* Whether `count` more descriptors can be opened now. At most 8 are tried. */
bool descriptors_are_free(unsigned count);

/*
 * "the limit of open files of spoor, 64, is reached: ulimit -n 1024 raises it": a sentence part for
 * EMFILE.
 */
void descriptors_explain(char *out, size_t room);

#endif
