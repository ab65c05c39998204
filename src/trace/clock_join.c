/* See clock_join.h. */
#include "trace/clock_join.h"

#include <errno.h>
#include <string.h>

#include "trace/trace.h"

static struct clock_thread *thread_of(struct clock_join *join, uint64_t thread)
{
	uint32_t at = map_get(&join->by_thread, thread);

	if (at)
		return &join->threads.items[at - 1];
	struct clock_thread *fresh = vec_push(&join->threads);

	if (!fresh)
		return NULL;
	fresh->thread = thread;
	if (!map_add(&join->by_thread, thread, join->threads.count)) {
		join->threads.count--;
		return NULL;
	}
	return fresh;
}

int clock_join_clock(struct clock_join *join, uint64_t thread, uint64_t time_ns, uint64_t cpu_ns)
{
	struct clock_thread *own = thread_of(join, thread);

	if (!own)
		return -ENOMEM;
	if (own->readings.count) {
		const struct join_reading *last = vec_last(&own->readings);
		if (time_ns <= last->time_ns || cpu_ns < last->cpu_ns)
			return 0;
	}
	return vec_add(&own->readings,
		       ((struct join_reading){ .time_ns = time_ns, .cpu_ns = cpu_ns }))
		       ? 0
		       : -ENOMEM;
}

int clock_join_sample(struct clock_join *join, uint64_t thread, uint64_t time_ns, uint32_t stack,
	bool runs)
{
	struct clock_thread *own = thread_of(join, thread);

	if (!own)
		return -ENOMEM;
	if (join->waiting >= CLOCK_JOIN_SAMPLES_MAX) {
		join->left_out++;
		return 0;
	}
	if (own->samples.count && time_ns < vec_last(&own->samples)->time_ns)
		time_ns = vec_last(&own->samples)->time_ns;
	if (!vec_add(&own->samples,
		    ((struct join_sample){ .time_ns = time_ns, .stack = stack, .runs = runs })))
		return -ENOMEM;
	join->waiting++;
	return 0;
}

static void tell_alone(const struct clock_thread *own, uint64_t time_ns, uint32_t stack,
	uint64_t *cpu_ns, clock_join_fn *each, void *context)
{
	if (*cpu_ns)
		each(context, &(struct clock_share){ .thread = own->thread,
				      .time_ns = time_ns,
				      .cpu_ns = *cpu_ns,
				      .stack = stack });
	*cpu_ns = 0;
}

/* The i-th of `count` parts of a whole, which differ by at most one and add up to it. */
static uint64_t part_of(uint64_t whole, uint64_t count, uint64_t i)
{
	return whole / count + (i < whole % count);
}

/* Samples of the same stack are one share. False: no memory for it. */
static bool add_share(struct clock_join *join, const struct clock_thread *own,
	const struct join_sample *sample, uint64_t cpu_ns)
{
	vec_each(share, &join->shares) {
		if (share->stack != sample->stack)
			continue;
		share->cpu_ns += cpu_ns;
		share->count++;
		return true;
	}
	return vec_add(&join->shares, ((struct clock_share){ .thread = own->thread,
					      .time_ns = sample->time_ns,
					      .cpu_ns = cpu_ns,
					      .stack = sample->stack,
					      .count = 1 }));
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/*
 * Divides the thread's unassigned CPU time among the interval's first `count` samples, except what
 * is held back for the next interval.
 */
static void spread(struct clock_join *join, struct clock_thread *own, uint32_t count,
	const struct join_reading *from, const struct join_reading *to)
{
	const struct join_sample *samples = own->samples.items;
	uint64_t all_ns = to->cpu_ns - from->cpu_ns + own->kept_ns + own->held_ns;
	uint32_t running = 0;

	for (uint32_t i = 0; i < count; i++) {
		running += samples[i].runs;
		if (samples[i].runs)
			own->ran_ns = samples[i].time_ns;
		else
			own->held_stack = samples[i].stack;
	}
	uint32_t waiting = count - running;

	own->credit_ns += (to->time_ns - from->time_ns) / count * running;
	uint64_t running_ns = !waiting ? all_ns : running ? least(all_ns, own->credit_ns) : 0;

	own->credit_ns =
		least(own->credit_ns - least(own->credit_ns, running_ns), CLOCK_JOIN_HELD_NS);
	bool patient = own->ran_ns && to->time_ns < own->ran_ns + CLOCK_JOIN_PATIENCE_NS;
	uint64_t waiting_ns = all_ns - running_ns;

	own->kept_ns = 0;
	own->held_ns = patient ? least(waiting_ns, CLOCK_JOIN_HELD_NS) : 0;
	waiting_ns -= own->held_ns;
	uint32_t r = 0;
	uint32_t w = 0;

	vec_reset(&join->shares);
	for (uint32_t i = 0; i < count; i++) {
		uint64_t part = samples[i].runs ? part_of(running_ns, running, r++)
						: part_of(waiting_ns, waiting, w++);
		if (!part)
			continue;
		if (!add_share(join, own, &samples[i], part))
			own->held_ns += part;
	}
}

static void drop_samples(struct clock_join *join, struct clock_thread *own, uint32_t count)
{
	if (!count)
		return;
	own->samples.count -= count;
	memmove(own->samples.items, own->samples.items + count,
		own->samples.count * sizeof(own->samples.items[0]));
	join->waiting -= count;
}

/* How many of its samples, the first ones, are not later than this. */
static uint32_t samples_until(const struct clock_thread *own, uint64_t time_ns)
{
	uint32_t count = 0;

	while (count < own->samples.count && own->samples.items[count].time_ns <= time_ns)
		count++;
	return count;
}

static void settle_interval(struct clock_join *join, struct clock_thread *own,
	const struct join_reading *from, const struct join_reading *to, clock_join_fn *each,
	void *context)
{
	uint64_t cpu_ns = to->cpu_ns - from->cpu_ns;

	drop_samples(join, own, samples_until(own, from->time_ns)); /* before its clock was known */
	uint32_t count = samples_until(own, to->time_ns);

	if (count) {
		spread(join, own, count, from, to);
		for (uint32_t i = 0; i < join->shares.count; i++)
			each(context, &join->shares.items[i]);
		drop_samples(join, own, count);
		return;
	}
	if (cpu_ns && !own->kept_ns)
		own->kept_from_ns = from->time_ns;
	own->kept_ns += cpu_ns;
	if (to->time_ns >= own->kept_from_ns + CLOCK_JOIN_KEEP_NS)
		tell_alone(own, to->time_ns, 0, &own->kept_ns, each, context);
}

/* Reports CPU time that was kept or held for later samples, if these have not arrived in time. */
static void give_up_waiting(const struct clock_join *join, struct clock_thread *own,
	uint64_t until_ns, clock_join_fn *each, void *context)
{
	bool all = until_ns == UINT64_MAX;
	uint64_t reached_ns = own->readings.count ? own->readings.items[0].time_ns : 0;
	uint64_t time_ns = !all                            ? until_ns
			   : reached_ns > join->settled_ns ? reached_ns
							   : join->settled_ns;

	if (all || until_ns >= own->kept_from_ns + 2 * CLOCK_JOIN_KEEP_NS)
		tell_alone(own, time_ns, 0, &own->kept_ns, each, context);
	if (all || until_ns >= reached_ns + CLOCK_JOIN_PATIENCE_NS)
		tell_alone(own, time_ns, own->held_stack, &own->held_ns, each, context);
}

static void settle_thread(struct clock_join *join, struct clock_thread *own, uint64_t until_ns,
	clock_join_fn *each, void *context)
{
	uint32_t settled = 0;

	while (settled + 1 < own->readings.count &&
		own->readings.items[settled + 1].time_ns <= until_ns) {
		settle_interval(join, own, &own->readings.items[settled],
			&own->readings.items[settled + 1], each, context);
		settled++;
	}
	if (settled) {
		own->readings.count -= settled;
		memmove(own->readings.items, own->readings.items + settled,
			own->readings.count * sizeof(own->readings.items[0]));
	}
	/* The samples wait for the next reading; without one the clock did not advance. */
	if (own->readings.count < 2)
		drop_samples(join, own, samples_until(own, until_ns));
	give_up_waiting(join, own, until_ns, each, context);
}

void clock_join_settle(struct clock_join *join, uint64_t until_ns, clock_join_fn *each,
	void *context)
{
	for (uint32_t i = 0; i < join->threads.count; i++)
		settle_thread(join, &join->threads.items[i], until_ns, each, context);
	if (until_ns != UINT64_MAX)
		join->settled_ns = until_ns;
}

static void thread_done(struct clock_thread *own)
{
	vec_done(&own->readings);
	vec_done(&own->samples);
}

void clock_join_forget(struct clock_join *join, bool (*ended)(void *context, uint64_t thread),
	void *context)
{
	for (uint32_t i = 0; i < join->threads.count;) {
		struct clock_thread *own = &join->threads.items[i];
		struct clock_thread *last = vec_last(&join->threads);
		if (own->readings.count > 1 || own->samples.count || own->kept_ns || own->held_ns ||
			!ended(context, own->thread)) {
			i++;
			continue;
		}
		map_remove(&join->by_thread, own->thread, i + 1);
		if (last != own) {
			map_remove(&join->by_thread, last->thread, join->threads.count);
			/* there is room: two were taken out */
			(void)map_add(&join->by_thread, last->thread, i + 1);
		}
		thread_done(own);
		*own = *last;
		join->threads.count--;
	}
}

static uint32_t move_stack(uint32_t stack, const struct stack_table *from,
	struct stack_table *fresh)
{
	uint32_t count;
	const uint64_t *frames = stack_table_get(from, stack, &count);

	return stack_table_intern(fresh, frames, count);
}

void clock_join_move_stacks(struct clock_join *join, const struct stack_table *from,
	struct stack_table *fresh)
{
	vec_each(own, &join->threads) {
		own->held_stack = move_stack(own->held_stack, from, fresh);
		for (uint32_t s = 0; s < own->samples.count; s++)
			own->samples.items[s].stack =
				move_stack(own->samples.items[s].stack, from, fresh);
	}
}

size_t clock_join_size_bytes(const struct clock_join *join)
{
	size_t size = join->threads.capacity * sizeof(struct clock_thread) +
		      map_size_bytes(&join->by_thread);

	for (uint32_t i = 0; i < join->threads.count; i++)
		size += join->threads.items[i].readings.capacity * sizeof(struct join_reading) +
			join->threads.items[i].samples.capacity * sizeof(struct join_sample);
	return size;
}

void clock_join_done(struct clock_join *join)
{
	for (uint32_t i = 0; i < join->threads.count; i++)
		thread_done(&join->threads.items[i]);
	vec_done(&join->threads);
	vec_done(&join->shares);
	map_done(&join->by_thread);
	*join = (struct clock_join){ 0 };
}
