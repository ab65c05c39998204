/* See vec.h. */
#include "base/vec.h"

#include <stdlib.h>
#include <string.h>

bool vec_grow_(void **items, uint32_t *capacity, uint32_t count, size_t extra, size_t size)
{
	if (extra <= *capacity - count)
		return true;
	if (extra > (size_t)INT32_MAX - count)
		return false;
	size_t want = count + extra;
	size_t doubled = (size_t)*capacity * 2;

	if (want < doubled)
		want = doubled;
	if (want < 8)
		want = 8;
	if (want > SIZE_MAX / size)
		return false;
	void *grown = realloc(*items, want * size);
	if (!grown)
		return false;
	*items = grown;
	*capacity = (uint32_t)want;
	return true;
}

void *vec_zero_(void *item, size_t size)
{
	return memset(item, 0, size);
}

void vec_free_(void *items)
{
	free(items);
}
