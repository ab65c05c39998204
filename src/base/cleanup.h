/*
 * Local variables that their scope's end releases: `cleanup(closep) int fd = open(...)`. TAKE(x)
 * returns the value and leaves the empty value, which the cleanup ignores.
 */
#ifndef SPOOR_BASE_CLEANUP_H
#define SPOOR_BASE_CLEANUP_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define cleanup(function) __attribute__((cleanup(function)))

/* The value of the pointer `p`; `p` itself becomes NULL. */
#define TAKE(p)                             \
	({                                  \
		__typeof__(p) taken_ = (p); \
		(p) = NULL;                 \
		taken_;                     \
	})

/* The descriptor `fd`; `fd` itself becomes -1. */
#define TAKE_FD(fd)                   \
	({                            \
		int taken_fd_ = (fd); \
		(fd) = -1;            \
		taken_fd_;            \
	})

static inline void closep(const int *fd)
{
	if (*fd >= 0)
		(void)close(*fd); /* a failing close of a file that was only read has no remedy */
}

static inline void freep(void *pointer_to_pointer)
{
	free(*(void **)pointer_to_pointer);
}

static inline void fclosep(FILE **file)
{
	if (*file)
		/* a failing close of a file that was only read has no remedy */
		(void)fclose(*file);
}

#endif
