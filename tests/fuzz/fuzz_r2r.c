/* Assemblies: PE, the tables of precompiled code, metadata and signatures. */
#include <stddef.h>
#include <stdint.h>

#include "code/codemap.h"
#include "code/r2r.h"
#include "image/pe.h"

#define OFFSETS 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct r2r *image;
	struct r2r_hit hit;
	struct il_offset offsets[OFFSETS];

	if (r2r_open_memory(data, size, &image, NULL) < 0)
		return 0;
	uint32_t begin = pe_text_rva(r2r_pe(image));
	for (uint32_t at = 0; at < 0x400; at += 13) {
		if (!r2r_find_rva(image, begin + at, &hit))
			continue;
		if (hit.begin_rva > begin + at || hit.end_rva <= begin + at || !hit.name_len)
			__builtin_trap();
		if (r2r_il_offsets(image, hit.begin_rva, offsets, OFFSETS) > OFFSETS)
			__builtin_trap();
	}
	r2r_close(image);
	return 0;
}
