/* See output_limit.h. */
#include "pipeline/output_limit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "base/text.h"

/* room for waiting data and final events: so many largest flushes, at most half of the size */
#define FLUSHES_AHEAD 2u
#define MARGIN_MIN    (16u << 10)
/*
 * room for the names of the last samples and the final events; at most an eighth of the file size
 */
#define LAST_WORDS      (256u << 10)
#define GIVE_BACK_BYTES (1u << 20) /* cached pages are released in pieces of at least this size */

bool output_limit_read_disk(int fd, uint64_t *ret_free, uint64_t *ret_reserve)
{
	struct statvfs disk;

	if (fstatvfs(fd, &disk) < 0 || !disk.f_blocks)
		return false;
	uint64_t all = (uint64_t)disk.f_blocks * disk.f_frsize;

	*ret_free = (uint64_t)disk.f_bavail * disk.f_frsize;
	*ret_reserve = all / 20 < OUTPUT_DISK_RESERVE_MAX ? all / 20 : OUTPUT_DISK_RESERVE_MAX;
	return true;
}

static uint64_t last_words(uint64_t size_max)
{
	return size_max / 8 < LAST_WORDS ? size_max / 8 : LAST_WORDS;
}

/* Writes `before`, the size as text, and `after` to `out`, which is large enough. */
static void say_size(char *out, size_t room, const char *before, uint64_t size_bytes,
	const char *after)
{
	cleanup(bytes_done) struct bytes size = { 0 };

	text_add_size(&size, size_bytes);
	(void)snprintf(out, room, "%s%s%s", before, bytes_z(&size), after);
}

int output_limit_init(struct output_limit *limit, int fd, const char *name, uint64_t size_max,
	bool give_back, struct diag *diag)
{
	struct stat status;
	uint64_t free_bytes;
	uint64_t reserve;

	*limit = (struct output_limit){ .fd = fd, .size_max = size_max };
	limit->on_disk = fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
	limit->give_back = give_back && limit->on_disk;
	struct rlimit file;
	if (limit->on_disk && getrlimit(RLIMIT_FSIZE, &file) == 0 && file.rlim_cur != RLIM_INFINITY)
		limit->file_max = (uint64_t)file.rlim_cur ? (uint64_t)file.rlim_cur : 1;
	if (size_max)
		limit->ceiling_bytes = size_max - last_words(size_max);
	if (!limit->on_disk || !output_limit_read_disk(fd, &free_bytes, &reserve) ||
		free_bytes > reserve + MARGIN_MIN)
		return 0;
	char left[64];

	say_size(left, sizeof(left), "", reserve, "");
	diag_set(diag, -ENOSPC,
		"cannot write '%s': its disk is nearly full, and the last %s of it stay free", name,
		left);
	diag_remedy(diag, "make room on the disk, or write to another one with -o");
	return -ENOSPC;
}

/*
 * Asks the kernel to start writing the new part of the file, and releases the pages of the part
 * before, which is on disk by now.
 */
static void give_back(struct output_limit *limit, uint64_t size_bytes)
{
	if (size_bytes < limit->started_bytes + GIVE_BACK_BYTES)
		return;
	/* Both calls are hints: if they fail, memory is used longer, but no data is lost. */
	(void)sync_file_range(limit->fd, (off_t)limit->started_bytes,
		(off_t)(size_bytes - limit->started_bytes), SYNC_FILE_RANGE_WRITE);
	(void)posix_fadvise(limit->fd, (off_t)limit->given_bytes,
		(off_t)(limit->started_bytes - limit->given_bytes), POSIX_FADV_DONTNEED);
	limit->given_bytes = limit->started_bytes;
	limit->started_bytes = size_bytes;
}

static void lower_ceiling(struct output_limit *limit, uint64_t ceiling_bytes)
{
	if (!limit->ceiling_bytes || ceiling_bytes < limit->ceiling_bytes)
		limit->ceiling_bytes = ceiling_bytes;
}

enum output_limit_kind output_limit_check(struct output_limit *limit, uint64_t size_bytes)
{
	uint64_t flushed = size_bytes > limit->size_bytes ? size_bytes - limit->size_bytes : 0;
	uint64_t free_bytes;
	uint64_t reserve;

	if (limit->reached)
		return limit->reached;
	/* The first flush contains the header of the file, which is written only one time. */
	if (limit->size_bytes && flushed > limit->largest_flush)
		limit->largest_flush = flushed;
	limit->size_bytes = size_bytes;
	if (limit->give_back)
		give_back(limit, size_bytes);
	uint64_t margin = FLUSHES_AHEAD * limit->largest_flush;
	uint64_t size_margin = margin < limit->size_max / 2 ? margin : limit->size_max / 2;

	if (limit->size_max && (size_bytes + size_margin >= limit->size_max ||
				       size_bytes >= limit->ceiling_bytes)) {
		limit->reached = OUTPUT_SIZE_LIMIT;
		say_size(limit->reason, sizeof(limit->reason),
			"the recording has reached its greatest size, ", limit->size_max, "");
		return limit->reached;
	}
	/*
	 * The data written after this check fits into an eighth of the file size, or LAST_WORDS, as
	 * for a requested size.
	 */
	if (limit->file_max &&
		size_bytes + margin + last_words(limit->file_max) >= limit->file_max) {
		limit->reached = OUTPUT_DISK_LIMIT;
		lower_ceiling(limit, limit->file_max - last_words(limit->file_max));
		say_size(limit->reason, sizeof(limit->reason),
			"the recording has reached the limit of file sizes, ", limit->file_max,
			" (ulimit -f)");
		return limit->reached;
	}
	if (margin < MARGIN_MIN)
		margin = MARGIN_MIN;
	if (limit->on_disk && output_limit_read_disk(limit->fd, &free_bytes, &reserve) &&
		free_bytes <= reserve + margin) {
		limit->reached = OUTPUT_DISK_LIMIT;
		lower_ceiling(limit, size_bytes + margin);
		say_size(limit->reason, sizeof(limit->reason),
			"the disk is nearly full, and the last ", reserve, " of it stay free");
	}
	return limit->reached;
}

bool output_limit_is_full(const struct output_limit *limit, uint64_t size_bytes)
{
	return limit->ceiling_bytes && size_bytes >= limit->ceiling_bytes;
}

bool output_limit_is_over(const struct output_limit *limit, uint64_t size_bytes)
{
	return limit->size_max && size_bytes >= limit->size_max;
}
