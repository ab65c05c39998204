/* See allocations.h. */
#include "analysis/allocations.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "analysis/event_stacks.h"
#include "analysis/runtime_event.h"
#include "trace/clr_event.h"
#include "trace/event.h"
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

static int add_gap(struct allocations *allocations, const struct runtime_event *event)
{
	struct cursor c = event->payload;
	uint64_t begin_ns = event->event->time_ns - event->at_ns;
	size_t unit_count;

	(void)cursor_utf16z(&c, &unit_count); /* the provider is the runtime */
	uint64_t event_id = cursor_varuint(&c);
	uint64_t from_ns = cursor_u64(&c);
	uint64_t to_ns = cursor_u64(&c);

	if (c.short_read || event_id != CLR_ID_AllocationSampled || to_ns <= from_ns ||
		from_ns < begin_ns)
		return 0;
	return vec_add(&allocations->gaps, ((struct allocation_gap){ .process = event->process,
						   .from_ns = from_ns - begin_ns,
						   .to_ns = to_ns - begin_ns }))
		       ? 0
		       : -ENOMEM;
}

int allocations_event(struct allocations *allocations, const struct runtime_event *event)
{
	if (event->schema->provider_kind == PROVIDER_SPOOR)
		return add_gap(allocations, event);
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

static uint64_t gaps_of(const struct allocations *allocations, uint32_t process, uint64_t from_ns,
	uint64_t to_ns)
{
	uint64_t sum_ns = 0;

	for (uint32_t i = 0; i < allocations->gaps.count; i++) {
		const struct allocation_gap *gap = &allocations->gaps.items[i];
		uint64_t begin_ns = gap->from_ns > from_ns ? gap->from_ns : from_ns;
		uint64_t end_ns = gap->to_ns < to_ns ? gap->to_ns : to_ns;
		if (gap->process == process && end_ns > begin_ns)
			sum_ns += end_ns - begin_ns;
	}
	return sum_ns;
}

static uint64_t scaled(uint64_t amount, double factor)
{
	double product = (double)amount * factor;

	return product < (double)INT64_MAX ? (uint64_t)product : INT64_MAX;
}

/* 1 as well if nothing is known to scale by. */
static double observed_of(const struct allocations *allocations, uint32_t process, uint64_t from_ns,
	uint64_t to_ns)
{
	uint64_t span_ns = to_ns > from_ns ? to_ns - from_ns : 0;
	uint64_t gaps_ns = gaps_of(allocations, process, from_ns, to_ns);

	return gaps_ns && gaps_ns < span_ns ? (double)(span_ns - gaps_ns) / (double)span_ns : 1;
}

uint64_t allocations_scaled(const struct allocations *allocations, uint32_t process,
	uint64_t amount, uint64_t from_ns, uint64_t to_ns)
{
	double observed = observed_of(allocations, process, from_ns, to_ns);

	return observed < 1 ? scaled(amount, 1 / observed) : amount;
}

int allocations_scale(struct allocations *allocations, uint64_t from_ns, uint64_t to_ns)
{
	struct tally *tally = &allocations->tally;

	if (to_ns <= from_ns || !allocations->gaps.count)
		return 0;
	for (uint32_t i = 0; i < tally->processes.count; i++) {
		struct tally_process *process = &tally->processes.items[i];
		double observed = observed_of(allocations, process->process, from_ns, to_ns);
		if (observed >= 1)
			continue;
		if (!vec_add(&allocations->shares,
			    ((struct allocation_share){ process->process, observed })))
			return -ENOMEM;
		process->amount = scaled(process->amount, 1 / observed);
		for (uint32_t k = 0; k < TIMELINE_PLACES; k++)
			process->line.amounts[k] = scaled(process->line.amounts[k], 1 / observed);
		for (uint32_t k = 0; k < process->row_count; k++) {
			struct tally_row *row = &tally->rows.list.items[process->row_at + k];
			row->amount = scaled(row->amount, 1 / observed);
		}
	}
	if (tally->processes.count > 1)
		qsort(tally->processes.items, tally->processes.count,
			sizeof(tally->processes.items[0]), tally_compare_processes);
	return 0;
}

double allocations_observed(const struct allocations *allocations, uint32_t process)
{
	for (uint32_t i = 0; i < allocations->shares.count; i++)
		if (allocations->shares.items[i].process == process)
			return allocations->shares.items[i].observed;
	return 1;
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
	vec_done(&allocations->gaps);
	vec_done(&allocations->shares);
}
