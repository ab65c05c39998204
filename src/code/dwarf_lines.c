/*
 * See dwarf_lines.h.
 *
 * Rows are not stored: in each sequence addresses only grow, so the queries between one row and the
 * next get the line of the first of the two as the program runs.
 */
#include "code/dwarf_lines.h"

#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/cursor.h"
#include "base/partition_point.h"
#include "base/strtab.h"

#define FILES_MAX   (1u << 20)
#define FORMATS_MAX 16u
#define PATH_MAX_   4096u

enum { LNCT_PATH = 1, LNCT_FOLDER = 2 };

enum line_opcode {
	LNS_COPY = 1,
	LNS_ADVANCE_PC,
	LNS_ADVANCE_LINE,
	LNS_SET_FILE,
	LNS_SET_COLUMN,
	LNS_NEGATE_STMT,
	LNS_SET_BASIC_BLOCK,
	LNS_CONST_ADD_PC,
	LNS_FIXED_ADVANCE_PC,
	LNS_SET_PROLOGUE_END,
	LNS_SET_EPILOGUE_BEGIN,
	LNS_SET_ISA,
};

enum { LNE_END_SEQUENCE = 1, LNE_SET_ADDRESS = 2 };

struct line_header {
	uint16_t version;
	uint8_t address_size;
	uint8_t offset_size;
	uint8_t instruction_size;
	uint8_t operations; /* in an instruction: of VLIW machines */
	int8_t line_base;
	uint8_t line_range;
	uint8_t opcode_base;
	const uint8_t *operand_counts;
};

struct line_run {
	const struct line_header *header;
	const struct dwarf *dwarf;
	struct dwarf_line_query *queries;
	uint32_t count;
	uint32_t next; /* first query at or after the last row of this sequence */
	bool in_sequence;
	uint64_t next_address; /* of the query `next`; UINT64_MAX: there is none */
	uint64_t row_address;  /* of the last row */
	uint64_t row_file;
	uint64_t row_line;
	/* the machine's registers */
	uint64_t address;
	uint64_t file;
	uint64_t line;
	const struct dwarf_line_advance *advances;
	uint64_t const_advance; /* what DW_LNS_const_add_pc adds */
	bool has_columns; /* the operands of the opcodes for columns and statements are the usual ones */
};

/* ---- header ---- */

static bool read_files_4(struct cursor *c, struct dwarf_line_files *files)
{
	size_t len;

	if (!vec_add(&files->folders, files->unit_folder) ||
		!vec_add(&files->files, (struct dwarf_file){ 0 }))
		return false;
	for (;;) {
		const char *text = cursor_stringz(c, &len);
		if (!text || !len)
			break;
		if (files->folders.count >= FILES_MAX || !vec_add(&files->folders, text))
			return false;
	}
	for (;;) {
		struct dwarf_file file = { .name = cursor_stringz(c, &len) };
		if (!file.name || !len)
			break;
		uint64_t folder = cursor_varuint(c);
		file.folder = folder > UINT32_MAX ? UINT32_MAX : (uint32_t)folder;
		(void)cursor_varuint(c); /* time */
		(void)cursor_varuint(c); /* size */
		if (files->files.count >= FILES_MAX || !vec_add(&files->files, file))
			return false;
	}
	return !c->short_read;
}

struct entry_format {
	uint64_t content;
	uint16_t form;
};

static unsigned read_formats(struct cursor *c, struct entry_format *formats)
{
	unsigned count = cursor_u8(c);

	for (unsigned i = 0; i < count; i++) {
		uint64_t content = cursor_varuint(c);
		uint64_t form = cursor_varuint(c);
		if (i >= FORMATS_MAX || form > UINT16_MAX)
			c->short_read = true;
		else
			formats[i] = (struct entry_format){ content, (uint16_t)form };
	}
	return count > FORMATS_MAX ? 0 : count;
}

/* As dwarf_read_form(), quicker for the forms of most compilers: a place in .debug_line_str, and a small number. */
static inline bool read_form(const struct dwarf *dwarf, const struct line_header *header,
	struct cursor *c, uint16_t form, struct dwarf_value *ret_value)
{
	const struct dwarf_bytes *texts = &dwarf->sections[DWARF_LINE_STR];

	if (form == DW_FORM_LINE_STRP && header->offset_size == 4) {
		uint32_t offset = cursor_u32(c);
		*ret_value = (struct dwarf_value){ .class = DWARF_NONE };
		if (offset < texts->size)
			*ret_value = (struct dwarf_value){ .class = DWARF_TEXT,
				.text = (const char *)texts->data + offset };
		return !c->short_read;
	}
	if (form == DW_FORM_UDATA) {
		*ret_value =
			(struct dwarf_value){ .class = DWARF_NUMBER, .number = cursor_varuint(c) };
		return !c->short_read;
	}
	return dwarf_read_form(dwarf, header->offset_size, header->address_size, c, form,
		ret_value);
}

/* One list of version 5: its formats, then its entries. */
static bool read_list_5(const struct dwarf *dwarf, const struct dwarf_unit *unit,
	const struct line_header *header, struct cursor *c, bool folders,
	struct dwarf_line_files *files)
{
	struct entry_format formats[FORMATS_MAX];
	unsigned format_count = read_formats(c, formats);
	uint64_t count = cursor_varuint(c);

	if (c->short_read || count > FILES_MAX || (count && !format_count))
		return false;
	for (uint64_t i = 0; i < count; i++) {
		struct dwarf_file file = { 0 };
		for (unsigned f = 0; f < format_count; f++) {
			struct dwarf_value value;
			if (!read_form(dwarf, header, c, formats[f].form, &value))
				return false;
			if (formats[f].content == LNCT_PATH)
				file.name = dwarf_text(dwarf, unit, &value);
			else if (formats[f].content == LNCT_FOLDER)
				file.folder = value.number > UINT32_MAX ? UINT32_MAX
									: (uint32_t)value.number;
		}
		if (folders ? !vec_add_quick(&files->folders, file.name)
			    : !vec_add_quick(&files->files, file))
			return false;
	}
	return true;
}

/* Reads header and files; *c is left at the program, which ends with the cursor. */
static bool read_header(const struct dwarf *dwarf, const struct dwarf_unit *unit,
	struct line_header *header, struct cursor *c, struct dwarf_line_files *files)
{
	const struct dwarf_bytes *section = &dwarf->sections[DWARF_LINE];
	uint8_t offset_size = 4;

	if (unit->line_offset >= section->size)
		return false;
	struct cursor all = cursor_of(section->data + unit->line_offset,
		section->size - (size_t)unit->line_offset);
	uint64_t length = cursor_u32(&all);
	if (length == UINT32_MAX) {
		offset_size = 8;
		length = cursor_u64(&all);
	}
	if (length > cursor_left(&all))
		return false;
	*c = cursor_sub(&all, (size_t)length);
	*header = (struct line_header){ .version = cursor_u16(c),
		.offset_size = offset_size,
		.address_size = unit->address_size };
	if (header->version < 2 || header->version > 5)
		return false;
	if (header->version >= 5) {
		header->address_size = cursor_u8(c);
		cursor_skip(c, 1); /* size of a segment selector */
	}
	uint64_t header_length = offset_size == 8 ? cursor_u64(c) : cursor_u32(c);
	if (c->short_read || header_length > cursor_left(c))
		return false;
	struct cursor program = *c;
	cursor_skip(&program, (size_t)header_length);
	header->instruction_size = cursor_u8(c);
	header->operations = header->version >= 4 ? cursor_u8(c) : 1;
	cursor_skip(c, 1); /* default_is_stmt */
	header->line_base = (int8_t)cursor_u8(c);
	header->line_range = cursor_u8(c);
	header->opcode_base = cursor_u8(c);
	header->operand_counts = cursor_take(c, header->opcode_base ? header->opcode_base - 1u : 0);
	if (c->short_read || !header->line_range || !header->opcode_base || header->operations > 1)
		return false;
	files->version = header->version;
	files->unit_folder = unit->folder;
	bool done = header->version >= 5 ? read_list_5(dwarf, unit, header, c, true, files) &&
						   read_list_5(dwarf, unit, header, c, false, files)
					 : read_files_4(c, files);
	*c = program;
	return done;
}

/* ---- program ---- */

/* The first query at or after `address`. */
static uint32_t lower_bound(const struct line_run *run, uint64_t address)
{
	return partition_point(run->count, i, run->queries[i].address < address);
}

/* Begins a sequence, or a part of one whose addresses are lower than before: finds its first query. */
static void begin_rows(struct line_run *run)
{
	bool dropped = run->address < run->dwarf->text_begin;

	run->next = dropped ? run->count : lower_bound(run, run->address);
	run->next_address = run->next < run->count ? run->queries[run->next].address : UINT64_MAX;
}

/* Answers the queries before this row: they have the line of the last one. */
static void answer_rows(struct line_run *run)
{
	while (run->next < run->count && run->queries[run->next].address < run->address) {
		struct dwarf_line_query *query = &run->queries[run->next++];
		/* Of two sequences for one address, which no linker makes, the first. */
		if (query->file != UINT32_MAX || query->address < run->row_address)
			continue;
		query->row = run->row_address;
		query->file =
			run->row_file >= UINT32_MAX ? UINT32_MAX - 1 : (uint32_t)run->row_file;
		query->line = run->row_line > INT32_MAX ? 0 : (uint32_t)run->row_line;
	}
	run->next_address = run->next < run->count ? run->queries[run->next].address : UINT64_MAX;
}

/* A row ends the code of the row before it. */
static void take_row(struct line_run *run, bool ends)
{
	if (!run->in_sequence || run->address < run->row_address)
		begin_rows(run);
	else if (run->next_address < run->address)
		answer_rows(run);
	run->in_sequence = !ends;
	run->row_address = run->address;
	run->row_file = run->file;
	run->row_line = run->line;
}

static void reset_registers(struct line_run *run)
{
	run->address = 0;
	run->file = 1;
	run->line = 1;
	run->in_sequence = false;
}

/* Extended opcodes: 0, length, opcode, operands. */
static void run_extended(struct line_run *run, struct cursor *c)
{
	uint64_t len = cursor_varuint(c);
	struct cursor operands = cursor_sub(c, len > SIZE_MAX ? SIZE_MAX : (size_t)len);

	switch (cursor_u8(&operands)) {
	case LNE_END_SEQUENCE:
		take_row(run, true);
		reset_registers(run);
		break;
	case LNE_SET_ADDRESS:
		run->address =
			cursor_left(&operands) == 8 ? cursor_u64(&operands) : cursor_u32(&operands);
		break;
	default:
		break;
	}
}

static void run_standard(struct line_run *run, uint8_t opcode, struct cursor *c)
{
	const struct line_header *header = run->header;

	switch (opcode) {
	case LNS_COPY:
		take_row(run, false);
		break;
	case LNS_ADVANCE_PC:
		run->address += cursor_varuint(c) * header->instruction_size;
		break;
	case LNS_ADVANCE_LINE:
		run->line += (uint64_t)cursor_sleb(c);
		break;
	case LNS_SET_FILE:
		run->file = cursor_varuint(c);
		break;
	case LNS_CONST_ADD_PC:
		run->address += run->const_advance;
		break;
	case LNS_FIXED_ADVANCE_PC:
		run->address += cursor_u16(c);
		break;
	default:
		for (unsigned i = 0; i < header->operand_counts[opcode - 1]; i++)
			(void)cursor_varuint(c); /* a failure stays in the cursor */
		break;
	}
}

/* What each special opcode adds: a division for each row would be the most expensive part. */
static void prepare_advances(struct dwarf_line_advances *advances, const struct line_header *header)
{
	if (advances->instruction_size == header->instruction_size &&
		advances->line_base == header->line_base &&
		advances->line_range == header->line_range &&
		advances->opcode_base == header->opcode_base)
		return;
	advances->instruction_size = header->instruction_size;
	advances->line_base = header->line_base;
	advances->line_range = header->line_range;
	advances->opcode_base = header->opcode_base;
	for (unsigned opcode = header->opcode_base; opcode < 256; opcode++) {
		unsigned adjusted = opcode - header->opcode_base;
		advances->of[opcode] = (struct dwarf_line_advance){
			.address = (uint16_t)(adjusted / header->line_range *
					      header->instruction_size),
			.line = (int16_t)(header->line_base + (int)(adjusted % header->line_range)),
		};
	}
}

/* A number of one byte, which most are; *at moves past it. False: it is longer, or no byte is left. */
static inline bool read_short(const uint8_t **at, const uint8_t *end, uint64_t *ret_number)
{
	if (*at == end || **at >= 0x80)
		return false;
	*ret_number = *(*at)++;
	return true;
}

/* A signed number of one or two bytes, likewise. */
static inline bool read_short_signed(const uint8_t **at, const uint8_t *end, uint64_t *ret_number)
{
	const uint8_t *bytes = *at;

	if (bytes < end && bytes[0] < 0x80) {
		*ret_number = (bytes[0] ^ UINT64_C(0x40)) - 0x40;
		*at += 1;
		return true;
	}
	if (end - bytes < 2 || bytes[1] >= 0x80)
		return false;
	*ret_number = (((bytes[0] & UINT64_C(0x7f)) | (uint64_t)bytes[1] << 7) ^ 0x2000) - 0x2000;
	*at += 2;
	return true;
}

/*
 * Runs special opcodes, standard ones whose operands are short, and extended ones that change no register,
 * with the registers in local variables. Stops before any other opcode, and where a row answers queries or
 * begins a sequence.
 */
static void run_rows(struct line_run *run, struct cursor *c)
{
	const struct dwarf_line_advance *advances = run->advances;
	const uint8_t opcode_base = run->header->opcode_base;
	const bool has_columns = run->has_columns;
	const uint8_t *at = c->at;
	const uint8_t *end = c->end;
	uint64_t address = run->address;
	uint64_t line = run->line;
	uint64_t file = run->file;
	uint64_t row_line = run->row_line;
	uint64_t row_file = run->row_file;
	/* A row stays in this function if it is from `row_address` on, and not after the next query. */
	uint64_t row_address = run->in_sequence ? run->row_address : UINT64_MAX;
	uint64_t room = run->in_sequence ? run->next_address - row_address : 0;
	bool in_rows = false;

	while (at < end) {
		const uint8_t *begin = at;
		uint8_t opcode = *at++;
		uint64_t next = address;
		uint64_t next_line = line;
		uint64_t number;
		if (opcode >= opcode_base) {
			next += advances[opcode].address;
			next_line += (uint64_t)(int64_t)advances[opcode].line;
		} else if (opcode == LNS_COPY) {
			/* a row with the registers as they are */
		} else if (opcode == LNS_SET_COLUMN && has_columns &&
			   read_short(&at, end, &number)) {
			continue;
		} else if (opcode == LNS_NEGATE_STMT && has_columns) {
			continue;
		} else if (opcode == LNS_ADVANCE_LINE && read_short_signed(&at, end, &number)) {
			line += number;
			continue;
		} else if (opcode == LNS_CONST_ADD_PC) {
			address += run->const_advance;
			continue;
		} else if (opcode == LNS_ADVANCE_PC && read_short(&at, end, &number)) {
			address += number * run->header->instruction_size;
			continue;
		} else if (opcode == LNS_SET_FILE && read_short(&at, end, &number)) {
			file = number;
			continue;
		} else if (opcode == 0 && end - at >= 2 && at[0] - 1u < 0x7f &&
			   at[1] > LNE_SET_ADDRESS && end - at > at[0]) {
			at += 1u + at[0]; /* a discriminator, for example */
			continue;
		} else {
			at = begin;
			break;
		}
		if (next - row_address > room) {
			at = begin;
			break;
		}
		room -= next - row_address;
		address = row_address = next;
		line = row_line = next_line;
		row_file = file;
		in_rows = true;
		/* Mostly a column follows, and then maybe the begin or end of a statement. */
		if (has_columns && end - at >= 3 && at[0] == LNS_SET_COLUMN && at[1] < 0x80) {
			at += 2;
			at += *at == LNS_NEGATE_STMT;
		}
	}
	c->at = at;
	run->address = address;
	run->line = line;
	run->file = file;
	if (in_rows) {
		run->row_address = row_address;
		run->row_line = row_line;
		run->row_file = row_file;
	}
}

static void run_program(struct line_run *run, struct cursor *c)
{
	const struct line_header *header = run->header;

	reset_registers(run);
	run->has_columns = header->opcode_base > LNS_NEGATE_STMT &&
			   header->operand_counts[LNS_SET_COLUMN - 1] == 1 &&
			   header->operand_counts[LNS_NEGATE_STMT - 1] == 0;
	run->const_advance = (uint64_t)((255u - header->opcode_base) / header->line_range) *
			     header->instruction_size;
	for (;;) {
		run_rows(run, c);
		if (!cursor_left(c))
			break;
		uint8_t opcode = cursor_u8(c);
		if (opcode >= header->opcode_base) {
			run->address += run->advances[opcode].address;
			run->line += (uint64_t)(int64_t)run->advances[opcode].line;
			take_row(run, false);
		} else if (opcode == 0) {
			run_extended(run, c);
		} else {
			run_standard(run, opcode, c);
		}
	}
}

int dwarf_lines_find(const struct dwarf *dwarf, const struct dwarf_unit *unit,
	struct dwarf_line_query *queries, uint32_t count, struct dwarf_line_files *files)
{
	struct line_header header;
	struct line_run run = {
		.header = &header, .dwarf = dwarf, .queries = queries, .count = count
	};
	struct cursor c;

	dwarf_line_files_reset(files);
	if (!unit->has_lines || !read_header(dwarf, unit, &header, &c, files))
		return -EBADMSG;
	prepare_advances(&files->advances, &header);
	run.advances = files->advances.of;
	run_program(&run, &c);
	return c.short_read ? -EBADMSG : 0;
}

/* ---- files ---- */

static void add_folder(struct bytes *path, const char *folder)
{
	bytes_text(path, folder);
	bytes_u8(path, '/');
}

uint32_t dwarf_line_path(struct dwarf_line_files *files, uint64_t number, struct strtab *strings)
{
	cleanup(bytes_done) struct bytes path = { 0 };

	if (number >= files->files.count)
		return 0;
	struct dwarf_file *file = &files->files.items[number];
	if (file->path || !file->name || !*file->name)
		return file->path;
	const char *folder =
		file->folder < files->folders.count ? files->folders.items[file->folder] : NULL;
	if (*file->name != '/' && folder && *folder) {
		/* Folders are relative to that of the unit, which is the first. */
		if (*folder != '/' && files->unit_folder && *files->unit_folder)
			add_folder(&path, files->unit_folder);
		add_folder(&path, folder);
	}
	bytes_text(&path, file->name);
	if (path.failed || path.len > PATH_MAX_)
		return 0;
	file->path = strtab_add(strings, (const char *)path.data, path.len);
	return file->path;
}

void dwarf_line_files_reset(struct dwarf_line_files *files)
{
	vec_reset(&files->folders);
	vec_reset(&files->files);
	files->unit_folder = NULL;
}

void dwarf_line_files_done(struct dwarf_line_files *files)
{
	vec_done(&files->folders);
	vec_done(&files->files);
}
