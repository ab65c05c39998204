/* The events of .NET's EventSources that analyses read (source_events.def). Constant data. */
#ifndef SPOOR_TRACE_SOURCE_EVENT_H
#define SPOOR_TRACE_SOURCE_EVENT_H

#include <stdint.h>

enum source_event {
	SOURCE_OTHER, /* it is not in the list */
#define SOURCE_EVENT(event, provider, event_id, name) SOURCE_##event,
#include "trace/source_events.def"
#undef SOURCE_EVENT
	SOURCE_EVENTS
};

/* Their ids; 0: the event is known by its name. */
enum source_event_id {
#define SOURCE_EVENT(event, provider, event_id, name) SOURCE_ID_##event = (event_id),
#include "trace/source_events.def"
#undef SOURCE_EVENT
};

/* SOURCE_OTHER for an event that is not in the list. */
enum source_event source_event_of(const char *provider, uint32_t event_id, const char *name);

#endif
