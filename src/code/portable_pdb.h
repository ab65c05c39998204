/*
 * Portable PDB: the source lines of the methods of a managed assembly.
 *
 *   portable_pdb_read(&pdb, data, size)                          `data` must outlive it
 *   memcmp(pdb.id, guid, 16) == 0                                it belongs to the assembly
 *   portable_pdb_find(&pdb, token, il_offset, &text, &line)
 *
 * Every index and length is checked: the file may be damaged. Nothing is allocated.
 */
#ifndef SPOOR_CODE_PORTABLE_PDB_H
#define SPOOR_CODE_PORTABLE_PDB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bytes;

/* A larger one is not read. */
#define PORTABLE_PDB_MAX (256u << 20)

struct pdb_table {
	const uint8_t *data; /* NULL: absent */
	uint32_t rows;
	uint32_t row_size;
};

struct portable_pdb {
	uint8_t id[16]; /* the GUID in the assembly's debug directory */
	const uint8_t *blobs;
	size_t blobs_size;
	unsigned blob_index_size;
	unsigned guid_index_size;
	unsigned document_index_size;
	struct pdb_table documents;
	struct pdb_table methods; /* MethodDebugInformation: row of a MethodDef token */
};

/* -EBADMSG: it is no portable PDB, or truncated. */
int portable_pdb_read(struct portable_pdb *pdb, const void *data, size_t size);

/*
 * The statement at or before an IL offset of a method (MethodDef token): *ret_line, and its
 * document for portable_pdb_document(). False: the method has none there.
 */
bool portable_pdb_find(const struct portable_pdb *pdb, uint32_t token, uint32_t il_offset,
	uint32_t *ret_document, uint32_t *ret_line);

/* Appends the path of a document. False, and nothing appended: malformed. */
bool portable_pdb_document(const struct portable_pdb *pdb, uint32_t document, struct bytes *out);

#endif
