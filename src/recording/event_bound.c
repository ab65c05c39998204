/* See event_bound.h. */
#include "recording/event_bound.h"

#include <errno.h>

#include "base/cursor.h"
#include "base/text.h"
#include "trace/clr_event.h"
#include "trace/event.h"
#include "trace/schema.h"

#define INTERVAL_NS UINT64_C(1000000000)
/* of one flush; the events of further types and stacks count in one row a kind */
#define ROWS_MAX        512u
#define TYPE_UNITS_MAX  256u
#define TYPES_BYTES_MAX (256u << 10)

bool event_bound_applies(const struct event_bound *bound, const struct schema *schema)
{
	return bound->rate && schema->provider_kind == PROVIDER_CLR &&
	       schema->event_id == CLR_ID_ExceptionThrown_V1;
}

/* NULL without memory: the event is written. */
static struct event_flow *flow_of(struct event_bound *bound, uint32_t process,
	uint32_t schema_index)
{
	uint64_t hash = hash_u64((uint64_t)process << 32 | schema_index);

	for (struct map_walk w = map_find(&bound->flow_index, hash); w.value; map_next(&w)) {
		struct event_flow *flow = &bound->flows.items[w.value - 1];
		if (flow->process == process && flow->schema_index == schema_index)
			return flow;
	}
	if (!vec_add(&bound->flows,
		    ((struct event_flow){
			    .process = process, .schema_index = schema_index, .stride = 1 })) ||
		!map_add(&bound->flow_index, hash, bound->flows.count))
		return NULL;
	return vec_last(&bound->flows);
}

static void begin_interval(struct event_flow *flow, uint64_t time_ns, uint32_t budget)
{
	bool follows = time_ns < flow->interval_ns + 2 * INTERVAL_NS;

	flow->stride = follows && flow->seen > budget ? (flow->seen + budget - 1) / budget : 1;
	flow->interval_ns = time_ns - time_ns % INTERVAL_NS;
	flow->seen = flow->kept = 0;
}

bool event_bound_keeps(struct event_bound *bound, uint32_t process, const struct event *event)
{
	struct event_flow *flow = flow_of(bound, process, event->schema_index);

	if (!flow)
		return true;
	if (event->time_ns >= flow->interval_ns + INTERVAL_NS)
		begin_interval(flow, event->time_ns, bound->rate);
	bool kept = flow->seen++ % flow->stride == 0 && flow->kept < bound->rate;

	flow->kept += kept;
	return kept;
}

/* The type is the first field. */
static uint32_t type_of(struct event_bound *bound, const struct event *event)
{
	struct cursor payload = cursor_of(event->payload, event->payload_size);
	size_t unit_count;
	const uint8_t *units = cursor_utf16z(&payload, &unit_count);

	if (payload.short_read || strtab_size_bytes(&bound->types) > TYPES_BYTES_MAX)
		return 0;
	bytes_reset(&bound->text);
	text_add_utf16(&bound->text, units,
		unit_count < TYPE_UNITS_MAX ? unit_count : TYPE_UNITS_MAX);
	return bound->text.failed
		       ? 0
		       : strtab_add(&bound->types, bytes_z(&bound->text), bound->text.len);
}

static struct event_bound_row *find_row(struct event_bound *bound,
	const struct event_bound_row *wanted, uint64_t hash)
{
	for (struct map_walk w = map_find(&bound->row_index, hash); w.value; map_next(&w)) {
		struct event_bound_row *row = &bound->rows.items[w.value - 1];
		if (row->process == wanted->process && row->schema_index == wanted->schema_index &&
			row->type == wanted->type && row->stack_index == wanted->stack_index)
			return row;
	}
	return NULL;
}

static struct event_bound_row *row_of(struct event_bound *bound,
	const struct event_bound_row *wanted, bool beyond_limit)
{
	uint64_t hash = hash_u64((uint64_t)wanted->process << 32 | wanted->schema_index) +
			hash_u64((uint64_t)wanted->type << 32 | wanted->stack_index);
	struct event_bound_row *row = find_row(bound, wanted, hash);

	if (row || (bound->rows.count >= ROWS_MAX && !beyond_limit))
		return row;
	if (!vec_add(&bound->rows, *wanted))
		return NULL;
	if (!map_add(&bound->row_index, hash, bound->rows.count)) {
		bound->rows.count--;
		return NULL;
	}
	return vec_last(&bound->rows);
}

int event_bound_count(struct event_bound *bound, uint32_t process, const struct event *event)
{
	struct event_bound_row wanted = { .process = process,
		.schema_index = event->schema_index,
		.type = type_of(bound, event),
		.stack_index = event->stack_index,
		.first_ns = event->time_ns };
	struct event_bound_row *row = row_of(bound, &wanted, false);

	if (!row) {
		wanted.type = wanted.stack_index = 0;
		row = row_of(bound, &wanted, true);
	}
	if (!row)
		return -ENOMEM;
	row->count++;
	row->last_ns = event->time_ns;
	bound->counted++;
	return 0;
}

void event_bound_write(struct event_bound *bound,
	void (*each)(void *context, const struct event_bound_row *row, const char *type),
	void *context)
{
	for (uint32_t i = 0; i < bound->rows.count; i++)
		each(context, &bound->rows.items[i],
			strtab_get(&bound->types, bound->rows.items[i].type));
	if (!bound->rows.count)
		return;
	vec_reset(&bound->rows);
	map_done(&bound->row_index);
	strtab_done(&bound->types);
	bound->types = (struct strtab){ 0 };
	/* flows of processes that ended long ago */
	if (bound->flows.count > ROWS_MAX) {
		vec_reset(&bound->flows);
		map_done(&bound->flow_index);
	}
}

void event_bound_done(struct event_bound *bound)
{
	vec_done(&bound->flows);
	map_done(&bound->flow_index);
	vec_done(&bound->rows);
	map_done(&bound->row_index);
	strtab_done(&bound->types);
	bytes_done(&bound->text);
}
