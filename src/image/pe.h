/*
 * The parts of a PE file (PE32 or PE32+; .NET assemblies on every system) that symbolization needs:
 * sections, the identity of its symbols, and whether it contains precompiled managed code.
 */
#ifndef SPOOR_IMAGE_PE_H
#define SPOOR_IMAGE_PE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

struct diag;
struct image_file;

#define PE_NAME_MAX 512u

enum pe_section_flag { PE_SECTION_EXECUTABLE = 1u << 29 };

struct pe_section {
	char name[9];
	uint32_t rva;
	uint32_t memory_size;
	uint32_t offset;
	uint32_t file_size;
	uint32_t flags;
};

struct pe {
	bool is_64;
	uint16_t machine;
	uint32_t time_stamp;
	uint32_t image_size;
	uint64_t image_base;
	VEC(struct pe_section) sections;

	bool has_pdb;         /* CodeView entry of the debug directory */
	uint8_t pdb_guid[16]; /* mixed-endian, as in the file */
	uint32_t pdb_age;
	char pdb_name[PE_NAME_MAX];

	/* a portable PDB inside (image/embedded_pdb.h); size 0: none */
	uint32_t embedded_pdb_offset;
	uint32_t embedded_pdb_size;

	bool has_perfmap; /* the perf map that describes the precompiled code (R2RM entry) */
	uint8_t perfmap_signature[16];
	uint32_t perfmap_version;
	char perfmap_name[PE_NAME_MAX];

	uint32_t metadata_rva; /* of the ECMA-335 root; 0: not a managed assembly */
	uint32_t metadata_size;
	uint32_t r2r_rva; /* of the ReadyToRun header; 0: none */
	uint32_t r2r_size;
};

/* On failure `pe` is empty. In both cases pe_done() frees it. */
int pe_read(struct pe *pe, const struct image_file *file, struct diag *diag);

/* RVA to file offset, and back. False if no section of the file holds it. */
bool pe_offset_of_rva(const struct pe *pe, uint32_t rva, uint64_t *ret_offset);
bool pe_rva_of_offset(const struct pe *pe, uint64_t offset, uint32_t *ret_rva);

/* RVA of the lowest executable section (`text_offset` of the metadata); 0: none is executable. */
uint32_t pe_text_rva(const struct pe *pe);

void pe_done(struct pe *pe);

#endif
