/*
 * How large a recording may become: up to a size that was asked for, and never so far that its disk is full or that it meets the limit of file sizes
 * (RLIMIT_FSIZE). The session asks after each flush and
 * ends while there is still room for what waits and for the last words. What waits is not known before it is written, so the session also asks
 * before each sample, event and name whether there is room for it.
 *
 * Also here: pages of the file that are on the disk are given back, where memory is limited and they count against the target too.
 */
#ifndef SPOOR_PIPELINE_OUTPUT_LIMIT_H
#define SPOOR_PIPELINE_OUTPUT_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

struct diag;

/* Left free of a file system: 5 %, or this if that is more. */
#define OUTPUT_DISK_RESERVE_MAX UINT64_C(1000000000)

enum output_limit_kind { OUTPUT_NO_LIMIT, OUTPUT_SIZE_LIMIT, OUTPUT_DISK_LIMIT };

struct output_limit {
	int fd;                  /* of the file; borrowed */
	bool on_disk;            /* a regular file */
	bool give_back;          /* pages of it */
	uint64_t size_max;       /* 0: none */
	uint64_t file_max;       /* RLIMIT_FSIZE; 0: none, or no regular file */
	uint64_t size_bytes;     /* after the last flush */
	uint64_t largest_flush;
	uint64_t started_bytes;  /* up to here the kernel was asked to write it out */
	uint64_t given_bytes;    /* up to here its pages were given back */
	uint64_t ceiling_bytes;  /* samples and events that would make the file larger are left out, and counted; 0: none yet */
	enum output_limit_kind reached;
	char reason[128];
};

/* -ENOSPC, told, when its disk has too little room to begin with. */
int output_limit_init(struct output_limit *limit, int fd, const char *name, uint64_t size_max, bool give_back,
	struct diag *diag);

/* After a flush that left the file at this size: what kind of limit has been reached, and why in `reason`. */
enum output_limit_kind output_limit_check(struct output_limit *limit, uint64_t size_bytes);

/* A file of this size has room for names and the last words only: samples and events are left out. */
bool output_limit_is_full(const struct output_limit *limit, uint64_t size_bytes);

/* A file of this size has reached the requested size: names are left out too. */
bool output_limit_is_over(const struct output_limit *limit, uint64_t size_bytes);

#endif
