/*
 * Names and layouts of the .NET runtime's own events, and of the universal ones, which travel without a description: by provider and id, from a list
 * (clr_events.def).
 */
#ifndef SPOOR_TRACE_CLR_EVENT_H
#define SPOOR_TRACE_CLR_EVENT_H

#include <stdint.h>

/*
 * Field letters: S UTF-16 text, 1 u8, 2 u16, 4 u32, 8 u64, P pointer, B bool of 4 bytes, X hexadecimal u64, D f64, G guid, V varuint, H the
 * same in hexadecimal, U u16 length and UTF-8. Later versions of an
 * event only append fields, so that a payload that ends early has the fields it has.
 */
struct clr_event {
	uint16_t provider_kind;  /* enum provider_kind; PROVIDER_SAMPLE for the sample profiler */
	uint16_t id;
	const char *name;        /* "GC/Start", as TraceEvent has it */
	const char *fields;      /* "4 Count, 4 Depth"; "" none */
};

/* NULL: not in the list. */
const struct clr_event *clr_event_find(unsigned provider_kind, uint32_t id);

#endif
