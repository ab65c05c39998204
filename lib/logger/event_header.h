/*
 * How EventHeader describes an event. Its payload is that of counted_payload.h, with big-endian
 * GUIDs.
 */
#ifndef SPOOR_LIB_LOGGER_EVENT_HEADER_H
#define SPOOR_LIB_LOGGER_EVENT_HEADER_H

#include "lib/event/outbuf.h"
#include "lib/event/provider.h"

/*
 * Writes the description into the empty buffer. -ENOMEM; -E2BIG: more than 65,535 bytes, or a struct
 * of more than 127 fields or none.
 */
int event_header_describe(const struct event_entry *entry, struct outbuf *out);

#endif
