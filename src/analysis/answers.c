/* See answers.h. */
#include "analysis/answers.h"

#include "analysis/profile.h"
#include "analysis/recording.h"
#include "analysis/runtime_event.h"
#include "trace/activity_event.h"
#include "trace/clr.h"
#include "trace/event.h"
#include "trace/event_count.h"
#include "trace/source_event.h"
#include "trace/trace.h"

#define IS_ASKED 1u

/* The same for events of an EventSource. */
static unsigned takers_of_source(const struct trace *trace, const struct schema *schema)
{
	const char *provider = trace_text(trace, schema->provider);
	enum activity_kind activity = activity_event_of(provider, schema->event_id).kind;

	if (activity == ACTIVITY_AWAIT)
		return 1u << ANSWER_ASYNC;
	if (activity != ACTIVITY_NONE && activity != ACTIVITY_REQUEST)
		return 1u << ANSWER_HTTP;
	switch (source_event_of(provider, schema->event_id, trace_text(trace, schema->name))) {
	case SOURCE_SQL_CLIENT_BEGIN:
	case SOURCE_SQL_CLIENT_END:
	case SOURCE_ADO_NET_BEGIN:
	case SOURCE_ADO_NET_END:
	case SOURCE_SPAN_STOP:
	case SOURCE_LISTENER:
		return 1u << ANSWER_DATABASES;
	case SOURCE_HOSTING_SERVER_READY:
		return 1u << ANSWER_STARTUP;
	case SOURCE_KESTREL_REQUEST_START:
	case SOURCE_KESTREL_REQUEST_STOP:
	case SOURCE_HOSTING_REQUEST_START:
	case SOURCE_HOSTING_REQUEST_STOP:
		return 1u << ANSWER_REQUESTS | 1u << ANSWER_STARTUP;
	default:
		return 0;
	}
}

/* The analyses that take events of this schema: a set of 1 << enum answer. */
static unsigned takers_of(const struct answers *answers, const struct schema *schema)
{
	if (schema->provider_kind == PROVIDER_SAMPLE)
		return schema->event_id == CLR_THREAD_SAMPLE && !answers->for_summary
			       ? 1u << ANSWER_POOL
			       : 0;
	if (schema->kind == EVENT_SAMPLE)
		return answers->for_summary ? 1u << ANSWER_STARTUP
					    : 1u << ANSWER_STARTUP | 1u << ANSWER_GC;
	if (schema->provider_kind == PROVIDER_SPOOR && schema->event_id == ID_SPOOR_START_STEP)
		return 1u << ANSWER_STARTUP;
	if (schema->provider_kind == PROVIDER_SPOOR && schema->event_id == ID_SPOOR_EVENT_GAP)
		return 1u << ANSWER_ALLOC;
	if (schema->provider_kind == PROVIDER_SPOOR && schema->event_id == ID_SPOOR_IO_CALLS)
		return 1u << ANSWER_IO;
	if (schema->kind == EVENT_SWITCH)
		return 1u << ANSWER_THREAD_TIME | 1u << ANSWER_OFF_CPU | 1u << ANSWER_LOCKS |
		       1u << ANSWER_WAITS;
	if (schema->kind == EVENT_WAKEUP)
		return 1u << ANSWER_OFF_CPU;
	if (schema->provider_kind == PROVIDER_SPOOR && schema->event_id == ID_SPOOR_THREAD_TIME)
		return 1u << ANSWER_THREAD_TIME;
	if (schema->provider_kind != PROVIDER_CLR)
		return takers_of_source(answers->trace, schema);
	switch (schema->event_id) {
	case CLR_ID_GCStart:
	case CLR_ID_GCEnd:
	case CLR_ID_GCHeapStats:
	case CLR_ID_GCSuspendEEBegin:
	case CLR_ID_GCSuspendEEEnd:
	case CLR_ID_GCRestartEEEnd:
	case CLR_ID_GCTriggered:
	case CLR_ID_GCPerHeapHistory_V3:
		return 1u << ANSWER_GC;
	case CLR_ID_ExceptionThrown:
		return 1u << ANSWER_EXCEPTIONS;
	case CLR_ID_GCAllocationTick:
	case CLR_ID_AllocationSampled:
		return 1u << ANSWER_ALLOC;
	case CLR_ID_ContentionStart_V1:
	case CLR_ID_ContentionStop:
		return 1u << ANSWER_LOCKS;
	case CLR_ID_WaitHandleWaitStart:
	case CLR_ID_WaitHandleWaitStop:
		return 1u << ANSWER_WAITS;
	case CLR_ID_ThreadPoolWorkerThreadStart:
	case CLR_ID_ThreadPoolWorkerThreadStop:
	case CLR_ID_ThreadPoolWorkerThreadWait:
	case CLR_ID_ThreadPoolWorkerThreadAdjustmentAdjustment:
	case CLR_ID_ThreadPoolMinMaxThreads:
	case CLR_ID_ThreadPoolEnqueue:
	case CLR_ID_ThreadPoolDequeue:
		return 1u << ANSWER_POOL;
	case CLR_ID_MethodJittingStarted:
	case CLR_ID_MethodLoadVerbose:
		return 1u << ANSWER_JIT | 1u << ANSWER_STARTUP;
	case CLR_ID_RuntimeInformationStart:
	case CLR_ID_R2RGetEntryPoint:
	case CLR_ID_AssemblyLoadStart:
	case CLR_ID_AssemblyLoad:
		return 1u << ANSWER_STARTUP;
	default:
		return 0;
	}
}

/* An event that a thread that waits does not write. */
#define RUNS (1u << ANSWER_COUNT)
/* EventCount: the analyses that take it are those of the events it counts. */
#define COUNTS (1u << (ANSWER_COUNT + 1))

#define ACTIVITIES (1u << ANSWER_REQUESTS | 1u << ANSWER_HTTP | 1u << ANSWER_ASYNC)

static unsigned wanted_of(const struct answers *answers, uint32_t schema_index)
{
	const unsigned waits = 1u << ANSWER_LOCKS | 1u << ANSWER_WAITS;
	const unsigned runs = 1u << ANSWER_EXCEPTIONS | 1u << ANSWER_ALLOC | 1u << ANSWER_JIT;
	const struct schema *schema = &answers->trace->schemas.items[schema_index];
	if (schema->provider_kind == PROVIDER_SPOOR && schema->event_id == ID_SPOOR_EVENT_COUNT)
		return COUNTS;
	unsigned takers = takers_of(answers, schema);
	unsigned wanted = takers & answers->wanted;

	return takers & runs && answers->wanted & waits ? wanted | RUNS : wanted;
}

/* 0 as well when there is no memory: such an event is asked about again. */
static unsigned wanted_by(struct answers *answers, uint32_t schema_index)
{
	while (answers->by_schema.count <= schema_index)
		if (!vec_add(&answers->by_schema, 0))
			return 0;
	uint32_t *known = &answers->by_schema.items[schema_index];

	if (!*known)
		*known = IS_ASKED | wanted_of(answers, schema_index) << 1;
	return *known >> 1;
}

bool answers_ignore(const struct answers *answers, uint32_t schema_index)
{
	return schema_index < answers->by_schema.count &&
	       answers->by_schema.items[schema_index] == IS_ASKED;
}

static uint64_t since(uint64_t begin_ns, uint64_t time_ns)
{
	return time_ns > begin_ns ? time_ns - begin_ns : 0;
}

static bool has_thread(const struct profile_filter *filter, uint32_t tid)
{
	bool found = !filter->tids.count;

	for (uint32_t i = 0; i < filter->tids.count && !found; i++)
		found = filter->tids.items[i] == tid;
	return found;
}

static int pass_wait(struct waits *waits, const struct runtime_event *event)
{
	return event->event->kind == EVENT_SWITCH ? waits_switch(waits, event)
						  : waits_event(waits, event);
}

static int pass_collection(struct answers *answers, const struct runtime_event *event)
{
	int error = collector_cpu_event(&answers->collector_cpu, event, answers->trace);

	if (error || event->schema->kind == EVENT_SAMPLE)
		return error;
	return event->schema->event_id == CLR_ID_GCTriggered
		       ? collections_trigger(&answers->collections, event)
		       : collections_event(&answers->collections, event->event);
}

static int pass(struct answers *answers, enum answer answer, const struct runtime_event *event)
{
	switch (answer) {
	case ANSWER_GC:
		return pass_collection(answers, event);
	case ANSWER_EXCEPTIONS:
		return exceptions_event(&answers->exceptions, event);
	case ANSWER_ALLOC:
		return allocations_event(&answers->allocations, event);
	case ANSWER_LOCKS:
		return pass_wait(&answers->locks, event);
	case ANSWER_WAITS:
		return pass_wait(&answers->handles, event);
	case ANSWER_POOL:
		return thread_pool_event(&answers->thread_pool, event);
	case ANSWER_JIT:
		return compilations_event(&answers->compilations, event, answers->trace);
	case ANSWER_THREAD_TIME:
		return thread_time_event(&answers->thread_time, event);
	case ANSWER_OFF_CPU:
		return blocks_event(&answers->blocks, event);
	case ANSWER_REQUESTS:
		return requests_event(&answers->requests, event, answers->trace);
	case ANSWER_HTTP:
		return calls_event(&answers->calls, event, answers->trace);
	case ANSWER_ASYNC:
		return awaits_event(&answers->awaits, event);
	case ANSWER_DATABASES:
		return databases_event(&answers->databases, event, answers->trace);
	case ANSWER_STARTUP:
		return startup_event(&answers->startup, event, answers->trace);
	case ANSWER_IO:
		return io_calls_event(&answers->io_calls, event);
	case ANSWER_COUNT:
		break;
	}
	return 0;
}

int answers_event(struct answers *answers, const struct event *event)
{
	const struct trace *trace = answers->trace;
	const struct profile_filter *filter = answers->filter;
	struct event unwritten;
	struct event_counted counted = { .count = 1 };

	if (!answers->begin_ns) {
		answers->begin_ns =
			trace->recording.sync_ns ? trace->recording.sync_ns : event->time_ns;
		answers->collections.trace = answers->stacks.trace = trace;
		answers->activity_spans.trace = trace;
	}
	if (event->schema_index >= trace->schemas.count || !event->thread_index ||
		event->thread_index >= trace->threads.count)
		return 0;
	unsigned takers = wanted_by(answers, event->schema_index);
	bool is_counted = takers == COUNTS && event_count_read(trace, event, &unwritten, &counted);
	if (is_counted) {
		event = &unwritten;
		takers = wanted_by(answers, event->schema_index);
	}
	if (!takers || takers == COUNTS)
		return 0;

	const struct thread *thread = &trace->threads.items[event->thread_index];
	uint64_t at_ns = since(answers->begin_ns, event->time_ns);
	const struct runtime_event runtime_event = { .event = event,
		.count = counted.count,
		.count_ns =
			at_ns - (is_counted ? since(answers->begin_ns, counted.first_ns) : at_ns),
		.is_counted = is_counted,
		.is_unseen = counted.unseen,
		.is_estimated = counted.estimated,
		.schema = &trace->schemas.items[event->schema_index],
		.stacks = &answers->stacks,
		.payload = cursor_of(event->payload, event->payload_size),
		.at_ns = at_ns,
		.from_ns = filter->from_ns,
		.to_ns = filter->to_ns,
		.process = thread->process,
		.is_of_thread = has_thread(filter, thread->tid),
		.is_selected = at_ns >= filter->from_ns &&
			       (!filter->to_ns || at_ns < filter->to_ns) &&
			       has_thread(filter, thread->tid) };
	int error = 0;

	if (takers & RUNS) {
		waits_ran(&answers->locks, event->thread_index, at_ns);
		waits_ran(&answers->handles, event->thread_index, at_ns);
	}
	if (takers != RUNS && at_ns > answers->last_ns)
		answers->last_ns = at_ns;
	if (takers & ACTIVITIES)
		error = activity_spans_add(&answers->activity_spans, thread->process, at_ns);
	for (unsigned left = takers & ANSWERS_ALL; left && !error; left &= left - 1)
		error = pass(answers, (enum answer)__builtin_ctz(left), &runtime_event);
	return error;
}

int answers_find(struct answers *answers, struct symbolmap *names)
{
	int error = event_stacks_find(&answers->stacks, names);

	return error ? error : compilations_find(&answers->compilations, names);
}

/* Once, when all events have arrived. */
static int settle(struct answers *answers, uint64_t end_ns)
{
	if (answers->is_settled)
		return 0;
	answers->is_settled = true;
	int error = allocations_choose(&answers->allocations);
	if (!error)
		error = waits_settle(&answers->locks, end_ns);
	if (!error)
		error = waits_settle(&answers->handles, end_ns);
	if (!error)
		error = calls_settle(&answers->calls, &answers->activity_spans, end_ns);
	if (!error)
		error = awaits_settle(&answers->awaits, &answers->activity_spans, end_ns);
	if (!error)
		error = databases_settle(&answers->databases, end_ns);
	requests_settle(&answers->requests, &answers->activity_spans, end_ns);
	return error ? error : thread_pool_settle(&answers->thread_pool);
}

static struct tally *tally_of(struct answers *answers, enum answer answer)
{
	switch (answer) {
	case ANSWER_EXCEPTIONS:
		return &answers->exceptions.tally;
	case ANSWER_ALLOC:
		return &answers->allocations.tally;
	case ANSWER_LOCKS:
		return &answers->locks.tally;
	case ANSWER_WAITS:
		return &answers->handles.tally;
	case ANSWER_OFF_CPU:
		return &answers->blocks.blocked;
	case ANSWER_HTTP:
		return &answers->calls.tally;
	case ANSWER_ASYNC:
		return &answers->awaits.tally;
	case ANSWER_DATABASES:
		return &answers->databases.tally;
	case ANSWER_GC:
		return &answers->collections.triggers;
	case ANSWER_THREAD_TIME:
	case ANSWER_STARTUP:
	case ANSWER_POOL:
	case ANSWER_JIT:
	case ANSWER_REQUESTS:
	case ANSWER_IO:
	case ANSWER_COUNT:
		break;
	}
	return NULL;
}

/* Events may come a little after the sampling: of threads that were late. */
static void select_time(struct answers *answers, uint64_t duration_ns)
{
	const struct profile_filter *filter = answers->filter;
	uint64_t begin_ns = answers->trace->recording.sync_ns;
	uint64_t from_ns;
	uint64_t to_ns;
	bool known = recording_sampled(answers->trace, &from_ns, &to_ns);

	answers->from_ns = known ? since(begin_ns, from_ns) : 0;
	answers->to_ns = known ? since(begin_ns, to_ns) : duration_ns;
	if (answers->to_ns < answers->last_ns)
		answers->to_ns = answers->last_ns;
	if (answers->from_ns < filter->from_ns)
		answers->from_ns = filter->from_ns;
	if (filter->to_ns && filter->to_ns < answers->to_ns)
		answers->to_ns = filter->to_ns;
	answers->span_ns = since(answers->from_ns, answers->to_ns);
}

int answers_fill_profile(struct answers *answers, enum answer answer, struct profile *profile)
{
	const struct tally *tally = tally_of(answers, answer);
	int error = settle(answers, answers->last_ns);

	/* a file with gaps says when sampling ended, unless its recorder was killed */
	select_time(answers,
		since(answers->trace->recording.sync_ns, answers->trace->recording.end_ns));
	if (answer == ANSWER_OFF_CPU)
		return error ? error
			     : blocked_profile_fill(&answers->blocks, &answers->stacks,
				       answers->blocked_form, profile);
	for (uint32_t i = 0; tally && i < tally->rows.list.count && !error; i++) {
		const struct tally_row *row = &tally->rows.list.items[i];
		struct profile_stack stack = { .process = row->key.process,
			.weight_ns = answer == ANSWER_ALLOC
					     ? allocations_scaled(&answers->allocations,
						       row->key.process, row->amount,
						       answers->from_ns, answers->to_ns)
					     : row->amount,
			.count = row->count };
		if (row->key.stack) {
			const struct event_stack *known =
				&answers->stacks.items.items[row->key.stack];
			stack.stack = known->stack;
			stack.epoch = known->epoch;
		}
		error = profile_add(profile, &stack);
	}
	return error;
}

int answers_finish(struct answers *answers, const struct profile *profile,
	const struct symbolmap *names, uint64_t duration_ns)
{
	const struct tally_selection selection = {
		.profile = profile, .names = names, .stacks = &answers->stacks
	};

	select_time(answers, duration_ns);
	event_stacks_place(&answers->stacks, names);
	int error = collections_finish(&answers->collections, profile, duration_ns);
	answers->collections.span_ns = answers->span_ns;
	if (!error)
		error = settle(answers, answers->to_ns);
	for (unsigned i = 0; i < ANSWER_COUNT && !error; i++) {
		struct tally *tally = tally_of(answers, (enum answer)i);
		if (tally)
			error = tally_finish(tally, &selection);
	}
	if (!error)
		error = allocations_scale(&answers->allocations, answers->from_ns, answers->to_ns);
	if (!error)
		error = thread_pool_finish(&answers->thread_pool, &selection, answers->to_ns);
	if (!error)
		error = compilations_finish(&answers->compilations, profile);
	const struct thread_time_selection times = { .profile = profile,
		.names = names,
		.blocks = &answers->blocks,
		.begin_ns = answers->begin_ns,
		.from_ns = answers->from_ns,
		.to_ns = answers->to_ns };
	if (!error)
		error = blocks_finish(&answers->blocks, &selection);
	if (!error && answers->wanted & 1u << ANSWER_LOCKS)
		error = waits_add_blocks(&answers->locks, &answers->blocks, WAITS_FOR_LOCKS);
	if (!error && answers->wanted & 1u << ANSWER_WAITS)
		error = waits_add_blocks(&answers->handles, &answers->blocks, WAITS_FOR_OTHERS);
	if (!error)
		error = thread_time_finish(&answers->thread_time, &times);
	const struct startup_selection start = { .profile = profile,
		.names = names,
		.stacks = &answers->stacks,
		.from_ns = answers->filter->from_ns,
		.to_ns = answers->to_ns };
	if (!error)
		error = startup_finish(&answers->startup, &start);
	calls_finish(&answers->calls, profile);
	databases_finish(&answers->databases, profile);
	io_calls_finish(&answers->io_calls, profile);
	if (!error)
		error = requests_finish(&answers->requests, profile);
	return error;
}

void answers_done(struct answers *answers)
{
	event_stacks_done(&answers->stacks);
	collections_done(&answers->collections);
	collector_cpu_done(&answers->collector_cpu);
	exceptions_done(&answers->exceptions);
	allocations_done(&answers->allocations);
	waits_done(&answers->locks);
	waits_done(&answers->handles);
	thread_pool_done(&answers->thread_pool);
	compilations_done(&answers->compilations);
	thread_time_done(&answers->thread_time);
	blocks_done(&answers->blocks);
	requests_done(&answers->requests);
	activity_spans_done(&answers->activity_spans);
	calls_done(&answers->calls);
	awaits_done(&answers->awaits);
	databases_done(&answers->databases);
	startup_done(&answers->startup);
	io_calls_done(&answers->io_calls);
	vec_done(&answers->by_schema);
	*answers = (struct answers){ 0 };
}
