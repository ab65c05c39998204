/*
 * Exported symbols of an ELF image that a process has loaded, read from its memory: no file is
 * opened, so it also works for an image that was replaced or is on a file system that hangs.
 */
#ifndef SPOOR_CODE_CLR_EXPORT_H
#define SPOOR_CODE_CLR_EXPORT_H

#include <stdbool.h>
#include <stdint.h>

struct clr_memory;

/*
 * Where an image of 64 bits was loaded, of which an executable mapping is known. False: there is no
 * header that has this mapping.
 */
bool clr_export_image(struct clr_memory *memory, uint64_t mapping_begin, uint64_t file_offset,
	uint64_t *ret_base);

/* The address of an exported object. */
bool clr_export_find(struct clr_memory *memory, uint64_t base, const char *name,
	uint64_t *ret_address);

#endif
