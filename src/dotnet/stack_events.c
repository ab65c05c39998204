/* See stack_events.h. */
#include "dotnet/stack_events.h"

#include "dotnet/ipc.h"
#include "trace/clr_event.h"
#include "trace/provider_kind.h"

enum runtimes { ANY_RUNTIME, BEFORE_10, SINCE_10 };

static const struct stack_event_row {
	unsigned kind;
	uint32_t event_id;
	uint64_t keywords;
	uint32_t level;
	enum runtimes runtimes;
} rows[] = {
#define STACK_EVENT(kind, symbol, keywords, level, runtimes) \
	{ kind, CLR_ID_##symbol, UINT64_C(keywords), level, runtimes },
#include "dotnet/stack_events.def"
};

#define ROW_COUNT (sizeof(rows) / sizeof(rows[0]))

_Static_assert(ROW_COUNT <= STACK_EVENTS_MAX, "callers have room for all of them");

static bool is_requested(const struct stack_events *events, const struct stack_event_row *row)
{
	return events->kinds & row->kind &&
	       row->runtimes != (events->since_10 ? BEFORE_10 : SINCE_10);
}

uint32_t stack_events_ids(const struct stack_events *events, uint32_t ids[STACK_EVENTS_MAX])
{
	uint32_t count = 0;

	for (unsigned i = 0; i < ROW_COUNT; i++)
		if (is_requested(events, &rows[i]))
			ids[count++] = rows[i].event_id;
	return count;
}

struct ipc_provider stack_events_provider(const struct stack_events *events)
{
	struct ipc_provider provider = { .name = PROVIDER_CLR_NAME };

	for (unsigned i = 0; i < ROW_COUNT; i++) {
		if (!is_requested(events, &rows[i]))
			continue;
		provider.keywords |= rows[i].keywords;
		if (rows[i].level > provider.level)
			provider.level = rows[i].level;
	}
	return provider;
}

bool stack_events_has(const struct stack_events *events, uint32_t event_id)
{
	for (unsigned i = 0; i < ROW_COUNT; i++)
		if (rows[i].event_id == event_id && is_requested(events, &rows[i]))
			return true;
	return false;
}
