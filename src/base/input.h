/*
 * Sequential input from a file, a pipe, a socket or memory. All formats read through it.
 *
 * Reads go through a window of INPUT_WINDOW bytes, so a large file needs little memory. A signal
 * does not interrupt a read. After input_unpack(), reads return the content of zstd frames, which
 * are recognised by their first bytes, also in a pipe.
 */
#ifndef SPOOR_BASE_INPUT_H
#define SPOOR_BASE_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define INPUT_WINDOW (256u << 10)

struct diag;
struct unpacker;

struct input {
	char *name;            /* for messages */
	int fd;                /* -1: memory */
	const uint8_t *memory; /* borrowed, when fd is -1 */
	size_t memory_size;
	uint64_t offset;     /* number of bytes returned so far */
	uint64_t size_bytes; /* number of bytes that will be returned; 0: unknown */
	/* bytes read from the file or the memory; equal to `offset` if nothing is unpacked */
	uint64_t source_offset;
	uint8_t head[4];           /* read ahead by input_unpack(), not yet returned */
	uint8_t head_at;           /* index of the next byte of `head` to return */
	uint8_t head_len;          /* number of bytes in `head` */
	struct unpacker *unpacker; /* NULL: the bytes are returned unchanged */
};

/* Opens a file for reading; "-" is standard input. */
int input_open(struct input *in, const char *path, struct diag *diag);

/* As input_open(), but a fifo, a socket or a device is refused (-EINVAL), and never waited for. */
int input_open_regular(struct input *in, const char *path, struct diag *diag);

/* Takes over `fd`, which input_close() closes. `name` is copied. */
int input_from_fd(struct input *in, int fd, const char *name);

/* Reads from memory, which stays the caller's and must outlive the input. */
void input_from_memory(struct input *in, const void *data, size_t size);

/*
 * Called before the first read; without effect if the input begins with no zstd frame. Damaged
 * packed bytes, or an end inside a frame, are an error after all the content before them.
 */
int input_unpack(struct input *in, struct diag *diag);

/* Reads up to `size` bytes. Returns their number, 0 at the end, or a negative errno. */
ssize_t input_read(struct input *in, void *buffer, size_t size, struct diag *diag);

/* The rest, followed by a NUL, which the caller frees. -EFBIG: more than `limit` bytes. */
int input_read_all(struct input *in, size_t limit, uint8_t **ret_data, size_t *ret_size,
	struct diag *diag);

void input_close(struct input *in);

#endif
