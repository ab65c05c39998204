/* See tally.h. */
#include "analysis/tally.h"

#include <errno.h>
#include <stdlib.h>

#include "analysis/event_stacks.h"
#include "analysis/profile.h"

static uint64_t hash_key(const struct tally_key *key, unsigned members)
{
	uint64_t hash = hash_u64(key->process);

	if (members & TALLY_ID)
		hash = hash_u64(hash ^ key->id);
	if (members & (TALLY_KIND | TALLY_TEXT))
		hash = hash_u64(hash ^ ((uint64_t)(members & TALLY_KIND ? key->kind : 0) << 32 |
					       (members & TALLY_TEXT ? key->text : 0)));
	if (members & (TALLY_DETAIL | TALLY_STACK))
		hash = hash_u64(hash ^ ((uint64_t)(members & TALLY_DETAIL ? key->detail : 0) << 32 |
					       (members & TALLY_STACK ? key->stack : 0)));
	return members & TALLY_PLACE ? hash_u64(hash ^ key->place) : hash;
}

static bool is_same(const struct tally_key *a, const struct tally_key *b, unsigned members)
{
	return a->process == b->process && (!(members & TALLY_ID) || a->id == b->id) &&
	       (!(members & TALLY_KIND) || a->kind == b->kind) &&
	       (!(members & TALLY_TEXT) || a->text == b->text) &&
	       (!(members & TALLY_DETAIL) || a->detail == b->detail) &&
	       (!(members & TALLY_STACK) || a->stack == b->stack) &&
	       (!(members & TALLY_PLACE) || a->place == b->place);
}

static void add_to(struct tally_row *known, const struct tally_row *row)
{
	known->count += row->count;
	known->amount += row->amount;
	if (row->most > known->most) {
		known->most = row->most;
		known->most_at_ns = row->most_at_ns;
	}
	if (row->first_ns < known->first_ns)
		known->first_ns = row->first_ns;
	if (row->last_ns > known->last_ns)
		known->last_ns = row->last_ns;
}

/* Adds `row` to the one with an equal key, or as a new one. 0, or -ENOMEM. */
static int merge(struct tally_rows *rows, const struct tally_row *row, unsigned members)
{
	/* often the same key comes again */
	if (rows->last && is_same(&rows->list.items[rows->last - 1].key, &row->key, members)) {
		add_to(&rows->list.items[rows->last - 1], row);
		return 0;
	}
	uint64_t hash = hash_key(&row->key, members);

	for (struct map_walk w = map_find(&rows->index, hash); w.value; map_next(&w)) {
		struct tally_row *known = &rows->list.items[w.value - 1];
		if (!is_same(&known->key, &row->key, members))
			continue;
		add_to(known, row);
		rows->last = w.value;
		return 0;
	}
	return vec_add(&rows->list, *row) && map_add(&rows->index, hash, rows->list.count)
		       ? 0
		       : -ENOMEM;
}

static struct tally_process *process_of(struct tally *tally, uint32_t process)
{
	while (tally->by_process.count <= process)
		if (!vec_add(&tally->by_process, 0))
			return NULL;
	if (!tally->by_process.items[process]) {
		if (!vec_add(&tally->processes, (struct tally_process){ .process = process }))
			return NULL;
		tally->by_process.items[process] = tally->processes.count;
	}
	return &tally->processes.items[tally->by_process.items[process] - 1];
}

int tally_add(struct tally *tally, const struct tally_key *key, const struct tally_amount *amount)
{
	const unsigned members = TALLY_ID | TALLY_KIND | TALLY_TEXT | TALLY_DETAIL | TALLY_STACK;
	struct tally_process *process = process_of(tally, key->process);
	const struct tally_row row = { .key = *key,
		.count = amount->count ? amount->count : 1,
		.amount = amount->amount,
		.most = amount->count > 1 ? 0 : amount->amount,
		.most_at_ns = amount->at_ns,
		.first_ns = amount->at_ns - amount->sum_ns,
		.last_ns = amount->at_ns };

	if (!process)
		return -ENOMEM;
	uint64_t since_ns = amount->at_ns > amount->from_ns ? amount->at_ns - amount->from_ns : 0;
	uint64_t sum_ns = amount->sum_ns < since_ns ? amount->sum_ns : since_ns;

	if (amount->lasts)
		timeline_add_time(&process->line, since_ns, amount->amount);
	else
		timeline_spread(&process->line, since_ns - sum_ns, sum_ns, amount->amount);
	return merge(&tally->rows, &row, members);
}

static bool has_process(const struct tally *tally, uint32_t process)
{
	return process < tally->by_process.count && tally->by_process.items[process];
}

int tally_add_missing(struct tally *tally, const struct tally *other)
{
	for (uint32_t i = 0; i < other->rows.list.count; i++) {
		const struct tally_row *row = &other->rows.list.items[i];
		if (!has_process(tally, row->key.process) && !vec_add(&tally->rows.list, *row))
			return -ENOMEM;
	}
	for (uint32_t i = 0; i < other->processes.count; i++) {
		const struct tally_process *from = &other->processes.items[i];
		if (has_process(tally, from->process))
			continue;
		struct tally_process *process = process_of(tally, from->process);
		if (!process)
			return -ENOMEM;
		process->line = from->line;
	}
	return 0;
}

static int compare_amounts(const struct tally_row *x, const struct tally_row *y)
{
	if (x->amount != y->amount)
		return x->amount > y->amount ? -1 : 1;
	if (x->count != y->count)
		return x->count > y->count ? -1 : 1;
	return x->first_ns < y->first_ns ? -1 : x->first_ns > y->first_ns;
}

static int compare_rows(const void *a, const void *b)
{
	return compare_amounts(a, b);
}

static int compare_rows_of_processes(const void *a, const void *b)
{
	const struct tally_row *x = a;
	const struct tally_row *y = b;

	if (x->key.process != y->key.process)
		return x->key.process < y->key.process ? -1 : 1;
	return compare_amounts(x, y);
}

int tally_compare_processes(const void *a, const void *b)
{
	const struct tally_process *x = a;
	const struct tally_process *y = b;

	if (x->amount != y->amount)
		return x->amount > y->amount ? -1 : 1;
	return x->process < y->process ? -1 : x->process > y->process;
}

static bool is_kept(const struct tally_selection *selection, const struct tally_key *key)
{
	const struct profile_filter *filter = &selection->profile->filter;

	return profile_wants_process(selection->profile, key->process) &&
	       (!filter->modules.count ||
		       event_stacks_has_module(selection->stacks, selection->names, key->stack,
			       filter->modules.items, filter->modules.count));
}

int tally_finish(struct tally *tally, const struct tally_selection *selection)
{
	uint32_t kept = 0;

	map_done(&tally->rows.index);
	for (uint32_t i = 0; i < tally->rows.list.count; i++) {
		struct tally_row row = tally->rows.list.items[i];
		if (!is_kept(selection, &row.key))
			continue;
		if (row.key.stack)
			row.key.place = selection->stacks->items.items[row.key.stack].own;
		tally->rows.list.items[kept++] = row;
	}
	tally->rows.list.count = kept;
	tally->rows.last = 0; /* their order changes */
	if (kept > 1)
		qsort(tally->rows.list.items, kept, sizeof(tally->rows.list.items[0]),
			compare_rows_of_processes);
	for (uint32_t i = 0; i < kept; i++) {
		const struct tally_row *row = &tally->rows.list.items[i];
		struct tally_process *process = process_of(tally, row->key.process);
		if (!process)
			return -ENOMEM;
		if (!process->row_count)
			process->row_at = i;
		process->row_count++;
		process->count += row->count;
		process->amount += row->amount;
	}
	vec_done(&tally->by_process);
	uint32_t used = 0;
	for (uint32_t i = 0; i < tally->processes.count; i++)
		if (tally->processes.items[i].row_count)
			tally->processes.items[used++] = tally->processes.items[i];
	tally->processes.count = used;
	if (used > 1)
		qsort(tally->processes.items, used, sizeof(tally->processes.items[0]),
			tally_compare_processes);
	return 0;
}

int tally_group(const struct tally *tally, const struct tally_process *process, unsigned members,
	struct tally_rows *ret_rows)
{
	return tally_group_some(tally, process, members, NULL, NULL, ret_rows);
}

int tally_group_some(const struct tally *tally, const struct tally_process *process,
	unsigned members, bool (*wants)(const void *context, const struct tally_row *row),
	const void *context, struct tally_rows *ret_rows)
{
	int error = 0;

	*ret_rows = (struct tally_rows){ 0 };
	for (uint32_t i = 0; i < process->row_count && !error; i++) {
		const struct tally_row *row = &tally->rows.list.items[process->row_at + i];
		if (!wants || wants(context, row))
			error = merge(ret_rows, row, members);
	}
	if (ret_rows->list.count > 1)
		qsort(ret_rows->list.items, ret_rows->list.count, sizeof(ret_rows->list.items[0]),
			compare_rows);
	return error;
}

void tally_rows_done(struct tally_rows *rows)
{
	vec_done(&rows->list);
	map_done(&rows->index);
}

void tally_done(struct tally *tally)
{
	tally_rows_done(&tally->rows);
	vec_done(&tally->processes);
	vec_done(&tally->by_process);
	*tally = (struct tally){ 0 };
}
