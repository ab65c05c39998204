/*
 * See packed_file.h. Where the frame ends, at `tail`:
 *
 *   offset  size  field
 *   0       3     21 00 00  block header: the last one, raw, four bytes
 *   3       4     00 00 00 00, its content: the end mark of nettrace
 *   7       4     50 2a 4d 18  skippable frame
 *   11      4     its size: up to the end of the file
 *   15            room
 *
 * `tail` is 1 modulo 8, so that the size field is aligned, and all fifteen bytes are in one page: a
 * kill cuts a write between pages only. Raw blocks without content (00 00 00) fill up to such a
 * place. A larger page than PAGE_BYTES only makes it safer.
 */
#include "nettrace/packed_file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zstd.h>

#include "base/bytes.h"

#define LEVEL        6
#define PAGE_BYTES   4096u
#define BLOCK_BYTES  3u /* header of a block */
#define LAST_BYTES   7u /* the last block */
#define SKIP_BYTES   8u /* header of a skippable frame */
#define TAIL_BYTES   (LAST_BYTES + SKIP_BYTES)
#define SKIP_SIZE_AT 11u
#define SKIP_MAGIC   0x184d2a50u
#define LAST_HEADER  0x21u       /* size 4, type raw, last */
#define GROW_BYTES   (64u << 10) /* room is made in pieces of this size at most */

struct packed_file {
	ZSTD_CCtx *context;
	struct bytes pending;
	uint64_t tail;     /* in the file: where the last block begins */
	uint64_t end;      /* of the file, a multiple of PAGE_BYTES; 0 nothing written yet */
	uint64_t room_end; /* the first skippable frame goes up to here */
	bool failed;
};

int packed_file_new(struct packed_file **ret_file)
{
	struct packed_file *file = calloc(1, sizeof(*file));

	if (file)
		file->context = ZSTD_createCCtx();
	if (!file || !file->context ||
		ZSTD_isError(ZSTD_CCtx_setParameter(file->context, ZSTD_c_compressionLevel,
			LEVEL)) ||
		ZSTD_isError(ZSTD_CCtx_setParameter(file->context, ZSTD_c_checksumFlag, 0)) ||
		ZSTD_isError(ZSTD_CCtx_setParameter(file->context, ZSTD_c_contentSizeFlag, 0))) {
		packed_file_free(file);
		return -ENOMEM;
	}
	*ret_file = file;
	return 0;
}

static int compress(struct packed_file *file, const void *data, size_t size,
	ZSTD_EndDirective directive)
{
	ZSTD_inBuffer in = { .src = data, .size = size };
	size_t before = file->pending.len;
	size_t left = 1;

	if (file->failed)
		return -EIO;
	while (left || in.pos < in.size) {
		uint8_t *room = bytes_reserve(&file->pending, ZSTD_CStreamOutSize());
		ZSTD_outBuffer out = { .dst = room, .size = ZSTD_CStreamOutSize() };
		if (room)
			left = ZSTD_compressStream2(file->context, &out, &in, directive);
		if (!room || ZSTD_isError(left)) {
			file->pending.len = before;
			file->failed = true; /* its history has what the file will not have */
			return room ? -EIO : -ENOMEM;
		}
		file->pending.len += out.pos;
	}
	return 0;
}

int packed_file_add(struct packed_file *file, const void *data, size_t size)
{
	return compress(file, data, size, ZSTD_e_flush);
}

int packed_file_finish(struct packed_file *file)
{
	return compress(file, NULL, 0, ZSTD_e_end);
}

struct bytes *packed_file_pending(struct packed_file *file)
{
	return &file->pending;
}

uint64_t packed_file_size(const struct packed_file *file)
{
	return file->end ? file->tail + LAST_BYTES : 0;
}

static int write_whole(int fd, packed_file_write *write_at, const uint8_t *data, size_t size,
	uint64_t offset)
{
	while (size) {
		ssize_t n = write_at(fd, data, size, (off_t)offset);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		data += n;
		size -= (size_t)n;
		offset += (size_t)n;
	}
	return 0;
}

/* Where the fifteen bytes may stand: see the head of this file. */
static bool is_tail(uint64_t offset)
{
	return offset % 8 == 1 && offset % PAGE_BYTES <= PAGE_BYTES - TAIL_BYTES;
}

/*
 * Extends the file by whole pages, each with its own skippable frame: a kill leaves complete pages.
 */
static int grow(struct packed_file *file, int fd, packed_file_write *write_at, uint64_t end)
{
	struct bytes pages = { 0 };
	uint64_t at = file->end;
	int result = 0;

	while (at < end && result == 0) {
		size_t size = end - at < GROW_BYTES ? (size_t)(end - at) : GROW_BYTES;
		uint8_t *room;
		bytes_reset(&pages);
		room = bytes_reserve(&pages, size);
		if (!room) {
			result = -ENOMEM;
			break;
		}
		memset(room, 0, size);
		for (size_t page = 0; page < size; page += PAGE_BYTES) {
			pages.len = page;
			bytes_u32(&pages, SKIP_MAGIC);
			bytes_u32(&pages, PAGE_BYTES - SKIP_BYTES);
		}
		result = write_whole(fd, write_at, room, size, at);
		at += size;
	}
	bytes_done(&pages);
	if (result < 0 && ftruncate(fd, (off_t)file->end) < 0)
		errno = 0; /* it is the write that failed */
	return result;
}

int packed_file_put(struct packed_file *file, int fd, packed_file_write *write_at)
{
	struct bytes *pending = &file->pending;
	size_t size = pending->len;
	uint64_t tail = file->tail + size;
	/* Aligned: no write crosses a page of this process, so the kernel copies each in one step. */
	_Alignas(16) uint8_t head[16];
	_Alignas(4) uint8_t room_size[4];
	int result;

	if (!size)
		return 0;
	while (!is_tail(tail)) {
		bytes_add(pending, "\0\0", BLOCK_BYTES);
		tail += BLOCK_BYTES;
	}
	uint64_t end = (tail + TAIL_BYTES + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;

	if (end < file->end)
		end = file->end;
	bytes_add(pending, (const uint8_t[]){ LAST_HEADER, 0, 0, 0, 0, 0, 0 }, LAST_BYTES);
	bytes_u32(pending, SKIP_MAGIC);
	bytes_u32(pending, (uint32_t)(end - (tail + TAIL_BYTES)));
	size_t image = pending->len;

	/* the bytes after it are written now, or encoded again the next time */
	pending->len = size;
	if (pending->failed || end - file->tail > UINT32_MAX)
		return pending->failed ? -ENOMEM : -EFBIG;
	if (!file->end) {
		/* A part of it is no valid file, but it is less than a page: one write. */
		uint8_t *room = bytes_reserve(pending, end - size);
		if (!room)
			return -ENOMEM;
		memset(pending->data + image, 0, end - image);
		result = write_whole(fd, write_at, pending->data, end, 0);
		if (result < 0 && ftruncate(fd, 0) < 0)
			errno = 0; /* as in grow() */
	} else {
		result = end > file->end ? grow(file, fd, write_at, end) : 0;
		if (result == 0)
			file->end = end;
		if (result == 0 && end > file->room_end) {
			uint32_t room = (uint32_t)(end - (file->tail + TAIL_BYTES));
			struct bytes number = { .data = room_size, .capacity = sizeof(room_size) };
			bytes_u32(&number, room);
			result = write_whole(fd, write_at, room_size, sizeof(room_size),
				file->tail + SKIP_SIZE_AT);
			if (result == 0)
				file->room_end = end;
		}
		if (result == 0)
			result = write_whole(fd, write_at, pending->data + TAIL_BYTES,
				image - TAIL_BYTES, file->tail + TAIL_BYTES);
		if (result == 0) {
			memcpy(head, pending->data, TAIL_BYTES);
			result = write_whole(fd, write_at, head, TAIL_BYTES, file->tail);
		}
	}
	if (result < 0)
		return result;
	file->tail = tail;
	file->end = end;
	file->room_end = end;
	bytes_reset(pending);
	return 0;
}

int packed_file_cut(struct packed_file *file, int fd)
{
	if (!file->end)
		return 0;
	if (ftruncate(fd, (off_t)packed_file_size(file)) < 0)
		return -errno;
	file->end = packed_file_size(file);
	return 0;
}

void packed_file_free(struct packed_file *file)
{
	if (!file)
		return;
	ZSTD_freeCCtx(file->context);
	bytes_done(&file->pending);
	free(file);
}
