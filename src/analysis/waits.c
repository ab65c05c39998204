/* See waits.h. */
#include "analysis/waits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/blocks.h"
#include "analysis/event_stacks.h"
#include "analysis/runtime_event.h"
#include "trace/clr_event.h"
#include "trace/event.h"
#include "trace/schema.h"
#include "trace/spoor_payload.h"
#include "trace/trace.h"

#define IS_NATIVE      1u /* ContentionFlags */
#define IS_MONITOR     1u /* WaitSource */
#define LONGEST_NS_MAX 1e18
/* A thread may still compile what it waits with. */
#define RUNS_ON_NS UINT64_C(100000000)

static int add(struct waits *waits, const struct wait_begun *wait, uint64_t lasts_ns)
{
	const struct tally_amount amount = {
		.amount = lasts_ns, .at_ns = wait->at_ns, .from_ns = wait->from_ns, .lasts = true
	};

	if (wait->is_selected && wait->key.process < waits->off_cpu.count) {
		struct wait_off_cpu *sum = &waits->off_cpu.items[wait->key.process];
		sum->blocked_ns += wait->blocked_ns;
		sum->runnable_ns += wait->runnable_ns;
	}
	return wait->is_selected ? tally_add(&waits->tally, &wait->key, &amount) : 0;
}

/* What the event says about its wait; without stack. */
static struct wait_begun wait_of(const struct runtime_event *event)
{
	return (struct wait_begun){ .key = { .process = event->process },
		.at_ns = event->at_ns,
		.from_ns = event->from_ns,
		.is_open = true,
		.is_selected = event->is_selected };
}

/*
 * ContentionStart: u8 flags, u16 instance; from version 2 on u64 lock, u64 object, u64 thread id of
 * the owner. WaitHandleWaitStart: u8 source, u64 object, u16 instance.
 */
static int begin(struct waits *waits, struct wait_begun *open, const struct runtime_event *event)
{
	bool is_lock = event->schema->event_id == CLR_ID_ContentionStart_V1;
	struct wait_begun wait = wait_of(event);
	struct cursor c = event->payload;
	uint8_t source = cursor_u8(&c);
	int error = 0;

	wait.tid = event->stacks->trace->threads.items[event->event->thread_index].tid;

	if (is_lock)
		wait.key.kind = source == IS_NATIVE ? WAIT_NATIVE_LOCK : WAIT_LOCK;
	else
		wait.key.kind = source == IS_MONITOR ? WAIT_MONITOR : WAIT_HANDLE;
	if (is_lock && event->schema->version >= 2) {
		cursor_skip(&c, 2);
		wait.key.id = cursor_u64(&c);
		cursor_skip(&c, 8);
		wait.key.text = (uint32_t)cursor_u64(&c);
	}
	if (c.short_read)
		return 0;
	if (open->is_open) {
		open->key.kind |= WAIT_UNKNOWN;
		error = add(waits, open, 0);
	}
	if (!error)
		error = event_stacks_add(event->stacks, event->process, event->event,
			&wait.key.stack);
	*open = wait;
	return error;
}

/* ContentionStop: u8 flags, u16 instance; from version 1 on f64 duration in ns. */
static bool read_duration(const struct runtime_event *event, uint64_t *ret_ns)
{
	struct cursor c = event->payload;
	double duration_ns;

	if (event->schema->event_id != CLR_ID_ContentionStop || !event->schema->version)
		return false;
	cursor_skip(&c, 1 + 2);
	uint64_t bits = cursor_u64(&c);
	memcpy(&duration_ns, &bits, sizeof(duration_ns));
	if (c.short_read || !(duration_ns >= 0 && duration_ns < LONGEST_NS_MAX))
		return false;
	*ret_ns = (uint64_t)duration_ns;
	return true;
}

static int end(struct waits *waits, struct wait_begun *open, const struct runtime_event *event)
{
	bool is_lock = event->schema->event_id == CLR_ID_ContentionStop;
	uint64_t lasts_ns = event->at_ns > open->at_ns ? event->at_ns - open->at_ns : 0;
	bool is_known = read_duration(event, &lasts_ns);
	int error = 0;

	if (!open->is_open) {
		struct wait_begun wait = wait_of(event);
		wait.key.kind = (is_lock ? WAIT_LOCK : WAIT_HANDLE) | WAIT_UNKNOWN;
		if (!is_known)
			lasts_ns = 0;
		wait.at_ns = event->at_ns > lasts_ns ? event->at_ns - lasts_ns : 0;
		error = event_stacks_add(event->stacks, event->process, event->event,
			&wait.key.stack);
		*open = wait;
	}
	open->is_open = false;
	return error ? error : add(waits, open, lasts_ns);
}

int waits_event(struct waits *waits, const struct runtime_event *event)
{
	uint32_t thread = event->event->thread_index;

	while (waits->by_thread.count <= thread)
		if (!vec_push(&waits->by_thread))
			return -ENOMEM;
	struct wait_begun *open = &waits->by_thread.items[thread];

	return event->schema->event_id == CLR_ID_ContentionStart_V1 ||
			       event->schema->event_id == CLR_ID_WaitHandleWaitStart
		       ? begin(waits, open, event)
		       : end(waits, open, event);
}

/* The part of [begin, end) after the wait's begin. */
static uint64_t part_of_wait(const struct wait_begun *wait, uint64_t begin_ns, uint64_t end_ns)
{
	if (begin_ns < wait->at_ns)
		begin_ns = wait->at_ns;
	return end_ns > begin_ns ? end_ns - begin_ns : 0;
}

int waits_switch(struct waits *waits, const struct runtime_event *event)
{
	const struct event *raw = event->event;
	struct payload_cswitch block;

	/* sums of short blocks are not of a time */
	if (event->schema->provider_kind == PROVIDER_SPOOR ||
		payload_read_cswitch(raw->payload, raw->payload_size, &block) < 0 ||
		block.ready_ns > block.value)
		return 0;
	while (waits->off_cpu.count <= event->process)
		if (!vec_push(&waits->off_cpu))
			return -ENOMEM;
	if (raw->thread_index >= waits->by_thread.count)
		return 0;
	struct wait_begun *open = &waits->by_thread.items[raw->thread_index];
	uint64_t begin_ns = event->at_ns > block.value ? event->at_ns - block.value : 0;
	uint64_t ready_ns = event->at_ns > block.ready_ns ? event->at_ns - block.ready_ns : 0;

	if (!open->is_open)
		return 0;
	open->blocked_ns += part_of_wait(open, begin_ns, ready_ns);
	open->runnable_ns += part_of_wait(open, ready_ns, event->at_ns);
	return 0;
}

void waits_ran(struct waits *waits, uint32_t thread, uint64_t at_ns)
{
	if (thread >= waits->by_thread.count)
		return;
	struct wait_begun *open = &waits->by_thread.items[thread];

	if (!open->ran_first_ns)
		open->ran_first_ns = at_ns;
	open->ran_last_ns = at_ns;
}

/* A wait for a lock whose owner is known may be part of a deadlock. */
static int add_stuck(struct waits *waits, const struct wait_begun *open)
{
	const struct deadlock_wait wait = { .lock = open->key.id,
		.at_ns = open->at_ns,
		.process = open->key.process,
		.tid = open->tid,
		.owner = open->key.text,
		.stack = open->key.stack };

	return open->is_selected && wait.owner ? deadlocks_add(&waits->deadlocks, &wait) : 0;
}

int waits_settle(struct waits *waits, uint64_t end_ns)
{
	int error = 0;

	for (uint32_t i = 0; i < waits->by_thread.count && !error; i++) {
		struct wait_begun *open = &waits->by_thread.items[i];
		if (!open->is_open)
			continue;
		bool ran_on = open->ran_last_ns > open->at_ns + RUNS_ON_NS;
		uint64_t until_ns = ran_on ? open->ran_first_ns : end_ns;
		open->key.kind |= ran_on ? WAIT_UNKNOWN : WAIT_UNFINISHED;
		error = add(waits, open, until_ns > open->at_ns ? until_ns - open->at_ns : 0);
		if (!error && !ran_on)
			error = add_stuck(waits, open);
	}
	deadlocks_find(&waits->deadlocks);
	vec_done(&waits->by_thread);
	return error;
}

static bool is_chosen(const struct blocks *blocks, const struct tally_row *row,
	enum wait_choice choice)
{
	switch ((enum block_cause)row->key.kind) {
	case BLOCK_LOCK:
		return choice == WAITS_FOR_LOCKS;
	case BLOCK_FUTEX:
	case BLOCK_EVENT:
	case BLOCK_TASK:
	case BLOCK_SLEEP:
		return choice == WAITS_FOR_OTHERS && !blocks_is_idle(blocks, &row->key);
	default:
		return false;
	}
}

static bool has_process(const struct waits *waits, uint32_t count, uint32_t process)
{
	for (uint32_t i = 0; i < count; i++)
		if (waits->tally.processes.items[i].process == process)
			return true;
	return false;
}

static int add_process(struct waits *waits, const struct blocks *blocks,
	const struct tally_process *from, enum wait_choice choice)
{
	struct tally_process process = { .process = from->process,
		.row_at = waits->tally.rows.list.count };

	for (uint32_t i = 0; i < from->row_count; i++) {
		struct tally_row row = blocks->blocked.rows.list.items[from->row_at + i];
		if (!is_chosen(blocks, &row, choice))
			continue;
		row.key.kind = WAIT_SWITCHED | row.key.kind << WAIT_CAUSE_SHIFT;
		row.key.id = 0;
		if (!vec_add(&waits->tally.rows.list, row))
			return -ENOMEM;
		process.row_count++;
		process.count += row.count;
		process.amount += row.amount;
	}
	return !process.row_count || vec_add(&waits->tally.processes, process) ? 0 : -ENOMEM;
}

int waits_add_blocks(struct waits *waits, const struct blocks *blocks, enum wait_choice choice)
{
	uint32_t with_events = waits->tally.processes.count;
	int error = 0;

	for (uint32_t i = 0; i < blocks->blocked.processes.count && !error; i++) {
		const struct tally_process *from = &blocks->blocked.processes.items[i];
		if (!has_process(waits, with_events, from->process))
			error = add_process(waits, blocks, from, choice);
	}
	if (waits->tally.processes.count > 1)
		qsort(waits->tally.processes.items, waits->tally.processes.count,
			sizeof(waits->tally.processes.items[0]), tally_compare_processes);
	return error;
}

const struct wait_off_cpu *waits_off_cpu(const struct waits *waits, uint32_t process)
{
	return process < waits->off_cpu.count ? &waits->off_cpu.items[process] : NULL;
}

bool waits_are_switched(const struct waits *waits, const struct tally_process *process)
{
	return process->row_count &&
	       waits->tally.rows.list.items[process->row_at].key.kind & WAIT_SWITCHED;
}

uint64_t waits_with(const struct waits *waits, const struct tally_process *process,
	enum wait_flag flag)
{
	uint64_t count = 0;

	for (uint32_t i = 0; i < process->row_count; i++) {
		const struct tally_row *row = &waits->tally.rows.list.items[process->row_at + i];
		if (row->key.kind & (unsigned)flag)
			count += row->count;
	}
	return count;
}

const char *wait_source(uint32_t kind)
{
	static const char *const words[] = { "lock", "native lock", "handle", "Monitor.Wait" };

	return words[kind & WAIT_SOURCE];
}

void waits_done(struct waits *waits)
{
	tally_done(&waits->tally);
	vec_done(&waits->off_cpu);
	vec_done(&waits->by_thread);
	deadlocks_done(&waits->deadlocks);
}
