/* The IL offsets of a precompiled method: the first byte is the version of the format. */
#include <stddef.h>
#include <stdint.h>

#include "code/codemap.h"
#include "code/r2r_bounds.h"

#define ROOM 256

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct il_offset offsets[ROOM];

	if (!size)
		return 0;
	int count = r2r_bounds_read(data + 1, size - 1, data[0], offsets, ROOM);
	if (count > ROOM)
		__builtin_trap();
	for (int i = 1; i < count; i++)
		if (offsets[i].native < offsets[i - 1].native)
			__builtin_trap();
	return 0;
}
