/* Event blocks of nettrace, decoded in place one event a call, compressed or not. */
#ifndef SPOOR_NETTRACE_NETTRACE_EVENTS_H
#define SPOOR_NETTRACE_NETTRACE_EVENTS_H

#include "nettrace/nettrace_decoder.h"

/* Begins a block of events; its content is in the buffer. */
int nettrace_begin_events(struct nettrace_decoder *d, struct cursor c, struct diag *diag);

/* The next event of the block: 1. */
int nettrace_read_event(struct nettrace_decoder *d, struct event *ret_event, struct diag *diag);

/* A whole block of metadata events (version 4). */
int nettrace_read_metadata_events(struct nettrace_decoder *d, struct cursor c, struct diag *diag);

#endif
