/* See event_places.h. */
#include "diagnose/event_places.h"

#include <errno.h>

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

struct gathering {
	struct facts *facts;
	const struct answers *answers;
	const struct symbolmap *names;
};

/* The method that has the largest amount of a process's events with stacks. */
static int set_place(const struct gathering *g, struct process_facts *row,
	const struct tally *tally, const struct tally_process *process, enum place_kind kind)
{
	struct tally_rows rows;
	int error = tally_group(tally, process, TALLY_PLACE, &rows);
	const struct tally_row *most = rows.list.count ? &rows.list.items[0] : NULL;

	if (!error && most && most->key.place) {
		const struct event_stack *stack = &g->answers->stacks.items.items[most->key.stack];
		const struct place_stack shown = {
			.functions = &g->answers->stacks.functions.items[stack->at],
			.count = stack->frame_count,
			.method = stack->own,
			.callee = stack->leaf
		};
		error = facts_set_place(g->facts, &row->places[kind], g->names, &shown);
		row->places[kind].share = (double)most->amount / (double)process->amount;
	}
	tally_rows_done(&rows);
	return error;
}

static int set_exceptions(const struct gathering *g, struct process_facts *row,
	const struct tally_process *process)
{
	const struct exceptions *exceptions = &g->answers->exceptions;
	struct tally_rows types;
	int error = tally_group(&exceptions->tally, process, TALLY_TEXT, &types);

	if (!error && types.list.count) {
		facts_set(row, FACT_exceptions, (double)process->count);
		facts_set(row, FACT_exception_rate,
			(double)process->count / row->numbers[FACT_span]);
		const char *type =
			event_texts_get(&exceptions->types, types.list.items[0].key.text);
		row->words[WORD_exception_type] = strtab_add_z(&g->facts->texts, type);
		row->words[WORD_exception_remedy] = strtab_add_z(&g->facts->texts, remedy_of(type));
	}
	tally_rows_done(&types);
	return error ? error : set_place(g, row, &exceptions->tally, process, PLACE_thrower);
}

int event_places_gather(struct facts *facts, const struct answers *answers,
	const struct symbolmap *names)
{
	const struct gathering g = { .facts = facts, .answers = answers, .names = names };
	const struct tally *tally = &answers->exceptions.tally;
	int error = 0;

	for (uint32_t i = 0; i < tally->processes.count && !error; i++) {
		struct process_facts *row = facts_find(facts,
			names->trace->processes.items[tally->processes.items[i].process].pid);
		if (row && row->numbers[FACT_span] > 0)
			error = set_exceptions(&g, row, &tally->processes.items[i]);
	}
	return error;
}
