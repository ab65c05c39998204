/* Metadata of nettrace: what the stream says about its events becomes the trace's schemas. */
#ifndef SPOOR_NETTRACE_NETTRACE_METADATA_H
#define SPOOR_NETTRACE_NETTRACE_METADATA_H

#include "nettrace/nettrace_decoder.h"

/* A block of metadata rows (version 6); the payload of a metadata event (version 4). */
int nettrace_read_metadata_v6(struct nettrace_decoder *d, struct cursor c, struct diag *diag);
int nettrace_read_metadata_v4(struct nettrace_decoder *d, struct cursor c, struct diag *diag);

#endif
