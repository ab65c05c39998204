/*
 * See elf.h. Each table is read by one pread: file header, program headers, section headers,
 * section names, notes. Segments, which the loader uses, are read first. Sections may be missing,
 * truncated or wrong, and the file is still useful.
 */
#include "image/elf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/cursor.h"
#include "base/diag.h"
#include "image/image_file.h"

#define HEADER_SIZE_MAX   64u
#define SEGMENTS_MAX      4096u
#define SECTIONS_MAX      65536u
#define SECTION_NAMES_MAX (4u << 20)
#define NOTES_SIZE_MAX    (64u << 10)

#define DYNAMIC_MAX       (64u << 10)
#define DYNAMIC_TEXTS_MAX (16u << 20)

#define DYNAMIC_NEEDED  1u
#define PT_LOAD         1u
#define PT_NOTE         4u
#define PT_GNU_EH_FRAME 0x6474e550u
#define PF_X            1u
#define NT_GNU_BUILD_ID 3u
#define SHN_XINDEX      0xffffu

/*
 * File header (System V ABI, "ELF Header"); 64-bit offsets, 32-bit ones in brackets.
 *
 *   offset   size   field
 *   0        16     ident: "\x7f" "ELF", class (1: 32, 2: 64), data (1: little-endian), ...
 *   16       2+2    type, machine
 *   24       8[4]   entry
 *   32[28]   8[4]   program header offset
 *   40[32]   8[4]   section header offset
 *   48[36]   4      flags
 *   52[40]   2 x 6  header size, phentsize, phnum, shentsize, shnum, shstrndx
 */
struct header {
	uint64_t segment_at;
	uint64_t section_at;
	uint32_t segment_size;
	uint32_t segment_count;
	uint32_t section_size;
	uint32_t section_count;
	uint32_t names_index;
};

static uint64_t cursor_word(struct cursor *c, bool is_64)
{
	return is_64 ? cursor_u64(c) : cursor_u32(c);
}

static int read_header(struct elf *elf, const struct image_file *file, struct header *ret_header,
	struct diag *diag)
{
	uint8_t bytes[HEADER_SIZE_MAX] = { 0 };
	size_t size = file->size_bytes < sizeof(bytes) ? (size_t)file->size_bytes : sizeof(bytes);
	int error = image_file_read(file, 0, bytes, size);

	if (error)
		return diag_set(diag, error, "cannot read the ELF header: %m");
	if (size < 52 || memcmp(bytes,
				 "\x7f"
				 "ELF",
				 4) != 0)
		return diag_set(diag, -EBADMSG, "not an ELF file");
	if (bytes[5] != 1 || (bytes[4] != 1 && bytes[4] != 2))
		return diag_set(diag, -ENOTSUP, "ELF class %u, byte order %u: not supported",
			bytes[4], bytes[5]);
	elf->is_64 = bytes[4] == 2;

	struct cursor c = cursor_of(bytes, size);
	cursor_skip(&c, 16);
	elf->type = cursor_u16(&c);
	elf->machine = cursor_u16(&c);
	cursor_skip(&c, 4);
	(void)cursor_word(&c, elf->is_64); /* entry point */
	ret_header->segment_at = cursor_word(&c, elf->is_64);
	ret_header->section_at = cursor_word(&c, elf->is_64);
	cursor_skip(&c, 4 + 2);
	ret_header->segment_size = cursor_u16(&c);
	ret_header->segment_count = cursor_u16(&c);
	ret_header->section_size = cursor_u16(&c);
	ret_header->section_count = cursor_u16(&c);
	ret_header->names_index = cursor_u16(&c);
	if (c.short_read)
		return diag_set(diag, -EBADMSG, "ELF header cut after %zu bytes", size);
	return 0;
}

/* GNU notes: u32 name size, u32 data size, u32 type, name, data; both padded to four bytes. */
static void read_notes(struct elf *elf, const struct image_file *file, uint64_t at, uint64_t size)
{
	cleanup(freep) uint8_t *notes = NULL;

	if (elf->build_id_len || image_file_load(file, at, size, NOTES_SIZE_MAX, &notes) < 0)
		return;
	struct cursor c = cursor_of(notes, (size_t)size);
	while (cursor_left(&c) >= 12) {
		uint32_t name_size = cursor_u32(&c);
		uint32_t data_size = cursor_u32(&c);
		uint32_t type = cursor_u32(&c);
		const uint8_t *name = cursor_take(&c, name_size);
		cursor_skip(&c, -name_size & 3u);
		const uint8_t *data = cursor_take(&c, data_size);
		if (c.short_read)
			return;
		if (type == NT_GNU_BUILD_ID && name_size == 4 && !memcmp(name, "GNU", 4) &&
			data_size && data_size <= ELF_BUILD_ID_MAX) {
			memcpy(elf->build_id, data, data_size);
			elf->build_id_len = (uint8_t)data_size;
			return;
		}
		size_t padding = -data_size & 3u;
		cursor_skip(&c, padding < cursor_left(&c) ? padding : cursor_left(&c));
	}
}

static int read_segments(struct elf *elf, const struct image_file *file,
	const struct header *header, struct diag *diag)
{
	size_t least = elf->is_64 ? 56 : 32;
	cleanup(freep) uint8_t *table = NULL;
	bool has_text = false;

	if (!header->segment_count)
		return 0; /* a relocatable object or a bare debug file */
	if (header->segment_size < least || header->segment_count > SEGMENTS_MAX)
		return diag_set(diag, -EBADMSG, "%u ELF segments of %u bytes: not possible",
			header->segment_count, header->segment_size);
	uint64_t size = (uint64_t)header->segment_size * header->segment_count;
	int error = image_file_load(file, header->segment_at, size, (size_t)size, &table);
	if (error)
		return diag_set(diag, error, "cannot read %u ELF segments at offset %llu: %m",
			header->segment_count, (unsigned long long)header->segment_at);
	for (uint32_t i = 0; i < header->segment_count; i++) {
		struct cursor c = cursor_of(table + (size_t)i * header->segment_size, least);
		struct elf_segment segment = { 0 };
		uint32_t type = cursor_u32(&c);
		uint32_t flags = elf->is_64 ? cursor_u32(&c) : 0;
		segment.offset = cursor_word(&c, elf->is_64);
		segment.vaddr = cursor_word(&c, elf->is_64);
		(void)cursor_word(&c, elf->is_64); /* physical address */
		segment.file_size = cursor_word(&c, elf->is_64);
		segment.memory_size = cursor_word(&c, elf->is_64);
		if (!elf->is_64)
			flags = cursor_u32(&c);
		if (type == PT_NOTE)
			read_notes(elf, file, segment.offset, segment.file_size);
		if (type == PT_GNU_EH_FRAME) {
			elf->frame_header_vaddr = segment.vaddr;
			elf->frame_header_size = segment.file_size;
		}
		if (type != PT_LOAD)
			continue;
		if (segment.offset + segment.file_size < segment.offset ||
			segment.vaddr + segment.memory_size < segment.vaddr)
			continue; /* it wraps around, so no address can be in it */
		segment.executable = flags & PF_X;
		if (segment.executable && !has_text) {
			elf->text_vaddr = segment.vaddr;
			elf->text_offset = segment.offset;
			has_text = true;
		}
		if (!vec_add(&elf->segments, segment))
			return diag_set(diag, -ENOMEM, "no memory for ELF segments");
	}
	return 0;
}

static void read_debug_link(struct elf *elf, const struct image_file *file)
{
	const struct elf_section *section = elf_find_section(elf, ".gnu_debuglink");
	cleanup(freep) uint8_t *data = NULL;
	size_t len;

	if (!section || image_file_load(file, section->offset, section->size,
				ELF_DEBUG_LINK_MAX + 8, &data) < 0)
		return;
	struct cursor c = cursor_of(data, (size_t)section->size);
	const char *name = cursor_stringz(&c, &len);
	cursor_skip(&c, -(len + 1) & 3u);
	uint32_t crc = cursor_u32(&c);
	/* A name with a slash would leave the searched folders. */
	if (c.short_read || !len || len >= ELF_DEBUG_LINK_MAX || strchr(name, '/'))
		return;
	memcpy(elf->debug_link, name, len + 1);
	elf->debug_link_crc = crc;
}

/* Errors from here on only cost the sections. */
static int read_sections(struct elf *elf, const struct image_file *file,
	const struct header *header)
{
	size_t least = elf->is_64 ? 64 : 40;
	cleanup(freep) uint8_t *table = NULL;
	uint32_t count = header->section_count;
	uint32_t names_index = header->names_index;
	uint64_t names_size = 0;

	if (!header->section_at || header->section_size < least)
		return 0;
	/* Values that do not fit 16 bits are stored in the first entry. */
	if (!count || names_index == SHN_XINDEX) {
		uint8_t first[64];
		if (image_file_read(file, header->section_at, first, least) < 0)
			return 0;
		struct cursor c = cursor_of(first, least);
		cursor_skip(&c, elf->is_64 ? 32 : 20);
		uint64_t size = cursor_word(&c, elf->is_64);
		uint32_t link = cursor_u32(&c);
		if (!count)
			count = size > SECTIONS_MAX ? 0 : (uint32_t)size;
		if (names_index == SHN_XINDEX)
			names_index = link;
	}
	if (!count || count > SECTIONS_MAX)
		return 0;
	uint64_t size = (uint64_t)header->section_size * count;
	if (image_file_load(file, header->section_at, size, (size_t)size, &table) < 0)
		return 0;
	if (!vec_reserve(&elf->sections, count))
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		struct cursor c = cursor_of(table + (size_t)i * header->section_size, least);
		struct elf_section section = { .name = "" };
		uint32_t name = cursor_u32(&c);
		section.type = cursor_u32(&c);
		section.flags = cursor_word(&c, elf->is_64);
		section.vaddr = cursor_word(&c, elf->is_64);
		section.offset = cursor_word(&c, elf->is_64);
		section.size = cursor_word(&c, elf->is_64);
		section.link = cursor_u32(&c);
		cursor_skip(&c, 4);
		(void)cursor_word(&c, elf->is_64); /* alignment */
		section.entry_size = cursor_word(&c, elf->is_64);
		if (i == names_index && section.type == ELF_SECTION_STRTAB &&
			image_file_load(file, section.offset, section.size, SECTION_NAMES_MAX,
				(uint8_t **)&elf->section_names) == 0)
			names_size = section.size;
		/* `name` holds the offset of the name until the names have been read. */
		section.name = NULL;
		elf->sections.items[elf->sections.count++] = section;
		/* entry i was read, so its bytes can be overwritten */
		memcpy(table + (size_t)i * 4, &name, 4);
	}
	for (uint32_t i = 0; i < count; i++) {
		uint32_t name;
		memcpy(&name, table + (size_t)i * 4, 4);
		elf->sections.items[i].name = name < names_size ? elf->section_names + name : "";
	}
	return 0;
}

int elf_read(struct elf *elf, const struct image_file *file, struct diag *diag)
{
	struct header header = { 0 };

	*elf = (struct elf){ 0 };
	int error = read_header(elf, file, &header, diag);
	if (!error)
		error = read_segments(elf, file, &header, diag);
	if (!error && read_sections(elf, file, &header) < 0)
		error = diag_set(diag, -ENOMEM, "no memory for ELF sections");
	if (!error && !elf->segments.count && !elf->sections.count)
		error = diag_set(diag, -EBADMSG, "the ELF file has neither segments nor sections");
	if (error) {
		elf_done(elf);
		return error;
	}
	for (uint32_t i = 0; i < elf->sections.count && !elf->build_id_len; i++) {
		const struct elf_section *section = &elf->sections.items[i];
		if (section->type == ELF_SECTION_NOTE)
			read_notes(elf, file, section->offset, section->size);
	}
	read_debug_link(elf, file);
	return 0;
}

bool elf_vaddr_of_offset(const struct elf *elf, uint64_t offset, uint64_t *ret_vaddr)
{
	const struct elf_segment *found = NULL;

	/* Segments may share a page of the file; the executable one is preferred. */
	vec_each(s, &elf->segments) {
		if (offset < s->offset || offset - s->offset >= s->file_size)
			continue;
		if (!found || (s->executable && !found->executable))
			found = s;
	}
	if (!found)
		return false;
	*ret_vaddr = found->vaddr + (offset - found->offset);
	return true;
}

bool elf_offset_of_vaddr(const struct elf *elf, uint64_t vaddr, uint64_t *ret_offset)
{
	vec_each(s, &elf->segments) {
		if (vaddr >= s->vaddr && vaddr - s->vaddr < s->file_size) {
			*ret_offset = s->offset + (vaddr - s->vaddr);
			return true;
		}
	}
	return false;
}

const struct elf_section *elf_find_section(const struct elf *elf, const char *name)
{
	vec_each(section, &elf->sections) {
		if (section->type != ELF_SECTION_NOBITS && section->type != ELF_SECTION_NULL &&
			!strcmp(section->name, name))
			return section;
	}
	return NULL;
}

bool elf_find_needed(const struct elf *elf, const struct image_file *file, const char *prefix,
	char *ret_name, size_t room)
{
	const struct elf_section *dynamic = elf_find_section(elf, ".dynamic");
	const struct elf_section *texts = elf_find_section(elf, ".dynstr");
	size_t word = elf->is_64 ? 8 : 4;
	uint8_t *entries = NULL;
	uint8_t *names = NULL;
	bool found = false;

	if (dynamic && texts &&
		image_file_load(file, dynamic->offset, dynamic->size, DYNAMIC_MAX, &entries) == 0 &&
		image_file_load(file, texts->offset, texts->size, DYNAMIC_TEXTS_MAX, &names) == 0) {
		struct cursor c = cursor_of(entries, dynamic->size);
		for (uint64_t i = 0; i < dynamic->size / (2 * word) && !found; i++) {
			uint64_t tag = elf->is_64 ? cursor_u64(&c) : cursor_u32(&c);
			uint64_t at = elf->is_64 ? cursor_u64(&c) : cursor_u32(&c);
			if (tag != DYNAMIC_NEEDED || at >= texts->size)
				continue;
			/* the byte after the last one is NUL */
			const char *name = (const char *)names + at;
			size_t len = strlen(name);
			found = strncmp(name, prefix, strlen(prefix)) == 0 && len < room;
			if (found)
				memcpy(ret_name, name, len + 1);
		}
	}
	free(entries);
	free(names);
	return found;
}

void elf_build_id_text(const struct elf *elf, char *ret_text)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < elf->build_id_len; i++) {
		*ret_text++ = digits[elf->build_id[i] >> 4];
		*ret_text++ = digits[elf->build_id[i] & 15];
	}
	*ret_text = 0;
}

void elf_done(struct elf *elf)
{
	vec_done(&elf->segments);
	vec_done(&elf->sections);
	free(elf->section_names);
	*elf = (struct elf){ 0 };
}
