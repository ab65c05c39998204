/* See io_calls.h. */
#include "analysis/io_calls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/profile.h"
#include "analysis/runtime_event.h"
#include "trace/event.h"
#include "trace/spoor_payload.h"

static void add(struct io_calls_sum *sum, const struct payload_io_calls *event)
{
	sum->count += event->count;
	sum->errors += event->errors;
	sum->again += event->again;
	sum->bytes += event->bytes;
	sum->small += event->small;
	sum->time_ns += event->time_ns;
	if (event->longest_ns > sum->longest_ns)
		sum->longest_ns = event->longest_ns;
}

bool io_calls_is_same_thing(const struct io_calls_row *a, const struct io_calls_row *b)
{
	return a->process == b->process && a->thing == b->thing && a->name == b->name &&
	       (a->name || a->descriptor == b->descriptor);
}

static struct io_calls_process *process_of(struct io_calls *calls, uint32_t process)
{
	uint32_t at = map_get(&calls->process_index, process);

	if (at)
		return &calls->processes.items[at - 1];
	struct io_calls_process *fresh = vec_push(&calls->processes);
	if (!fresh || !map_put(&calls->process_index, process, calls->processes.count))
		return NULL;
	fresh->process = process;
	return fresh;
}

static struct io_calls_row *row_of(struct io_calls *calls, const struct io_calls_row *row)
{
	uint64_t key = hash_u64(hash_u64((uint64_t)row->process << 32 | row->name) +
				((uint64_t)row->call << 8 | row->thing)) +
		       (row->name ? 0 : (uint32_t)row->descriptor);

	for (struct map_walk w = map_find(&calls->row_index, key); w.value; map_next(&w)) {
		struct io_calls_row *known = &calls->rows.items[w.value - 1];
		if (known->call == row->call && io_calls_is_same_thing(known, row))
			return known;
	}
	if (!vec_add(&calls->rows, *row) || !map_add(&calls->row_index, key, calls->rows.count))
		return NULL;
	return vec_last(&calls->rows);
}

int io_calls_event(struct io_calls *calls, const struct runtime_event *event)
{
	struct strtab strings = { 0 };
	struct payload_io_calls payload;
	const struct event *raw = event->event;
	int error = 0;

	if (!event->is_selected)
		return 0;
	if (payload_read_io_calls(raw->payload, raw->payload_size, &strings, &payload) == 0) {
		calls->texts.full = calls->texts.entries.count >= IO_CALLS_NAMES_MAX;
		const struct io_calls_row fresh = { .process = event->process,
			.name = strtab_add_z(&calls->texts, payload.name),
			.call = strtab_add_z(&calls->texts, payload.call),
			.thing = io_thing_of(payload.thing),
			.kind = io_call_kind_of(payload.call),
			.descriptor = payload.descriptor < 0 || payload.descriptor > INT32_MAX
					      ? -1
					      : (int32_t)payload.descriptor };
		struct io_calls_process *process = process_of(calls, event->process);
		struct io_calls_row *row = row_of(calls, &fresh);
		bool known = (fresh.name || !payload.name[0] || calls->texts.full) &&
			     (fresh.call || !payload.call[0] || calls->texts.full);
		error = process && row && known ? 0 : -ENOMEM;
		if (!error) {
			if (payload.longest_ns > row->sum.longest_ns)
				row->longest_at_ns = event->at_ns;
			if (payload.last_error)
				row->last_error = payload.last_error;
			if (row->descriptor != fresh.descriptor)
				row->descriptor = -1;
			add(&row->sum, &payload);
			add(&process->all, &payload);
			add(&process->by_kind[row->kind], &payload);
		}
	}
	strtab_done(&strings);
	return error;
}

static int compare_numbers(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

/* Rows of one thing together, in any order of things. */
static int compare_things(const void *a, const void *b)
{
	const struct io_calls_row *x = a;
	const struct io_calls_row *y = b;
	int order = compare_numbers(x->process, y->process);

	if (!order)
		order = compare_numbers(x->thing, y->thing);
	if (!order)
		order = compare_numbers(x->name, y->name);
	if (!order && !x->name)
		order = compare_numbers((uint32_t)x->descriptor, (uint32_t)y->descriptor);
	return order;
}

static int compare_rows(const void *a, const void *b)
{
	const struct io_calls_row *x = a;
	const struct io_calls_row *y = b;
	int order = compare_numbers(x->process, y->process);

	if (!order)
		order = compare_numbers(y->thing_ns, x->thing_ns);
	if (!order)
		order = compare_things(a, b);
	if (!order)
		order = compare_numbers(y->sum.time_ns, x->sum.time_ns);
	return order ? order : compare_numbers(x->call, y->call);
}

static int compare_processes(const void *a, const void *b)
{
	const struct io_calls_process *x = a;
	const struct io_calls_process *y = b;
	int order = compare_numbers(y->all.time_ns, x->all.time_ns);

	return order ? order : compare_numbers(x->process, y->process);
}

static void sum_things(struct io_calls *calls)
{
	for (uint32_t i = 0, end; i < calls->rows.count; i = end) {
		uint64_t time_ns = 0;
		for (end = i;
			end < calls->rows.count &&
			io_calls_is_same_thing(&calls->rows.items[i], &calls->rows.items[end]);
			end++)
			time_ns += calls->rows.items[end].sum.time_ns;
		for (uint32_t k = i; k < end; k++)
			calls->rows.items[k].thing_ns = time_ns;
	}
}

void io_calls_finish(struct io_calls *calls, const struct profile *profile)
{
	uint32_t kept = 0;

	if (calls->rows.count > 1)
		qsort(calls->rows.items, calls->rows.count, sizeof(calls->rows.items[0]),
			compare_things);
	sum_things(calls);
	if (calls->rows.count > 1)
		qsort(calls->rows.items, calls->rows.count, sizeof(calls->rows.items[0]),
			compare_rows);
	for (uint32_t r = 0; r < calls->rows.count; r++) {
		uint32_t at = map_get(&calls->process_index, calls->rows.items[r].process);
		struct io_calls_process *process = &calls->processes.items[at - 1];
		if (!process->row_count++)
			process->row_at = r;
	}
	for (uint32_t i = 0; i < calls->processes.count; i++) {
		struct io_calls_process process = calls->processes.items[i];
		if (process.row_count && profile_wants_process(profile, process.process))
			calls->processes.items[kept++] = process;
	}
	calls->processes.count = kept;
	if (kept > 1)
		qsort(calls->processes.items, kept, sizeof(calls->processes.items[0]),
			compare_processes);
}

void io_calls_done(struct io_calls *calls)
{
	strtab_done(&calls->texts);
	vec_done(&calls->rows);
	vec_done(&calls->processes);
	map_done(&calls->row_index);
	map_done(&calls->process_index);
}
