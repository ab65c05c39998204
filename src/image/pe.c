/*
 * See pe.h.
 *
 * PE file ("PE Format", Microsoft; ECMA-335 II.25), all offsets from the PE signature unless said:
 *
 *   0x3c (file)  4    offset of the signature "PE\0\0"
 *   4            2    machine (.NET on Linux: xored with the system's number)
 *   6            2    number of sections
 *   8            4    time stamp
 *   20           2    size of the optional header, which follows at 24
 *   24           2    0x10b PE32, 0x20b PE32+
 *   then the image base, sizes, number of data directories, the directories (RVA, size), and the
 *   section table (40 bytes each)
 */
#include "image/pe.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cursor.h"
#include "base/diag.h"
#include "image/image_file.h"

#define SECTIONS_MAX      96u
#define OPTIONAL_SIZE_MAX 4096u
#define DIRECTORIES_MAX   16u
#define DEBUG_ENTRIES_MAX 32u
#define DIRECTORY_DEBUG   6
#define DIRECTORY_CLI     14
#define DEBUG_CODEVIEW    2u
#define DEBUG_EMBEDDED    17u
#define DEBUG_PERFMAP     21u
#define R2R_SIGNATURE     0x00525452u /* "RTR\0" */

struct directory {
	uint32_t rva;
	uint32_t size;
};

static int read_rva(const struct pe *pe, const struct image_file *file, uint32_t rva, void *buffer,
	size_t size)
{
	uint64_t offset;

	if (!pe_offset_of_rva(pe, rva, &offset))
		return -EBADMSG;
	return image_file_read(file, offset, buffer, size);
}

static int read_sections(struct pe *pe, const struct image_file *file, uint64_t at, uint32_t count,
	struct diag *diag)
{
	uint8_t table[SECTIONS_MAX * 40];

	if (!count || count > SECTIONS_MAX)
		return diag_set(diag, -EBADMSG, "%u PE sections: not possible", count);
	int error = image_file_read(file, at, table, count * 40u);
	if (error)
		return diag_set(diag, error, "cannot read %u PE sections: %m", count);
	struct cursor c = cursor_of(table, count * 40u);
	for (uint32_t i = 0; i < count; i++) {
		struct pe_section *section = vec_push(&pe->sections);
		if (!section)
			return diag_set(diag, -ENOMEM, "no memory for PE sections");
		memcpy(section->name, cursor_take(&c, 8), 8);
		section->memory_size = cursor_u32(&c);
		section->rva = cursor_u32(&c);
		section->file_size = cursor_u32(&c);
		section->offset = cursor_u32(&c);
		cursor_skip(&c, 12);
		section->flags = cursor_u32(&c);
	}
	return 0;
}

static void copy_text(char *to, const char *text, size_t len)
{
	if (len >= PE_NAME_MAX)
		len = PE_NAME_MAX - 1;
	memcpy(to, text, len);
	to[len] = 0;
}

/* CodeView: "RSDS", GUID, u32 age, path. Perf map: "R2RM", 16 bytes, u32 version, name. */
static void read_debug_entry(struct pe *pe, uint32_t type, struct cursor c)
{
	const uint8_t *magic = cursor_take(&c, 4);
	const uint8_t *id = cursor_take(&c, 16);
	uint32_t number = cursor_u32(&c);
	size_t len;
	const char *name = cursor_stringz(&c, &len);

	if (c.short_read)
		return;
	if (type == DEBUG_CODEVIEW && !pe->has_pdb && !memcmp(magic, "RSDS", 4)) {
		pe->has_pdb = true;
		memcpy(pe->pdb_guid, id, 16);
		pe->pdb_age = number;
		copy_text(pe->pdb_name, name, len);
	} else if (type == DEBUG_PERFMAP && !pe->has_perfmap && !memcmp(magic, "R2RM", 4)) {
		pe->has_perfmap = true;
		memcpy(pe->perfmap_signature, id, 16);
		pe->perfmap_version = number;
		copy_text(pe->perfmap_name, name, len);
	}
}

static void read_debug(struct pe *pe, const struct image_file *file, struct directory directory)
{
	uint8_t table[DEBUG_ENTRIES_MAX * 28];
	size_t size = directory.size < sizeof(table) ? directory.size : sizeof(table);

	if (!size || read_rva(pe, file, directory.rva, table, size) < 0)
		return;
	struct cursor c = cursor_of(table, size);
	while (cursor_left(&c) >= 28) {
		uint8_t entry[24 + PE_NAME_MAX + 1] = { 0 };
		cursor_skip(&c, 12);
		uint32_t type = cursor_u32(&c);
		uint32_t data_size = cursor_u32(&c);
		cursor_skip(&c, 4);
		uint32_t offset = cursor_u32(&c);
		if (type == DEBUG_EMBEDDED && !pe->embedded_pdb_size) {
			pe->embedded_pdb_offset = offset;
			pe->embedded_pdb_size = data_size;
		}
		/* A longer name is truncated: the last byte stays NUL. */
		if (data_size > sizeof(entry) - 1)
			data_size = sizeof(entry) - 1;
		if (image_file_read(file, offset, entry, data_size) == 0)
			read_debug_entry(pe, type, cursor_of(entry, sizeof(entry)));
	}
}

/*
 * CLI header (ECMA-335 II.25.3.3): 8 metadata (RVA, size), 64 the header of ReadyToRun ("RTR\0").
 */
static void read_cli(struct pe *pe, const struct image_file *file, struct directory directory)
{
	uint8_t header[72];
	uint8_t signature[4];

	if (directory.size < sizeof(header) ||
		read_rva(pe, file, directory.rva, header, sizeof(header)) < 0)
		return;
	struct cursor c = cursor_of(header, sizeof(header));
	cursor_skip(&c, 8);
	pe->metadata_rva = cursor_u32(&c);
	pe->metadata_size = cursor_u32(&c);
	cursor_skip(&c, 64 - 16);
	uint32_t rva = cursor_u32(&c);
	uint32_t size = cursor_u32(&c);
	if (rva && read_rva(pe, file, rva, signature, 4) == 0) {
		struct cursor s = cursor_of(signature, 4);
		if (cursor_u32(&s) == R2R_SIGNATURE) {
			pe->r2r_rva = rva;
			pe->r2r_size = size;
		}
	}
}

int pe_read(struct pe *pe, const struct image_file *file, struct diag *diag)
{
	struct directory directories[DIRECTORIES_MAX] = { 0 };
	uint8_t start[64];
	uint8_t head[24];
	uint8_t optional[OPTIONAL_SIZE_MAX];

	*pe = (struct pe){ 0 };
	if (image_file_read(file, 0, start, sizeof(start)) < 0 || start[0] != 'M' ||
		start[1] != 'Z')
		return diag_set(diag, -EBADMSG, "not a PE file");
	struct cursor c = cursor_of(start + 0x3c, 4);
	uint64_t at = cursor_u32(&c);
	if (image_file_read(file, at, head, sizeof(head)) < 0 || memcmp(head, "PE\0\0", 4) != 0)
		return diag_set(diag, -EBADMSG, "not a PE file: no signature at offset %llu",
			(unsigned long long)at);
	c = cursor_of(head + 4, sizeof(head) - 4);
	pe->machine = cursor_u16(&c);
	uint32_t section_count = cursor_u16(&c);
	pe->time_stamp = cursor_u32(&c);
	cursor_skip(&c, 8);
	uint32_t optional_size = cursor_u16(&c);
	if (optional_size > sizeof(optional))
		return diag_set(diag, -EBADMSG, "PE header of %u bytes: not possible",
			optional_size);
	int error = image_file_read(file, at + 24, optional, optional_size);
	if (error)
		return diag_set(diag, error, "cannot read the PE header: %m");

	c = cursor_of(optional, optional_size);
	pe->is_64 = cursor_u16(&c) == 0x20b;
	cursor_skip(&c, pe->is_64 ? 22 : 26);
	pe->image_base = pe->is_64 ? cursor_u64(&c) : cursor_u32(&c);
	cursor_skip(&c, 24);
	pe->image_size = cursor_u32(&c);
	cursor_skip(&c, 12 + (pe->is_64 ? 32u : 16u) + 4);
	uint32_t directory_count = cursor_u32(&c);
	if (c.short_read)
		return diag_set(diag, -EBADMSG, "PE header cut after %u bytes", optional_size);
	for (uint32_t i = 0; i < directory_count && i < DIRECTORIES_MAX; i++) {
		directories[i].rva = cursor_u32(&c);
		directories[i].size = cursor_u32(&c);
	}
	error = read_sections(pe, file, at + 24 + optional_size, section_count, diag);
	if (error) {
		pe_done(pe);
		return error;
	}
	read_debug(pe, file, directories[DIRECTORY_DEBUG]);
	read_cli(pe, file, directories[DIRECTORY_CLI]);
	return 0;
}

bool pe_offset_of_rva(const struct pe *pe, uint32_t rva, uint64_t *ret_offset)
{
	vec_each(s, &pe->sections) {
		if (rva >= s->rva && rva - s->rva < s->file_size) {
			*ret_offset = (uint64_t)s->offset + (rva - s->rva);
			return true;
		}
	}
	return false;
}

bool pe_rva_of_offset(const struct pe *pe, uint64_t offset, uint32_t *ret_rva)
{
	vec_each(s, &pe->sections) {
		if (offset >= s->offset && offset - s->offset < s->file_size &&
			offset - s->offset <= UINT32_MAX - s->rva) {
			*ret_rva = s->rva + (uint32_t)(offset - s->offset);
			return true;
		}
	}
	return false;
}

uint32_t pe_text_rva(const struct pe *pe)
{
	uint32_t lowest = 0;

	vec_each(s, &pe->sections)
		if ((s->flags & PE_SECTION_EXECUTABLE) && (!lowest || s->rva < lowest))
			lowest = s->rva;
	return lowest;
}

void pe_done(struct pe *pe)
{
	vec_done(&pe->sections);
	*pe = (struct pe){ 0 };
}
