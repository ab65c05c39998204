/*
 * See profile.h.
 *
 * Invariant after profile_name(): `stacks` is sorted by (process, stack, epoch). Stacks that follow
 * each other share most of their callers, as files hold them sorted from the root, so the shared
 * part is copied instead of named again.
 */
#include "analysis/profile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/thread_role.h"
#include "base/cursor.h"
#include "base/text.h"
#include "trace/clr.h"
#include "trace/event.h"
#include "trace/event_count.h"
#include "trace/method_join.h"
#include "trace/spoor_payload.h"
#include "trace/symbolmap.h"
#include "trace/trace.h"

/* Weight of a sample when neither it nor the recording has one: the unit of this format. */
#define WEIGHT_UNKNOWN_NS 1000000u
/* a thread that was not sampled for longer was not there */
#define THREAD_TIME_MAX_NS UINT64_C(1000000000)
#define SETTLE_NS          UINT64_C(1000000000)
/* beside a thread: the clock of its process's others */
#define THREAD_REST (UINT64_C(1) << 32)

bool profile_filter_is_empty(const struct profile_filter *filter)
{
	return !filter->pids.count && !filter->tids.count && !filter->process_names.count &&
	       !filter->modules.count && !filter->from_ns && !filter->to_ns;
}

static void profile_filter_done(struct profile_filter *filter)
{
	vec_done(&filter->pids);
	vec_done(&filter->tids);
	vec_done(&filter->process_names);
	vec_done(&filter->modules);
}

static bool has_number(const uint32_t *items, uint32_t count, uint32_t number)
{
	for (uint32_t i = 0; i < count; i++)
		if (items[i] == number)
			return true;
	return false;
}

/* Thread and time are known at the sample; process names and modules only at the end. */
static bool is_wanted(const struct profile *profile, const struct event *event)
{
	const struct profile_filter *filter = &profile->filter;
	const struct trace *trace = profile->trace;

	if (filter->tids.count && !has_number(filter->tids.items, filter->tids.count,
					  trace->threads.items[event->thread_index].tid))
		return false;
	if (!filter->from_ns && !filter->to_ns)
		return true;
	uint64_t begin_ns = trace->recording.sync_ns ? trace->recording.sync_ns : profile->first_ns;
	uint64_t since_ns = event->time_ns > begin_ns ? event->time_ns - begin_ns : 0;

	return since_ns >= filter->from_ns && (!filter->to_ns || since_ns < filter->to_ns);
}

static int count_stack(struct profile *profile, const struct profile_stack *stack)
{
	uint64_t hash = hash_u64((uint64_t)stack->process << 32 | stack->stack) + stack->epoch +
			((uint64_t)stack->role << 32);

	for (struct map_walk w = map_find(&profile->index, hash); w.value; map_next(&w)) {
		struct profile_stack *known = &profile->stacks.items[w.value - 1];
		if (known->process == stack->process && known->stack == stack->stack &&
			known->epoch == stack->epoch && known->role == stack->role) {
			known->weight_ns += stack->weight_ns;
			known->count += stack->count;
			known->only_counted += stack->only_counted;
			return 0;
		}
	}
	return vec_add(&profile->stacks, *stack) &&
			       map_add(&profile->index, hash, profile->stacks.count)
		       ? 0
		       : -ENOMEM;
}

static int take_samples(struct profile *profile, const struct event *event, uint64_t weight_ns,
	uint64_t count, bool only_counted)
{
	const struct trace *trace = profile->trace;

	if (!profile->all_count || event->time_ns < profile->first_ns)
		profile->first_ns = event->time_ns;
	if (event->time_ns > profile->last_ns)
		profile->last_ns = event->time_ns;
	profile->all_count += count;
	profile->all_weight_ns += weight_ns;
	if (!is_wanted(profile, event))
		return 0;

	const struct thread *thread = &trace->threads.items[event->thread_index];
	uint32_t process = thread->process;
	const struct profile_stack stack = { .process = process,
		.role = (uint8_t)thread_role_of(trace_text(trace, thread->name)),
		.stack = event->stack_index,
		.epoch = process < trace->processes.count
				 ? trace->processes.items[process].code_epoch
				 : 0,
		.weight_ns = weight_ns,
		.count = count,
		.only_counted = only_counted ? count : 0 };
	return count_stack(profile, &stack);
}

static int take_sample(struct profile *profile, const struct event *event, uint64_t weight_ns)
{
	return take_samples(profile, event, weight_ns, 1, false);
}

int profile_count_events(struct profile *profile, const struct event *event, uint64_t count,
	bool only_counted)
{
	return event->thread_index < profile->trace->threads.count
		       ? take_samples(profile, event, count, count, only_counted)
		       : 0;
}

int profile_add(struct profile *profile, const struct profile_stack *stack)
{
	profile->all_count += stack->count;
	profile->all_weight_ns += stack->weight_ns;
	return count_stack(profile, stack);
}

/* ---- samples of a runtime ---- */

static enum profile_samples what_samples_are(const struct profile *profile)
{
	const struct trace *trace = profile->trace;

	if (trace->recording.session.thread_clocks == SESSION_YES)
		return PROFILE_BY_CLOCKS;
	/* A recording has its own samples, whichever events were requested. */
	return trace->recording.period_ns || profile->all_count || trace->recording.session.sampling
		       ? PROFILE_UNUSED
		       : PROFILE_THREAD_TIME;
}

static int take_latest(struct profile *profile, uint32_t thread,
	const struct profile_latest *latest, uint64_t until_ns)
{
	const struct event event = { .time_ns = latest->time_ns,
		.thread_index = thread,
		.stack_index = latest->stack,
		.kind = EVENT_SAMPLE };
	uint64_t time_ns = until_ns > latest->time_ns ? until_ns - latest->time_ns : 0;

	if (!latest->time_ns)
		return 0;
	return take_sample(profile, &event,
		time_ns < THREAD_TIME_MAX_NS ? time_ns : THREAD_TIME_MAX_NS);
}

static void note_interval(struct profile *profile, uint64_t time_ns)
{
	unsigned power = time_ns ? 63u - (unsigned)__builtin_clzll(time_ns) : 0;
	unsigned quarter = power >= 2 ? (unsigned)(time_ns >> (power - 2)) & 3 : 0;
	struct profile_interval *interval = &profile->intervals[power * 4 + quarter];

	if (!time_ns)
		return;
	interval->sum_ns += time_ns < THREAD_TIME_MAX_NS ? time_ns : THREAD_TIME_MAX_NS;
	interval->count++;
}

/* The mean of the times between samples in the bucket that has the median. */
static uint64_t median_interval(const struct profile *profile)
{
	uint64_t count = 0;
	uint64_t below = 0;

	for (unsigned i = 0; i < PROFILE_INTERVALS; i++)
		count += profile->intervals[i].count;
	for (unsigned i = 0; i < PROFILE_INTERVALS; i++) {
		const struct profile_interval *interval = &profile->intervals[i];
		below += interval->count;
		if (below * 2 > count)
			return interval->sum_ns / interval->count;
	}
	return WEIGHT_UNKNOWN_NS;
}

static int take_thread_time(struct profile *profile, const struct event *event)
{
	while (profile->latest.count <= event->thread_index)
		if (!vec_push(&profile->latest))
			return -ENOMEM;
	struct profile_latest before = profile->latest.items[event->thread_index];

	if (before.time_ns && event->time_ns > before.time_ns)
		note_interval(profile, event->time_ns - before.time_ns);
	profile->latest.items[event->thread_index] =
		(struct profile_latest){ .time_ns = event->time_ns, .stack = event->stack_index };
	return take_latest(profile, event->thread_index, &before, event->time_ns);
}

struct settling {
	struct profile *profile;
	int error;
};

static void on_share(void *context, const struct clock_share *share)
{
	struct settling *settling = context;
	const struct event event = { .time_ns = share->time_ns,
		.thread_index = (uint32_t)share->thread,
		.stack_index = share->stack,
		.kind = EVENT_SAMPLE };

	if (!settling->error)
		settling->error = take_sample(settling->profile, &event, share->cpu_ns);
}

static int settle(struct profile *profile, uint64_t until_ns)
{
	struct settling settling = { .profile = profile };

	clock_join_settle(&profile->join, until_ns, on_share, &settling);
	profile->settled_ns = until_ns;
	return settling.error;
}

static int take_runtime_sample(struct profile *profile, const struct event *event)
{
	struct cursor payload = cursor_of(event->payload, event->payload_size);

	if (profile->samples == PROFILE_UNDECIDED)
		profile->samples = what_samples_are(profile);
	if (profile->samples == PROFILE_THREAD_TIME)
		return take_thread_time(profile, event);
	if (profile->samples != PROFILE_BY_CLOCKS)
		return 0;
	return clock_join_sample(&profile->join, event->thread_index, event->time_ns,
		event->stack_index, cursor_u32(&payload) == CLR_SAMPLE_MANAGED);
}

/* In files, clocks and samples are ordered by time, except for deferred events. */
static int take_clock(struct profile *profile, const struct event *event)
{
	struct payload_thread_clock clock;

	if (payload_read_thread_clock(event->payload, event->payload_size, NULL, &clock) < 0)
		return 0; /* like every malformed event of spoor */
	uint64_t thread = event->thread_index | (clock.rest ? THREAD_REST : 0);
	int error = clock_join_clock(&profile->join, thread, event->time_ns, clock.run_ns);

	if (!error && event->time_ns > profile->settled_ns + 2 * SETTLE_NS)
		error = settle(profile, event->time_ns - SETTLE_NS);
	return error;
}

int profile_event(void *context, const struct event *event)
{
	struct profile *profile = context;
	const struct trace *trace = profile->trace;
	struct event counted;
	struct event_counted times;

	if (profile->ignores_samples && event->kind == EVENT_SAMPLE)
		return 0;
	if (event->kind == EVENT_SAMPLE && event->thread_index < trace->threads.count) {
		uint64_t weight_ns = event->value ? event->value : trace->recording.period_ns;
		return take_sample(profile, event, weight_ns ? weight_ns : WEIGHT_UNKNOWN_NS);
	}
	while (profile->by_schema.count <= event->schema_index)
		if (!vec_add(&profile->by_schema, 0))
			return -ENOMEM;
	profile->by_schema.items[event->schema_index]++;
	const struct schema *schema = event->schema_index < trace->schemas.count
					      ? &trace->schemas.items[event->schema_index]
					      : NULL;
	if (schema && schema->provider_kind == PROVIDER_SPOOR &&
		event_count_read(trace, event, &counted, &times)) {
		/* its schema is one of an earlier event */
		if (counted.schema_index < profile->by_schema.count)
			profile->by_schema.items[counted.schema_index] += times.count;
		profile->counted += times.count;
		return 0;
	}
	if (!schema || profile->ignores_samples || !event->thread_index ||
		event->thread_index >= trace->threads.count)
		return 0;
	if (schema->provider_kind == PROVIDER_SAMPLE && schema->event_id == CLR_THREAD_SAMPLE)
		return take_runtime_sample(profile, event);
	return event->schema_index == trace->known_schemas[SPOOR_THREAD_CLOCK] ||
			       (schema->provider_kind == PROVIDER_SPOOR &&
				       schema->event_id == ID_SPOOR_THREAD_CLOCK)
		       ? take_clock(profile, event)
		       : 0;
}

bool profile_only_counts(const struct profile *profile, uint32_t schema_index)
{
	const struct trace *trace = profile->trace;

	if (schema_index >= trace->schemas.count || schema_index >= profile->by_schema.count)
		return false;
	const struct schema *schema = &trace->schemas.items[schema_index];
	return schema->kind != EVENT_SAMPLE && schema->provider_kind != PROVIDER_SPOOR &&
	       schema->provider_kind != PROVIDER_SAMPLE &&
	       schema_index != trace->known_schemas[SPOOR_THREAD_CLOCK];
}

/* What still waits when the file has been read. */
static int take_rest(struct profile *profile)
{
	int error = settle(profile, UINT64_MAX);

	/*
	 * The last sample of a thread has no successor, so its time is an estimate: the median of
	 * all times between samples.
	 */
	uint64_t time_ns = profile->latest.count ? median_interval(profile) : 0;
	for (uint32_t i = 0; i < profile->latest.count && !error; i++)
		error = take_latest(profile, i, &profile->latest.items[i],
			profile->latest.items[i].time_ns + time_ns);
	clock_join_done(&profile->join);
	vec_done(&profile->latest);
	return error;
}

bool profile_matches_process(const struct trace *trace, const struct process *process,
	const char *pattern)
{
	const char *path = trace_text(trace, process->executable);
	const char *base = strrchr(path, '/');

	return text_glob(pattern, trace_text(trace, process->name)) ||
	       text_glob(pattern, base ? base + 1 : path);
}

bool profile_filter_has_process(const struct profile_filter *filter, const struct trace *trace,
	uint32_t index)
{
	const struct process *process =
		&trace->processes.items[index < trace->processes.count ? index : 0];

	if (filter->pids.count && !has_number(filter->pids.items, filter->pids.count, process->pid))
		return false;
	if (!filter->process_names.count)
		return true;
	for (uint32_t i = 0; i < filter->process_names.count; i++) {
		if (profile_matches_process(trace, process, filter->process_names.items[i]))
			return true;
	}
	return false;
}

bool profile_wants_process(const struct profile *profile, uint32_t index)
{
	return profile_filter_has_process(&profile->filter, profile->trace, index);
}

bool profile_matches_module(const char *module, const char *pattern)
{
	char stem[256];
	size_t len = strlen(module);

	if (text_glob(pattern, module))
		return true;
	if (len <= 4 || len >= sizeof(stem) || !text_ends_with(module, ".dll"))
		return false;
	memcpy(stem, module, len - 4);
	stem[len - 4] = '\0';
	return text_glob(pattern, stem);
}

static bool module_is_wanted(const struct profile_filter *filter, const char *module)
{
	for (uint32_t i = 0; i < filter->modules.count; i++) {
		if (profile_matches_module(module, filter->modules.items[i]))
			return true;
	}
	return false;
}

/* Results of module_is_wanted() by function: 0 not computed yet, 1 yes, 2 no. */
struct module_answers {
	VEC(uint8_t) by_function;
};

static int stack_has_module(const struct profile *profile, const struct symbolmap *names,
	struct module_answers *answers, const struct profile_stack *stack)
{
	while (answers->by_function.count < names->functions.count)
		if (!vec_push(&answers->by_function))
			return -ENOMEM;
	for (uint32_t i = 0; i < stack->frame_count; i++) {
		uint32_t function = profile->functions.items[stack->at + i];
		uint8_t *answer = &answers->by_function.items[function];
		if (!*answer)
			*answer = module_is_wanted(&profile->filter,
					  trace_text(profile->trace,
						  names->functions.items[function].module))
					  ? 1
					  : 2;
		if (*answer == 1)
			return 1;
	}
	return 0;
}

static int compare_stacks(const void *left, const void *right)
{
	const struct profile_stack *a = left;
	const struct profile_stack *b = right;

	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	if (a->stack != b->stack)
		return a->stack < b->stack ? -1 : 1;
	if (a->epoch != b->epoch)
		return a->epoch < b->epoch ? -1 : 1;
	return a->role < b->role ? -1 : a->role > b->role;
}

/* Appends the names of a stack's frames after those of earlier stacks. `previous` may be NULL. */
static int name_frames(struct profile *profile, struct symbolmap *names,
	struct profile_stack *stack, const struct profile_stack *previous)
{
	uint32_t count;
	const uint64_t *frames = stack_table_get(&profile->trace->stacks, stack->stack, &count);
	uint32_t shared = 0;

	stack->at = profile->functions.count;
	stack->frame_count = count;
	if (!count)
		return 0;
	if (!vec_reserve(&profile->functions, count))
		return -ENOMEM;
	uint32_t *functions = profile->functions.items + stack->at;
	if (previous && previous->process == stack->process && previous->epoch == stack->epoch) {
		uint32_t other_count;
		const uint64_t *other =
			stack_table_get(&profile->trace->stacks, previous->stack, &other_count);
		uint32_t most = count < other_count ? count : other_count;
		while (shared < most &&
			frames[count - 1 - shared] == other[other_count - 1 - shared])
			shared++;
		memcpy(functions + count - shared,
			profile->functions.items + previous->at + other_count - shared,
			shared * sizeof(*functions));
	}
	for (uint32_t i = 0; i < count - shared; i++) {
		functions[i] = symbolmap_find(names, stack->process, frames[i], stack->epoch);
		if (!functions[i])
			return -ENOMEM;
	}
	profile->functions.count += count;
	return 0;
}

/* Whether the kernel walked the stacks, by frame pointers, and no runtime. */
static bool by_frame_pointers(const struct profile *profile)
{
	return !profile->ignores_samples && profile->samples != PROFILE_BY_CLOCKS &&
	       profile->samples != PROFILE_THREAD_TIME &&
	       profile->trace->recording.session.sampling != SESSION_THREAD_CLOCKS;
}

/* A replaced method was called once: its lower frame marks the caller that the walk lost. */
static int mark_replaced(struct profile *profile, struct symbolmap *names,
	struct profile_stack *stack)
{
	uint32_t *functions = profile->functions.items + stack->at;
	uint32_t *bodies = profile->bodies.items + stack->at;

	for (uint32_t i = 1; i < stack->frame_count; i++) {
		if (!symbolmap_is_replaced(names, bodies[i - 1], bodies[i]))
			continue;
		uint32_t lost = symbolmap_lost_caller(names);
		if (!lost)
			return -ENOMEM;
		functions[i] = bodies[i] = lost;
	}
	return 0;
}

/* From here on `functions` holds methods; what they were compiled as moves to `bodies`. */
static int join_methods(struct profile *profile, struct symbolmap *names)
{
	uint64_t *weights = calloc((size_t)names->functions.count + 1, sizeof(*weights));
	uint32_t count = profile->functions.count;

	if (!weights || !vec_reserve(&profile->bodies, count)) {
		free(weights);
		return -ENOMEM;
	}
	vec_each(stack, &profile->stacks)
		if (stack->frame_count)
			weights[profile->functions.items[stack->at]] += stack->weight_ns;
	int error = method_join(names, weights);

	for (uint32_t i = 0; i < count && !error; i++) {
		uint32_t *function = &profile->functions.items[i];
		profile->bodies.items[i] = *function;
		*function = names->functions.items[*function].method;
	}
	profile->bodies.count = error ? 0 : count;
	free(weights);
	for (uint32_t i = 0; i < profile->stacks.count && !error && by_frame_pointers(profile); i++)
		error = mark_replaced(profile, names, &profile->stacks.items[i]);
	return error;
}

int profile_name(struct profile *profile, struct symbolmap *names)
{
	struct module_answers answers = { 0 };
	const struct profile_stack *previous = NULL;
	uint32_t kept = 0;
	int error = take_rest(profile);

	map_done(&profile->index); /* counting is over */
	if (profile->stacks.count > 1)
		qsort(profile->stacks.items, profile->stacks.count,
			sizeof(profile->stacks.items[0]), compare_stacks);
	bool wanted = false;
	uint32_t asked = UINT32_MAX; /* the process that `wanted` is about */
	for (uint32_t i = 0; !error && i < profile->stacks.count; i++) {
		struct profile_stack stack = profile->stacks.items[i];
		if (stack.process != asked)
			wanted = profile->ignores_pids ||
				 profile_wants_process(profile, stack.process);
		asked = stack.process;
		if (!wanted)
			continue;
		error = name_frames(profile, names, &stack, previous);
		if (error)
			break;
		if (profile->filter.modules.count) {
			int has = stack_has_module(profile, names, &answers, &stack);
			if (has <= 0) {
				error = has;
				if (error)
					break;
				profile->functions.count = stack.at;
				continue;
			}
		}
		profile->stacks.items[kept] = stack;
		previous = &profile->stacks.items[kept++];
		profile->count += stack.count;
		profile->only_counted += stack.only_counted;
		profile->weight_ns += stack.weight_ns;
		profile->frame_count += stack.count * stack.frame_count;
		uint32_t named = 0;
		uint32_t count;
		const uint64_t *addresses =
			stack_table_get(&profile->trace->stacks, stack.stack, &count);
		for (uint32_t f = 0; f < stack.frame_count; f++)
			named += names->functions.items[profile->functions.items[stack.at + f]]
					 .named &&
				 (f >= count || addresses[f] != STACK_LOST_CALLER);
		profile->named_frame_count += stack.count * named;
	}
	profile->stacks.count = kept;
	vec_done(&answers.by_function);
	return error ? error : join_methods(profile, names);
}

int profile_fold_unnamed(struct profile *profile, struct symbolmap *names)
{
	vec_each(stack, &profile->stacks) {
		uint32_t *functions = profile->functions.items + stack->at;
		uint32_t *bodies = profile->bodies.items + stack->at;
		uint32_t kept = 0;
		for (uint32_t f = 0; f < stack->frame_count; f++) {
			struct function function = names->functions.items[functions[f]];
			bool folds =
				!function.named && function.module && function.kind != FUNCTION_JIT;
			uint32_t index = folds ? symbolmap_unnamed(names, function.module,
							 (enum function_kind)function.kind)
					       : functions[f];
			if (!index)
				return -ENOMEM;
			if (!function.named && kept && functions[kept - 1] == index)
				continue;
			bodies[kept] = folds ? index : bodies[f];
			functions[kept++] = index;
		}
		stack->frame_count = kept;
	}
	return 0;
}

int profile_take_frames(struct profile *profile, struct profile *other, bool completed)
{
	struct profile *dropped = completed ? profile : other;

	vec_done(&dropped->functions);
	vec_done(&dropped->bodies);
	if (!completed)
		return -ENOMEM;
	memcpy(&profile->functions, &other->functions, sizeof(profile->functions));
	memcpy(&profile->bodies, &other->bodies, sizeof(profile->bodies));
	return 0;
}

int profile_add_roles(struct profile *profile, struct symbolmap *names)
{
	struct profile grown = { 0 };
	bool done = true;

	for (uint32_t i = 0; i < profile->stacks.count && done; i++) {
		struct profile_stack *stack = &profile->stacks.items[i];
		const char *text = thread_role_label((enum thread_role)stack->role);
		uint32_t count = stack->frame_count;
		uint32_t label =
			*text && count ? symbolmap_label(names, text, FUNCTION_UNKNOWN) : 0;
		if (*text && count && !label)
			return -ENOMEM;
		done = vec_reserve(&grown.functions, count + 1) &&
		       vec_reserve(&grown.bodies, count + 1);
		for (uint32_t f = 0; f < count && done; f++) {
			(void)vec_add(&grown.functions, profile->functions.items[stack->at + f]);
			(void)vec_add(&grown.bodies, profile->bodies.items[stack->at + f]);
		}
		if (done && label) {
			(void)vec_add(&grown.functions, label); /* reserved */
			(void)vec_add(&grown.bodies, label);
			stack->frame_count++;
		}
		stack->at = grown.functions.count - stack->frame_count;
	}
	return profile_take_frames(profile, &grown, done);
}

void profile_done(struct profile *profile)
{
	vec_done(&profile->stacks);
	vec_done(&profile->functions);
	vec_done(&profile->bodies);
	vec_done(&profile->by_schema);
	vec_done(&profile->latest);
	clock_join_done(&profile->join);
	map_done(&profile->index);
	profile_filter_done(&profile->filter);
	*profile = (struct profile){ 0 };
}
