/* A payload as JSON, for tracers that take texts only. */
#ifndef SPOOR_LIB_LOGGER_PAYLOAD_JSON_H
#define SPOOR_LIB_LOGGER_PAYLOAD_JSON_H

#include "lib/event/provider.h"

/*
 * Writes {"field":value,...} with a final zero. 64-bit numbers are numbers, pointers "0x1a", times the
 * number of 100 ns steps since 1601, GUIDs and blobs hexadecimal texts. Returns the size without the
 * zero; -E2BIG: it does not fit; -EBADMSG: the payload does not match the fields. No lock, no
 * allocation.
 */
int payload_json_put(const struct event_entry *entry, const uint8_t *payload, size_t payload_size,
	char *out, size_t room);

#endif
