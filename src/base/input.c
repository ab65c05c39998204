/* See input.h. */
#include "base/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zstd.h>

#include "base/cleanup.h"
#include "base/diag.h"

/* The content that references may reach back to: 128 MiB, the default limit of zstd. */
#define UNPACK_WINDOW_LOG_MAX 27
#define BLOCK_HEADER_SIZE     3u

struct unpacker {
	ZSTD_DStream *stream;
	/* bytes up to the end of the next part: a header, or the content of a block */
	size_t wanted;
	size_t at; /* index of the next byte in `packed` that zstd has not read */
	size_t have;
	bool within; /* inside a frame */
	bool more;   /* zstd may have content that did not fit into the last buffer */
	uint8_t packed[128 << 10];
};

int input_from_fd(struct input *in, int fd, const char *name)
{
	struct stat status;

	*in = (struct input){ .fd = fd, .name = strdup(name) };
	if (!in->name) {
		closep(&fd);
		in->fd = -1;
		return -ENOMEM;
	}
	if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode))
		in->size_bytes = (uint64_t)status.st_size;
	return 0;
}

int input_open(struct input *in, const char *path, struct diag *diag)
{
	if (strcmp(path, "-") == 0) {
		int copy = dup(STDIN_FILENO);
		if (copy < 0)
			return diag_set(diag, -errno, "cannot read standard input: %m");
		return input_from_fd(in, copy, "standard input");
	}
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

	if (fd < 0)
		return diag_set(diag, -errno, "cannot open '%s': %m", path);
	struct stat status;

	if (fstat(fd, &status) == 0 && S_ISDIR(status.st_mode)) {
		closep(&fd);
		return diag_set(diag, -EISDIR, "cannot read '%s': %m", path);
	}
	return input_from_fd(in, fd, path);
}

int input_open_regular(struct input *in, const char *path, struct diag *diag)
{
	if (strcmp(path, "-") == 0)
		return input_open(in, path, diag);
	/* Without O_NONBLOCK, a fifo would keep us waiting for its writer. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat status = { 0 };

	if (fd < 0)
		return diag_set(diag, -errno, "cannot open '%s': %m", path);
	if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode)) {
		bool folder = S_ISDIR(status.st_mode);
		closep(&fd);
		return folder ? diag_set(diag, -EISDIR, "cannot read '%s': %m", path)
			      : diag_set(diag, -EINVAL, "'%s' is no regular file", path);
	}
	return input_from_fd(in, fd, path);
}

void input_from_memory(struct input *in, const void *data, size_t size)
{
	*in = (struct input){ .fd = -1, .memory = data, .memory_size = size, .size_bytes = size };
}

/* As input_read(), from the file or the memory itself. */
static ssize_t read_source(struct input *in, void *buffer, size_t size, struct diag *diag)
{
	if (in->head_at < in->head_len) {
		size_t left = in->head_len - in->head_at;
		if (size > left)
			size = left;
		memcpy(buffer, in->head + in->head_at, size);
		in->head_at = (uint8_t)(in->head_at + size);
		return (ssize_t)size;
	}
	if (in->fd < 0) {
		size_t left = in->memory_size - (size_t)in->source_offset;
#ifdef SPOOR_HOSTILE
		size = size ? 1 : 0;
#endif
		if (size > left)
			size = left;
		if (size)
			memcpy(buffer, in->memory + in->source_offset, size);
		in->source_offset += size;
		return (ssize_t)size;
	}
	ssize_t got;

	do
		got = read(in->fd, buffer, size);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return diag_set(diag, -errno, "cannot read '%s' at offset %llu: %m", in->name,
			(unsigned long long)in->source_offset);
	in->source_offset += (uint64_t)got;
	return got;
}

/* The hint of zstd includes the header of the next block; the size of a part does not. */
static size_t part_size(size_t hint)
{
	/* 0: a frame has ended, another may follow */
	return hint > BLOCK_HEADER_SIZE ? hint - BLOCK_HEADER_SIZE : hint ? hint : 1;
}

/*
 * A call of zstd that finds damage returns none of the content it unpacked before. So each call
 * gets one part of the frame, or no input and room for content that did not fit: the content before
 * the damage is then the same for every read size.
 */
static ssize_t read_unpacked(struct input *in, void *buffer, size_t size, struct diag *diag)
{
	struct unpacker *u = in->unpacker;
	ZSTD_outBuffer out = { .dst = buffer, .size = size };

	while (size) {
		if (u->at < u->have || u->more) {
			size_t left = u->have - u->at;
			size_t part = u->more ? 0 : left < u->wanted ? left : u->wanted;
			ZSTD_inBuffer packed = { .src = u->packed + u->at, .size = part };
			size_t wanted = ZSTD_decompressStream(u->stream, &out, &packed);
			if (ZSTD_isError(wanted))
				return diag_set(diag, -EBADMSG,
					"cannot unpack '%s': %s near offset %llu",
					in->name ? in->name : "memory", ZSTD_getErrorName(wanted),
					(unsigned long long)(in->source_offset - left));
			u->wanted = part_size(wanted);
			u->within = wanted != 0;
			u->at += packed.pos;
			u->more = u->within && out.pos == out.size;
			if (out.pos)
				return (ssize_t)out.pos;
			if (u->at < u->have)
				continue;
		}
		ssize_t got = read_source(in, u->packed, sizeof(u->packed), diag);
		if (got < 0)
			return got;
		if (got == 0 && u->within)
			return diag_set(diag, -EBADMSG,
				"cannot unpack '%s' beyond offset %llu: it ends there, in the middle",
				in->name ? in->name : "memory",
				(unsigned long long)in->source_offset);
		if (got == 0)
			return 0;
		u->at = 0;
		u->have = (size_t)got;
	}
	return 0;
}

ssize_t input_read(struct input *in, void *buffer, size_t size, struct diag *diag)
{
	ssize_t got = in->unpacker ? read_unpacked(in, buffer, size, diag)
				   : read_source(in, buffer, size, diag);

	if (got > 0)
		in->offset += (uint64_t)got;
	return got;
}

int input_unpack(struct input *in, struct diag *diag)
{
	static const uint8_t magic[] = { 0x28, 0xb5, 0x2f, 0xfd };
	uint8_t head[sizeof(in->head)];
	size_t len = 0;

	while (len < sizeof(head)) {
		ssize_t got = read_source(in, head + len, sizeof(head) - len, diag);
		if (got < 0)
			return (int)got;
		if (got == 0)
			break;
		len += (size_t)got;
	}
	memcpy(in->head, head, len);
	in->head_at = 0;
	in->head_len = (uint8_t)len;
	if (len < sizeof(magic) || memcmp(head, magic, sizeof(magic)) != 0)
		return 0;
	struct unpacker *u = calloc(1, sizeof(*u));

	if (u)
		u->stream = ZSTD_createDStream();
	if (!u || !u->stream ||
		ZSTD_isError(ZSTD_DCtx_setParameter(u->stream, ZSTD_d_windowLogMax,
			UNPACK_WINDOW_LOG_MAX))) {
		if (u)
			ZSTD_freeDStream(u->stream);
		free(u);
		return diag_set(diag, -ENOMEM, "cannot unpack '%s': %m",
			in->name ? in->name : "memory");
	}
	u->wanted = 1;
	u->within = true;
	in->unpacker = u;
	in->size_bytes = 0;
	return 0;
}

int input_read_all(struct input *in, size_t limit, uint8_t **ret_data, size_t *ret_size,
	struct diag *diag)
{
	size_t capacity =
		in->size_bytes && in->size_bytes < limit ? (size_t)in->size_bytes + 1 : 4096;
	cleanup(freep) uint8_t *data = malloc(capacity + 1);
	size_t len = 0;

	if (!data)
		return -ENOMEM;
	for (;;) {
		if (len == capacity) {
			uint8_t *grown = realloc(data, capacity * 2 + 1);
			if (!grown)
				return -ENOMEM;
			data = grown;
			capacity *= 2;
		}
		ssize_t got = input_read(in, data + len, capacity - len, diag);
		if (got < 0)
			return (int)got;
		if (got == 0)
			break;
		len += (size_t)got;
		if (len > limit)
			return diag_set(diag, -EFBIG, "'%s' is larger than %zu bytes",
				in->name ? in->name : "memory", limit);
	}
	data[len] = 0;
	*ret_data = TAKE(data);
	*ret_size = len;
	return 0;
}

void input_close(struct input *in)
{
	closep(&in->fd);
	free(in->name);
	if (in->unpacker)
		ZSTD_freeDStream(in->unpacker->stream);
	free(in->unpacker);
	*in = (struct input){ .fd = -1 };
}
