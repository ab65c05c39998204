/* The portable PDB that a compiler has packed into an assembly (DebugType embedded). */
#ifndef SPOOR_IMAGE_EMBEDDED_PDB_H
#define SPOOR_IMAGE_EMBEDDED_PDB_H

#include <stddef.h>
#include <stdint.h>

struct image_file;
struct pe;

/* Unpacks it into memory that the caller frees. -ENODATA: there is none. -EFBIG, -EBADMSG. */
int embedded_pdb_load(const struct pe *pe, const struct image_file *file, size_t limit,
	uint8_t **ret_data, size_t *ret_size);

#endif
