/* A list of events without stack walks, and the code that is generated then. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/diag.h"
#include "base/input.h"
#include "gen/gen.h"
#include "gen/manifest.h"
#include "gen/stack_walks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct manifest manifest;

static void read_manifest(void)
{
	struct diag diag = { 0 };
	struct input in;
	uint8_t *text = NULL;
	size_t size = 0;

	if (input_open(&in, TEST_DATA "/manifest/stacks.man", &diag) < 0)
		abort();
	if (input_read_all(&in, MANIFEST_BYTES_MAX, &text, &size, &diag) < 0 ||
		manifest_read(text, size, "stacks.man", &manifest, &diag) < 0)
		abort();
	input_close(&in);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gen_files files;

	if (!manifest.providers.count)
		read_manifest();
	vec_each(p, &manifest.providers)
		vec_each(event, &p->events)
			event->no_stack = false;
	stack_walks_leave_out(&manifest, (const char *)data, size);
	if (gen_files(&manifest, 1u << GEN_LIBSPOOR, &files) == 0)
		gen_files_done(&files);
	return 0;
}
