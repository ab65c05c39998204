/* See elf_section.h. */
#include "image/elf_section.h"

#include <errno.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

#include "base/cleanup.h"
#include "base/cursor.h"
#include "image/elf.h"
#include "image/image_file.h"

enum { COMPRESS_ZLIB = 1, COMPRESS_ZSTD = 2 };

/* No compressor reaches this: a header that claims more is a lie, and its memory is not allocated. */
#define RATIO_MAX 2048u

static int unpack(uint32_t type, const uint8_t *packed, size_t packed_size, uint8_t *plain,
	size_t size)
{
	if (type == COMPRESS_ZSTD) {
		size_t got = ZSTD_decompress(plain, size, packed, packed_size);
		return ZSTD_isError(got) || got != size ? -EBADMSG : 0;
	}
	uLongf len = size;
	return uncompress(plain, &len, packed, packed_size) == Z_OK && len == size ? 0 : -EBADMSG;
}

int elf_section_load(const struct elf *elf, const struct image_file *file,
	const struct elf_section *section, uint64_t limit, uint8_t **ret_data, size_t *ret_size)
{
	cleanup(freep) uint8_t *bytes = NULL;

	if (section->size > limit || section->size > SIZE_MAX)
		return -EFBIG;
	int result = image_file_load(file, section->offset, section->size, (size_t)limit, &bytes);
	if (result < 0)
		return result;
	if (!(section->flags & ELF_SECTION_COMPRESSED)) {
		*ret_data = TAKE(bytes);
		*ret_size = (size_t)section->size;
		return 0;
	}
	/* Elf64_Chdr: u32 type, u32 reserved, u64 size, u64 alignment. Elf32_Chdr: three u32. */
	struct cursor c = cursor_of(bytes, (size_t)section->size);
	uint32_t type = cursor_u32(&c);
	cursor_skip(&c, elf->is_64 ? 4 : 0);
	uint64_t size = elf->is_64 ? cursor_u64(&c) : cursor_u32(&c);
	cursor_skip(&c, elf->is_64 ? 8 : 4);
	if (c.short_read || size / RATIO_MAX > cursor_left(&c))
		return -EBADMSG;
	if (type != COMPRESS_ZLIB && type != COMPRESS_ZSTD)
		return -ENOTSUP;
	if (size > limit)
		return -EFBIG;
	cleanup(freep) uint8_t *plain = malloc((size_t)size + 1);
	if (!plain)
		return -ENOMEM;
	result = unpack(type, c.at, cursor_left(&c), plain, (size_t)size);
	if (result < 0)
		return result;
	plain[size] = 0;
	*ret_data = TAKE(plain);
	*ret_size = (size_t)size;
	return 0;
}
