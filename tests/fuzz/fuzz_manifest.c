/* A manifest, and all that is generated from it. */
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "gen/gen.h"
#include "gen/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct manifest manifest;
	struct gen_files files;
	struct diag diag = { 0 };

	if (manifest_read(data, size, "input", &manifest, &diag) < 0)
		return 0;
	if (gen_files(&manifest, (1u << GEN_OUTPUT_COUNT) - 1, &files) == 0)
		gen_files_done(&files);
	manifest_done(&manifest);
	return 0;
}
