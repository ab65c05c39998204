/*
 * A file packed with zstd that stock `zstd -d` can unpack at any time, also after Spoor was killed
 * while writing it.
 *
 * All of it is one zstd frame: new data is packed with references to the data before it. The
 * flushed blocks are always followed by the frame's last block, raw, with the four zero bytes that
 * end a nettrace file, and a skippable frame over the room up to the end of the file. New blocks
 * are written into that room; then fifteen bytes, which never lie in two pages, turn the old last
 * block into the first of the new ones (docs/formats/spoor-nettrace.md, "Packed").
 *
 *   packed_file_new(&file);
 *   packed_file_add(file, data, size);       packs; nothing is written
 *   packed_file_put(file, fd, pwrite);       writes all that was added into the file, or nothing and returns the error
 *   packed_file_cut(file, fd);               at the end: without the room
 *
 * For a pipe the caller writes packed_file_pending() out instead, after packed_file_finish() at the
 * end.
 */
#ifndef SPOOR_NETTRACE_PACKED_FILE_H
#define SPOOR_NETTRACE_PACKED_FILE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct bytes;
struct packed_file;

/* As pwrite(2). */
typedef ssize_t packed_file_write(int fd, const void *data, size_t size, off_t offset);

int packed_file_new(struct packed_file **ret_file);

/* Packs and flushes. After a failure earlier data is unchanged, and no more can be added. */
int packed_file_add(struct packed_file *file, const void *data, size_t size);

/* Ends the frame. */
int packed_file_finish(struct packed_file *file);

/* The packed data that is not yet in a file. A caller that writes it out must reset it. */
struct bytes *packed_file_pending(struct packed_file *file);

/*
 * Writes the pending data into the file, which has no other writer and was empty at the first call.
 * After a failure the file is unchanged, all data is pending, and the next call tries again.
 */
int packed_file_put(struct packed_file *file, int fd, packed_file_write *write_at);

/* Bytes up to the end of the frame: the size of the file without the room. */
uint64_t packed_file_size(const struct packed_file *file);

/* Takes the room away. The file is whole with and without it. */
int packed_file_cut(struct packed_file *file, int fd);

void packed_file_free(struct packed_file *file);

#endif
