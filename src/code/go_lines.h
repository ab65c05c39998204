/*
 * Source lines of a Go program, also of a stripped one, from the table that its runtime needs for stack
 * traces (.gopclntab, Go 1.18 and later), and the functions that were inlined there.
 */
#ifndef SPOOR_CODE_GO_LINES_H
#define SPOOR_CODE_GO_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf;
struct go_lines;
struct image_file;

/*
 * -ENODATA: the file has no such table, or a damaged one. The file and `elf` must stay until
 * go_lines_close(): the trees of inlined functions are read from them.
 */
int go_lines_open(const struct image_file *file, const struct elf *elf,
	struct go_lines **ret_lines);

/*
 * Innermost function first. `function`: an inlined one, NULL: the one that has the code. `file`: its path,
 * "" unknown. `line`: 0 unknown. The texts are valid until go_lines_close(). False: stop.
 */
typedef bool go_line(void *context, const char *function, const char *file, uint32_t line);

/* Calls `each` for the line of an address and for its inlined calls. False: none is known, or it stopped. */
bool go_lines_find(struct go_lines *lines, uint64_t vaddr, go_line *each, void *context);

/* NULL is harmless. */
void go_lines_close(struct go_lines *lines);

#endif
