/* See competition.h. */
#include "diagnose/competition.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#include "diagnose/facts.h"

/*
 * On a machine with idle CPUs a thread waits for less than a tenth of the time that it wants to run.
 * Above twice that, a request that needs no time may last as long as one wants.
 */
#define WAIT_SHARE_LEAST    0.2
#define MACHINE_SHARE_LEAST 0.95
#define OTHERS_SHARE_LEAST  0.5
/* A start takes half a CPU second or so: after 2 of them, which then are the 5 s of the rule, it is over. */
#define SECONDS_A_CPU_SECOND 2.5
/* Of the pool's busy threads: with fewer that are blocked, what waits is the rest, for a CPU. */
#define BLOCKED_SHARE_LEAST 0.5

/* A fact, what it is without the durations that waits for CPUs explain, and where that goes. */
static const struct {
	enum fact whole;
	enum fact fastest;
	enum fact own;
} pairs[] = {
	{ FACT_slow_share, FACT_slow_always_share, FACT_slow_own_share },
	{ FACT_slow_pending, FACT_slow_always_pending, FACT_slow_own_pending },
	{ FACT_dependency_mean, FACT_dependency_fastest, FACT_dependency_own },
	{ FACT_dns_mean, FACT_dns_fastest, FACT_dns_own },
	{ FACT_tls_mean, FACT_tls_fastest, FACT_tls_own },
};

static bool waits_for_cpus(const struct process_facts *process)
{
	const double *numbers = process->numbers;

	if (process->known[FACT_wait_share])
		return numbers[FACT_wait_share] >= WAIT_SHARE_LEAST;
	return process->known[FACT_machine_share] && process->known[FACT_others_share] &&
	       numbers[FACT_machine_share] >= MACHINE_SHARE_LEAST &&
	       numbers[FACT_others_share] >= OTHERS_SHARE_LEAST;
}

static void settle(struct process_facts *process)
{
	double *numbers = process->numbers;
	bool waits = waits_for_cpus(process);

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		if (!process->known[pairs[i].whole])
			continue;
		double own = numbers[pairs[i].whole];
		if (waits && process->known[pairs[i].fastest])
			own = fmin(own, numbers[pairs[i].fastest]);
		facts_set(process, pairs[i].own, own);
	}
	if (process->known[FACT_starved_share]) {
		bool blocked = !waits || !process->known[FACT_blocked_share] ||
			       numbers[FACT_blocked_share] >= BLOCKED_SHARE_LEAST;
		facts_set(process, FACT_starved_own_share,
			blocked ? numbers[FACT_starved_share] : 0);
	}
	/* The compilations of a start take as long as the machine lets them. */
	if (waits && process->known[FACT_age] && process->known[FACT_cpu_used])
		facts_set(process, FACT_age,
			fmin(numbers[FACT_age], SECONDS_A_CPU_SECOND * numbers[FACT_cpu_used]));
}

void competition_settle(struct facts *facts)
{
	for (uint32_t i = 0; i < facts->processes.count; i++)
		settle(&facts->processes.items[i]);
}
