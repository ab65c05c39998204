/* What events of a nettrace stream refer to until a sequence point: thread rows and label lists. */
#ifndef SPOOR_NETTRACE_NETTRACE_ROWS_H
#define SPOOR_NETTRACE_NETTRACE_ROWS_H

#include "nettrace/nettrace_decoder.h"

#define ROWS_MAX (1u << 20)

/* The row of an id; 0: not defined. */
static inline uint32_t row_find(const struct nettrace_decoder *d, uint64_t id)
{
	uint32_t row = id < d->direct_rows.count ? d->direct_rows.items[id] : 0;

	return row ? row : map_get(&d->other_rows, id);
}

/* A new row under this id. 0: no memory, or more than ROWS_MAX. */
uint32_t row_add(struct nettrace_decoder *d, uint64_t id);

/* `attempted`: the sequence number of the last event that the row has captured or lost. */
void row_count_lost(struct nettrace_decoder *d, struct decoder_row *row, uint32_t attempted);

int nettrace_read_threads(struct nettrace_decoder *d, struct cursor c, struct diag *diag);
int nettrace_read_labels(struct nettrace_decoder *d, struct cursor c, struct diag *diag);
int nettrace_read_sequence_point(struct nettrace_decoder *d, struct cursor c, struct diag *diag);

#endif
