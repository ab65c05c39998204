/*
 * See unwind_table.h. Each section has an index of its functions, sorted by begin: copied from
 * .eh_frame_hdr, or made by reading the section once. The index may be wrong, so each entry that it
 * leads to is checked against the address.
 */
#include "code/unwind_table.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/partition_point.h"
#include "base/vec.h"
#include "code/frame_entry.h"
#include "code/frame_header.h"
#include "code/unwind_rules.h"
#include "image/elf.h"
#include "image/image_file.h"

/* Both are 32 bits wide, to halve the memory; images of 4 GiB and more are not indexed there. */
struct index_entry {
	uint32_t begin; /* minus the table's base */
	uint32_t at;    /* of the FDE, in the section */
};

struct indexed_section {
	struct frame_section section;
	uint8_t *data; /* owned */
	VEC(struct index_entry) index;
};

enum { SECTION_EH, SECTION_DEBUG, SECTION_COUNT };

struct unwind_table {
	struct elf elf;
	uint64_t base; /* the lowest address of the image */
	struct indexed_section sections[SECTION_COUNT];
	char build_id[2 * ELF_BUILD_ID_MAX + 1];
};

void unwind_table_free(struct unwind_table *table)
{
	if (!table)
		return;
	for (int i = 0; i < SECTION_COUNT; i++) {
		free(table->sections[i].data);
		vec_done(&table->sections[i].index);
	}
	elf_done(&table->elf);
	free(table);
}

static int load(struct indexed_section *indexed, const struct image_file *file, uint64_t offset,
	uint64_t size, uint64_t vaddr, bool debug)
{
	int result = image_file_load(file, offset, size, UNWIND_TABLE_BYTES_MAX, &indexed->data);

	if (result < 0)
		return result;
	indexed->section = (struct frame_section){
		.data = indexed->data, .size = (size_t)size, .vaddr = vaddr, .debug = debug
	};
	return 0;
}

static int add_to_index(const struct unwind_table *table, struct indexed_section *indexed,
	uint64_t begin, uint64_t at)
{
	uint64_t distance = begin - table->base;

	if (distance > UINT32_MAX || at >= indexed->section.size)
		return 0;
	return vec_add(&indexed->index,
		       ((struct index_entry){ .begin = (uint32_t)distance, .at = (uint32_t)at }))
		       ? 0
		       : -ENOMEM;
}

/* The part of the segment from .eh_frame on, if there is no section table. */
static int load_frames(struct unwind_table *table, const struct image_file *file, uint64_t vaddr)
{
	struct indexed_section *indexed = &table->sections[SECTION_EH];
	const struct elf_section *section = elf_find_section(&table->elf, ".eh_frame");

	if (section && (!vaddr || section->vaddr == vaddr))
		return load(indexed, file, section->offset, section->size, section->vaddr, false);
	for (uint32_t i = 0; vaddr && i < table->elf.segments.count; i++) {
		const struct elf_segment *s = &table->elf.segments.items[i];
		uint64_t at = vaddr - s->vaddr;
		if (vaddr >= s->vaddr && at < s->file_size)
			return load(indexed, file, s->offset + at, s->file_size - at, vaddr, false);
	}
	return -ENODATA;
}

static int index_by_header(struct unwind_table *table, const struct image_file *file,
	const struct frame_header *header)
{
	struct indexed_section *indexed = &table->sections[SECTION_EH];
	cleanup(freep) uint8_t *entries = NULL;
	size_t size = (size_t)header->count * FRAME_HEADER_ENTRY_SIZE;
	int result = image_file_load(file, header->at, size, UNWIND_TABLE_BYTES_MAX, &entries);

	if (result == 0 && !vec_reserve(&indexed->index, header->count))
		result = -ENOMEM;
	for (uint32_t i = 0; result == 0 && i < header->count; i++) {
		uint64_t begin;
		uint64_t fde;
		frame_header_entry(header, entries + (size_t)i * FRAME_HEADER_ENTRY_SIZE, &begin,
			&fde);
		result = add_to_index(table, indexed, begin, fde - indexed->section.vaddr);
	}
	return result;
}

static int compare_entries(const void *a, const void *b)
{
	const struct index_entry *left = a;
	const struct index_entry *right = b;

	return left->begin < right->begin ? -1 : left->begin > right->begin;
}

static int index_by_reading(struct unwind_table *table, struct indexed_section *indexed)
{
	struct frame_entry entry;
	enum frame_entry_kind kind;

	for (size_t at = 0, next = 0; indexed->data; at = next) {
		kind = frame_entry_read(&indexed->section, &next, &entry);
		if (kind == FRAME_ENTRY_END)
			break;
		int result =
			kind == FRAME_ENTRY_FDE ? add_to_index(table, indexed, entry.begin, at) : 0;
		if (result < 0)
			return result;
	}
	if (indexed->index.count)
		qsort(indexed->index.items, indexed->index.count, sizeof(struct index_entry),
			compare_entries);
	return 0;
}

static int read_frames(struct unwind_table *table, const struct image_file *file)
{
	struct frame_header header;
	bool listed = frame_header_read(file, &table->elf, &header);
	int result = load_frames(table, file, listed ? header.frame_vaddr : 0);

	if (result < 0)
		return result;
	return listed ? index_by_header(table, file, &header)
		      : index_by_reading(table, &table->sections[SECTION_EH]);
}

static int read_debug_frames(struct unwind_table *table, const struct image_file *file)
{
	struct indexed_section *indexed = &table->sections[SECTION_DEBUG];
	const struct elf_section *section = elf_find_section(&table->elf, ".debug_frame");

	if (!section || section->flags & ELF_SECTION_COMPRESSED)
		return -ENODATA;
	int result = load(indexed, file, section->offset, section->size, 0, true);
	return result < 0 ? result : index_by_reading(table, indexed);
}

int unwind_table_open(const struct image_file *file, struct unwind_table **ret_table)
{
	struct unwind_table *table = calloc(1, sizeof(*table));

	if (!table)
		return -ENOMEM;
	int result = elf_read(&table->elf, file, NULL);
	if (result == 0 && !table->elf.is_64)
		result = -EBADMSG;
	if (result == 0) {
		table->base = UINT64_MAX;
		for (uint32_t i = 0; i < table->elf.segments.count; i++)
			if (table->elf.segments.items[i].vaddr < table->base)
				table->base = table->elf.segments.items[i].vaddr;
		elf_build_id_text(&table->elf, table->build_id);
		result = read_frames(table, file);
		int other = result == -ENOMEM ? result : read_debug_frames(table, file);
		result = other == 0 ? 0 : result;
	}
	if (result < 0) {
		unwind_table_free(table);
		return result;
	}
	*ret_table = table;
	return 0;
}

bool unwind_table_vaddr(const struct unwind_table *table, uint64_t offset, uint64_t *ret_vaddr)
{
	return elf_vaddr_of_offset(&table->elf, offset, ret_vaddr);
}

/* -ENOENT: the section has no function there. */
static int find_in(const struct unwind_table *table, const struct indexed_section *indexed,
	uint64_t vaddr, struct unwind_rules *ret_rules)
{
	const struct index_entry *items = indexed->index.items;
	uint64_t distance = vaddr - table->base;
	uint32_t low;
	struct frame_entry entry;

	/* items before `low` begin at or before the address, those from `high` on after it */
	low = partition_point(indexed->index.count, i, items[i].begin <= distance);
	if (!low)
		return -ENOENT;
	size_t at = items[low - 1].at;
	if (frame_entry_read(&indexed->section, &at, &entry) != FRAME_ENTRY_FDE)
		return -EBADMSG;
	if (vaddr < entry.begin || vaddr >= entry.end)
		return -ENOENT;
	return unwind_rules_find(&entry, vaddr, ret_rules) ? 0 : -EBADMSG;
}

int unwind_table_find(const struct unwind_table *table, uint64_t vaddr,
	struct unwind_rules *ret_rules)
{
	int result = find_in(table, &table->sections[SECTION_EH], vaddr, ret_rules);

	return result == -ENOENT ? find_in(table, &table->sections[SECTION_DEBUG], vaddr, ret_rules)
				 : result;
}

const char *unwind_table_build_id(const struct unwind_table *table)
{
	return table->build_id;
}

size_t unwind_table_size_bytes(const struct unwind_table *table)
{
	size_t size = sizeof(*table);

	for (int i = 0; i < SECTION_COUNT; i++)
		size += table->sections[i].section.size +
			table->sections[i].index.capacity * sizeof(struct index_entry);
	return size;
}
