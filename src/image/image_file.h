/*
 * The bytes of an image: a regular file, or memory.
 *
 * Foreign files may shrink while they are read, which raises SIGBUS in a mapped file. So files are
 * read with pread(2), only the pieces that are needed; an incomplete piece is -EBADMSG.
 */
#ifndef SPOOR_IMAGE_IMAGE_FILE_H
#define SPOOR_IMAGE_IMAGE_FILE_H

#include <stddef.h>
#include <stdint.h>

struct diag;

/* Larger files are not plausible as program images. */
#define IMAGE_SIZE_MAX (UINT64_C(16) << 30)

struct image_file {
	int fd;                /* borrowed; -1: memory */
	const uint8_t *memory; /* borrowed */
	uint64_t size_bytes;
};

/*
 * Memory for `size` bytes, all of which will be written: so the kernel may give it in large pages, and all
 * together. NULL: no memory. free() releases it.
 */
uint8_t *image_block_new(size_t size);

/* Refuses anything but a regular file. `fd` stays the caller's and must outlive the image_file. */
int image_file_from_fd(struct image_file *file, int fd, struct diag *diag);

void image_file_from_memory(struct image_file *file, const void *data, size_t size);

/* Reads exactly `size` bytes. -EBADMSG: the file is shorter; or another negative errno. */
int image_file_read(const struct image_file *file, uint64_t offset, void *buffer, size_t size);

/* Like image_file_read(), into memory that the caller frees, with a NUL. -EFBIG: above `limit`. */
int image_file_load(const struct image_file *file, uint64_t offset, uint64_t size, size_t limit,
	uint8_t **ret_data);

#endif
