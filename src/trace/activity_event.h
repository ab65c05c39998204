/* The events of .NET libraries that begin and end activities (activity_events.def). Constant data. */
#ifndef SPOOR_TRACE_ACTIVITY_EVENT_H
#define SPOOR_TRACE_ACTIVITY_EVENT_H

#include <stdint.h>

enum activity_kind {
	ACTIVITY_NONE,
	ACTIVITY_REQUEST, /* that ASP.NET Core serves */
	ACTIVITY_HTTP,    /* a request of HttpClient */
	ACTIVITY_DNS,     /* the lookup of a name */
	ACTIVITY_TLS,     /* a handshake */
	ACTIVITY_CONNECT, /* of a socket */
	ACTIVITY_AWAIT,   /* of a task by an async method, or a thread's wait for one */
	ACTIVITY_KINDS,
};

enum activity_step { ACTIVITY_BEGIN, ACTIVITY_END, ACTIVITY_FAILS };

/* Number of providers in the list. */
enum {
#define ACTIVITY_PROVIDER(provider, name, keywords, level) ACTIVITY_PROVIDER_##provider,
#include "trace/activity_events.def"
	ACTIVITY_PROVIDERS
};

struct activity_event {
	enum activity_kind kind;
	enum activity_step step;
};

/* ACTIVITY_NONE for an event that is not in the list. */
struct activity_event activity_event_of(const char *provider, uint32_t event_id);

#endif
