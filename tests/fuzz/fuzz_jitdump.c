/* Jitdumps. */
#include <stddef.h>
#include <stdint.h>

#include "base/input.h"
#include "code/codemap.h"
#include "code/jitdump.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct codemap map = { .max_size_bytes = 1 << 20 };
	struct jitdump_header header;
	struct input in;

	input_from_memory(&in, data, size);
	(void)jitdump_read(&in, &map, &header, NULL);
	input_close(&in);
	(void)codemap_find(&map, 0x1000, 100);
	codemap_done(&map);
	return 0;
}
