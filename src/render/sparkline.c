/* See sparkline.h. */
#include "render/sparkline.h"

#include "base/bytes.h"

#define HEIGHTS 8u

void sparkline_add(struct bytes *out, const uint64_t *numbers, uint32_t count)
{
	uint64_t most = 0;

	for (uint32_t i = 0; i < count; i++)
		if (numbers[i] > most)
			most = numbers[i];
	for (uint32_t i = 0; i < count; i++) {
		unsigned height =
			most ? (unsigned)((double)numbers[i] / (double)most * HEIGHTS) : 0;
		if (numbers[i])
			bytes_printf(out, "\xe2\x96%c",
				0x81 + (int)(height ? (height < HEIGHTS ? height : HEIGHTS) - 1
						    : 0));
		else
			bytes_text(out, " ");
	}
}
