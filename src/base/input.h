/*
 * Bytes that come in order: a file, a pipe, a socket, or memory. The narrow waist in front of every format.
 *
 * Reads go through a window of INPUT_WINDOW bytes, so a large file costs no memory. A signal does not cut a read short.
 *
 * After input_unpack() what is packed with zstd reads as what was packed, so no format knows of packing. It is recognised by its first
 * bytes, not by its name, and from a pipe too.
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
	char *name;              /* for messages */
	int fd;                  /* -1: memory */
	const uint8_t *memory;   /* borrowed, when fd is -1 */
	size_t memory_size;
	uint64_t offset;         /* bytes handed out so far */
	uint64_t size_bytes;     /* of what will be handed out; 0 when not known */
	uint64_t source_offset;  /* bytes taken from the file or the memory; `offset` when nothing is unpacked */
	uint8_t head[4];         /* looked at by input_unpack(), still to be handed out: */
	uint8_t head_at;         /* from here */
	uint8_t head_len;        /* to here */
	struct unpacker *unpacker; /* NULL: handed out as it is */
};

/* Opens a file for reading; "-" is standard input. */
int input_open(struct input *in, const char *path, struct diag *diag);

/* Takes over `fd`, which input_close() closes. `name` is copied. */
int input_from_fd(struct input *in, int fd, const char *name);

/* Reads from memory, which stays the caller's and must outlive the input. */
void input_from_memory(struct input *in, const void *data, size_t size);

/*
 * Before the first read: if a zstd frame begins here, its content is read from now on, else nothing changes. Packed bytes that are damaged or end
 * within a frame are an error, after the content of all that came before.
 */
int input_unpack(struct input *in, struct diag *diag);

/* Up to `size` bytes: their number, 0 at the end, or a negative errno. */
ssize_t input_read(struct input *in, void *buffer, size_t size, struct diag *diag);

/*
 * All that is left, at most `limit` bytes (more is -EFBIG). The caller frees *ret_data, which has a NUL behind the last byte.
 */
int input_read_all(struct input *in, size_t limit, uint8_t **ret_data, size_t *ret_size,
	struct diag *diag);

void input_close(struct input *in);

#endif
