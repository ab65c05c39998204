/* See process_growth.h. */
#include "diagnose/process_growth.h"

#include <stdbool.h>

#include "analysis/runtime_gauges.h"
#include "diagnose/facts.h"
#include "machine/process_use.h"

#define NS_PER_S     1e9
#define BYTES_PER_MB 1e6
/* A block of the usual file systems: a buffer of this size makes one write of many. */
#define SMALL_WRITE_BYTES 4096.0

/* What a reading has of one thing; negative: not known. */
typedef double reading(const struct process_use *use);

static double private_bytes(const struct process_use *use)
{
	return use->private_bytes ? (double)use->private_bytes : -1;
}

static double descriptors(const struct process_use *use)
{
	return use->has_descriptors ? (double)use->descriptors : -1;
}

/* By how much it grew; 0 unless it grew in each interval: a number that goes up and down is no leak. */
static double steady_growth(const struct process_use *uses, uint32_t count, reading *read)
{
	for (uint32_t i = 0; i < count; i++)
		if (read(&uses[i]) < 0 || (i && read(&uses[i]) <= read(&uses[i - 1])))
			return 0;
	return read(&uses[count - 1]) - read(&uses[0]);
}

static void set_demand(struct process_facts *process, const struct process_use *first,
	const struct process_use *last, double span_s)
{
	/* Threads that have ended take their times along. */
	if (!first->has_wait || !last->has_wait || last->cpu_ns < first->cpu_ns ||
		last->wait_ns < first->wait_ns)
		return;
	facts_set(process, FACT_cpu_used, (double)last->cpu_ns / NS_PER_S);
	double cpu_s = (double)(last->cpu_ns - first->cpu_ns) / NS_PER_S;
	double wait_s = (double)(last->wait_ns - first->wait_ns) / NS_PER_S;
	facts_set(process, FACT_demand_cpus, (cpu_s + wait_s) / span_s);
	if (cpu_s + wait_s > 0)
		facts_set(process, FACT_wait_share, wait_s / (cpu_s + wait_s));
}

static void set_writes(struct process_facts *process, const struct process_use *first,
	const struct process_use *last, double span_s)
{
	if (!first->has_writes || !last->has_writes || last->write_calls < first->write_calls ||
		last->written_bytes < first->written_bytes)
		return;
	double calls = (double)(last->write_calls - first->write_calls);
	double size = calls > 0 ? (double)(last->written_bytes - first->written_bytes) / calls : 0;
	facts_set(process, FACT_small_write_rate, size < SMALL_WRITE_BYTES ? calls / span_s : 0);
	facts_set(process, FACT_write_size, size);
}

void process_growth_gather(struct process_facts *process, const struct process_use *uses,
	uint32_t count)
{
	if (count < 2 || uses[count - 1].time_ns <= uses[0].time_ns)
		return;
	const struct process_use *last = &uses[count - 1];
	double span_s = (double)(last->time_ns - uses[0].time_ns) / NS_PER_S;

	set_demand(process, &uses[0], last, span_s);
	set_writes(process, &uses[0], last, span_s);
	if (private_bytes(last) > 0)
		facts_set(process, FACT_private, private_bytes(last));
	if (descriptors(last) >= 0)
		facts_set(process, FACT_descriptors, descriptors(last));
	if (count < 3)
		return;
	double memory = steady_growth(uses, count, private_bytes);
	double handles = steady_growth(uses, count, descriptors);
	facts_set(process, FACT_private_growth, memory);
	facts_set(process, FACT_private_growth_rate, memory / span_s);
	if (private_bytes(&uses[0]) > 0)
		facts_set(process, FACT_private_growth_share, memory / private_bytes(&uses[0]));
	facts_set(process, FACT_descriptor_growth, handles);
	facts_set(process, FACT_descriptor_rate, handles / span_s);
	if (descriptors(&uses[0]) > 0)
		facts_set(process, FACT_descriptor_growth_share, handles / descriptors(&uses[0]));
}

/* How much a gauge that went from `first` to `to` grew in `span_s`, in bytes; 0 if it did not. */
static double growth_of(const struct runtime_gauge *gauge, double to, double span_s)
{
	/* One value a second, the first of them a second after the first reading. */
	double growth = gauge->count < 2
				? 0
				: (to - gauge->first) / (gauge->count - 1) * span_s * BYTES_PER_MB;

	return growth > 0 ? growth : 0;
}

void process_growth_split(struct process_facts *process, const struct process_gauges *gauges)
{
	const struct runtime_gauge *committed = &gauges->gauges[GAUGE_COMMITTED];
	const struct runtime_gauge *queue = &gauges->gauges[GAUGE_QUEUE];

	if (queue->count)
		facts_set(process, FACT_queue, queue->most);
	if (committed->count < 2 || !process->known[FACT_private_growth])
		return;
	double span_s = process->numbers[FACT_span];
	double growth = growth_of(committed, committed->last, span_s);
	/* Without a collection, only the heap's size has the new objects. */
	const struct runtime_gauge *heap_size = &gauges->gauges[GAUGE_HEAP];
	double heap = growth_of(heap_size, heap_size->most, span_s);
	growth = heap > growth ? heap : growth;
	double unmanaged = process->numbers[FACT_private_growth] - growth;
	facts_set(process, FACT_committed_growth, growth);
	facts_set(process, FACT_unmanaged_growth, unmanaged > 0 ? unmanaged : 0);
	facts_set(process, FACT_unmanaged_growth_share,
		process->numbers[FACT_unmanaged_growth] / process->numbers[FACT_private]);
}
