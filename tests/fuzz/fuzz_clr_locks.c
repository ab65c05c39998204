/*
 * Memory of a process about itself: the description that its runtime exports, and a sync block. The
 * process may have written anything there. The first byte selects the parser.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "code/clr_contract.h"
#include "code/clr_locks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct clr_contract contract = { .slots = 0 };
	uint8_t block[SYNC_BLOCK_BYTES] = { 0 };
	uint64_t number;
	uint64_t holder;
	uint64_t tid;

	if (!size)
		return 0;
	char *text = malloc(size); /* of the exact size, without a NUL */
	if (!text)
		return 0;
	memcpy(text, data + 1, size - 1);
	if (data[0] % 2 == 0) {
		(void)clr_contract_parse(&contract, text,
			size - 1); /* any text is refused or read */
		(void)clr_contract_number(&contract, "types.SyncBlock.InteropInfo", &number);
		clr_contract_done(&contract);
	} else {
		memcpy(block, text, size - 1 < sizeof(block) ? size - 1 : sizeof(block));
		if (clr_locks_parse_block(block, 7, &tid, &holder) && (!tid || !holder))
			abort();
	}
	free(text);
	return 0;
}
