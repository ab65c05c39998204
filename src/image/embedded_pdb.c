/* See embedded_pdb.h. The entry: "MPDB", u32 size of the unpacked PDB, then raw deflate data. */
#include "image/embedded_pdb.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/cleanup.h"
#include "base/cursor.h"
#include "image/image_file.h"
#include "image/pe.h"

/* Deflate packs at most this well. */
#define RATIO_MAX 1032u

static int unpack(const uint8_t *packed, size_t packed_size, uint8_t *plain, size_t size)
{
	z_stream stream = {
		.next_in = (Bytef *)(uintptr_t)packed, /* zlib does not change it */
		.avail_in = (uInt)packed_size,
		.next_out = plain,
		.avail_out = (uInt)size,
	};

	if (inflateInit2(&stream, -MAX_WBITS) != Z_OK)
		return -ENOMEM;
	int result = inflate(&stream, Z_FINISH);
	(void)inflateEnd(&stream); /* frees, whatever it returns */
	return result == Z_STREAM_END && stream.total_out == size ? 0 : -EBADMSG;
}

int embedded_pdb_load(const struct pe *pe, const struct image_file *file, size_t limit,
	uint8_t **ret_data, size_t *ret_size)
{
	cleanup(freep) uint8_t *packed = NULL;

	if (!pe->embedded_pdb_size)
		return -ENODATA;
	int result = image_file_load(file, pe->embedded_pdb_offset, pe->embedded_pdb_size, limit,
		&packed);
	if (result < 0)
		return result;
	struct cursor c = cursor_of(packed, pe->embedded_pdb_size);
	const uint8_t *magic = cursor_take(&c, 4);
	uint32_t size = cursor_u32(&c);
	if (c.short_read || memcmp(magic, "MPDB", 4) != 0 || !size ||
		size / RATIO_MAX > cursor_left(&c))
		return -EBADMSG;
	if (size > limit)
		return -EFBIG;
	cleanup(freep) uint8_t *plain = malloc((size_t)size + 1);
	if (!plain)
		return -ENOMEM;
	result = unpack(c.at, cursor_left(&c), plain, size);
	if (result < 0)
		return result;
	plain[size] = 0;
	*ret_data = TAKE(plain);
	*ret_size = size;
	return 0;
}
