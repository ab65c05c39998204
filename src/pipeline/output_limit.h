/*
 * Limits the size of a recording: to a requested size, to the space on its disk (a reserve stays
 * free), and to the limit of file sizes (RLIMIT_FSIZE). The session calls output_limit_check()
 * after each flush and ends while there is still room for the waiting data and the final events.
 * The size of unwritten data is only known afterwards, so the session also checks before each
 * sample, event and name whether there is room for it.
 *
 * Also releases cached pages of the file that are already on disk, if memory is limited and they
 * count against the target's limit.
 */
#ifndef SPOOR_PIPELINE_OUTPUT_LIMIT_H
#define SPOOR_PIPELINE_OUTPUT_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

struct diag;

/* Space that stays free on a file system: 5 % of it, at most this. */
#define OUTPUT_DISK_RESERVE_MAX UINT64_C(1000000000)

enum output_limit_kind { OUTPUT_NO_LIMIT, OUTPUT_SIZE_LIMIT, OUTPUT_DISK_LIMIT };

struct output_limit {
	int fd;              /* of the file; borrowed */
	bool on_disk;        /* a regular file */
	bool give_back;      /* release its cached pages */
	uint64_t size_max;   /* 0: none */
	uint64_t file_max;   /* RLIMIT_FSIZE; 0: none, or no regular file */
	uint64_t size_bytes; /* after the last flush */
	uint64_t largest_flush;
	uint64_t started_bytes; /* the kernel was asked to write out the file up to this offset */
	uint64_t given_bytes;   /* its cached pages were released up to this offset */
	/* samples and events that would exceed the file size are dropped; 0: no limit yet */
	uint64_t ceiling_bytes;
	enum output_limit_kind reached;
	char reason[128];
};

/*
 * The free bytes on the disk of a file or folder (for users other than root), and how many must stay
 * free. False: not known.
 */
bool output_limit_read_disk(int fd, uint64_t *ret_free, uint64_t *ret_reserve);

/* Returns -ENOSPC, with `diag` set, if the disk has too little space already. */
int output_limit_init(struct output_limit *limit, int fd, const char *name, uint64_t size_max,
	bool give_back, struct diag *diag);

/*
 * Called after a flush that left the file at this size. Returns the limit that has been reached;
 * `reason` describes it.
 */
enum output_limit_kind output_limit_check(struct output_limit *limit, uint64_t size_bytes);

/* True if a file of this size has room for names and final events only: others are dropped. */
bool output_limit_is_full(const struct output_limit *limit, uint64_t size_bytes);

/* True if a file of this size has reached the requested size: names are dropped too. */
bool output_limit_is_over(const struct output_limit *limit, uint64_t size_bytes);

#endif
