/*
 * How EventHeader describes an event, and how a payload becomes one of its payloads.
 *
 * The layouts are the same, except: a text has no zero at its end, and a GUID is big-endian. An
 * event of the .NET runtime without fields has one, "Payload", with its bytes.
 */
#ifndef SPOOR_LIB_LOGGER_EVENT_HEADER_H
#define SPOOR_LIB_LOGGER_EVENT_HEADER_H

#include "lib/event/outbuf.h"
#include "lib/event/provider.h"

enum event_header_payload {
	EVENT_HEADER_SAME, /* the bytes of the event */
	EVENT_HEADER_CONVERTED,
	EVENT_HEADER_COUNTED, /* their number (u16), then the bytes */
};

/* How the payload of this event is made. */
enum event_header_payload event_header_payload_of(const struct event_entry *entry);

/*
 * Writes the description into the empty buffer. -ENOMEM; -E2BIG: more than 65,535 bytes, or a struct
 * of more than 127 fields or none.
 */
int event_header_describe(const struct event_entry *entry, struct outbuf *out);

/*
 * Converts a payload. Returns its size; -EBADMSG: it does not match the fields; -E2BIG: it needs
 * more than `room`. Safe in signal handlers.
 */
int event_header_convert(const struct event_entry *entry, const uint8_t *payload,
	size_t payload_size, uint8_t *out, size_t room);

#endif
