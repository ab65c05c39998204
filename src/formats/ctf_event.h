/*
 * Turns the events of a CTF trace into those of a trace: a schema for each kind of event, and
 * payloads in its layout.
 *
 * LTTng's names are "provider:event" and its fields begin with _, which is removed. Texts become
 * UTF-16. A length that only counts the next field is left out. An event of .NET's tracepoint
 * provider (DotNETRuntime:GCStart_V2) becomes the runtime's event, in the runtime's layout. An event
 * of libspoor has its id, version, opcode and keywords in its model.emf.uri.
 */
#ifndef SPOOR_FORMATS_CTF_EVENT_H
#define SPOOR_FORMATS_CTF_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "formats/ctf_decode.h"
#include "trace/clr_event.h"

struct trace;

enum ctf_layout_kind {
	CTF_LAYOUT_NONE, /* not made yet */
	CTF_LAYOUT_TYPED,
	CTF_LAYOUT_CLR,    /* the fields one after the other, as the runtime has them */
	CTF_LAYOUT_PACKED, /* the third field is the payload */
};

/* Fields of an event whose bytes are the same in the payload, or one other field. */
struct ctf_step {
	uint32_t field;      /* of the metadata */
	uint32_t copy_bytes; /* 0: the field is read by its type */
};

struct ctf_layout {
	uint32_t schema_index;
	uint8_t kind; /* enum ctf_layout_kind */
	bool is_libspoor;
	VEC(struct ctf_step) steps; /* of CTF_LAYOUT_TYPED */
	struct clr_event clr;       /* of CTF_LAYOUT_CLR */
};

/* 0 or -ENOMEM. */
int ctf_layout_make(struct ctf_layout *layout, const struct ctf_metadata *metadata,
	const struct ctf_event_class *event, struct trace *trace);

void ctf_layout_done(struct ctf_layout *layout);

/* Decodes the fields of one event, and appends its payload. */
void ctf_layout_payload(const struct ctf_layout *layout, const struct ctf_event_class *event,
	struct ctf_decoder *d, struct bytes *payload);

#endif
