/* Puts the schemas of other tracers' events (LTTng, user_events) into a trace. */
#ifndef SPOOR_TRACE_FOREIGN_SCHEMA_H
#define SPOOR_TRACE_FOREIGN_SCHEMA_H

#include <stdbool.h>
#include <stdint.h>

struct schema;
struct trace;

/*
 * The row of an equal schema, or a new one. `has_id`: the event's id is its provider's; if another layout of the
 * provider has it, the id grows by 0x8000. Else the event gets an id from 0x4000 on. Takes the fields over. 0 or -ENOMEM.
 */
int foreign_schema_place(struct trace *trace, struct schema *schema, bool has_id,
	uint32_t *ret_index);

#endif
