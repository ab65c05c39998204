/* See facts_gather.h. */
#include "diagnose/facts_gather.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "analysis/answers.h"
#include "analysis/collections.h"
#include "analysis/collector_cpu.h"
#include "analysis/profile.h"
#include "diagnose/activity_facts.h"
#include "diagnose/cpu_topics.h"
#include "diagnose/event_places.h"
#include "diagnose/facts.h"
#include "diagnose/observation_events.h"
#include "trace/report.h"
#include "trace/trace.h"

#define NS_PER_S 1e9

/* Numbers of collection_reason(). */
static const bool is_induced[COLLECTION_REASONS] = {
	[1] = true, [7] = true, [10] = true, [17] = true
};
static const bool is_for_large_objects[COLLECTION_REASONS] = {
	[4] = true, [6] = true, [15] = true
};

static struct process_facts *row_of(const struct facts *facts, const struct trace *trace,
	uint32_t process)
{
	return facts_find(facts, trace->processes.items[process].pid);
}

/* The part of the selected time in which the process existed. */
static double observed_s(const struct process *process, const struct profile *profile,
	const struct report *report)
{
	uint64_t from_ns = report->begin_ns + profile->filter.from_ns;
	uint64_t to_ns = report->begin_ns + report->duration_ns;

	if (profile->filter.to_ns && report->begin_ns + profile->filter.to_ns < to_ns)
		to_ns = report->begin_ns + profile->filter.to_ns;
	if (!process->existed && process->begin_ns > from_ns)
		from_ns = process->begin_ns;
	if (process->end_ns && process->end_ns < to_ns)
		to_ns = process->end_ns;
	return to_ns > from_ns ? (double)(to_ns - from_ns) / NS_PER_S : 0;
}

static int add_row(struct facts *facts, const struct process *process,
	const struct profile *profile, const struct report *report)
{
	struct process_facts *row = facts_process(facts, process->pid);

	if (!row)
		return -ENOMEM;
	row->name = strtab_add_z(&facts->texts, trace_text(profile->trace, process->name));
	row->runtime_version =
		strtab_add_z(&facts->texts, trace_text(profile->trace, process->runtime_version));
	row->managed = process->runtime_kind == RUNTIME_CORECLR;
	facts_set(row, FACT_span, observed_s(process, profile, report));
	facts_set(row, FACT_age, row->numbers[FACT_span]);
	if (report->cpu_count)
		facts_set(row, FACT_cpu_count, (double)report->cpu_count);
	if (report->busy >= 0)
		facts_set(row, FACT_machine_share, report->busy);
	return 0;
}

/* Files of other tools and of `spoor trace` do not say which runtime a process has. */
static int add_event_rows(struct facts *facts, const struct profile *profile,
	const struct report *report, const struct answers *answers)
{
	const struct tally *exceptions = &answers->exceptions.tally;
	uint32_t collecting = answers->collections.processes.count;

	for (uint32_t i = 0; i < collecting + exceptions->processes.count; i++) {
		uint32_t process = i < collecting
					   ? answers->collections.processes.items[i].process
					   : exceptions->processes.items[i - collecting].process;
		const struct process *added = &profile->trace->processes.items[process];
		if (facts_find(facts, added->pid))
			continue;
		if (add_row(facts, added, profile, report) < 0)
			return -ENOMEM;
		vec_last(&facts->processes)->managed = true;
	}
	return 0;
}

static int add_rows(struct facts *facts, const struct profile *profile, const struct report *report,
	const struct answers *answers, const struct observation_events *observations)
{
	const struct trace *trace = profile->trace;
	bool chosen = profile->filter.pids.count || profile->filter.process_names.count;
	int error = 0;

	/* The processes that `spoor diagnose` was to observe: it records their children too. */
	for (uint32_t i = 1; i < trace->processes.count && !error && !chosen; i++)
		if (observation_events_has(observations, i))
			error = add_row(facts, &trace->processes.items[i], profile, report);
	if (error || facts->processes.count)
		return error;
	/* A child that has not replaced its program yet looks like its parent, without a version. */
	for (uint32_t i = 1; i < trace->processes.count && !error; i++)
		if (profile_wants_process(profile, i) &&
			(chosen || trace->processes.items[i].runtime_version))
			error = add_row(facts, &trace->processes.items[i], profile, report);
	if (!error)
		error = add_event_rows(facts, profile, report, answers);
	for (uint32_t i = 0; i < report->processes.count && !error && !facts->processes.count; i++)
		error = add_row(facts, &trace->processes.items[report->processes.items[i].process],
			profile, report);
	return error;
}

/* CPU time of all processes but this one, as a share of the whole recording's. */
static double others_share(const struct process_facts *row, double all_s,
	const struct report *report)
{
	double recorded_s = (double)report->duration_ns / NS_PER_S;
	double own_s = row->numbers[FACT_cpus] * row->numbers[FACT_span];

	return recorded_s > 0 ? (all_s - own_s) / recorded_s / (double)report->cpu_count : 0;
}

static void set_cpu(struct facts *facts, const struct profile *profile, const struct report *report)
{
	double all_s = (double)profile->all_weight_ns / NS_PER_S;

	if (report->weighing == REPORT_THREAD_TIME)
		return; /* no CPU time is known */
	/* Without any sample only observed processes are known to have been sampled. */
	for (uint32_t i = 0; i < facts->processes.count; i++)
		if (profile->all_count || facts->processes.items[i].observed)
			facts_set(&facts->processes.items[i], FACT_cpus, 0);
	for (uint32_t i = 0; i < report->processes.count; i++) {
		const struct report_process *process = &report->processes.items[i];
		struct process_facts *row = row_of(facts, profile->trace, process->process);
		if (row && row->numbers[FACT_span] > 0)
			facts_add(row, FACT_cpus,
				(double)process->cpu_ns / NS_PER_S / row->numbers[FACT_span]);
	}
	for (uint32_t i = 0; i < facts->processes.count; i++) {
		struct process_facts *row = &facts->processes.items[i];
		double span_s = row->numbers[FACT_span];
		double cpus = row->numbers[FACT_cpus];
		if (!row->known[FACT_cpus])
			continue;
		facts_set(row, FACT_demand_cpus, cpus);
		if (!report->cpu_count)
			continue;
		facts_set(row, FACT_cpu_share, cpus / (double)report->cpu_count);
		if (report->scope == REPORT_MACHINE && span_s > 0 &&
			profile_filter_is_empty(&profile->filter))
			facts_set(row, FACT_others_share, others_share(row, all_s, report));
	}
}

static void add_collection(struct process_facts *row, const struct collection *collection)
{
	double span_s = row->numbers[FACT_span];
	double pause_s = (double)collection->pause_ns / NS_PER_S;
	enum fact share = is_induced[collection->reason]             ? FACT_induced_pause_share
			  : is_for_large_objects[collection->reason] ? FACT_large_pause_share
								     : FACT_pressure_pause_share;
	enum fact rate = share == FACT_induced_pause_share ? FACT_induced_rate
			 : share == FACT_large_pause_share ? FACT_large_rate
							   : FACT_pressure_rate;

	facts_add(row, FACT_collections, 1);
	if (span_s <= 0)
		return;
	facts_add(row, FACT_pause_share, pause_s / span_s);
	facts_add(row, share, pause_s / span_s);
	facts_add(row, rate, 1 / span_s);
}

static int compare_doubles(const void *a, const void *b)
{
	const double *x = a;
	const double *y = b;

	return *x < *y ? -1 : *x > *y;
}

/*
 * The median (0), or the upper (1) or lower (-1) end of the range in which it is with 95 % probability:
 * its rank varies by the root of the count. Of few values it is the largest or the smallest. Sorts.
 */
static double median_bound(double *values, uint32_t count, int direction)
{
	double rank = (count - 1) / 2.0 + direction * sqrt(count);

	qsort(values, count, sizeof(double), compare_doubles);
	return values[(uint32_t)fmin(fmax(rank, 0), count - 1)];
}

/* What the later half of the collections left beyond the earlier half: medians, as garbage has peaks. */
static int set_heap_growth(struct process_facts *row, const struct collection *rows, uint32_t count)
{
	VEC(double) left = { 0 };
	double span_s = row->numbers[FACT_span];

	for (uint32_t i = 0; i < count; i++) {
		if (rows[i].has_stats && !vec_add(&left, (double)rows[i].heap_bytes)) {
			vec_done(&left);
			return -ENOMEM;
		}
	}
	if (left.count >= 3 && span_s > 0) {
		uint32_t half = left.count / 2;
		double earlier = median_bound(left.items, half, 0);
		double earlier_most = median_bound(left.items, half, 1);
		double later = median_bound(left.items + half, left.count - half, 0);
		double later_least = median_bound(left.items + half, left.count - half, -1);
		double growth = later > earlier ? later - earlier : 0;
		double sure = later_least > earlier_most ? later_least - earlier_most : 0;
		facts_set(row, FACT_heap_growth, growth);
		facts_set(row, FACT_heap_growth_sure, sure);
		facts_set(row, FACT_heap_growth_rate, growth / (span_s / 2));
		if (earlier > 0) {
			facts_set(row, FACT_heap_growth_share, growth / earlier);
			facts_set(row, FACT_heap_growth_sure_share, sure / earlier);
		}
	}
	vec_done(&left);
	return 0;
}

static int set_collections(struct facts *facts, const struct collections *collections)
{
	for (uint32_t i = 0; i < collections->processes.count; i++) {
		const struct collections_process *process = &collections->processes.items[i];
		const struct collection *rows = &collections->rows.items[process->row_at];
		struct process_facts *row = row_of(facts, collections->trace, process->process);
		if (!row)
			continue;
		for (uint32_t r = 0; r < process->row_count; r++)
			add_collection(row, &rows[r]);
		facts_set(row, FACT_longest_pause,
			(double)collections->rows.items[process->longest].pause_ns / NS_PER_S);
		facts_set(row, FACT_heap, (double)process->heap_last_bytes);
		int error = set_heap_growth(row, rows, process->row_count);
		if (error)
			return error;
	}
	return 0;
}

/*
 * Collections of several causes may run in one sampling period, so the causes share the CPU time by
 * their pauses; it is all of one cause in most programs.
 */
static void set_collector_cpu(struct facts *facts, const struct trace *trace,
	const struct collector_cpu *cpu)
{
	for (uint32_t i = 0; i < cpu->processes.count; i++) {
		const struct collector_cpu_process *process = &cpu->processes.items[i];
		struct process_facts *row = row_of(facts, trace, process->process);
		if (!row || !process->all_ns || !row->known[FACT_collections])
			continue;
		double share = (double)(process->pauses_ns + process->threads_ns) /
			       (double)process->all_ns;
		double pauses = row->numbers[FACT_pause_share];
		facts_set(row, FACT_gc_cpu_share, share);
		facts_set(row, FACT_pressure_cpu_share,
			pauses > 0 ? share * row->numbers[FACT_pressure_pause_share] / pauses : 0);
	}
}

/* Processes that a row's process started during the recording, and how long those lived that ended. */
static int set_children(struct facts *facts, const struct trace *trace)
{
	VEC(double) lives = { 0 };
	int error = 0;

	for (uint32_t i = 0; i < facts->processes.count; i++)
		facts_set(&facts->processes.items[i], FACT_children, 0);
	for (uint32_t i = 1; i < trace->processes.count; i++) {
		const struct process *child = &trace->processes.items[i];
		struct process_facts *row =
			child->existed ? NULL : facts_find(facts, child->parent_pid);
		if (row)
			facts_add(row, FACT_children, 1);
		row = facts_find(facts, child->pid);
		if (row && child->other_children)
			facts_add(row, FACT_children, (double)child->other_children);
	}
	for (uint32_t i = 0; i < facts->processes.count && !error; i++) {
		struct process_facts *row = &facts->processes.items[i];
		if (row->numbers[FACT_children] < 3 || row->numbers[FACT_span] <= 0)
			continue;
		facts_set(row, FACT_child_rate,
			row->numbers[FACT_children] / row->numbers[FACT_span]);
		uint64_t others = 0;
		uint64_t others_ns = 0;
		vec_reset(&lives);
		for (uint32_t c = 1; c < trace->processes.count && !error; c++) {
			const struct process *child = &trace->processes.items[c];
			if (child->pid == row->pid) {
				others += child->other_children;
				others_ns += child->other_lives_ns;
			}
			if (child->parent_pid == row->pid && !child->existed && child->end_ns &&
				!vec_add(&lives,
					(double)(child->end_ns - child->begin_ns) / NS_PER_S))
				error = -ENOMEM;
		}
		/* Of those without an event, which are the shorter ones, only the mean is known. */
		if (others > lives.count) {
			facts_set(row, FACT_child_life,
				(double)others_ns / (double)others / NS_PER_S);
			continue;
		}
		if (!lives.count)
			continue;
		qsort(lives.items, lives.count, sizeof(double), compare_doubles);
		facts_set(row, FACT_child_life, lives.items[lives.count / 2]);
	}
	vec_done(&lives);
	return error;
}

static void set_throttling(struct facts *facts, const struct trace *trace)
{
	for (uint32_t i = 0; i < facts->processes.count; i++) {
		struct process_facts *row = &facts->processes.items[i];
		uint32_t process = trace_find_process(trace, row->pid);
		const struct cpu_grant *grant = process ? trace_cpu_grant(trace, process) : NULL;
		if (!grant || !grant->periods)
			continue;
		facts_set(row, FACT_throttled_share,
			(double)grant->throttled_periods / (double)grant->periods);
		facts_set(row, FACT_throttled, (double)grant->throttled_ns / NS_PER_S);
	}
}

/* Where context switches were recorded, they have the exact times in which a process wanted a CPU. */
static void set_demand(struct facts *facts, const struct trace *trace,
	const struct thread_time *times)
{
	for (uint32_t i = 0; i < times->processes.count; i++) {
		const struct thread_time_process *process = &times->processes.items[i];
		struct process_facts *row = row_of(facts, trace, process->process);
		double on_cpu_s = (double)process->on_cpu_ns / NS_PER_S;
		double runnable_s = (double)process->runnable_ns / NS_PER_S;
		if (!row || row->numbers[FACT_span] <= 0 || times->runnable_unknown)
			continue;
		facts_set(row, FACT_demand_cpus, (on_cpu_s + runnable_s) / row->numbers[FACT_span]);
		if (on_cpu_s + runnable_s > 0)
			facts_set(row, FACT_wait_share, runnable_s / (on_cpu_s + runnable_s));
	}
}

int facts_gather(struct facts *facts, const struct profile *profile, const struct report *report,
	const struct answers *answers, const struct observation_events *observations)
{
	int error = add_rows(facts, profile, report, answers, observations);

	if (error)
		return error;
	observation_events_mark(observations, facts);
	set_cpu(facts, profile, report);
	set_throttling(facts, profile->trace);
	set_demand(facts, profile->trace, &answers->thread_time);
	error = set_collections(facts, &answers->collections);
	set_collector_cpu(facts, profile->trace, &answers->collector_cpu);
	if (!error)
		error = set_children(facts, profile->trace);
	if (!error)
		error = cpu_topics_gather(facts, profile, report->names);
	if (!error)
		error = event_places_gather(facts, answers, report->names);
	if (!error)
		error = activity_facts_gather(facts, answers, report->names);
	return error ? error : observation_events_gather(observations, facts);
}
