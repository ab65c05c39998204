/*
 * The bytes of an image: a regular file, or memory.
 *
 * Foreign files may shrink while they are read, and a mapped file that shrinks is a SIGBUS for the reader. So files are read with
 * pread(2), piece by piece, and only the pieces that are asked for; a piece that is not there whole is -EBADMSG.
 */
#ifndef SPOOR_IMAGE_IMAGE_FILE_H
#define SPOOR_IMAGE_IMAGE_FILE_H

#include <stddef.h>
#include <stdint.h>

struct diag;

/* Larger files are not images of code that anybody runs. */
#define IMAGE_SIZE_MAX (UINT64_C(16) << 30)

struct image_file {
	int fd;                  /* borrowed; -1: memory */
	const uint8_t *memory;   /* borrowed */
	uint64_t size_bytes;
};

/* Over `fd`, which stays the caller's and must outlive the image_file. Anything but a regular file is refused. */
int image_file_from_fd(struct image_file *file, int fd, struct diag *diag);

void image_file_from_memory(struct image_file *file, const void *data, size_t size);

/* Exactly `size` bytes at `offset`; -EBADMSG when the file does not have them, or another negative errno. */
int image_file_read(const struct image_file *file, uint64_t offset, void *buffer, size_t size);

/* As image_file_read() into memory that the caller frees. More than `limit` bytes is -EFBIG. One NUL stands behind the last byte. */
int image_file_load(const struct image_file *file, uint64_t offset, uint64_t size, size_t limit,
	uint8_t **ret_data);

#endif
