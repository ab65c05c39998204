/* See top.h. */
#include "analysis/top.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/profile.h"
#include "trace/report.h"
#include "trace/symbolmap.h"
#include "trace/trace.h"

struct sum {
	struct report_row row;
	uint32_t stack_mark;   /* the last stack that counted towards total, plus one */
	uint32_t process_mark; /* the last process that it was touched for */
};

struct top_order {
	const struct trace *trace;
	const struct symbolmap *names;
	enum top_sort by;
};

static int compare_numbers(uint64_t a, uint64_t b)
{
	return a > b ? -1 : a < b;
}

/* Equal numbers go by name, so that the same recording gives the same report. */
static int compare_rows(const void *left, const void *right, void *context)
{
	const struct top_order *sort = context;
	const struct report_row *a = left;
	const struct report_row *b = right;
	const struct function *f = &sort->names->functions.items[a->function];
	const struct function *g = &sort->names->functions.items[b->function];
	int order = 0;

	if (sort->by == TOP_TOTAL)
		order = compare_numbers(a->total_ns, b->total_ns);
	if (sort->by == TOP_MODULE && f->module != g->module)
		order = strcmp(trace_text(sort->trace, f->module),
			trace_text(sort->trace, g->module));
	if (!order && sort->by != TOP_NAME)
		order = compare_numbers(a->self_ns, b->self_ns);
	if (!order && sort->by != TOP_NAME)
		order = compare_numbers(a->total_ns, b->total_ns);
	if (!order)
		order = strcmp(trace_text(sort->trace, f->name), trace_text(sort->trace, g->name));
	if (!order)
		order = strcmp(trace_text(sort->trace, f->module),
			trace_text(sort->trace, g->module));
	if (!order)
		order = a->function < b->function ? -1 : a->function > b->function;
	return order;
}

static int compare_processes(const void *left, const void *right)
{
	const struct report_process *a = left;
	const struct report_process *b = right;
	int order = compare_numbers(a->cpu_ns, b->cpu_ns);

	return order ? order : a->process < b->process ? -1 : a->process > b->process;
}

/* Adds up the stacks of one process, from *at on, and appends its rows. */
static int count_process(struct report *report, const struct profile *profile,
	const struct symbolmap *names, struct sum *sums, uint32_t *at)
{
	struct report_process process = { .process = profile->stacks.items[*at].process,
		.row_at = report->rows.count };
	uint32_t mark = report->processes.count + 1;

	for (; *at < profile->stacks.count; (*at)++) {
		const struct profile_stack *stack = &profile->stacks.items[*at];
		if (stack->process != process.process)
			break;
		process.cpu_ns += stack->weight_ns;
		process.samples += stack->count;
		if (!stack->frame_count)
			process.stackless_ns += stack->weight_ns;
		for (uint32_t i = 0; i < stack->frame_count; i++) {
			uint32_t function = profile->functions.items[stack->at + i];
			enum function_tier tier = function_tier(
				&names->functions.items[profile->bodies.items[stack->at + i]]);
			struct sum *sum = &sums[function];
			if (sum->process_mark != mark) {
				/* Rows are numbered first; sums are copied at the process's end. */
				*sum = (struct sum){ .process_mark = mark,
					.row.function = function };
				if (!vec_add(&report->rows, sum->row))
					return -ENOMEM;
			}
			if (tier < FUNCTION_TIER_COUNT)
				sum->row.tiers |= 1u << tier;
			if (!i) {
				sum->row.self_ns += stack->weight_ns;
				sum->row.self_count += stack->count;
				if (tier < FUNCTION_TIER_COUNT)
					sum->row.tier_ns[tier] += stack->weight_ns;
			}
			if (sum->stack_mark == *at + 1)
				continue;
			sum->stack_mark = *at + 1;
			sum->row.total_ns += stack->weight_ns;
			sum->row.total_count += stack->count;
		}
	}
	process.row_count = report->rows.count - process.row_at;
	for (uint32_t i = process.row_at; i < report->rows.count; i++)
		report->rows.items[i] = sums[report->rows.items[i].function].row;
	return vec_add(&report->processes, process) ? 0 : -ENOMEM;
}

int top_count(struct report *report, const struct profile *profile, const struct symbolmap *names,
	enum top_sort by)
{
	struct top_order sort = { .trace = profile->trace, .names = names, .by = by };
	struct sum *sums = calloc((size_t)names->functions.count + 1, sizeof(*sums));
	int error = sums ? 0 : -ENOMEM;
	uint32_t at = 0;

	while (!error && at < profile->stacks.count)
		error = count_process(report, profile, names, sums, &at);
	free(sums);
	if (error)
		return error;
	vec_each(process, &report->processes) {
		if (process->row_count)
			qsort_r(report->rows.items + process->row_at, process->row_count,
				sizeof(struct report_row), compare_rows, &sort);
	}
	if (report->processes.count)
		qsort(report->processes.items, report->processes.count,
			sizeof(struct report_process), compare_processes);
	return 0;
}
