/*
 * Names and layouts of the events of the .NET runtime, and of the universal ones, which travel
 * without a description: clr_events.def, generated from the runtime's manifest, and
 * universal_events.def. All of it is constant data, for any thread.
 */
#ifndef SPOOR_TRACE_CLR_EVENT_H
#define SPOOR_TRACE_CLR_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/schema.h"

/* The runtime's own symbols, unique over its providers: CLR_ID_MethodLoadVerbose. */
enum clr_event_id {
#define CLR_EVENT(provider, id, version, level, keywords, symbol, name, layout, count) \
	CLR_ID_##symbol = (id),
#include "trace/clr_events.def"
};

/* How many values a field has. */
enum clr_field_count {
	CLR_COUNT_BY_FIELD = 0x40, /* as many as the field of this index has as its value */
	CLR_COUNT_FIXED = 0x80,    /* this number */
	/* the index or the number; all of the byte is 0 for a single value */
	CLR_COUNT_MASK = 0x3f,
};

/*
 * Letters of types: S UTF-16 text with a NUL, A 8-bit text with a NUL, 1 u8, 2 u16, 4 u32, 8 u64, X
 * the same shown in hexadecimal, I i32, L i64, P pointer of 8 bytes, B bool of 4 bytes, D f64, G
 * guid, Y a byte, V varuint, H the same shown in hexadecimal, U u16 length and UTF-8. '{' is an
 * array of structs, whose fields follow it up to the '}'.
 */
struct clr_field {
	uint16_t name; /* for clr_field_name() */
	char type;
	uint8_t count; /* enum clr_field_count */
};

struct clr_event {
	const char *symbol; /* "GCStart_V2", as the runtime has it */
	const char *name;   /* "GC/Start", as TraceEvent has it */
	const struct clr_field *fields;
	uint8_t field_count; /* entries of `fields`, with those of structs */
	uint8_t version;
};

/*
 * The event of this version, else the newest version before it, whose fields a newer one begins
 * with. False: no such event. Of Universal.Events, ids 1 (cpu) and 2 (cswitch) are known.
 */
bool clr_event_find(enum provider_kind provider, uint32_t id, uint32_t version,
	struct clr_event *ret_event);

/* What the runtime's manifest says of an event beside its fields. */
struct clr_identity {
	uint64_t keywords;
	uint32_t id;
	uint8_t version;
	uint8_t level;
};

/* The event of this symbol, "GCStart_V2", of one of the runtime's providers. False: none. */
bool clr_event_find_symbol(enum provider_kind provider, const char *symbol,
	struct clr_identity *ret_identity);

const char *clr_field_name(const struct clr_field *field);

/* Whether the provider is one of the runtime's manifest. */
bool clr_event_provider(enum provider_kind provider);

/*
 * The field's type in a file's description; 0 (no enum field_type): the format has none for arrays
 * whose count is another field and 8-bit texts with a NUL.
 */
uint8_t clr_field_type(const struct clr_field *field);

#endif
