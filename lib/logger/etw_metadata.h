/*
 * How TraceLogging describes an event and its provider to readers of ETW: an event is decoded
 * without a manifest. Payloads are those of counted_payload.h.
 */
#ifndef SPOOR_LIB_LOGGER_ETW_METADATA_H
#define SPOOR_LIB_LOGGER_ETW_METADATA_H

#include "lib/event/outbuf.h"
#include "lib/event/provider.h"

/*
 * Writes the description into the empty buffer. -ENOMEM; -E2BIG: more than 65,535 bytes, or a struct
 * of more than 127 fields or none.
 */
int etw_metadata_describe(const struct event_entry *entry, struct outbuf *out);

/* Writes the provider's traits, which are its name. -ENOMEM, -E2BIG. */
int etw_metadata_traits(const char *provider, struct outbuf *out);

#endif
