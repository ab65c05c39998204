/* The providers that Spoor knows by name (providers.def). All of it is constant data. */
#ifndef SPOOR_TRACE_PROVIDER_KIND_H
#define SPOOR_TRACE_PROVIDER_KIND_H

#include <stdbool.h>
#include <stdint.h>

#define PROVIDER_CLR_NAME            "Microsoft-Windows-DotNETRuntime"
#define PROVIDER_CLR_RUNDOWN_NAME    PROVIDER_CLR_NAME "Rundown"
#define PROVIDER_CLR_STRESS_NAME     PROVIDER_CLR_NAME "Stress"
#define PROVIDER_CLR_PRIVATE_NAME    PROVIDER_CLR_NAME "Private"
#define PROVIDER_EVENTPIPE_NAME      "Microsoft-DotNETCore-EventPipe"
#define PROVIDER_SAMPLE_NAME         "Microsoft-DotNETCore-SampleProfiler"
#define PROVIDER_SYSTEM_RUNTIME_NAME "System.Runtime"

/* EventSources of .NET's libraries. */
#define PROVIDER_ADO_NET_NAME           "Microsoft-AdoNet-SystemData"
#define PROVIDER_DIAGNOSTIC_SOURCE_NAME "Microsoft-Diagnostics-DiagnosticSource"
#define PROVIDER_HOSTING_NAME           "Microsoft.AspNetCore.Hosting"
#define PROVIDER_HTTP_NAME              "System.Net.Http"
#define PROVIDER_KESTREL_NAME           "Microsoft-AspNetCore-Server-Kestrel"
#define PROVIDER_METRICS_NAME           "System.Diagnostics.Metrics"
#define PROVIDER_NAME_RESOLUTION_NAME   "System.Net.NameResolution"
#define PROVIDER_SECURITY_NAME          "System.Net.Security"
#define PROVIDER_SOCKETS_NAME           "System.Net.Sockets"
#define PROVIDER_SQL_CLIENT_NAME        "Microsoft.Data.SqlClient.EventSource"
#define PROVIDER_TASKS_NAME             "System.Threading.Tasks.TplEventSource"

/* The event with which any EventSource sends its EventCounters. */
#define EVENT_COUNTERS_NAME "EventCounters"

enum provider_kind {
	PROVIDER_OTHER,
#define PROVIDER(kind, name, guid) kind,
#include "trace/providers.def"
#undef PROVIDER
	PROVIDER_KIND_COUNT
};

/* "Spoor", "Universal.System", ...; NULL for PROVIDER_OTHER. */
const char *provider_name(enum provider_kind kind);

/* PROVIDER_OTHER for a name that is not in the list. */
enum provider_kind provider_kind_of(const char *name);

/* The guid to write with a provider, 16 bytes, or NULL when readers derive it from the name. */
const uint8_t *provider_guid(enum provider_kind kind);

#endif
