/* See blocks.h. */
#include "analysis/blocks.h"

#include <errno.h>
#include <stdlib.h>

#include "analysis/event_stacks.h"
#include "analysis/profile.h"
#include "analysis/runtime_event.h"
#include "analysis/thread_role.h"
#include "base/cleanup.h"
#include "trace/event.h"
#include "trace/schema.h"
#include "trace/spoor_payload.h"
#include "trace/switch_state.h"
#include "trace/symbolmap.h"
#include "trace/trace.h"

/* The waker's number + 1; 0 when there is no memory. */
static uint32_t waker_of(struct blocks *blocks, uint32_t thread, uint32_t stack)
{
	uint64_t key = (uint64_t)thread << 32 | stack;
	uint32_t known = map_get(&blocks->waker_index, key);

	if (known)
		return known;
	if (!vec_add(&blocks->wakers, ((struct block_waker){ .thread = thread, .stack = stack })) ||
		!map_put(&blocks->waker_index, key, blocks->wakers.count))
		return 0;
	return blocks->wakers.count;
}

static int take_wakeup(struct blocks *blocks, const struct runtime_event *event)
{
	struct payload_wakeup wakeup;
	uint32_t stack;
	int error = event_stacks_add(event->stacks, event->process, event->event, &stack);

	if (error || payload_read_wakeup(event->event->payload, event->event->payload_size, NULL,
			     &wakeup) < 0)
		return error;
	uint32_t waker = waker_of(blocks, event->event->thread_index, stack);

	return waker && map_put(&blocks->woken, wakeup.woken_tid, waker) ? 0 : -ENOMEM;
}

/* The part of [begin, end) that is in the selected time. */
static uint64_t selected_part(const struct runtime_event *event, uint64_t begin_ns, uint64_t end_ns)
{
	if (begin_ns < event->from_ns)
		begin_ns = event->from_ns;
	if (event->to_ns && end_ns > event->to_ns)
		end_ns = event->to_ns;
	return end_ns > begin_ns ? end_ns - begin_ns : 0;
}

static int add(struct tally *tally, const struct runtime_event *event, const struct tally_key *key,
	uint64_t amount, uint64_t at_ns, uint64_t count)
{
	return amount ? tally_add(tally, key,
				&(struct tally_amount){ .amount = amount,
					.at_ns = at_ns,
					.from_ns = event->from_ns,
					.lasts = true,
					.count = count })
		      : 0;
}

static enum block_cause cause_without_stack(const struct payload_cswitch *block)
{
	if (block->flags & SWITCH_OFF_BEFORE)
		return BLOCK_BEFORE;
	switch (block->state) {
	case SWITCH_PREEMPTED:
		return BLOCK_PREEMPTED;
	case SWITCH_STOPPED:
	case SWITCH_TRACED:
		return BLOCK_STOPPED;
	default:
		return BLOCK_UNKNOWN;
	}
}

static int take_block(struct blocks *blocks, const struct runtime_event *event, uint32_t tid)
{
	const struct event *raw = event->event;
	struct tally_key key = { .process = event->process, .id = raw->thread_index };
	struct payload_cswitch block;

	if (payload_read_cswitch(raw->payload, raw->payload_size, &block) < 0)
		return 0;
	if (block.waker_tid) {
		key.detail = map_get(&blocks->woken, tid);
		if (key.detail)
			map_remove(&blocks->woken, tid, key.detail);
	}
	if (!event->is_of_thread)
		return 0;
	if (!raw->stack_index)
		key.kind = cause_without_stack(&block);
	blocks->without_waker +=
		block.flags & SWITCH_READY_UNKNOWN && block.state != SWITCH_PREEMPTED;
	int error = event_stacks_add(event->stacks, event->process, raw, &key.stack);
	uint64_t begin_ns = event->at_ns > block.value ? event->at_ns - block.value : 0;
	uint64_t ready_ns = event->at_ns > block.ready_ns ? event->at_ns - block.ready_ns : 0;

	if (!error)
		error = add(&blocks->blocked, event, &key, selected_part(event, begin_ns, ready_ns),
			begin_ns, 1);
	if (!error)
		error = add(&blocks->runnable, event, &key,
			selected_part(event, ready_ns, event->at_ns), ready_ns, 1);
	return error;
}

static int take_short_blocks(struct blocks *blocks, const struct runtime_event *event)
{
	const struct event *raw = event->event;
	struct tally_key key = { .process = event->process, .id = raw->thread_index };
	struct payload_short_blocks sum;

	if (!event->is_selected ||
		payload_read_short_blocks(raw->payload, raw->payload_size, NULL, &sum) < 0 ||
		sum.ready_ns > sum.value)
		return 0;
	int error = event_stacks_add(event->stacks, event->process, raw, &key.stack);

	if (!error)
		error = add(&blocks->blocked, event, &key, sum.value - sum.ready_ns, event->at_ns,
			sum.count);
	if (!error)
		error = add(&blocks->runnable, event, &key, sum.ready_ns, event->at_ns, sum.count);
	return error;
}

int blocks_event(struct blocks *blocks, const struct runtime_event *event)
{
	const struct trace *trace = event->stacks->trace;

	if (event->event->kind == EVENT_WAKEUP)
		return take_wakeup(blocks, event);
	if (event->schema->provider_kind == PROVIDER_SPOOR)
		return take_short_blocks(blocks, event);
	return take_block(blocks, event, trace->threads.items[event->event->thread_index].tid);
}

static void place_rows(const struct blocks *blocks, struct tally *tally)
{
	for (uint32_t i = 0; i < tally->rows.list.count; i++) {
		struct tally_key *key = &tally->rows.list.items[i].key;
		const struct wait_place *place = &blocks->places.items[key->stack];
		if (!key->stack)
			continue; /* its kind was set by the event */
		key->kind = place->cause;
		key->text = place->wait;
		key->place = place->where;
	}
}

struct busy_process {
	uint64_t busy_ns; /* without the time of idle threads */
	uint32_t at;      /* of blocked.processes */
};

static int compare_busy(const void *a, const void *b)
{
	const struct busy_process *x = a;
	const struct busy_process *y = b;

	if (x->busy_ns != y->busy_ns)
		return x->busy_ns > y->busy_ns ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

static uint64_t busy_ns(const struct blocks *blocks, const struct tally_process *process)
{
	uint64_t sum_ns = 0;

	for (uint32_t i = 0; i < process->row_count; i++) {
		const struct tally_row *row = &blocks->blocked.rows.list.items[process->row_at + i];
		sum_ns += blocks_is_idle(blocks, &row->key) ? 0 : row->amount;
	}
	return sum_ns;
}

/* Sorts the processes by the time that others than idle threads were blocked. */
static int sort_by_busy(struct blocks *blocks)
{
	uint32_t count = blocks->blocked.processes.count;
	struct tally_process *items = blocks->blocked.processes.items;
	cleanup(freep) struct busy_process *order = calloc(count + 1, sizeof(*order));
	cleanup(freep) struct tally_process *sorted = calloc(count + 1, sizeof(*sorted));

	blocks->busy_count = 0;
	if (!order || !sorted)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		order[i] = (struct busy_process){ busy_ns(blocks, &items[i]), i };
		blocks->busy_count += order[i].busy_ns > 0;
	}
	qsort(order, count, sizeof(*order), compare_busy);
	for (uint32_t i = 0; i < count; i++)
		sorted[i] = items[order[i].at];
	for (uint32_t i = 0; i < count; i++)
		items[i] = sorted[i];
	return 0;
}

int blocks_finish(struct blocks *blocks, const struct tally_selection *selection)
{
	const struct event_stacks *stacks = selection->stacks;
	uint32_t count = stacks->items.count ? stacks->items.count : 1;

	blocks->trace = selection->names->trace;

	for (uint32_t i = 0; i < count; i++) {
		struct wait_place place = { 0 };
		if (i) {
			const struct event_stack *stack = &stacks->items.items[i];
			wait_place_find(selection->names, stacks->functions.items + stack->at,
				stack->frame_count, &place);
		}
		if (!vec_add(&blocks->places, place))
			return -ENOMEM;
	}
	place_rows(blocks, &blocks->blocked);
	int error = tally_finish(&blocks->runnable, selection);

	if (!error)
		place_rows(blocks, &blocks->runnable);
	return error ? error : sort_by_busy(blocks);
}

bool blocks_is_idle(const struct blocks *blocks, const struct tally_key *key)
{
	const struct wait_place *place = &blocks->places.items[key->stack];
	const char *name = trace_text(blocks->trace, blocks->trace->threads.items[key->id].name);

	/* The runtime's own threads have no managed frames while they have nothing to do. */
	return place->idle || (!place->where && thread_role_is_own(name));
}

void blocks_done(struct blocks *blocks)
{
	tally_done(&blocks->blocked);
	tally_done(&blocks->runnable);
	vec_done(&blocks->places);
	vec_done(&blocks->wakers);
	map_done(&blocks->waker_index);
	map_done(&blocks->woken);
}
