/*
 * Source lines of native code, from the DWARF of one ELF file, or from the table of a Go program
 * (go_lines.h), and the functions that were inlined there.
 *
 *   struct source_lines *lines;
 *   source_lines_open(&file, &elf, &strings, &lines)         -ENODATA: the file has no line tables
 *   source_lines_find(lines, queries, count)                 queries in any order; each unit is read once
 *   for (i = 0; i < queries[n].frame_count; i++) source_lines_frame(lines, queries[n].frame_at + i) ...
 *   source_lines_close(lines)
 *
 * Pass all addresses together: the cost is one pass over the units that hold them. Damaged units
 * have no lines. Not thread-safe.
 */
#ifndef SPOOR_CODE_SOURCE_LINES_H
#define SPOOR_CODE_SOURCE_LINES_H

#include <stdint.h>

struct elf;
struct image_file;
struct source_lines;
struct strtab;

/* An address in the file's own numbering. For a return address, pass the byte before it. */
struct source_query {
	uint64_t vaddr;
	/* set by source_lines_find(); 0 frames: no line is known */
	uint32_t frame_at;
	uint32_t frame_count;
};

/* The innermost inlined function first, the function that has the code last. */
struct source_frame {
	uint32_t function; /* strtab: an inlined function; 0: the one that has the code */
	uint32_t file;     /* strtab: its path; 0 unknown */
	uint32_t line;     /* 0 unknown */
};

/*
 * Texts go into `strings`, which must outlive the lines, as `file` and `elf` must. All of the file's tables
 * are loaded.
 */
int source_lines_open(const struct image_file *file, const struct elf *elf, struct strtab *strings,
	struct source_lines **ret_lines);

/* 0, or -ENOMEM. */
int source_lines_find(struct source_lines *lines, struct source_query *queries, uint32_t count);

const struct source_frame *source_lines_frame(const struct source_lines *lines, uint32_t index);

/* NULL is harmless. */
void source_lines_close(struct source_lines *lines);

#endif
