/* See observation_events.h. */
#include "diagnose/observation_events.h"

#include <errno.h>

#include "analysis/profile.h"
#include "diagnose/facts.h"
#include "diagnose/process_growth.h"
#include "trace/event.h"
#include "trace/spoor_payload.h"
#include "trace/trace.h"

/* Of one process, in a file of another writer; `spoor diagnose` writes 5 readings and 3 observations. */
#define USES_MAX    256u
#define LOOKS_MAX   64u
#define STACKS_MAX  20000u /* of a look */
#define THREADS_MAX 50000u /* of all observations */

/* What an event is, by its schema; asked once. */
enum thread_interest { LOOK_UNASKED, LOOK_NONE, LOOK_GAUGE, LOOK_OBSERVED };

static bool is_selected(const struct observation_events *observations, uint64_t time_ns)
{
	const struct profile_filter *filter = observations->filter;
	uint64_t begin_ns = observations->trace->recording.sync_ns;
	uint64_t at_ns = time_ns > begin_ns ? time_ns - begin_ns : 0;

	return at_ns >= filter->from_ns && (!filter->to_ns || at_ns < filter->to_ns);
}

static struct observed_process *find(const struct observation_events *observations,
	uint32_t process)
{
	uint32_t at = map_get(&observations->by_process, process);

	return at ? &observations->processes.items[at - 1] : NULL;
}

/* NULL: no memory. */
static struct observed_process *add(struct observation_events *observations, uint32_t process)
{
	struct observed_process *row = find(observations, process);

	if (row || !(row = vec_push(&observations->processes)))
		return row;
	row->process = process;
	if (!map_put(&observations->by_process, process, observations->processes.count)) {
		observations->processes.count--;
		return NULL;
	}
	return row;
}

static int take_use(struct observation_events *observations, uint32_t process,
	const struct event *event)
{
	struct payload_process_use use;

	if (payload_read_process_use(event->payload, event->payload_size, NULL, &use) < 0 ||
		!is_selected(observations, use.time_ns))
		return 0;
	struct observed_process *row = add(observations, process);
	if (!row)
		return -ENOMEM;
	const struct process_use copy = { .time_ns = use.time_ns,
		.cpu_ns = use.cpu_ns,
		.wait_ns = use.wait_ns,
		.private_bytes = use.known & PROCESS_USE_MEMORY ? use.private_bytes : 0,
		.descriptors = use.descriptors,
		.write_calls = use.write_calls,
		.written_bytes = use.written_bytes,
		.has_wait = (use.known & PROCESS_USE_TIMES) != 0,
		.has_descriptors = (use.known & PROCESS_USE_DESCRIPTORS) != 0,
		.has_writes = (use.known & PROCESS_USE_WRITES) != 0 };
	/* In the order of their times, as process_growth_gather() expects them. */
	if (row->uses.count == USES_MAX ||
		(row->uses.count && vec_last(&row->uses)->time_ns >= use.time_ns))
		return 0;
	return vec_add(&row->uses, copy) ? 0 : -ENOMEM;
}

static int take_observation(struct observation_events *observations, uint32_t process,
	const struct event *event)
{
	struct payload_stack_look look;

	if (payload_read_stack_look(event->payload, event->payload_size, NULL, &look) < 0)
		return 0;
	struct observed_process *row = add(observations, process);
	if (!row)
		return -ENOMEM;
	row->look = 0; /* what follows of a look that is not selected is ignored */
	vec_reset(&row->frames);
	vec_reset(&row->stacks);
	map_done(&row->by_number);
	row->by_number = (struct map){ 0 };
	if (row->observations.count < LOOKS_MAX && is_selected(observations, look.time_ns)) {
		row->look = look.look;
		row->observations.count++;
	}
	return 0;
}

static int take_stack(struct observation_events *observations, uint32_t process,
	const struct event *event)
{
	const char *frames[PAYLOAD_LOOK_FRAMES_MAX];
	struct payload_look_stack stack;
	struct observed_process *row = find(observations, process);

	if (payload_read_look_stack(event->payload, event->payload_size, &observations->texts,
		    frames, &stack) < 0 ||
		!row || !row->look || stack.look != row->look || row->stacks.count == STACKS_MAX)
		return 0;
	const struct observed_stack copy = { .frame_at = row->frames.count,
		.frame_count = (uint32_t)stack.frame_count };
	for (uint32_t i = 0; i < copy.frame_count; i++) {
		const struct observed_frame frame = { .name = facts_add_method(observations->facts,
							      frames[i]),
			.own = stack.own == i + 1 };
		if (!vec_add(&row->frames, frame))
			return -ENOMEM;
	}
	return vec_add(&row->stacks, copy) &&
			       map_put(&row->by_number, stack.stack, row->stacks.count)
		       ? 0
		       : -ENOMEM;
}

static int take_thread(struct observation_events *observations, uint32_t process,
	const struct event *event)
{
	struct payload_look_thread thread;
	struct observed_process *row = find(observations, process);

	if (payload_read_look_thread(event->payload, event->payload_size, &observations->texts,
		    &thread) < 0 ||
		!row || !row->look || thread.look != row->look ||
		row->observations.threads.count == THREADS_MAX)
		return 0;
	struct strtab *texts = &observations->facts->texts;
	const struct observed_thread copy = { .tid = (uint32_t)thread.tid,
		.waits_for = strtab_add_z(texts, thread.waits_for),
		.lock_owner = (uint32_t)thread.lock_owner,
		.cpu_ns = thread.cpu_ns,
		.is_worker = (thread.flags & LOOK_THREAD_WORKER) != 0,
		.is_finalizer = (thread.flags & LOOK_THREAD_FINALIZER) != 0,
		.is_idle = (thread.flags & LOOK_THREAD_IDLE) != 0,
		.waits_for_lock = (thread.flags & LOOK_THREAD_AT_LOCK) != 0,
		.waits_for_task = (thread.flags & LOOK_THREAD_AT_TASK) != 0,
		.io = *thread.io ? facts_add_method(observations->facts, thread.io) : 0 };
	if (!observed_thread_add(&row->observations, &copy))
		return -ENOMEM;
	uint32_t at = thread.stack ? map_get(&row->by_number, thread.stack) : 0;
	if (!at)
		return 0;
	const struct observed_stack *stack = &row->stacks.items[at - 1];
	for (uint32_t i = 0; i < stack->frame_count; i++)
		if (!observed_frame_add(&row->observations, row->frames.items[stack->frame_at + i]))
			return -ENOMEM;
	return 0;
}

static enum thread_interest interest_of(const struct trace *trace, const struct schema *schema)
{
	if (schema->provider_kind != PROVIDER_SPOOR)
		return runtime_gauges_takes(trace, schema) ? LOOK_GAUGE : LOOK_NONE;
	return schema->event_id >= ID_SPOOR_PROCESS_USE && schema->event_id <= ID_SPOOR_LOOK_THREAD
		       ? LOOK_OBSERVED
		       : LOOK_NONE;
}

/* LOOK_UNASKED: no memory. */
static enum thread_interest ask(struct observation_events *observations, uint32_t schema)
{
	while (observations->by_schema.count <= schema)
		if (!vec_add(&observations->by_schema, LOOK_UNASKED))
			return LOOK_UNASKED;
	uint8_t *known = &observations->by_schema.items[schema];
	if (*known == LOOK_UNASKED)
		*known = (uint8_t)interest_of(observations->trace,
			&observations->trace->schemas.items[schema]);
	return *known;
}

static int take_observed(struct observation_events *observations, uint32_t id, uint32_t process,
	const struct event *event)
{
	switch (id) {
	case ID_SPOOR_PROCESS_USE:
		return take_use(observations, process, event);
	case ID_SPOOR_STACK_LOOK:
		return take_observation(observations, process, event);
	case ID_SPOOR_LOOK_STACK:
		return take_stack(observations, process, event);
	default:
		return take_thread(observations, process, event);
	}
}

int observation_events_event(struct observation_events *observations, const struct event *event)
{
	const struct trace *trace = observations->trace;

	observations->gauges.trace = trace;
	if (event->schema_index >= trace->schemas.count || !event->thread_index ||
		event->thread_index >= trace->threads.count)
		return 0;
	switch (ask(observations, event->schema_index)) {
	case LOOK_UNASKED:
		return -ENOMEM;
	case LOOK_NONE:
		return 0;
	case LOOK_GAUGE:
		return is_selected(observations, event->time_ns)
			       ? runtime_gauges_event(&observations->gauges, event)
			       : 0;
	case LOOK_OBSERVED:
		break;
	}
	return take_observed(observations, trace->schemas.items[event->schema_index].event_id,
		trace->threads.items[event->thread_index].process, event);
}

bool observation_events_has(const struct observation_events *observations, uint32_t process)
{
	return find(observations, process) != NULL;
}

void observation_events_mark(const struct observation_events *observations,
	const struct facts *facts)
{
	for (uint32_t i = 0; i < observations->processes.count; i++) {
		uint32_t process = observations->processes.items[i].process;
		struct process_facts *row =
			facts_find(facts, observations->trace->processes.items[process].pid);
		if (row)
			row->observed = true;
	}
}

int observation_events_gather(const struct observation_events *observations, struct facts *facts)
{
	const struct trace *trace = observations->trace;
	int error = 0;

	for (uint32_t i = 0; i < observations->processes.count && !error; i++) {
		const struct observed_process *process = &observations->processes.items[i];
		struct process_facts *row =
			facts_find(facts, trace->processes.items[process->process].pid);
		if (!row)
			continue;
		process_growth_gather(row, process->uses.items, process->uses.count);
		error = stack_observations_gather(facts, row, &process->observations);
	}
	for (uint32_t i = 0; i < observations->gauges.processes.count && !error; i++) {
		const struct process_gauges *gauges = &observations->gauges.processes.items[i];
		struct process_facts *row =
			facts_find(facts, trace->processes.items[gauges->process].pid);
		if (row)
			process_growth_split(row, gauges);
	}
	return error;
}

void observation_events_done(struct observation_events *observations)
{
	for (uint32_t i = 0; i < observations->processes.count; i++) {
		struct observed_process *process = &observations->processes.items[i];
		vec_done(&process->uses);
		stack_observations_done(&process->observations);
		vec_done(&process->frames);
		vec_done(&process->stacks);
		map_done(&process->by_number);
	}
	vec_done(&observations->processes);
	map_done(&observations->by_process);
	runtime_gauges_done(&observations->gauges);
	vec_done(&observations->by_schema);
	strtab_done(&observations->texts);
}
