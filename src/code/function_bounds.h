/*
 * The begin and end of functions in an ELF image without symbols, from its unwind table.
 *
 * Every image that can unwind has .eh_frame, and its .eh_frame_hdr lists all functions sorted by
 * address. A lookup reads some ten pieces of the file and keeps nothing in memory. The bytes are
 * untrusted: a table that contradicts itself has no functions. Format: Linux Standard Base Core
 * Specification, "Exception Frames".
 */
#ifndef SPOOR_CODE_FUNCTION_BOUNDS_H
#define SPOOR_CODE_FUNCTION_BOUNDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf;
struct image_file;

/*
 * The function that covers `vaddr`, an address in the file's own numbering; the end is exclusive.
 * False if no function covers it, or if the image has no table that can be searched.
 */
bool function_bounds_find(const struct image_file *file, const struct elf *elf, uint64_t vaddr,
	uint64_t *ret_begin, uint64_t *ret_end);

/*
 * The name that files and reports give to a function of which only the bounds are known:
 * "sub_46cd10", with its begin in the file's own numbering, as disassemblers do.
 */
#define FUNCTION_BOUNDS_NAME_SIZE 24u
void function_bounds_name(uint64_t begin_vaddr, char *ret_name);

/*
 * True for such a name of a function that begins at `begin` in memory. Images are mapped by whole
 * pages, so the last 12 bits of both numbers are equal; a real function named sub_add differs.
 */
bool function_bounds_is_name(const char *name, size_t len, uint64_t begin);

#endif
