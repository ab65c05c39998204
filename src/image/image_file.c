/* See image_file.h. */
#include "image/image_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/diag.h"

#define PAGE_BYTES      ((size_t)4 << 10)
#define HUGE_PAGE_BYTES ((size_t)2 << 20)
#define LARGE_BLOCK     ((size_t)256 << 10)

int image_file_from_fd(struct image_file *file, int fd, struct diag *diag)
{
	struct stat info;

	if (fstat(fd, &info) < 0)
		return diag_set(diag, -errno, "cannot look at the image: %m");
	if (!S_ISREG(info.st_mode))
		return diag_set(diag, -EINVAL, "cannot read the image: not a regular file");
	if (info.st_size < 0 || (uint64_t)info.st_size > IMAGE_SIZE_MAX)
		return diag_set(diag, -EFBIG, "cannot read the image: %lld bytes are too many",
			(long long)info.st_size);
	*file = (struct image_file){ .fd = fd, .size_bytes = (uint64_t)info.st_size };
	return 0;
}

void image_file_from_memory(struct image_file *file, const void *data, size_t size)
{
	*file = (struct image_file){ .fd = -1, .memory = data, .size_bytes = size };
}

int image_file_read(const struct image_file *file, uint64_t offset, void *buffer, size_t size)
{
	uint8_t *to = buffer;

	if (offset > file->size_bytes || size > file->size_bytes - offset)
		return -EBADMSG;
	if (file->fd < 0) {
		if (size)
			memcpy(to, file->memory + offset, size);
		return 0;
	}
	while (size) {
		ssize_t got = pread(file->fd, to, size, (off_t)offset);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			return -EBADMSG; /* the file was truncated meanwhile */
		to += got;
		size -= (size_t)got;
		offset += (uint64_t)got;
	}
	return 0;
}

/* A page fault for each 4 KiB costs as much as reading them. */
uint8_t *image_block_new(size_t size)
{
	void *block = NULL;

	if (size < LARGE_BLOCK)
		return malloc(size);
	if (posix_memalign(&block, size < HUGE_PAGE_BYTES ? PAGE_BYTES : HUGE_PAGE_BYTES, size) !=
		0)
		return NULL;
	size_t whole = size / PAGE_BYTES * PAGE_BYTES;
	/* Hints: reading is only slower without them. */
	(void)madvise(block, whole, MADV_HUGEPAGE);
#ifdef MADV_POPULATE_WRITE
	(void)madvise(block, whole, MADV_POPULATE_WRITE);
#endif
	return block;
}

int image_file_load(const struct image_file *file, uint64_t offset, uint64_t size, size_t limit,
	uint8_t **ret_data)
{
	if (size > limit)
		return -EFBIG;
	/* Checked before memory is allocated: a header may claim any size. */
	if (offset > file->size_bytes || size > file->size_bytes - offset)
		return -EBADMSG;
	uint8_t *data = image_block_new((size_t)size + 1);
	if (!data)
		return -ENOMEM;
	int error = image_file_read(file, offset, data, (size_t)size);
	if (error) {
		free(data);
		return error;
	}
	data[size] = 0;
	*ret_data = data;
	return 0;
}
