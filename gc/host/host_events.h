/*
 * The events of a host (host.h): the sink that a collector fires into, over libspoor. The payloads
 * are those of a .NET runtime, so its tools decode them. There is one host in a process.
 */
#ifndef SPOOR_GC_HOST_EVENTS_H
#define SPOOR_GC_HOST_EVENTS_H

#include "gc/events.h"

/* The status that all sessions of libspoor together enable, as the interface passes it. */
typedef void host_status_function(enum gc_event_provider provider, struct gc_event_status status);

/*
 * Registers both providers with libspoor; `changed` is called when a session starts or ends, by a
 * thread of the library. 0 or a negative errno of spoor_provider_register().
 */
int host_events_open(host_status_function *changed);
void host_events_close(void);

struct gc_sink *host_events_sink(void);

/* What a runtime itself fires. `reason`: enum gc_suspend_reason. */
void host_events_suspend_begin(uint32_t reason, uint32_t collection);
void host_events_suspend_end(void);
void host_events_restart_begin(void);
void host_events_restart_end(void);
void host_events_finalizers_begin(void);
void host_events_finalizers_end(uint32_t count);

#endif
