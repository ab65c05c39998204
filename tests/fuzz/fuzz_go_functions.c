/* The table of a Go program's functions: whatever it holds, ranges ascend and names are inside. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "code/go_functions.h"

struct seen {
	size_t size;
	uint64_t end;
	const uint64_t *names;
};

static bool each(void *context, uint64_t begin, uint64_t end, uint32_t name)
{
	struct seen *seen = context;

	if (begin >= end || begin < seen->end || *seen->names + name >= seen->size)
		__builtin_trap();
	seen->end = end;
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t names = 0;
	struct seen seen = { .size = size, .names = &names };

	(void)go_functions_read(data, size, &names, each, &seen); /* most inputs are damaged */
	return 0;
}
