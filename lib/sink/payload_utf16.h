/*
 * Payloads in nettrace's form: each TEXT, which is UTF-8 with its length in a ring, is UTF-16 with a
 * final zero there.
 */
#ifndef SPOOR_LIB_SINK_PAYLOAD_UTF16_H
#define SPOOR_LIB_SINK_PAYLOAD_UTF16_H

#include <stddef.h>
#include <stdint.h>

#include "lib/event/event_entry.h"

/*
 * Converts a payload into the `room` bytes at `out`. Longer texts are cut after `text_max` bytes of
 * UTF-8 or units of UTF-16, between characters. Returns its size there. -EMSGSIZE: it has no room, or
 * does not match the event's fields.
 */
int payload_utf16(const struct event_entry *entry, const uint8_t *payload, uint32_t size,
	uint32_t text_max, uint8_t *out, size_t room);

#endif
