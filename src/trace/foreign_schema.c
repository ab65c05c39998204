/* See foreign_schema.h. */
#include "trace/foreign_schema.h"

#include <errno.h>

#include "trace/schema.h"
#include "trace/trace.h"

#define OWN_ID_FIRST    0x4000u /* of events without an id of their provider */
#define OTHER_LAYOUT_ID 0x8000u

int foreign_schema_place(struct trace *trace, struct schema *schema, bool has_id,
	uint32_t *ret_index)
{
	uint32_t next = OWN_ID_FIRST;

	for (uint32_t i = 1; i < trace->schemas.count; i++) {
		const struct schema *other = &trace->schemas.items[i];
		if (other->provider != schema->provider)
			continue;
		if (other->name == schema->name && other->level == schema->level &&
			other->keywords == schema->keywords && other->opcode == schema->opcode &&
			(!has_id || (other->event_id == schema->event_id &&
					    other->version == schema->version)) &&
			schema_has_same_fields(other, schema)) {
			*ret_index = i;
			schema_done(schema);
			return 0;
		}
		if (has_id && other->event_id == schema->event_id &&
			(schema->fields.count || schema->name))
			schema->event_id += OTHER_LAYOUT_ID;
		if (other->event_id >= next && other->event_id < OTHER_LAYOUT_ID)
			next = other->event_id + 1;
	}
	if (!has_id)
		schema->event_id = next;
	if (!vec_add(&trace->schemas, *schema)) {
		schema_done(schema);
		return -ENOMEM;
	}
	*ret_index = trace->schemas.count - 1;
	return 0;
}
