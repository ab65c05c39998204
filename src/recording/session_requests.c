/* See session_requests.h. */
#include "recording/session_requests.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "dotnet/providers.h"
#include "trace/clr.h"
#include "trace/provider_kind.h"

#define BUFFER_MB             16u /* in the target, taken on demand */
#define LIVE_KEYWORDS         (CLR_KEYWORD_LOADER | CLR_KEYWORD_JIT | CLR_KEYWORD_NGEN)
#define WITHOUT_METHODS_LEVEL 4u /* freed methods, modules */
#define METHODS_LEVEL         5u /* method loads come at no lower one */
#define RUNDOWN_KEYWORDS      (CLR_KEYWORD_LOADER | CLR_KEYWORD_JIT)
#define SAMPLE_LEVEL          4u
#define COUNTERS_LEVEL        4u
/* With less than a second the runtime sends the first values immediately, not after that time. */
#define COUNTERS_ARGUMENTS "EventCounterIntervalSec=0.5"

/* Events of level 5 of the runtime's own provider that are not needed for method names. */
static const uint32_t verbose_ids[] = {
	CLR_ID_GCAllocationTick,
	CLR_ID_FinalizeObject,
	CLR_ID_PinObjectAtGCTime,
	CLR_ID_ThreadPoolWorkerThreadAdjustmentStats,
	CLR_ID_ThreadPoolWorkingThreadCount,
	CLR_ID_ThreadPoolEnqueue,
	CLR_ID_ThreadPoolDequeue,
	CLR_ID_ThreadPoolIOEnqueue,
	CLR_ID_ThreadPoolIODequeue,
	CLR_ID_ThreadPoolIOPack,
	CLR_ID_MethodJittingStarted,
	CLR_ID_MethodJitMemoryAllocatedForCode,
	CLR_ID_MethodILToNativeMap,
	CLR_ID_GCJoin_V2,
};

/* The level of the runtime's own provider: for methods, and at least that of the caller. */
static uint32_t live_level(const struct session_requests *requests)
{
	uint32_t level = requests->wishes.without_methods ? WITHOUT_METHODS_LEVEL : METHODS_LEVEL;

	for (uint32_t i = 0; i < requests->wishes.provider_count; i++)
		if (requests->wishes.providers[i].level > level &&
			strcmp(requests->wishes.providers[i].name, PROVIDER_CLR_NAME) == 0)
			level = requests->wishes.providers[i].level;
	return level;
}

/* Further keywords of the sessions that report methods. */
static uint64_t line_keywords(const struct session_requests *requests)
{
	return requests->wishes.lines ? CLR_KEYWORD_IL_MAP : 0;
}

static bool is_denied(const struct session_requests *requests, uint32_t count, uint32_t id)
{
	for (uint32_t i = 0; i < count; i++)
		if (requests->denied[i] == id)
			return true;
	return false;
}

struct stack_events session_requests_stacked(const struct session_requests *requests)
{
	unsigned without = (requests->wishes.exceptions ? STACKS_OF_EXCEPTIONS : 0u) |
			   (requests->wishes.allocations ? STACKS_OF_ALLOCATIONS : 0u);

	return (struct stack_events){ .kinds = requests->wishes.stack_kinds & ~without,
		.since_10 = requests->collect_command == IPC_COLLECT_TRACING_5 };
}

/* Fills requests->denied with the runtime's event ids that are not wanted; their number. */
static uint32_t denied_ids(struct session_requests *requests, const struct ipc_provider *wanted)
{
	const struct stack_events stacked = session_requests_stacked(requests);
	uint32_t count = stack_events_ids(&stacked, requests->denied);

	if (wanted->level < METHODS_LEVEL && live_level(requests) >= METHODS_LEVEL)
		for (uint32_t i = 0; i < sizeof(verbose_ids) / sizeof(verbose_ids[0]); i++)
			if (!is_denied(requests, count, verbose_ids[i]) &&
				!(requests->wishes.lines &&
					verbose_ids[i] == CLR_ID_MethodILToNativeMap))
				requests->denied[count++] = verbose_ids[i];
	for (uint32_t i = 0;
		!wanted->only_event_ids && i < wanted->event_id_count && count < SESSION_DENIED_MAX;
		i++)
		/* .NET 10 sends nothing of a provider whose filter has an id twice */
		if (!is_denied(requests, count, wanted->event_ids[i]))
			requests->denied[count++] = wanted->event_ids[i];
	return count;
}

/* The live session's providers, with one entry for the runtime's own; their number. */
static uint32_t live_providers(struct session_requests *requests,
	struct ipc_provider providers[SESSION_PROVIDERS_MAX])
{
	uint32_t count = 1;

	providers[0] = (struct ipc_provider){ .name = PROVIDER_CLR_NAME,
		.keywords = LIVE_KEYWORDS | line_keywords(requests),
		.level = live_level(requests) };
	for (uint32_t i = 0; i < requests->wishes.provider_count; i++) {
		const struct ipc_provider *wanted = &requests->wishes.providers[i];
		if (strcmp(wanted->name, PROVIDER_CLR_NAME) != 0) {
			if (count < SESSION_PROVIDERS_MAX)
				providers[count++] = *wanted;
			continue;
		}
		providers[0].keywords |=
			wanted->keywords &
			~(requests->wishes.exceptions ? CLR_KEYWORD_MONITORING : UINT64_C(0));
		providers[0].arguments = wanted->arguments;
		providers[0].event_ids = requests->denied;
		providers[0].event_id_count = denied_ids(requests, wanted);
	}
	return count;
}

/*
 * The provider of a session for certain events; a runtime before .NET 10 cannot filter them. `ids` is
 * borrowed.
 */
static struct ipc_provider provider_of(const struct stack_events *events,
	uint32_t ids[STACK_EVENTS_MAX])
{
	struct ipc_provider provider = stack_events_provider(events);

	if (!events->since_10)
		return provider;
	provider.event_ids = ids;
	provider.event_id_count = stack_events_ids(events, ids);
	provider.only_event_ids = true;
	return provider;
}

static struct stack_events events_of(const struct session_requests *requests, unsigned kinds)
{
	return (struct stack_events){ .kinds = kinds,
		.since_10 = requests->collect_command == IPC_COLLECT_TRACING_5 };
}

static void stacked_provider(struct session_requests *requests)
{
	const struct stack_events events = session_requests_stacked(requests);

	requests->stacked = provider_of(&events, requests->stacked_ids);
}

static void thrown_provider(struct session_requests *requests)
{
	const struct stack_events events = events_of(requests, STACKS_OF_EXCEPTIONS);

	requests->thrown = provider_of(&events, requests->thrown_ids);
}

static void allocated_provider(struct session_requests *requests)
{
	const struct stack_events events = events_of(requests, STACKS_OF_ALLOCATIONS);

	requests->allocated = provider_of(&events, requests->allocated_ids);
}

static bool has_thrown_stacks(const struct session_requests *requests)
{
	return requests->wishes.stack_kinds & STACKS_OF_EXCEPTIONS;
}

void session_requests_describe(struct session_requests *requests, enum dotnet_stream stream,
	enum ipc_command sent, struct bytes *text)
{
	bool stacked = sent == IPC_COLLECT_TRACING_2 || stream == DOTNET_STREAM_SAMPLES ||
		       stream == DOTNET_STREAM_STACKS || stream == DOTNET_STREAM_ACTIVITIES ||
		       stream == DOTNET_STREAM_ALLOCATIONS ||
		       (stream == DOTNET_STREAM_EXCEPTIONS && has_thrown_stacks(requests));
	const char *stacks = stacked ? "with stacks" : "no stacks";
	uint32_t live_count = live_providers(requests, requests->live);

	if (stream == DOTNET_STREAM_RUNDOWN)
		bytes_printf(text, "rundown 0x%x",
			(unsigned)(RUNDOWN_KEYWORDS | line_keywords(requests)));
	if (stream == DOTNET_STREAM_SAMPLES)
		bytes_printf(text, "samples %s:0x0:%u", PROVIDER_SAMPLE_NAME, SAMPLE_LEVEL);
	if (stream == DOTNET_STREAM_STACKS)
		bytes_printf(text, "events %s:0x%" PRIx64 ":%" PRIu32, requests->stacked.name,
			requests->stacked.keywords, requests->stacked.level);
	if (stream == DOTNET_STREAM_ACTIVITIES)
		bytes_text(text, "activities");
	if (stream == DOTNET_STREAM_EXCEPTIONS)
		bytes_printf(text, "exceptions %s:0x%" PRIx64 ":%" PRIu32, requests->thrown.name,
			requests->thrown.keywords, requests->thrown.level);
	if (stream == DOTNET_STREAM_ALLOCATIONS)
		bytes_printf(text, "allocations %s:0x%" PRIx64 ":%" PRIu32,
			requests->allocated.name, requests->allocated.keywords,
			requests->allocated.level);
	if (stream == DOTNET_STREAM_SETTLE)
		bytes_text(text, "settle");
	if (stream == DOTNET_STREAM_COUNTS)
		bytes_text(text, "counters " PROVIDER_SYSTEM_RUNTIME_NAME);
	if (stream == DOTNET_STREAM_METHODS)
		bytes_printf(text, "methods %s:0x%x:%u", PROVIDER_CLR_NAME,
			(unsigned)(LIVE_KEYWORDS | line_keywords(requests)), METHODS_LEVEL);
	for (uint32_t i = 0; stream == DOTNET_STREAM_LIVE && i < live_count; i++)
		bytes_printf(text, "%s%s:0x%" PRIx64 ":%" PRIu32, i ? ", " : "live ",
			requests->live[i].name, requests->live[i].keywords,
			requests->live[i].level);
	if (stream == DOTNET_STREAM_LIVE && requests->wishes.from_start)
		bytes_printf(text, ", from the start, rundown 0x%x at its end",
			(unsigned)(RUNDOWN_KEYWORDS | line_keywords(requests)));
	bytes_printf(text, ", %u MB, %s", BUFFER_MB, stacks);
}

struct eventpipe_options session_requests_options(struct session_requests *requests,
	enum dotnet_stream stream)
{
	/* A session needs a provider; this one sends almost nothing. */
	static const struct ipc_provider quiet = {
		.name = PROVIDER_EVENTPIPE_NAME,
		.level = 1,
	};
	static const struct ipc_provider settling = {
		.name = PROVIDER_CLR_NAME,
		.keywords = CLR_KEYWORD_LOADER,
		.level = 1,
	};
	static const struct ipc_provider counters = {
		.name = PROVIDER_SYSTEM_RUNTIME_NAME,
		.level = COUNTERS_LEVEL,
		.arguments = COUNTERS_ARGUMENTS,
	};
	static const struct ipc_provider sampler = {
		.name = PROVIDER_SAMPLE_NAME,
		.level = SAMPLE_LEVEL,
	};
	static const struct ipc_provider methods = {
		.name = PROVIDER_CLR_NAME,
		.keywords = LIVE_KEYWORDS,
		.level = METHODS_LEVEL,
	};
	static const struct ipc_provider methods_and_lines = {
		.name = PROVIDER_CLR_NAME,
		.keywords = LIVE_KEYWORDS | CLR_KEYWORD_IL_MAP,
		.level = METHODS_LEVEL,
	};
	uint64_t rundown_keywords = RUNDOWN_KEYWORDS | line_keywords(requests);
	struct eventpipe_options options = {
		.provider_count = 1,
		.buffer_mb = BUFFER_MB,
		.no_stacks = true,
		.no_info = true,
		.filters_optional = true,
		.collect_command = requests->collect_command,
	};

	switch (stream) {
	case DOTNET_STREAM_LIVE:
		options.no_info = false;
		options.strict_info = true;
		options.providers = requests->live;
		options.provider_count = live_providers(requests, requests->live);
		options.rundown_keywords = requests->wishes.from_start ? rundown_keywords : 0;
		break;
	case DOTNET_STREAM_STACKS:
		stacked_provider(requests);
		options.providers = &requests->stacked;
		options.no_stacks = false;
		break;
	case DOTNET_STREAM_ACTIVITIES:
		activity_providers(&requests->activity,
			requests->collect_command == IPC_COLLECT_TRACING_5);
		options.providers = requests->activity.providers;
		options.provider_count = ACTIVITY_PROVIDERS;
		options.no_stacks = false;
		break;
	case DOTNET_STREAM_EXCEPTIONS:
		thrown_provider(requests);
		options.providers = &requests->thrown;
		options.no_stacks = !has_thrown_stacks(requests);
		break;
	case DOTNET_STREAM_ALLOCATIONS:
		allocated_provider(requests);
		options.providers = &requests->allocated;
		options.no_stacks = false;
		break;
	case DOTNET_STREAM_COUNTS:
		options.providers = &counters;
		break;
	case DOTNET_STREAM_SAMPLES:
		options.providers = &sampler;
		options.no_stacks = false;
		break;
	case DOTNET_STREAM_RUNDOWN:
		options.providers = &quiet;
		options.rundown_keywords = rundown_keywords;
		options.stop_at_once = true;
		break;
	case DOTNET_STREAM_METHODS:
		options.providers = requests->wishes.lines ? &methods_and_lines : &methods;
		break;
	case DOTNET_STREAM_SETTLE:
		options.providers = &settling;
		options.stop_at_once = true;
		break;
	case DOTNET_STREAM_COUNT:
		assert(false);
	}
	return options;
}
