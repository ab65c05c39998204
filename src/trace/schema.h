/*
 * How a payload reads: provider, event, fields. `spoor_events.def` has the events of sections 3 and
 * 4 of docs/formats/spoor-nettrace.md; a source may add others at run time.
 */
#ifndef SPOOR_TRACE_SCHEMA_H
#define SPOOR_TRACE_SCHEMA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/strtab.h"
#include "base/vec.h"
#include "trace/provider_kind.h"

/* The nettrace type codes (facts: nettrace.md 1.8, 4.6). */
enum field_type {
	FIELD_OBJECT = 1,
	FIELD_BOOL = 3, /* 4 bytes */
	FIELD_CHAR16 = 4,
	FIELD_I8 = 5,
	FIELD_U8 = 6,
	FIELD_I16 = 7,
	FIELD_U16 = 8,
	FIELD_I32 = 9,
	FIELD_U32 = 10,
	FIELD_I64 = 11,
	FIELD_U64 = 12,
	FIELD_F32 = 13,
	FIELD_F64 = 14,
	FIELD_DECIMAL = 15,
	FIELD_TIME = 16, /* FILETIME, 8 bytes */
	FIELD_GUID = 17,
	FIELD_TEXT16 = 18, /* UTF-16LE with a NUL */
	FIELD_ARRAY = 19,  /* u16 count, then `element` */
	FIELD_VARINT = 20,
	FIELD_VARUINT = 21,
	FIELD_FIXED_ARRAY = 22,
	FIELD_CHAR8 = 23,
	FIELD_REL_LOC = 24,  /* u16 offset from its end, u16 bytes: where elements are */
	FIELD_DATA_LOC = 25, /* likewise, from the begin of the payload */
	FIELD_BOOL8 = 26,
};

/* Whether values of the type have elements. */
bool field_type_has_element(uint8_t type);

struct field {
	uint32_t name;   /* strtab */
	uint8_t type;    /* enum field_type */
	uint8_t element; /* type of each element, where there are any */
	/* how many fields deeper than this follow: an object's, or an element's */
	uint16_t depth;
	uint16_t count; /* of a fixed array */
};

struct schema {
	uint32_t provider; /* strtab */
	uint32_t name;     /* strtab; 0 for native CLR events */
	uint32_t event_id;
	uint64_t keywords;
	uint8_t version;
	uint8_t level;
	uint8_t opcode;
	uint8_t provider_kind; /* enum provider_kind */
	uint8_t kind;          /* enum event_kind of its events */
	bool has_guid;
	uint8_t guid[16]; /* as in the file, mixed-endian */
	VEC(struct field) fields;
};

/* The index after field i and the fields that describe it. */
uint32_t schema_fields_end(const struct schema *schema, uint32_t i);

/* The ids of `spoor_events.def`: SPOOR_SESSION, SYSTEM_PROCESS_MAPPING, EVENTS_CPU, ... */
enum known_event {
	KNOWN_NONE,
#define EVENT(symbol, provider, id, name, kind, fields) symbol,
#include "trace/spoor_events.def"
#undef EVENT
	KNOWN_EVENT_COUNT
};

/* Their numbers in a file: ID_SPOOR_SESSION, ID_SYSTEM_PROCESS_MAPPING, ... */
enum known_event_id {
#define EVENT(symbol, provider, id, name, kind, fields) ID_##symbol = (id),
#include "trace/spoor_events.def"
#undef EVENT
};

/* A known event in a file. Letters: V Z S B G 1(u8) 4(u32) 8(u64) D(f64), [ before one = array. */
struct known_event_info {
	enum provider_kind provider;
	uint32_t event_id;
	const char *name;
	uint8_t kind;
	/* "V Value, V State": letter, space, name; "" where readers know the layout */
	const char *fields;
};

extern const struct known_event_info known_events[KNOWN_EVENT_COUNT];

/* Everything equal: names by their index, so both are of the same trace. */
bool schema_is_same(const struct schema *a, const struct schema *b);
bool schema_has_same_fields(const struct schema *a, const struct schema *b);

void schema_done(struct schema *schema);

#endif
