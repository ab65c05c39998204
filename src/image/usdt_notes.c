/* See usdt_notes.h. */
#include "image/usdt_notes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/cursor.h"
#include "image/elf.h"
#include "image/elf_section.h"
#include "image/image_file.h"

#define OWNER            "stapsdt"
#define TYPE             3u
#define SYMBOLS_SIZE_MAX (64u << 20) /* of a symbol table, and of its names */

/* Whether the file offset belongs to code that can be mapped. */
static bool is_code(const struct elf *elf, uint64_t vaddr)
{
	vec_each(segment, &elf->segments)
		if (segment->executable && vaddr >= segment->vaddr &&
			vaddr - segment->vaddr < segment->file_size)
			return true;
	return false;
}

static uint64_t address(struct cursor *c, bool is_64)
{
	return is_64 ? cursor_u64(c) : cursor_u32(c);
}

/*
 * The description of a note (https://sourceware.org/systemtap/wiki/UserSpaceProbeImplementation), addresses in the
 * size of the image's class:
 *
 *   address  of the probe's code
 *   address  of .stapsdt.base when the image was linked: prelink moves the section, not this number
 *   address  of the semaphore; 0: none
 *   text     provider, with its NUL; so are the next two
 *   text     name
 *   text     arguments
 */
static bool read_note(const struct elf *elf, const struct elf_section *base, struct cursor c,
	struct usdt_note *ret_note)
{
	struct usdt_note note = { 0 };
	size_t len;

	note.vaddr = address(&c, elf->is_64);
	uint64_t linked = address(&c, elf->is_64);
	uint64_t semaphore = address(&c, elf->is_64);
	uint64_t moved = base && linked ? base->vaddr - linked : 0;

	note.provider = cursor_stringz(&c, &len);
	note.name = cursor_stringz(&c, &len);
	note.arguments = cursor_stringz(&c, &len);
	note.vaddr += moved;
	if (c.short_read || !note.provider[0] || !note.name[0] || !is_code(elf, note.vaddr) ||
		!elf_offset_of_vaddr(elf, note.vaddr, &note.offset))
		return false;
	if (semaphore && !elf_offset_of_vaddr(elf, semaphore + moved, &note.semaphore_offset))
		return false;
	*ret_note = note;
	return true;
}

int usdt_notes_read(const struct elf *elf, const struct image_file *file,
	struct usdt_notes *ret_notes)
{
	const struct elf_section *section = elf_find_section(elf, ".note.stapsdt");
	const struct elf_section *base = elf_find_section(elf, ".stapsdt.base");
	size_t size;

	*ret_notes = (struct usdt_notes){ .data = NULL };
	if (!section || !section->size)
		return 0;
	int result =
		elf_section_load(elf, file, section, USDT_NOTES_SIZE_MAX, &ret_notes->data, &size);
	if (result < 0)
		return result;
	struct cursor c = cursor_of(ret_notes->data, size);
	/* Each note takes 12 bytes at least, so the loop is bounded by the section. */
	while (cursor_left(&c) && ret_notes->items.count < USDT_NOTES_MAX) {
		uint32_t owner_size = cursor_u32(&c);
		uint32_t data_size = cursor_u32(&c);
		uint32_t type = cursor_u32(&c);
		const uint8_t *owner = cursor_take(&c, owner_size);
		cursor_skip(&c, -owner_size & 3u);
		struct cursor data = cursor_sub(&c, data_size);
		if (c.short_read)
			break;
		/* The last one may lack its padding. */
		size_t padding = -data_size & 3u;
		cursor_skip(&c, padding < cursor_left(&c) ? padding : cursor_left(&c));
		if (type != TYPE || owner_size != sizeof(OWNER) ||
			memcmp(owner, OWNER, sizeof(OWNER)) != 0)
			continue;
		struct usdt_note note;
		if (!read_note(elf, base, data, &note)) {
			ret_notes->skipped++;
		} else if (!vec_add(&ret_notes->items, note)) {
			usdt_notes_done(ret_notes);
			return -ENOMEM;
		}
	}
	return 0;
}

/*
 * A symbol: u32 name, then of 64 bits u8 info, u8 other, u16 section, u64 value, u64 size; of 32 bits u32 value, u32
 * size, u8 info, u8 other, u16 section.
 */
static int find_in(const struct elf *elf, const struct image_file *file,
	const struct elf_section *table, const char *name, size_t name_len, uint64_t *ret_vaddr)
{
	cleanup(freep) uint8_t *symbols = NULL;
	cleanup(freep) uint8_t *names = NULL;
	size_t entry = elf->is_64 ? 24 : 16;
	size_t size;
	size_t names_size;

	if (table->link >= elf->sections.count)
		return -EBADMSG;
	int result = elf_section_load(elf, file, table, SYMBOLS_SIZE_MAX, &symbols, &size);
	if (result == 0)
		result = elf_section_load(elf, file, &elf->sections.items[table->link],
			SYMBOLS_SIZE_MAX, &names, &names_size);
	if (result < 0)
		return result;
	for (size_t at = 0; at + entry <= size; at += entry) {
		struct cursor c = cursor_of(symbols + at, entry);
		uint32_t name_at = cursor_u32(&c);
		if (elf->is_64)
			cursor_skip(&c, 2);
		uint16_t section = elf->is_64 ? cursor_u16(&c) : 0;
		uint64_t value = address(&c, elf->is_64);
		if (!elf->is_64) {
			cursor_skip(&c, 6);
			section = cursor_u16(&c);
		}
		if (!section || name_at >= names_size || names_size - name_at <= name_len ||
			memcmp(names + name_at, name, name_len) != 0 || names[name_at + name_len])
			continue;
		*ret_vaddr = value;
		return 0;
	}
	return -ENOENT;
}

int usdt_symbol_find(const struct elf *elf, const struct image_file *file, const char *name,
	size_t name_len, uint64_t *ret_vaddr)
{
	static const char *const tables[] = { ".symtab", ".dynsym" };
	int result = -ENOENT;

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]) && result < 0; i++) {
		const struct elf_section *table = elf_find_section(elf, tables[i]);
		if (table)
			result = find_in(elf, file, table, name, name_len, ret_vaddr);
	}
	return result;
}

void usdt_notes_done(struct usdt_notes *notes)
{
	free(notes->data);
	notes->data = NULL;
	vec_done(&notes->items);
}
