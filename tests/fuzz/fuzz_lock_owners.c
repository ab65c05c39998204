/*
 * Memory of a process about its locks: the description that its runtime has of itself, and a sync
 * block. The process may have written anything there. The first byte selects the parser.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "stacks/lock_owners.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t block[SYNC_BLOCK_BYTES] = { 0 };
	uint32_t slot = 0;
	uint64_t tid;

	if (!size)
		return 0;
	char *text = calloc(1, size); /* of the exact size, with a NUL */
	if (!text)
		return 0;
	memcpy(text, data + 1, size - 1);
	if (data[0] % 2 == 0) {
		if (lock_owners_parse_contract(text, &slot) && slot >= 4096)
			abort();
	} else {
		memcpy(block, text, size - 1 < sizeof(block) ? size - 1 : sizeof(block));
		if (lock_owners_parse_block(block, 7, &tid) && !tid)
			abort();
	}
	free(text);
	return 0;
}
