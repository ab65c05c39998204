/*
 * The description of a CTF 1.8 trace (docs/formats/ctf.md): types, streams and events.
 *
 * Types are rows of `types` and refer to one another by index, always to an earlier row, so a walk
 * over a type ends. A length or a tag is found by its name: each name that one refers to has a slot,
 * which holds the value that was last decoded under this name.
 */
#ifndef SPOOR_FORMATS_CTF_TYPES_H
#define SPOOR_FORMATS_CTF_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/map.h"
#include "base/strtab.h"
#include "base/vec.h"

#define CTF_SLOTS_MAX 4096u
#define CTF_DEPTH_MAX 16u

enum ctf_kind {
	CTF_INTEGER = 1,
	CTF_FLOAT,
	CTF_ENUM,
	CTF_STRING,
	CTF_STRUCT,
	CTF_VARIANT,
	CTF_ARRAY,
	CTF_SEQUENCE,
};

enum ctf_byte_order { CTF_NATIVE, CTF_LITTLE, CTF_BIG };

/* Slots of the names that a reader needs. */
enum ctf_slot {
	CTF_SLOT_NONE,
	CTF_SLOT_ID,
	CTF_SLOT_STREAM_ID,
	CTF_SLOT_INSTANCE_ID,
	CTF_SLOT_CONTENT_SIZE,
	CTF_SLOT_PACKET_SIZE,
	CTF_SLOT_DISCARDED,
	CTF_SLOT_CPU,
	CTF_SLOT_BEGIN,
	CTF_SLOT_END,
	CTF_SLOT_MAGIC,
	CTF_SLOT_VPID,
	CTF_SLOT_VTID,
	CTF_SLOT_PID,
	CTF_SLOT_TID,
	CTF_SLOT_PID_NAMESPACE,
	CTF_SLOT_FIRST_FREE,
};

struct ctf_type {
	uint8_t kind;       /* enum ctf_kind */
	uint8_t byte_order; /* enum ctf_byte_order; of numbers */
	bool is_signed;
	bool is_text;   /* an integer that is a character of UTF-8 or ASCII */
	bool is_clock;  /* its value is a time */
	uint32_t align; /* bits, a power of two */
	uint32_t size;  /* bits of a number; elements of an array */
	uint32_t inner; /* type of the elements; integer type of an enum */
	uint32_t first; /* in `fields` of a struct or a variant, in `ranges` of an enum */
	uint32_t count; /* of these */
	uint32_t slot;  /* of a sequence's length, of a variant's tag */
};

struct ctf_field {
	uint32_t name; /* strtab, as in the description: LTTng puts _ in front */
	uint32_t type;
	uint32_t slot;  /* CTF_SLOT_NONE: no value is kept */
	bool is_length; /* of the sequence that is the next field */
};

struct ctf_range {
	uint32_t label; /* strtab */
	uint64_t low;
	uint64_t high;
};

struct ctf_stream_class {
	uint64_t id;
	uint32_t packet_context; /* types; 0: none */
	uint32_t event_header;
	uint32_t event_context;
};

struct ctf_event_class {
	uint64_t id;
	uint64_t stream_id;
	uint32_t name;    /* strtab */
	uint32_t uri;     /* strtab: model.emf.uri; 0: none */
	uint32_t context; /* types; 0: none */
	uint32_t fields;
	int32_t loglevel; /* of LTTng-UST; -1: none */
};

struct ctf_metadata {
	struct strtab strings;
	VEC(struct ctf_type) types; /* item 0: none */
	VEC(struct ctf_field) fields;
	VEC(struct ctf_range) ranges;
	VEC(struct ctf_stream_class) streams;
	VEC(struct ctf_event_class) events; /* item 0: none */
	struct map aliases;                 /* strtab of a type's name -> type */
	struct map slots;                   /* strtab of a name -> slot */
	struct map event_index;             /* hash of stream and event id -> event */
	uint32_t slot_count;
	uint32_t uuid;          /* strtab: of the trace, the same after a rotation */
	uint32_t packet_header; /* type; 0: packets have none */
	uint8_t byte_order;     /* of the trace; CTF_NATIVE until it is known */
	uint64_t clock_hz;      /* 0: no clock was described */
	int64_t clock_offset;   /* in ticks: UTC minus the clock */
	int64_t clock_offset_s; /* in seconds, to be added */
	uint32_t clock_name;    /* strtab */
	uint32_t clock_uuid;    /* strtab; 0: none. Clocks of one uuid are one clock. */
	uint32_t domain;        /* strtab: "ust" or "kernel" of LTTng's env */
	uint64_t vpid;          /* of env, if the buffers are of one process */
	/* the file so far */
	struct bytes text;
	size_t file_at; /* in the file: bytes that have been read */
	bool is_packed; /* the file has packets */
	size_t parsed;  /* in `text`: whole declarations before this are parsed */
};

const struct ctf_stream_class *ctf_metadata_stream(const struct ctf_metadata *metadata,
	uint64_t id);

/* NULL: not described (yet). */
const struct ctf_event_class *ctf_metadata_event(const struct ctf_metadata *metadata,
	uint64_t stream_id, uint64_t event_id);

/* A time of the clock in ns. */
uint64_t ctf_metadata_ns(const struct ctf_metadata *metadata, uint64_t ticks);

/* UTC minus the clock, in ns; what does not fit is the next value that does. */
int64_t ctf_metadata_offset_ns(const struct ctf_metadata *metadata);

/* For the parser: false without memory. */
bool ctf_metadata_add_event(struct ctf_metadata *metadata, const struct ctf_event_class *event);

#endif
