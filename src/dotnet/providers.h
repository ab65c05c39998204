/*
 * Which events a session requests, in the syntax of dotnet-trace: providers, profiles, CLR event
 * names.
 *
 *   struct provider_list list = { 0 };
 *   provider_list_add_profiles(&list, "gc-verbose", &diag);
 *   provider_list_add_text(&list, "My-Source:0x1:5:key=value,Other", "--providers", &diag);
 *   provider_list_add_clr_events(&list, "gc+jit", "verbose", &diag);
 *   provider_list_request(&list, &ipc_providers);       borrowed from the list
 *   provider_list_done(&list);
 *
 * An option does not change a provider that an earlier one has named, unless it replaces it:
 * --providers go before profiles, and --clrevents are taken only when nothing else names the
 * runtime's provider, as dotnet-trace has it. Within one way keywords add up and the higher level
 * counts.
 *
 * A name alone selects all keywords at level 4: events that were declared without keywords carry
 * bits that a mask of 0 would silently leave out. The runtime's own providers are the exception,
 * since some of their keywords start a garbage collection or a walk of the heap: there it means
 * what dotnet-common means.
 */
#ifndef SPOOR_DOTNET_PROVIDERS_H
#define SPOOR_DOTNET_PROVIDERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/vec.h"
#include "trace/provider_kind.h"

struct bytes;
struct diag;
struct ipc_provider;
struct nearest;

struct provider_choice {
	const char *name;
	const char *arguments; /* NULL none */
	const char *from;      /* "--profile", ...: borrowed */
	uint64_t keywords;
	uint32_t level;
	VEC(uint32_t) event_ids;
	bool only_event_ids;
};

struct provider_list {
	struct arena arena; /* of the texts */
	VEC(struct provider_choice) items;
	/* the rundown keywords that the profiles need; 0: no profile names any */
	uint64_t rundown_keywords;
};

struct provider_profile {
	const char *name;
	const char *text;          /* what it is for */
	const char *providers;     /* as --providers takes them */
	uint64_t rundown_keywords; /* 0: the whole */
};

/* Ends with a row of zeros. The first two are the default when no option chooses. */
extern const struct provider_profile provider_profiles[];

/* "dotnet-common,gc-verbose". -EINVAL and a sentence for a name that is none. */
int provider_list_add_profiles(struct provider_list *list, const char *names, struct diag *diag);

/* "Name:keywords:level:arguments", several with commas. Keywords are hexadecimal. */
int provider_list_add_text(struct provider_list *list, const char *text, const char *from,
	struct diag *diag);

/* "gc+jit"; level NULL: informational. *ret_ignored: the provider was chosen before. */
int provider_list_add_clr_events(struct provider_list *list, const char *names, const char *level,
	bool *ret_ignored, struct diag *diag);

/* "Name:1,2,5" only these events of a provider that is in the list, "Name:-1,-2" all but these. */
int provider_list_add_event_ids(struct provider_list *list, const char *text, struct diag *diag);

/* EventSources of .NET and ASP.NET Core with EventCounters: no request lists them. */
#define PROVIDERS_OF_EVENT_COUNTERS                                                               \
	PROVIDER_SYSTEM_RUNTIME_NAME "," PROVIDER_HOSTING_NAME "," PROVIDER_KESTREL_NAME          \
				     ",Microsoft.AspNetCore.Http.Connections," PROVIDER_HTTP_NAME \
				     "," PROVIDER_NAME_RESOLUTION_NAME "," PROVIDER_SECURITY_NAME \
				     "," PROVIDER_SOCKETS_NAME ",Grpc.AspNetCore.Server,"         \
				     "Grpc.Net.Client,Microsoft.EntityFrameworkCore"

/* Offers the names of providers that come with .NET. */
void provider_offer_known(struct nearest *near);

/* Appends "NAME:0xKEYWORDS:LEVEL,...", for the file. */
void provider_list_describe(const struct provider_list *list, struct bytes *text);

const char *provider_level_name(uint32_t level);

/* An array of items.count that borrows from the list; the caller frees it. NULL: no memory. */
struct ipc_provider *provider_list_request(const struct provider_list *list);

void provider_list_done(struct provider_list *list);

#endif
