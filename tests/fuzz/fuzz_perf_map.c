/* Perf maps. */
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/input.h"
#include "code/codemap.h"
#include "code/perf_map.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct codemap map = { .max_size_bytes = 1 << 20 };
	struct bytes text = { 0 };
	struct input in;

	input_from_memory(&in, data, size);
	(void)perf_map_read(&in, &map, NULL);
	input_close(&in);
	const struct code *code = codemap_find(&map, 0x1000, 0);
	if (code)
		codemap_symbol_text(&map, code, false, &text);
	bytes_done(&text);
	codemap_done(&map);
	return 0;
}
