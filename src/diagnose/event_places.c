/* See event_places.h. */
#include "diagnose/event_places.h"

#include "analysis/answers.h"
#include "base/text.h"
#include "diagnose/facts.h"
#include "trace/symbolmap.h"
#include "trace/trace.h"

/* What avoids frequent exceptions, by the end of their type's name. */
static const struct {
	const char *type;
	const char *remedy;
} remedies[] = {
	{ "FormatException", "parse with TryParse" },
	{ "OverflowException", "parse with TryParse" },
	{ "KeyNotFoundException", "look up with TryGetValue" },
	{ "InvalidCastException", "test with \"is\" before the cast" },
	{ "NullReferenceException", "test for null" },
	{ "FileNotFoundException", "test with File.Exists" },
	{ "OperationCanceledException", "test IsCancellationRequested where work may end" },
	{ "TaskCanceledException", "test IsCancellationRequested where work may end" },
};

static const char *remedy_of(const char *type)
{
	for (size_t i = 0; i < sizeof(remedies) / sizeof(remedies[0]); i++)
		if (text_ends_with(type, remedies[i].type))
			return remedies[i].remedy;
	return "test for the case before, or return a result that says it";
}

struct place_gathering {
	struct facts *facts;
	const struct answers *answers;
	const struct symbolmap *names;
};

static int show_row(const struct place_gathering *g, struct process_facts *row,
	const struct tally_row *most, enum place_kind kind)
{
	if (!most || !most->key.place)
		return 0; /* the events have no stacks */
	const struct event_stack *stack = &g->answers->stacks.items.items[most->key.stack];
	const struct place_stack shown = { .functions =
						   &g->answers->stacks.functions.items[stack->at],
		.count = stack->frame_count,
		.method = stack->own,
		.callee = stack->leaf };
	return facts_set_place(g->facts, &row->places[kind], g->names, &shown);
}

/* The method that has the largest amount of a process's events with stacks. */
static int set_place(const struct place_gathering *g, struct process_facts *row,
	const struct tally *tally, const struct tally_process *process, enum place_kind kind)
{
	struct tally_rows rows;
	int error = tally_group(tally, process, TALLY_PLACE, &rows);

	/* some may have no stack */
	uint32_t at = rows.list.count > 1 && !rows.list.items[0].key.place;
	if (!error && rows.list.count)
		error = show_row(g, row, &rows.list.items[at], kind);
	tally_rows_done(&rows);
	return error;
}

static int set_exceptions(const struct place_gathering *g, struct process_facts *row,
	const struct tally_process *process)
{
	const struct exceptions *exceptions = &g->answers->exceptions;
	struct tally_rows types;
	int error = tally_group(&exceptions->tally, process, TALLY_TEXT, &types);

	if (!error && types.list.count) {
		facts_set(row, FACT_exceptions, (double)process->count);
		facts_set(row, FACT_exception_rate,
			(double)process->count / row->numbers[FACT_span]);
		/* the type of those that were not observed is empty */
		bool unknown = !types.list.items[0].key.text && types.list.count > 1;
		const char *type =
			event_texts_get(&exceptions->types, types.list.items[unknown].key.text);
		row->words[WORD_exception_type] = strtab_add_z(&g->facts->texts, type);
		row->words[WORD_exception_remedy] = strtab_add_z(&g->facts->texts, remedy_of(type));
	}
	tally_rows_done(&types);
	return error ? error : set_place(g, row, &exceptions->tally, process, PLACE_thrower);
}

/* The row with most bytes of large objects, or of all; NULL: none. */
static const struct tally_row *find_row(const struct tally_rows *rows, bool only_large)
{
	for (uint32_t i = 0; i < rows->list.count; i++)
		if (!only_large ||
			(rows->list.items[i].key.kind & ~ALLOCATION_IS_SAMPLED) == ALLOCATION_LARGE)
			return &rows->list.items[i];
	return NULL;
}

static uint32_t copy_type(const struct place_gathering *g, const struct tally_row *row)
{
	return strtab_add_z(&g->facts->texts,
		event_texts_get(&g->answers->allocations.types, row->key.text));
}

static int set_allocations(const struct place_gathering *g, struct process_facts *row,
	const struct tally_process *process)
{
	const struct allocations *allocations = &g->answers->allocations;
	double span_s = row->numbers[FACT_span];
	double large = (double)allocations_of_kind(allocations, process, ALLOCATION_LARGE);
	struct tally_rows rows;
	int error = tally_group(&allocations->tally, process, TALLY_KIND | TALLY_PLACE, &rows);
	const struct tally_row *most = find_row(&rows, false);
	const struct tally_row *largest = find_row(&rows, true);

	facts_set(row, FACT_allocation_rate, (double)process->amount / span_s);
	facts_set(row, FACT_large_byte_rate, large / span_s);
	if (most && most->key.place && process->amount) {
		facts_set(row, FACT_allocator_share,
			(double)most->amount / (double)process->amount);
		row->words[WORD_allocated_type] = copy_type(g, most);
	}
	if (largest)
		row->words[WORD_large_type] = copy_type(g, largest);
	if (!error)
		error = show_row(g, row, most, PLACE_allocator);
	if (!error)
		error = show_row(g, row, largest, PLACE_large);
	tally_rows_done(&rows);
	return error;
}

static int set_locks(const struct place_gathering *g, struct process_facts *row,
	const struct tally_process *process)
{
	const struct tally *tally = &g->answers->locks.tally;
	double span_s = row->numbers[FACT_span];
	uint64_t longest_ns = 0;

	for (uint32_t i = 0; i < process->row_count; i++) {
		const struct tally_row *wait = &tally->rows.list.items[process->row_at + i];
		longest_ns = wait->most > longest_ns ? wait->most : longest_ns;
	}
	facts_set(row, FACT_lock_rate, (double)process->count / span_s);
	facts_set(row, FACT_lock_wait_threads, (double)process->amount / 1e9 / span_s);
	facts_set(row, FACT_lock_longest, (double)longest_ns / 1e9);
	uint64_t unended = waits_with(&g->answers->locks, process, WAIT_UNFINISHED);
	if (unended)
		facts_set(row, FACT_lock_unended, (double)unended);
	return set_place(g, row, tally, process, PLACE_lock_waiter);
}

/* The method that induces most collections; samples rarely meet it, since others collect for it. */
static int set_triggers(const struct place_gathering *g, struct process_facts *row,
	const struct tally_process *process)
{
	struct tally_rows rows;
	int error = tally_group(&g->answers->collections.triggers, process,
		TALLY_KIND | TALLY_PLACE, &rows);
	const struct tally_row *most = NULL;

	for (uint32_t i = 0; i < rows.list.count && !most; i++)
		if (collection_is_induced(rows.list.items[i].key.kind) &&
			rows.list.items[i].key.place)
			most = &rows.list.items[i];
	if (!error)
		error = show_row(g, row, most, PLACE_collector);
	tally_rows_done(&rows);
	return error;
}

/* What one analysis says of a process. */
typedef int set_facts_fn(const struct place_gathering *g, struct process_facts *row,
	const struct tally_process *process);

static int set_all(const struct place_gathering *g, const struct tally *tally, set_facts_fn *set)
{
	int error = 0;

	for (uint32_t i = 0; i < tally->processes.count && !error; i++) {
		const struct tally_process *process = &tally->processes.items[i];
		struct process_facts *row = facts_find(g->facts,
			g->names->trace->processes.items[process->process].pid);
		if (row && row->numbers[FACT_span] > 0)
			error = set(g, row, process);
	}
	return error;
}

static uint32_t copy_method(const struct place_gathering *g, uint32_t stack)
{
	uint32_t own = stack ? g->answers->stacks.items.items[stack].own : 0;

	return own ? facts_add_method(g->facts,
			     trace_text(g->names->trace, g->names->functions.items[own].name))
		   : 0;
}

/* Circles of waits that had not ended at the end of the recording, so all observations would show them. */
static int set_deadlocks(const struct place_gathering *g)
{
	const struct deadlocks *deadlocks = &g->answers->locks.deadlocks;
	int error = 0;

	for (uint32_t i = 0; i < deadlocks->waits.count && !error; i++) {
		const struct deadlock_wait *wait = &deadlocks->waits.items[i];
		uint32_t count = wait->circle ? deadlocks_count(deadlocks, wait->circle) : 0;
		struct process_facts *row =
			facts_find(g->facts, g->names->trace->processes.items[wait->process].pid);
		if (!row || !count || count <= row->numbers[FACT_circle_threads])
			continue;
		facts_set(row, FACT_circle_threads, count);
		facts_set(row, FACT_circle_share, 1);
		const struct tally_row shown = { .key = { .stack = wait->stack,
							 .place = wait->stack } };
		error = show_row(g, row, &shown, PLACE_circle);
		row->places[PLACE_circle].callee =
			copy_method(g, deadlocks->waits.items[wait->next].stack);
	}
	return error;
}

static void set_pools(const struct place_gathering *g)
{
	const struct thread_pool *pool = &g->answers->thread_pool;

	for (uint32_t i = 0; i < pool->processes.count; i++) {
		const struct pool_process *process = &pool->processes.items[i];
		struct process_facts *row = facts_find(g->facts,
			g->names->trace->processes.items[process->process].pid);
		if (!row || row->numbers[FACT_span] <= 0)
			continue;
		facts_set(row, FACT_starved_share,
			(double)process->starved_ns / 1e9 / row->numbers[FACT_span]);
		if (process->most_threads)
			facts_set(row, FACT_pool_threads, process->most_threads);
	}
}

int event_places_gather(struct facts *facts, const struct answers *answers,
	const struct symbolmap *names)
{
	const struct place_gathering g = { .facts = facts, .answers = answers, .names = names };
	int error = set_all(&g, &answers->exceptions.tally, set_exceptions);

	set_pools(&g);
	if (!error)
		error = set_all(&g, &answers->collections.triggers, set_triggers);
	if (!error)
		error = set_all(&g, &answers->allocations.tally, set_allocations);
	if (!error)
		error = set_all(&g, &answers->locks.tally, set_locks);
	return error ? error : set_deadlocks(&g);
}
