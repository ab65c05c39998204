/*
 * Opens the DWARF of a file: its sections, and its units with their ranges (dwarf.h).
 */
#ifndef SPOOR_CODE_DWARF_UNITS_H
#define SPOOR_CODE_DWARF_UNITS_H

#include <stdint.h>

#include "code/dwarf.h"

struct elf;
struct image_file;

/* A larger section is not read, so its file has no lines. */
#define DWARF_SECTION_MAX (UINT64_C(768) << 20)

/*
 * Reads sections and units. `text_begin`: the lowest address of code. -ENODATA: the file has no
 * line tables. In every case dwarf_done() frees it.
 */
int dwarf_open(struct dwarf *dwarf, const struct image_file *file, const struct elf *elf);
void dwarf_done(struct dwarf *dwarf);

/* The unit whose entries hold this offset of .debug_info, or NULL. */
const struct dwarf_unit *dwarf_unit_at(const struct dwarf *dwarf, uint64_t offset);

#endif
