/* See live_user_events.h. */
#include "recording/live_user_events.h"

#include <errno.h>
#include <string.h>

#include "base/diag.h"
#include "base/poll_set.h"
#include "base/text.h"
#include "perf/perf_record.h"
#include "perf/recorder.h"
#include "pipeline/session_writer.h"
#include "recording/event_patterns.h"
#include "recording/live_options.h"
#include "recording/process_table.h"
#include "trace/trace.h"

#define LOOK_NS \
	UINT64_C(50000000) /* new tracepoints are opened within this and a turn of the session */
#define NAME_ROOM 512u

enum { NOT_ASKED, UNWANTED, WANTED };

int live_user_events_check(const char *const *patterns, bool threads, struct diag *diag)
{
	if (threads && patterns)
		return diag_set(diag, -EINVAL,
			"--user-events records the events of processes, not of single threads (-t)");
	return event_patterns_check(patterns, "--user-events", "events", "EVENT", diag);
}

/* ---- tracepoints ---- */

static void note_refusal(struct live_user_events *events, const char *name, int error,
	const char *text)
{
	events->refused++;
	events->refused_error = error;
	text_set(events->refused_text, "%.60s: %.90s", name, text[0] ? text : strerror(-error));
}

static const char *const *patterns_of(const struct live_user_events *events)
{
	return events->table->options->user_events;
}

static bool wants_tracepoint(const struct live_user_events *events, const char *name)
{
	char provider[NAME_ROOM];
	uint8_t level;
	uint64_t keywords;
	size_t len = header_event_name(name, &level, &keywords);

	/* of a recorder, for the events of .NET processes */
	if (strncmp(name, LIVE_USER_EVENTS_PREFIX, strlen(LIVE_USER_EVENTS_PREFIX)) == 0)
		return false;
	memcpy(provider, name, len);
	provider[len] = '\0';
	return event_patterns_have(patterns_of(events), name, NULL) ||
	       (len && event_patterns_have(patterns_of(events), provider, NULL));
}

/* Opens a tracepoint of this name. `provider`: as in user_event_table_add(). 0 or a negative errno. */
static int open_tracepoint(struct live_user_events *events, const char *group, const char *entry,
	const char *name, const char *provider)
{
	struct tracepoint_format format;
	char text[TRACEPOINT_FORMAT_MAX + 2];
	struct diag diag = { 0 };
	ssize_t size = user_tracepoints_read(&events->tracefs, group, entry, text, sizeof(text));

	if (size == -ENOENT)
		return -ENOENT;
	int result =
		size < 0 ? (int)size : tracepoint_format_parse(text, (size_t)size, &format, &diag);
	if (result == 0)
		result = user_event_table_add(&events->events, name, provider, &format);
	if (result == 0)
		result = recorder_add_tracepoint(events->recorder, format.id);
	if (result < 0 && result != -EEXIST)
		note_refusal(events, name, result, diag.text);
	return result;
}

int live_user_events_add(struct live_user_events *events, const char *name, const char *provider)
{
	return open_tracepoint(events, "user_events", name, name, provider);
}

static void take_tracepoint(void *context, const char *group, const char *entry)
{
	struct live_user_events *events = context;
	char name[NAME_ROOM];
	size_t len = user_tracepoint_name_len(group, entry);
	uint64_t key = hash_bytes(entry, strlen(entry)) ^ hash_bytes(group, strlen(group));

	if (len >= sizeof(name) || map_get(&events->seen, key))
		return;
	memcpy(name, entry, len);
	name[len] = '\0';
	/* One without a description is being registered, or its program has just ended: it is looked at again. */
	if (wants_tracepoint(events, name) &&
		open_tracepoint(events, group, entry, name, NULL) == -ENOENT)
		return;
	(void)map_put(&events->seen, key, 1); /* without memory likewise */
}

int live_user_events_start(struct live_user_events *events, struct process_table *table,
	struct recorder *recorder, struct diag *diag)
{
	if (!live_options_want_user_events(table->options))
		return 0;
	int result = user_tracepoints_open(&events->tracefs, diag);

	if (result < 0)
		return result;
	events->table = table;
	events->recorder = recorder;
	user_event_table_init(&events->events, table->trace);
	live_user_events_look(events, UINT64_MAX);
	return 0;
}

void live_user_events_await(const struct live_user_events *events, struct poll_set *set)
{
	if (events->table)
		poll_set_wake(set, events->looked_ns + LOOK_NS);
}

void live_user_events_look(struct live_user_events *events, uint64_t now_ns)
{
	if (!events->table || now_ns < events->looked_ns + LOOK_NS)
		return;
	events->looked_ns = now_ns == UINT64_MAX ? 0 : now_ns;
	int result = user_tracepoints_list(&events->tracefs, take_tracepoint, events);
	if (result < 0 && !events->refused)
		note_refusal(events, "events/user_events", result, "");
}

/* ---- events ---- */

bool live_user_events_is_hit(const struct live_user_events *events,
	const struct perf_record *record)
{
	return user_event_table_has(&events->events, record->raw, record->raw_size);
}

/* Whether the patterns name the event, which they are asked one time for each schema. */
static bool wants_event(struct live_user_events *events, const struct user_event *event)
{
	const struct trace *trace = events->table->trace;
	const struct schema *schema = &trace->schemas.items[event->schema_index];

	while (events->decided.count <= event->schema_index)
		if (!vec_push(&events->decided))
			return true;
	if (event->is_own)
		return true;
	uint8_t *decided = &events->decided.items[event->schema_index];
	if (*decided == NOT_ASKED) {
		const char *name = trace_text(trace, schema->name);
		bool wanted = event_patterns_have(patterns_of(events),
				      trace_text(trace, event->tracepoint), name) ||
			      event_patterns_have(patterns_of(events),
				      trace_text(trace, schema->provider), name);
		*decided = wanted ? WANTED : UNWANTED;
	}
	return *decided == WANTED;
}

void live_user_events_take(struct live_user_events *events, const struct perf_record *record,
	uint32_t stack_index)
{
	struct user_event event;

	if (!user_event_table_decode(&events->events, record->pid, record->raw, record->raw_size,
		    &event) ||
		!wants_event(events, &event))
		return;
	(void)hits_put(&events->hits, events->table->writer->window, PENDING_USER_EVENT, record,
		stack_index,
		&(struct hit_event){ .schema_index = event.schema_index,
			.payload = event.payload,
			.payload_size = event.payload_size,
			.activity = event.activity }); /* it counts what it cannot take */
}

void live_user_events_write(struct live_user_events *events, const struct pending *item,
	uint64_t late_ns)
{
	(void)hits_write(&events->hits, events->table, item, late_ns); /* likewise */
}

uint64_t live_user_events_lost(const struct live_user_events *events)
{
	return hits_lost(&events->hits) + events->events.malformed + events->events.without_layout;
}

void live_user_events_tell(struct live_user_events *events)
{
	struct session_writer *writer = events->table ? events->table->writer : NULL;
	const struct user_event_table *of = &events->events;

	if (!writer)
		return;
	if (events->refused)
		session_writer_notice(writer, 0, NOTICE_USER_EVENTS, "",
			"%s could not be opened: %s",
			TEXT_THINGS(events->refused, "tracepoint of user_events",
				"tracepoints of user_events"),
			events->refused_text);
	if (!of->tracepoints.count && patterns_of(events))
		session_writer_notice(writer, 0, NOTICE_USER_EVENTS,
			"'ls /sys/kernel/tracing/events/user_events' lists them while their programs run",
			"no program had registered a tracepoint of user_events that --user-events names");
	if (of->malformed)
		session_writer_notice(writer, 0, NOTICE_USER_EVENTS, "", "%s could not be decoded",
			TEXT_THINGS(of->malformed, "event of user_events",
				"events of user_events"));
	if (of->without_layout)
		session_writer_notice(writer, 0, NOTICE_USER_EVENTS, "",
			"%s have no place: programs have described %u events, which is the limit",
			TEXT_THINGS(of->without_layout, "event of user_events",
				"events of user_events"),
			USER_EVENT_LAYOUTS_MAX);
	if (of->undescribed)
		session_writer_notice(writer, 0, NOTICE_USER_EVENTS, "",
			"%s of .NET have no name: the event that describes them was not recorded",
			TEXT_THINGS(of->undescribed, "kind of event", "kinds of events"));
}

void live_user_events_done(struct live_user_events *events)
{
	if (!events->table)
		return;
	user_tracepoints_close(&events->tracefs);
	user_event_table_done(&events->events);
	vec_done(&events->decided);
	map_done(&events->seen);
}
