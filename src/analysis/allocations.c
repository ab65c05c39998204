/* See allocations.h. */
#include "analysis/allocations.h"

#include <math.h>

#include "analysis/event_stacks.h"
#include "analysis/runtime_event.h"
#include "trace/clr_event.h"
#include "trace/schema.h"

/* The mean distance of sampled bytes, a constant of the runtime. */
#define SAMPLED_EVERY 102400.0

struct allocation {
	uint64_t weight_bytes;
	const uint8_t *type;
	size_t type_units;
	uint32_t kind;
};

/*
 * GCAllocationTick: u32 amount, u32 kind; from version 1 on u16 instance; from version 2 on u64
 * amount, u64 type id, type; more follows in later versions.
 */
static void read_tick(struct cursor *c, uint32_t version, struct allocation *ret)
{
	ret->weight_bytes = cursor_u32(c);
	ret->kind = cursor_u32(c);
	if (version < 2)
		return;
	cursor_skip(c, 2);
	ret->weight_bytes = cursor_u64(c);
	cursor_skip(c, 8);
	ret->type = cursor_utf16z(c, &ret->type_units);
}

/* The expected bytes that one sampled object of this size represents. */
static uint64_t weight_of(uint64_t size_bytes)
{
	double size = size_bytes ? (double)size_bytes : 1;

	return size < 1e18 ? (uint64_t)(size / -expm1(-size / SAMPLED_EVERY) + 0.5) : size_bytes;
}

/*
 * AllocationSampled: u32 kind, u16 instance, u64 type id, type, u64 address, u64 object size, u64
 * offset of the sampled byte.
 */
static void read_sample(struct cursor *c, struct allocation *ret)
{
	ret->kind = cursor_u32(c);
	cursor_skip(c, 2 + 8);
	ret->type = cursor_utf16z(c, &ret->type_units);
	cursor_skip(c, 8);
	ret->weight_bytes = weight_of(cursor_u64(c));
}

int allocations_event(struct allocations *allocations, const struct runtime_event *event)
{
	bool sampled = event->schema->event_id == CLR_ID_AllocationSampled;
	struct allocation allocation = { 0 };
	struct tally_key key = { .process = event->process };
	struct cursor c = event->payload;

	if (sampled)
		read_sample(&c, &allocation);
	else
		read_tick(&c, event->schema->version, &allocation);
	if (!event->is_selected || c.short_read)
		return 0;
	key.kind = (allocation.kind < ALLOCATION_KINDS ? allocation.kind : ALLOCATION_SMALL) |
		   (sampled ? ALLOCATION_IS_SAMPLED : 0);
	int error = event_texts_add(&allocations->types, allocation.type, allocation.type_units,
		&key.text);
	if (!error)
		error = event_stacks_add(event->stacks, event->process, event->event, &key.stack);
	if (error)
		return error;
	const struct tally_amount amount = {
		.amount = allocation.weight_bytes, .at_ns = event->at_ns, .from_ns = event->from_ns
	};
	return tally_add(sampled ? &allocations->tally : &allocations->ticks, &key, &amount);
}

int allocations_choose(struct allocations *allocations)
{
	int error = tally_add_missing(&allocations->tally, &allocations->ticks);

	tally_done(&allocations->ticks);
	return error;
}

uint64_t allocations_of_kind(const struct allocations *allocations,
	const struct tally_process *process, enum allocation_kind kind)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < process->row_count; i++) {
		const struct tally_row *row =
			&allocations->tally.rows.list.items[process->row_at + i];
		if ((row->key.kind & ~ALLOCATION_IS_SAMPLED) == kind)
			sum += row->amount;
	}
	return sum;
}

bool allocations_are_sampled(const struct allocations *allocations,
	const struct tally_process *process)
{
	return allocations->tally.rows.list.items[process->row_at].key.kind & ALLOCATION_IS_SAMPLED;
}

const char *allocation_kind(uint32_t kind)
{
	static const char *const words[ALLOCATION_KINDS] = { "small", "large", "pinned" };

	kind &= ~ALLOCATION_IS_SAMPLED;
	return words[kind < ALLOCATION_KINDS ? kind : ALLOCATION_SMALL];
}

void allocations_done(struct allocations *allocations)
{
	tally_done(&allocations->tally);
	tally_done(&allocations->ticks);
	event_texts_done(&allocations->types);
}
