/* See event_choice.h. */
#include "cli/event_choice.h"

#include <errno.h>

#include "base/text.h"
#include "cli/message.h"
#include "cli/options.h"
#include "render/event_text.h"
#include "trace/event.h"
#include "trace/trace.h"

/* Whether a schema's events are chosen. BY_EVENT: each event's fields decide. */
enum decision { UNDECIDED, CHOSEN, LEFT_OUT, BY_EVENT };

static bool add_patterns(struct event_choice *choice, const struct texts *texts, bool event)
{
	for (uint32_t i = 0; texts && i < texts->list.count; i++) {
		const struct event_pattern pattern = { .near = { .wanted = texts->list.items[i] },
			.event = event };
		if (!vec_add(&choice->patterns, pattern))
			return false;
	}
	return true;
}

int event_choice_init(struct event_choice *choice, const struct trace *trace,
	const struct texts *providers, const struct texts *events)
{
	*choice = (struct event_choice){ .trace = trace, .providers = providers, .events = events };
	return add_patterns(choice, providers, false) && add_patterns(choice, events, true)
		       ? 0
		       : -ENOMEM;
}

static bool fits(const struct texts *patterns, const char *text)
{
	for (uint32_t i = 0; patterns && i < patterns->list.count; i++)
		if (text_glob(patterns->list.items[i], text))
			return true;
	return !patterns || !patterns->list.count;
}

static const char *name_of(struct event_choice *choice, const struct event *event)
{
	bytes_reset(&choice->name);
	event_text_bare_name(&choice->name, choice->trace, event);
	return bytes_z(&choice->name);
}

static const char *provider_of(const struct event_choice *choice, const struct event *event)
{
	return trace_text(choice->trace,
		choice->trace->schemas.items[event->schema_index].provider);
}

/* Offers existing names. Called once a schema, or for each event with its name in the payload. */
static void note_names(struct event_choice *choice, const struct event *event)
{
	const char *provider = provider_of(choice, event);
	const char *event_name = name_of(choice, event);

	for (uint32_t i = 0; i < choice->patterns.count; i++) {
		struct event_pattern *pattern = &choice->patterns.items[i];
		const char *name = pattern->event ? event_name : provider;
		if (pattern->matched)
			continue;
		pattern->matched = text_glob(pattern->near.wanted, name);
		nearest_offer(&pattern->near, name);
	}
}

static enum decision decide(struct event_choice *choice, const struct event *event)
{
	note_names(choice, event);
	if (!fits(choice->providers, provider_of(choice, event)))
		return LEFT_OUT;
	if (!choice->events || !choice->events->list.count)
		return CHOSEN;
	if (event_text_is_dynamic(choice->trace, event))
		return BY_EVENT;
	return fits(choice->events, name_of(choice, event)) ? CHOSEN : LEFT_OUT;
}

bool event_choice_has(struct event_choice *choice, const struct event *event)
{
	while (choice->by_schema.count <= event->schema_index)
		if (!vec_add(&choice->by_schema, UNDECIDED))
			return true; /* one too many is better than one that is missing */
	uint8_t *decision = &choice->by_schema.items[event->schema_index];

	if (*decision == UNDECIDED)
		*decision = (uint8_t)decide(choice, event);
	if (*decision != BY_EVENT)
		return *decision == CHOSEN;
	note_names(choice, event);
	return fits(choice->events, name_of(choice, event));
}

bool event_choice_say_unmatched(const struct event_choice *choice)
{
	bool said = false;

	for (uint32_t i = 0; i < choice->patterns.count; i++) {
		const struct event_pattern *pattern = &choice->patterns.items[i];
		struct bytes names = { 0 };
		if (pattern->matched)
			continue;
		if (nearest_add(&pattern->near, &names))
			message_print("no %s in it is called '%s'; did you mean %s?",
				pattern->event ? "event" : "provider", pattern->near.wanted,
				bytes_z(&names));
		else
			message_print(
				"no %s in it is called '%s'; spoor events --summary lists all",
				pattern->event ? "event" : "provider", pattern->near.wanted);
		said = true;
		bytes_done(&names);
	}
	return said;
}

void event_choice_done(struct event_choice *choice)
{
	vec_done(&choice->patterns);
	vec_done(&choice->by_schema);
	bytes_done(&choice->name);
}
