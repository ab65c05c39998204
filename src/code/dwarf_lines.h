/* The line table of one unit (.debug_line): which file and line each address of its code is from. */
#ifndef SPOOR_CODE_DWARF_LINES_H
#define SPOOR_CODE_DWARF_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "code/dwarf.h"

struct strtab;

struct dwarf_file {
	const char *name;
	uint32_t folder; /* in folders */
	uint32_t path;   /* strtab, set by dwarf_line_path(); 0: not yet */
};

/* What a special opcode adds to the address and the line. */
struct dwarf_line_advance {
	uint16_t address;
	int16_t line;
};

/* Those of all special opcodes, which most units of a file have in common; computed again for others. */
struct dwarf_line_advances {
	uint8_t instruction_size; /* 0: not computed */
	int8_t line_base;
	uint8_t line_range;
	uint8_t opcode_base;
	struct dwarf_line_advance of[256];
};

struct dwarf_line_files {
	struct dwarf_line_advances advances;
	uint16_t version;
	VEC(const char *) folders;
	VEC(struct dwarf_file) files;
	const char *unit_folder;
};

/* An address whose line is wanted; sorted by address. */
struct dwarf_line_query {
	uint64_t address;
	uint64_t row;   /* address of the row that has its line, if one was found */
	uint32_t index; /* the caller's */
	uint32_t file;  /* number in the unit's table; UINT32_MAX: no line found */
	uint32_t line;  /* 0: code without a line */
	/* set by dwarf_inlines_find() */
	bool has_function;
	uint32_t call; /* number of its innermost call; 0: none */
};

/*
 * Runs the unit's line program once for all queries. The files are for dwarf_line_path(). 0,
 * -EBADMSG (queries up to the damage have been answered), or -ENOMEM.
 */
int dwarf_lines_find(const struct dwarf *dwarf, const struct dwarf_unit *unit,
	struct dwarf_line_query *queries, uint32_t count, struct dwarf_line_files *files);

/* The path of a file number, in `strings`; 0: there is no such file, or no memory. */
uint32_t dwarf_line_path(struct dwarf_line_files *files, uint64_t number, struct strtab *strings);

void dwarf_line_files_reset(struct dwarf_line_files *files);
void dwarf_line_files_done(struct dwarf_line_files *files);

#endif
