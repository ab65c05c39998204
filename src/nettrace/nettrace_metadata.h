/* Metadata of nettrace: what the stream says about its events becomes the trace's schemas. */
#ifndef SPOOR_NETTRACE_NETTRACE_METADATA_H
#define SPOOR_NETTRACE_NETTRACE_METADATA_H

#include "nettrace/nettrace_decoder.h"

/* A block of metadata rows (version 6); the payload of a metadata event (version 4). */
int nettrace_read_metadata_v6(struct nettrace_decoder *d, struct cursor c, struct diag *diag);
int nettrace_read_metadata_v4(struct nettrace_decoder *d, struct cursor c, struct diag *diag);

/*
 * The schema of an event whose metadata came by another way than a stream: a record of version 4 from the event's id
 * on. `provider` is an index of the trace's texts. -EBADMSG, -ENOMEM.
 */
int nettrace_schema_of_record(struct trace *trace, uint32_t provider, const uint8_t *record,
	size_t size, uint32_t *ret_index);

#endif
