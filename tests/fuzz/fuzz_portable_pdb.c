/* Portable PDBs, and assemblies that contain one. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "code/portable_pdb.h"
#include "image/embedded_pdb.h"
#include "image/image_file.h"
#include "image/pe.h"

static void look_up(const uint8_t *data, size_t size)
{
	struct portable_pdb pdb;
	struct bytes path = { 0 };

	if (portable_pdb_read(&pdb, data, size) < 0)
		return;
	for (uint32_t token = 0x06000000; token < 0x06000040; token++)
		for (uint32_t il = 0; il < 64; il += 3) {
			uint32_t document;
			uint32_t line;
			if (!portable_pdb_find(&pdb, token, il, &document, &line))
				continue;
			if (!line)
				__builtin_trap();
			bytes_reset(&path);
			(void)portable_pdb_document(&pdb, document, &path);
		}
	bytes_done(&path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct image_file file;
	struct pe pe;
	uint8_t *pdb;
	size_t pdb_size;

	look_up(data, size);
	image_file_from_memory(&file, data, size);
	if (pe_read(&pe, &file, NULL) == 0 &&
		embedded_pdb_load(&pe, &file, 1u << 20, &pdb, &pdb_size) == 0) {
		look_up(pdb, pdb_size);
		free(pdb);
	}
	pe_done(&pe);
	return 0;
}
