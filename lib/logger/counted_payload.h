/*
 * Payloads of EventHeader and TraceLogging, made of an event's payload. The layouts are the same,
 * except: a text has no zero at its end, and in EventHeader a GUID is big-endian. An event of the
 * .NET runtime without fields has one, "Payload", with its bytes.
 */
#ifndef SPOOR_LIB_LOGGER_COUNTED_PAYLOAD_H
#define SPOOR_LIB_LOGGER_COUNTED_PAYLOAD_H

#include "lib/event/provider.h"

enum counted_payload {
	COUNTED_PAYLOAD_SAME, /* the bytes of the event */
	COUNTED_PAYLOAD_CONVERTED,
	COUNTED_PAYLOAD_BYTES, /* their number (u16), then the bytes */
};

enum counted_guids {
	COUNTED_GUIDS_SAME,
	COUNTED_GUIDS_SWAPPED, /* big-endian */
};

/* How the payload of this event is made. */
enum counted_payload counted_payload_of(const struct event_entry *entry, enum counted_guids guids);

/*
 * Converts a payload. Returns its size; -EBADMSG: it does not match the fields; -E2BIG: it needs
 * more than `room`. Safe in signal handlers.
 */
int counted_payload_convert(const struct event_entry *entry, enum counted_guids guids,
	const uint8_t *payload, size_t payload_size, uint8_t *out, size_t room);

#endif
