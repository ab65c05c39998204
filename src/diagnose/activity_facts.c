/* See activity_facts.h. */
#include "diagnose/activity_facts.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "analysis/answers.h"
#include "analysis/own_function.h"
#include "diagnose/competition.h"
#include "diagnose/facts.h"
#include "trace/symbolmap.h"
#include "trace/trace.h"

#define NS_PER_S 1e9
/* A method has most of a time if it has this part of it. */
#define MOST 0.5

struct activity_gathering {
	struct facts *facts;
	const struct answers *answers;
	const struct symbolmap *names;
	struct process_facts *row;
	uint32_t process;
	double window_s; /* in which its activities were observed */
};

/* The facts of one kind of call. */
struct call_facts {
	enum activity_kind kind;
	enum fact rate;
	int failure_rate; /* enum fact; -1: none */
	enum fact mean;
	enum fact fastest;
	enum fact pending;
	enum fact share;
	enum fact_word target;
	enum place_kind place;
};

static const struct call_facts kinds[] = {
	{ ACTIVITY_HTTP, FACT_dependency_rate, -1, FACT_dependency_mean, FACT_dependency_fastest,
		FACT_dependency_pending, FACT_dependency_share, WORD_dependency, PLACE_dependent },
	{ ACTIVITY_DNS, FACT_dns_rate, FACT_dns_failure_rate, FACT_dns_mean, FACT_dns_fastest,
		FACT_dns_pending, FACT_dns_share, WORD_dns_name, PLACE_resolver },
	{ ACTIVITY_TLS, FACT_tls_rate, FACT_tls_failure_rate, FACT_tls_mean, FACT_tls_fastest,
		FACT_tls_pending, FACT_tls_share, WORD_tls_target, PLACE_handshaker },
};

static int show(const struct activity_gathering *g, uint32_t index, enum place_kind place)
{
	const struct event_stack *stack = &g->answers->stacks.items.items[index];
	const struct place_stack shown = { .functions =
						   &g->answers->stacks.functions.items[stack->at],
		.count = stack->frame_count,
		.method = stack->own,
		.callee = stack->leaf };

	return index && own_function(g->names, stack->own)
		       ? facts_set_place(g->facts, &g->row->places[place], g->names, &shown)
		       : 0;
}

static const struct tally_process *find_tally(const struct activity_gathering *g,
	const struct tally *tally)
{
	for (uint32_t i = 0; i < tally->processes.count; i++)
		if (tally->processes.items[i].process == g->process)
			return &tally->processes.items[i];
	return NULL;
}

/* The method of the user that waits longest for calls of this kind to the target. */
static int set_caller(const struct activity_gathering *g, const struct call_facts *kind,
	uint32_t target)
{
	const struct tally *tally = &g->answers->calls.tally;
	const struct tally_process *process = find_tally(g, tally);
	struct tally_rows rows = { 0 };
	int error = 0;

	if (process)
		error = tally_group(tally, process, TALLY_KIND | TALLY_TEXT | TALLY_PLACE, &rows);
	for (uint32_t i = 0; i < rows.list.count && !error; i++) {
		const struct tally_key *key = &rows.list.items[i].key;
		if (key->kind != kind->kind || key->text != target ||
			!own_function(g->names, key->place))
			continue;
		error = show(g, key->stack, kind->place);
		break;
	}
	tally_rows_done(&rows);
	return error;
}

static double call_time_ns(const struct call_row *row)
{
	return (double)(row->durations.total_ns + row->unfinished_ns);
}

static bool is_server(const struct calls *calls, const struct call_row *row)
{
	return strcmp(strtab_get(&calls->targets, row->target), CALL_AS_SERVER) == 0;
}

static int set_calls(const struct activity_gathering *g, const struct calls_process *process,
	const struct call_facts *kind)
{
	const struct calls *calls = &g->answers->calls;
	const struct call_row *most = NULL;
	double count = 0;
	double failed = 0;

	for (uint32_t i = 0; process && i < process->row_count; i++) {
		const struct call_row *row = &calls->rows.items[process->row_at + i];
		if (row->kind != kind->kind)
			continue;
		failed += (double)row->failed;
		if (is_server(calls, row))
			continue;
		count += (double)(row->durations.count + row->unfinished);
		if (!most || call_time_ns(row) > call_time_ns(most))
			most = row;
	}
	facts_set(g->row, kind->rate, count / g->window_s);
	if (kind->failure_rate >= 0)
		facts_set(g->row, (enum fact)kind->failure_rate, failed / g->window_s);
	facts_set(g->row, kind->pending, 0);
	facts_set(g->row, kind->mean, 0);
	facts_set(g->row, kind->share, 0);
	if (!most)
		return 0;
	double calls_count = (double)(most->durations.count + most->unfinished);
	double pending = call_time_ns(most) / NS_PER_S / g->window_s;
	facts_set(g->row, kind->pending, pending);
	/* Those that have not ended count if they last longer than the others. */
	double all_s = call_time_ns(most) / NS_PER_S / calls_count;
	double ended_s = most->durations.count ? (double)most->durations.total_ns / NS_PER_S /
							 (double)most->durations.count
					       : 0;
	double mean_s = fmax(all_s, ended_s);
	facts_set(g->row, kind->mean, mean_s);
	/* of calls that have not ended, how long they would have lasted is not known */
	if (most->durations.count)
		facts_set(g->row, kind->fastest,
			(double)durations_percentile(&most->durations, COMPETITION_FASTEST) /
				NS_PER_S);
	facts_set(g->row, kind->share, fmin(1, pending));
	g->row->words[kind->target] =
		strtab_add_z(&g->facts->texts, strtab_get(&calls->targets, most->target));
	return set_caller(g, kind, most->target);
}

/* The routes on which no request is fast: the fastest of those that ended, if any ended. */
static void set_always_slow(const struct activity_gathering *g,
	const struct requests_process *process)
{
	const struct requests *requests = &g->answers->requests;
	double count = 0;
	double slow = 0;
	double slow_s = 0;

	for (uint32_t i = 0; process && i < process->row_count; i++) {
		const struct request_route *row = &requests->rows.items[process->row_at + i];
		bool always = !row->durations.count ||
			      durations_percentile(&row->durations, COMPETITION_FASTEST) >=
				      REQUEST_SLOW_NS;
		slow += always ? (double)row->slow_count : 0;
		slow_s += always ? (double)row->slow_ns / NS_PER_S : 0;
	}
	if (process)
		count = (double)(process->count + process->unfinished);
	facts_set(g->row, FACT_slow_always_share, count > 0 ? slow / count : 0);
	facts_set(g->row, FACT_slow_always_pending, slow_s / g->window_s);
}

static double set_requests(const struct activity_gathering *g)
{
	const struct requests *requests = &g->answers->requests;
	const struct requests_process *process = NULL;

	for (uint32_t i = 0; i < requests->processes.count && !process; i++)
		if (requests->processes.items[i].process == g->process)
			process = &requests->processes.items[i];
	double count = process ? (double)(process->count + process->unfinished) : 0;
	double slow_s = process ? (double)process->slow_ns / NS_PER_S : 0;
	double slow = process ? (double)process->slow_count : 0;
	double pending = slow_s / g->window_s;
	facts_set(g->row, FACT_request_count, count);
	facts_set(g->row, FACT_slow_count, slow);
	facts_set(g->row, FACT_slow_share, count > 0 ? slow / count : 0);
	facts_set(g->row, FACT_slow_mean, slow > 0 ? slow_s / slow : 0);
	facts_set(g->row, FACT_slow_pending, pending);
	facts_set(g->row, FACT_slow_time_share, fmin(1, pending));
	set_always_slow(g, process);
	if (process && process->row_count) {
		const struct request_route *route = &requests->rows.items[process->row_at];
		g->row->words[WORD_slow_route] = strtab_add_z(&g->facts->texts,
			route->route ? strtab_get(&requests->routes, route->route)
				     : "(other routes)");
	}
	return slow_s;
}

/* The innermost method that most of the time is awaited in: of equal ones the first to await. */
static const struct await_method *find_innermost(const struct await_methods *methods, double slow_s)
{
	const struct await_method *found = NULL;

	for (uint32_t i = 0; i < methods->list.count; i++) {
		const struct await_method *method = &methods->list.items[i];
		double all_s = (double)method->all_ns / NS_PER_S;
		double found_s = found ? (double)found->all_ns / NS_PER_S : 0;
		if (all_s < MOST * slow_s)
			continue;
		if (!found || all_s < 0.9 * found_s ||
			(all_s < 1.1 * found_s && method->first_ns < found->first_ns))
			found = method;
	}
	return found;
}

/* Of awaits in requests; short ones do not make a request slow. */
static int set_awaits(const struct activity_gathering *g, double slow_s)
{
	const struct awaits *awaits = &g->answers->awaits;
	const struct tally_process *process = find_tally(g, &awaits->tally);
	struct await_methods methods = { 0 };
	int error = 0;

	facts_set(g->row, FACT_delay_share, 0);
	if (process && slow_s > 0)
		error = awaits_methods(awaits, g->names, process, AWAIT_IS_LONG | AWAIT_IN_ACTIVITY,
			&methods);
	const struct await_method *innermost = error ? NULL : find_innermost(&methods, slow_s);
	if (innermost)
		error = show(g, innermost->stack, PLACE_slow);
	if (!error && methods.list.count) {
		const struct await_method *most = &methods.list.items[0];
		facts_set(g->row, FACT_delay_share,
			fmin(1, (double)most->self_ns / NS_PER_S / slow_s));
		facts_set(g->row, FACT_delay_longest, (double)most->longest_ns / NS_PER_S);
		error = show(g, most->stack, PLACE_delayer);
	}
	await_methods_done(&methods);
	return error;
}

static const struct calls_process *find_calls(const struct activity_gathering *g)
{
	const struct calls *calls = &g->answers->calls;

	for (uint32_t i = 0; i < calls->processes.count; i++)
		if (calls->processes.items[i].process == g->process)
			return &calls->processes.items[i];
	return NULL;
}

/* Whether its activities were recorded, or some came with the providers that a user chose. */
static bool is_observed(const struct activity_gathering *g)
{
	const struct activity_spans *spans = &g->answers->activity_spans;

	return (spans->trace && activity_spans_has_session(spans, g->process)) || find_calls(g) ||
	       find_tally(g, &g->answers->awaits.tally);
}

int activity_facts_gather(struct facts *facts, const struct answers *answers,
	const struct symbolmap *names)
{
	int error = 0;

	for (uint32_t i = 0; i < facts->processes.count && !error; i++) {
		struct activity_gathering g = { .facts = facts,
			.answers = answers,
			.names = names,
			.row = &facts->processes.items[i] };
		g.process = trace_find_process(names->trace, g.row->pid);
		if (!g.process || !is_observed(&g))
			continue;
		uint64_t to_ns =
			activity_spans_end(&answers->activity_spans, g.process, answers->to_ns);
		g.window_s = ((double)to_ns - (double)answers->from_ns) / NS_PER_S;
		if (g.window_s <= 0)
			continue;
		for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]) && !error; k++)
			error = set_calls(&g, find_calls(&g), &kinds[k]);
		if (!error)
			error = set_awaits(&g, set_requests(&g));
	}
	return error;
}
