/* See clr_image.h. PE: Microsoft's "PE Format"; metadata root: ECMA-335 II.24.2.1. */
#include "code/clr_image.h"

#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "code/clr_memory.h"

#define HEADER_BYTES   4096u
#define SECTIONS_MAX   96u
#define SECTION_BYTES  40u
#define PE_SIGNATURE   0x00004550u
#define OPTIONAL_32    0x10bu
#define OPTIONAL_64    0x20bu
#define DIRECTORY_CLI  14u
#define ROOT_SIGNATURE 0x424a5342u /* "BSJB" */
#define ROOT_BYTES     1024u
#define STREAMS_MAX    32u
#define SCAN_BYTES     (64u << 10)
#define SCAN_BYTES_MAX (16u << 20)

static void drop(struct clr_images *images, uint32_t index)
{
	struct clr_image *image = images->list.items[index];

	images->size_bytes -= image->size_bytes;
	images->list.items[index] = images->list.items[--images->list.count];
	free(image->data);
	free(image);
}

static bool make_room(struct clr_images *images, size_t size)
{
	for (uint32_t i = images->list.count;
		i-- > 0 && images->size_bytes + size > CLR_IMAGES_BYTES_MAX;)
		if (!images->list.items[i]->users)
			drop(images, i);
	return images->size_bytes + size <= CLR_IMAGES_BYTES_MAX;
}

/* Takes over `data`. */
static struct clr_image *keep(struct clr_images *images, uint8_t *data, size_t size)
{
	for (uint32_t i = 0; i < images->list.count; i++) {
		struct clr_image *image = images->list.items[i];
		if (image->size_bytes != size || memcmp(image->data, data, size) != 0)
			continue;
		free(data);
		image->users++;
		return image;
	}
	struct clr_image *image = make_room(images, size) ? calloc(1, sizeof(*image)) : NULL;

	if (!image || metadata_read(&image->metadata, data, size) < 0 ||
		!vec_add(&images->list, image)) {
		free(image);
		free(data);
		return NULL;
	}
	image->data = data;
	image->size_bytes = size;
	image->users = 1;
	image->metadata.as_events = true;
	images->size_bytes += size;
	return image;
}

struct clr_image *clr_images_of_block(struct clr_images *images, struct clr_memory *memory,
	uint64_t address, uint64_t size)
{
	if (!size || size > CLR_IMAGE_BYTES_MAX)
		return NULL;
	uint8_t *data = malloc(size);

	if (!data || !clr_memory_bytes_now(memory, address, data, size)) {
		free(data);
		return NULL;
	}
	return keep(images, data, size);
}

struct pe_section_range {
	uint32_t rva;
	uint32_t size;
	uint32_t offset;
};

struct pe_image {
	uint64_t base;
	bool flat;
	uint32_t section_count;
	struct pe_section_range sections[SECTIONS_MAX];
};

/* The address of an RVA; 0: it is in no section. */
static uint64_t address_of(const struct pe_image *image, uint32_t rva)
{
	if (!image->flat)
		return image->base + rva;
	for (uint32_t i = 0; i < image->section_count; i++) {
		const struct pe_section_range *section = &image->sections[i];
		if (rva >= section->rva && rva - section->rva < section->size)
			return image->base + section->offset + (rva - section->rva);
	}
	return 0;
}

/* Reads the headers: the sections, and where the CLI header is. */
static bool read_headers(struct clr_memory *memory, struct pe_image *image, uint32_t *ret_cli)
{
	uint8_t header[HEADER_BYTES];

	if (!clr_memory_bytes(memory, image->base, header, sizeof(header)) || header[0] != 'M' ||
		header[1] != 'Z')
		return false;
	struct cursor c = cursor_of(header + 0x3c, 4);
	uint32_t at = cursor_u32(&c);
	if (at >= sizeof(header))
		return false;
	c = cursor_of(header + at, sizeof(header) - at);
	if (cursor_u32(&c) != PE_SIGNATURE)
		return false;
	cursor_skip(&c, 2);
	image->section_count = cursor_u16(&c);
	cursor_skip(&c, 12);
	uint16_t optional_size = cursor_u16(&c);
	cursor_skip(&c, 2);
	struct cursor optional = cursor_sub(&c, optional_size);
	uint16_t magic = cursor_u16(&optional);
	if (magic != OPTIONAL_32 && magic != OPTIONAL_64)
		return false;
	cursor_skip(&optional, (magic == OPTIONAL_64 ? 112u : 96u) - 2 + DIRECTORY_CLI * 8);
	*ret_cli = cursor_u32(&optional);
	if (optional.short_read || !*ret_cli || image->section_count > SECTIONS_MAX)
		return false;
	for (uint32_t i = 0; i < image->section_count; i++) {
		struct cursor section = cursor_sub(&c, SECTION_BYTES);
		cursor_skip(&section, 12); /* name, size in memory */
		image->sections[i].rva = cursor_u32(&section);
		image->sections[i].size = cursor_u32(&section);
		image->sections[i].offset = cursor_u32(&section);
	}
	return !c.short_read;
}

static struct clr_image *read_image(struct clr_images *images, struct clr_memory *memory,
	const struct pe_image *image, uint32_t cli)
{
	uint64_t header = address_of(image, cli);

	memory->failed = false;
	if (!header)
		return NULL;
	uint32_t rva = clr_memory_u32(memory, header + 8);
	uint32_t size = clr_memory_u32(memory, header + 12);
	uint64_t root = memory->failed ? 0 : address_of(image, rva);
	return root && clr_memory_u32(memory, root) == ROOT_SIGNATURE && !memory->failed
		       ? clr_images_of_block(images, memory, root, size)
		       : NULL;
}

struct clr_image *clr_images_of_pe(struct clr_images *images, struct clr_memory *memory,
	uint64_t base)
{
	struct pe_image image = { .base = base };
	uint32_t cli;

	memory->failed = false;
	if (!read_headers(memory, &image, &cli))
		return NULL;
	struct clr_image *found = read_image(images, memory, &image, cli);
	if (!found) {
		image.flat = true;
		found = read_image(images, memory, &image, cli);
	}
	return found;
}

/* The size of the metadata whose root is at `root`, if its names include the address; else 0. */
static uint64_t size_around(struct clr_memory *memory, uint64_t root, uint64_t text)
{
	uint8_t bytes[ROOT_BYTES];
	uint64_t size = 0;
	bool has_text = false;

	memory->failed = false;
	if (!clr_memory_bytes(memory, root, bytes, sizeof(bytes)))
		return 0;
	struct cursor c = cursor_of(bytes, sizeof(bytes));
	cursor_skip(&c, 12);
	cursor_skip(&c, cursor_u32(&c));
	cursor_skip(&c, 2);
	unsigned streams = cursor_u16(&c);
	if (c.short_read || streams > STREAMS_MAX)
		return 0;
	for (unsigned i = 0; i < streams; i++) {
		uint32_t offset = cursor_u32(&c);
		uint32_t length = cursor_u32(&c);
		size_t len;
		const char *name = cursor_stringz(&c, &len);
		cursor_skip(&c, -(len + 1) & 3u);
		if (c.short_read)
			return 0;
		if (offset + (uint64_t)length > size)
			size = offset + (uint64_t)length;
		if (!strcmp(name, "#Strings") && text >= root + offset &&
			text - root - offset < length)
			has_text = true;
	}
	return has_text ? size : 0;
}

struct clr_image *clr_images_around(struct clr_images *images, struct clr_memory *memory,
	uint64_t text)
{
	uint8_t *piece = malloc(SCAN_BYTES);
	struct clr_image *found = NULL;

	/* The root is on a boundary of 4 bytes below. */
	uint64_t end = (text & ~UINT64_C(3)) + 4;
	for (uint64_t scanned = 0; piece && !found && scanned < SCAN_BYTES_MAX;
		scanned += SCAN_BYTES, end -= SCAN_BYTES) {
		uint64_t size = SCAN_BYTES;
		memory->failed = false;
		/* The mapping may begin within the piece: then only whole pages of it are read. */
		while (size && !clr_memory_bytes_now(memory, end - size, piece, size)) {
			uint64_t begin =
				(end - size + CLR_PAGE_BYTES) & ~(uint64_t)(CLR_PAGE_BYTES - 1);
			size = begin < end ? end - begin : 0;
			memory->failed = false;
		}
		for (uint64_t at = size; at >= 4 && !found; at -= 4) {
			struct cursor c = cursor_of(piece + at - 4, 4);
			if (cursor_u32(&c) != ROOT_SIGNATURE)
				continue;
			uint64_t root = end - size + at - 4;
			uint64_t block = size_around(memory, root, text);
			if (block)
				found = clr_images_of_block(images, memory, root, block);
		}
		if (size < SCAN_BYTES)
			break;
	}
	free(piece);
	return found;
}

void clr_images_release(struct clr_images *images, struct clr_image *image)
{
	(void)images; /* it stays there for the next process */
	if (image)
		image->users--;
}

void clr_images_done(struct clr_images *images)
{
	while (images->list.count)
		drop(images, images->list.count - 1);
	vec_done(&images->list);
}
