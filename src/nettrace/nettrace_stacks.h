/* Stacks of nettrace: the stream's stack ids, and the trace's stacks that they mean. */
#ifndef SPOOR_NETTRACE_NETTRACE_STACKS_H
#define SPOOR_NETTRACE_NETTRACE_STACKS_H

#include "nettrace/nettrace_decoder.h"

int nettrace_read_stacks(struct nettrace_decoder *d, struct cursor c, struct diag *diag);

/* The stack of an id; 0 for one that is not defined, as the stock reader has it. */
static inline uint32_t stack_find(const struct nettrace_decoder *d, uint32_t id)
{
	uint32_t low = 0;
	uint32_t high = d->ranges.count;

	while (low < high) {
		uint32_t middle = (low + high) / 2;
		const struct id_range *range = &d->ranges.items[middle];
		if (id < range->first)
			high = middle;
		else if (id - range->first >= range->count)
			low = middle + 1;
		else
			return d->stack_indexes.items[range->at + (id - range->first)];
	}
	return 0; /* not defined: no stack, as the stock reader has it */
}

#endif
