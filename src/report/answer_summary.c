/* See answer_summary.h. */
#include "report/answer_summary.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/answers.h"
#include "base/bytes.h"
#include "base/text.h"
#include "render/frame_label.h"
#include "report/answer_parts.h"
#include "report/answer_report.h"
#include "report/startup_report.h"
#include "trace/report.h"
#include "trace/trace.h"

/* Rough costs, which only order the lines: of a throw with its event, and of an allocated byte. */
#define THROW_NS 4000.0
#define BYTE_NS  0.1

struct summary {
	struct bytes text;
	double cost_ns; /* 0: no line */
	enum answer answer;
	uint32_t process;
	uint32_t process_count;
};

struct summary_page {
	const struct answers *answers;
	const struct report *report;
};

static void add_time(struct bytes *out, uint64_t ns)
{
	text_add_duration(out, (double)ns / 1e9);
}

static void add_place(const struct summary_page *page, struct bytes *out, uint32_t function)
{
	if (!function)
		return;
	const struct function *f = &page->report->names->functions.items[function];
	const char *name = trace_text(page->report->trace, f->name);
	struct name_parts parts;

	label_split(name, strlen(name), f->kind, &parts);
	bytes_text(out, " in ");
	text_add_safe(out, name + parts.type_at, parts.head_len - parts.type_at);
}

/* The process with the largest amounts, and how many have any. */
static const struct tally_process *first_of(const struct tally *tally, struct summary *s)
{
	s->process_count = tally->processes.count;
	if (!s->process_count)
		return NULL;
	s->process = tally->processes.items[0].process;
	return &tally->processes.items[0];
}

static const struct tally_key *largest(const struct tally *tally,
	const struct tally_process *process)
{
	return &tally->rows.list.items[process->row_at].key;
}

static void sum_collections(const struct summary_page *page, struct summary *s)
{
	const struct collections *collections = &page->answers->collections;
	uint64_t span_ns = page->answers->span_ns;

	s->process_count = collections->processes.count;
	if (!s->process_count)
		return;
	const struct collections_process *process = &collections->processes.items[0];
	const struct collection *longest = &collections->rows.items[process->longest];
	uint64_t begin_ns = page->report->begin_ns;
	s->process = process->process;
	s->cost_ns = (double)process->pause_ns + 1;
	text_add_things(&s->text, process->row_count, "collection", "collections");
	bytes_text(&s->text, ", paused ");
	add_time(&s->text, process->pause_ns);
	bytes_printf(&s->text, " (%.1f %%), longest ",
		span_ns ? 100 * (double)process->pause_ns / (double)span_ns : 0);
	add_time(&s->text, longest->pause_ns);
	bytes_text(&s->text, " at ");
	add_time(&s->text, longest->begin_ns > begin_ns ? longest->begin_ns - begin_ns : 0);
}

static void sum_exceptions(const struct summary_page *page, struct summary *s)
{
	const struct exceptions *exceptions = &page->answers->exceptions;
	const struct tally_process *process = first_of(&exceptions->tally, s);
	struct tally_rows types;

	if (!process)
		return;
	s->cost_ns = THROW_NS * (double)process->count;
	text_add_count(&s->text, process->count);
	bytes_text(&s->text, ", ");
	answer_rate(&s->text, process->count, page->answers->span_ns);
	bytes_text(&s->text, " a second: ");
	if (!tally_group(&exceptions->tally, process, TALLY_TEXT | TALLY_PLACE, &types)) {
		/* the type of those that were not observed is empty */
		bool unknown = !types.list.items[0].key.text && types.list.count > 1;
		const struct tally_row *most = &types.list.items[unknown];
		text_add_safe_z(&s->text, event_texts_get(&exceptions->types, most->key.text));
		bytes_text(&s->text, " ");
		text_add_count(&s->text, most->count);
		add_place(page, &s->text, most->key.place);
	}
	tally_rows_done(&types);
}

static void sum_allocations(const struct summary_page *page, struct summary *s)
{
	const struct allocations *allocations = &page->answers->allocations;
	const struct tally_process *process = first_of(&allocations->tally, s);
	struct tally_rows rows;

	if (!process)
		return;
	s->cost_ns = BYTE_NS * (double)process->amount;
	text_add_size(&s->text, process->amount);
	if (!tally_group(&allocations->tally, process, TALLY_TEXT | TALLY_KIND | TALLY_PLACE,
		    &rows)) {
		const struct tally_row *most = &rows.list.items[0];
		bytes_text(&s->text, ": ");
		text_add_safe_z(&s->text, event_texts_get(&allocations->types, most->key.text));
		bytes_printf(&s->text, " %.0f %%",
			process->amount ? 100 * (double)most->amount / (double)process->amount : 0);
		add_place(page, &s->text, most->key.place);
	}
	tally_rows_done(&rows);
}

static void sum_locks(const struct summary_page *page, struct summary *s)
{
	const struct tally *tally = &page->answers->locks.tally;
	const struct tally_process *process = first_of(tally, s);

	if (!process)
		return;
	uint64_t longest_ns = 0;
	for (uint32_t i = 0; i < process->row_count; i++) {
		uint64_t most_ns = tally->rows.list.items[process->row_at + i].most;
		longest_ns = most_ns > longest_ns ? most_ns : longest_ns;
	}
	s->cost_ns = (double)process->amount;
	text_add_things(&s->text, process->count, "wait, ", "waits, ");
	add_time(&s->text, process->amount);
	bytes_text(&s->text, ", longest ");
	add_time(&s->text, longest_ns);
	add_place(page, &s->text, largest(tally, process)->place);
}

static void sum_pools(const struct summary_page *page, struct summary *s)
{
	const struct thread_pool *pool = &page->answers->thread_pool;

	s->process_count = pool->processes.count;
	if (!s->process_count)
		return;
	const struct pool_process *process = &pool->processes.items[0];
	s->process = process->process;
	s->cost_ns = (double)process->starved_ns + 0.5;
	if (process->starved_ns) {
		bytes_text(&s->text, "starved for at least ");
		add_time(&s->text, process->starved_ns);
		bytes_text(&s->text, ", ");
	}
	text_add_count(&s->text, process->least_threads);
	bytes_text(&s->text, " to ");
	text_add_things(&s->text, process->most_threads, "worker thread", "worker threads");
}

static void sum_compilations(const struct summary_page *page, struct summary *s)
{
	const struct compilations *compilations = &page->answers->compilations;

	s->process_count = compilations->processes.count;
	if (!s->process_count || !compilations->processes.items[0].all.lasts_ns)
		return;
	const struct compilations_process *process = &compilations->processes.items[0];
	s->process = process->process;
	s->cost_ns = (double)process->all.lasts_ns;
	text_add_things(&s->text, process->all.count, "method", "methods");
	bytes_text(&s->text, " compiled, ");
	add_time(&s->text, process->all.lasts_ns);
	if (process->steady_ns < page->answers->to_ns) {
		bytes_text(&s->text, ", steady since ");
		add_time(&s->text, process->steady_ns);
	}
}

static void sum_requests(const struct summary_page *page, struct summary *s)
{
	const struct requests *requests = &page->answers->requests;

	s->process_count = requests->processes.count;
	if (!s->process_count)
		return;
	const struct requests_process *process = &requests->processes.items[0];
	const struct request_route *row = &requests->rows.items[process->row_at];
	s->process = process->process;
	s->cost_ns = 0.25; /* they are no cost, so after all that are */
	text_add_count(&s->text, process->count);
	bytes_text(&s->text, ", ");
	answer_rate(&s->text, process->count, answer_observed_ns(page->answers, process->process));
	bytes_text(&s->text, " a second; ");
	text_add_safe_z(&s->text, strtab_get(&requests->routes, row->route));
	bytes_text(&s->text, ": median ");
	add_time(&s->text, durations_percentile(&row->durations, 0.5));
	bytes_text(&s->text, ", 99 % ");
	add_time(&s->text, durations_percentile(&row->durations, 0.99));
}

static void sum_calls(const struct summary_page *page, struct summary *s)
{
	const struct calls *calls = &page->answers->calls;
	const struct call_row *most = NULL;

	s->process_count = calls->processes.count;
	if (!s->process_count)
		return;
	const struct calls_process *process = &calls->processes.items[0];
	s->process = process->process;
	s->cost_ns = 0.2; /* they are no cost, so after all that are */
	for (uint32_t i = 0; i < process->row_count; i++) {
		const struct call_row *row = &calls->rows.items[process->row_at + i];
		if (!most || row->durations.total_ns > most->durations.total_ns)
			most = row;
	}
	text_add_things(&s->text, process->count, "call", "calls");
	if (!most || !most->durations.count)
		return;
	bytes_printf(&s->text, "; %s to ", call_kind_words(most->kind));
	text_add_safe_z(&s->text, strtab_get(&calls->targets, most->target));
	bytes_text(&s->text, ": median ");
	add_time(&s->text, durations_percentile(&most->durations, 0.5));
	bytes_text(&s->text, ", 99 % ");
	add_time(&s->text, durations_percentile(&most->durations, 0.99));
}

static void sum_databases(const struct summary_page *page, struct summary *s)
{
	const struct databases *databases = &page->answers->databases;
	const struct database_row *most = NULL;

	s->process_count = databases->processes.count;
	if (!s->process_count)
		return;
	const struct databases_process *process = &databases->processes.items[0];
	s->process = process->process;
	s->cost_ns = 0.15; /* they are no cost, so after all that are */
	for (uint32_t i = 0; i < process->row_count; i++) {
		const struct database_row *row = &databases->rows.items[process->row_at + i];
		if (!most || row->durations.total_ns > most->durations.total_ns)
			most = row;
	}
	text_add_things(&s->text, process->count, "command", "commands");
	if (!most || !most->durations.count)
		return;
	bytes_text(&s->text, "; ");
	text_add_safe_z(&s->text, strtab_get(&databases->texts, most->target));
	bytes_text(&s->text, ": median ");
	add_time(&s->text, durations_percentile(&most->durations, 0.5));
	bytes_text(&s->text, ", 99 % ");
	add_time(&s->text, durations_percentile(&most->durations, 0.99));
}

static void sum_starts(const struct summary_page *page, struct summary *s)
{
	const struct startup *startup = &page->answers->startup;

	s->process_count = startup->processes.count;
	if (!s->process_count)
		return;
	const struct startup_process *process = &startup->processes.items[0];
	if (!process->phase_count)
		return;
	s->process = process->process;
	s->cost_ns = 0.1;
	startup_add_words(&s->text, process);
}

static void sum_up(const struct summary_page *page, struct summary *s)
{
	switch (s->answer) {
	case ANSWER_GC:
		sum_collections(page, s);
		break;
	case ANSWER_EXCEPTIONS:
		sum_exceptions(page, s);
		break;
	case ANSWER_ALLOC:
		sum_allocations(page, s);
		break;
	case ANSWER_LOCKS:
		sum_locks(page, s);
		break;
	case ANSWER_POOL:
		sum_pools(page, s);
		break;
	case ANSWER_JIT:
		sum_compilations(page, s);
		break;
	case ANSWER_REQUESTS:
		sum_requests(page, s);
		break;
	case ANSWER_HTTP:
		sum_calls(page, s);
		break;
	case ANSWER_DATABASES:
		sum_databases(page, s);
		break;
	case ANSWER_STARTUP:
		sum_starts(page, s);
		break;
	case ANSWER_IO:
	case ANSWER_ASYNC: /* idle methods await as well */
	case ANSWER_WAITS: /* idle threads wait as well */
	case ANSWER_OFF_CPU:
	case ANSWER_THREAD_TIME:
	case ANSWER_COUNT:
		break;
	}
}

static int compare_costs(const void *a, const void *b)
{
	const struct summary *x = a;
	const struct summary *y = b;

	if (x->cost_ns != y->cost_ns)
		return x->cost_ns > y->cost_ns ? -1 : 1;
	return x->answer < y->answer ? -1 : x->answer > y->answer;
}

void answer_summary(const struct answers *answers, const struct report *report, struct bytes *out)
{
	const struct summary_page page = { .answers = answers, .report = report };
	struct summary lines[ANSWER_COUNT] = { 0 };

	for (unsigned i = 0; i < ANSWER_COUNT; i++) {
		lines[i].answer = (enum answer)i;
		sum_up(&page, &lines[i]);
	}
	qsort(lines, ANSWER_COUNT, sizeof(lines[0]), compare_costs);
	for (unsigned i = 0; i < ANSWER_COUNT; i++) {
		struct summary *line = &lines[i];
		if (line->cost_ns > 0) {
			if (!i)
				bytes_text(out,
					"\n.NET runtime, most costly first; an option shows more\n");
			bytes_printf(out, "--%-10s  ", answer_reports[line->answer]->option);
			bytes_add(out, line->text.data, line->text.len);
			if (line->process_count > 1) {
				bytes_text(out, "; ");
				label_process(out, report->trace, line->process);
			}
			bytes_text(out, "\n");
		}
		bytes_done(&line->text);
	}
}
