/* See providers.h. */
#include "dotnet/providers.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/bytes.h"
#include "base/diag.h"
#include "base/nearest.h"
#include "base/text.h"
#include "dotnet/ipc.h"

#define COMMON_KEYWORDS UINT64_C(0x100003801d)
#define LEVEL_DEFAULT   4u

/*
 * What database libraries write to DiagnosticListeners: the command and its connection, and its end.
 * dotnet-trace leaves out commands that fail.
 */
#define DATABASE_CONNECTION                                                            \
	"Command.Connection.ServerVersion;Command.CommandTimeout;Command.CommandType;" \
	"Command.Connection.ConnectionString;Command.Connection.Database;"             \
	"Command.Connection.DataSource;Command.Connection.PacketSize"
#define DATABASE_SPECS                                                                           \
	"SqlClientDiagnosticListener/System.Data.SqlClient.WriteCommandBefore@Activity1Start:"   \
	"-Command;Command.CommandText;ConnectionId;Operation;" DATABASE_CONNECTION "\r\n"        \
	"SqlClientDiagnosticListener/System.Data.SqlClient.WriteCommandAfter@Activity1Stop:\r\n" \
	"SqlClientDiagnosticListener/System.Data.SqlClient.WriteCommandError@Activity1Stop:\r\n" \
	"Microsoft.EntityFrameworkCore/"                                                         \
	"Microsoft.EntityFrameworkCore.Database.Command.CommandExecuting@Activity2Start:"        \
	"-Command.CommandText;Command;ConnectionId;IsAsync;Command.Connection."                  \
	"ClientConnectionId;" DATABASE_CONNECTION "\r\n"                                         \
	"Microsoft.EntityFrameworkCore/"                                                         \
	"Microsoft.EntityFrameworkCore.Database.Command.CommandExecuted@Activity2Stop:\r\n"      \
	"Microsoft.EntityFrameworkCore/"                                                         \
	"Microsoft.EntityFrameworkCore.Database.Command.CommandError@Activity2Stop:"

const struct provider_profile provider_profiles[] = {
	{ "dotnet-common",
		"what the runtime does: collections, loading, compiling, exceptions, contention, "
		"threads",
		PROVIDER_CLR_NAME ":0x100003801D:4", 0 },
	{ "dotnet-sampled-thread-time",
		"where threads are, some hundred times a second: thread time, and their CPU clocks beside it",
		PROVIDER_SAMPLE_NAME ":0xF00000000000:4", 0 },
	{ "gc-verbose", "collections, and allocations as they are sampled",
		PROVIDER_CLR_NAME ":0x8003:5", 0 },
	{ "gc-collect", "collections only, with very little overhead",
		PROVIDER_CLR_NAME ":0x1:4," PROVIDER_CLR_PRIVATE_NAME ":0x1:4", 0x1 },
	{ "database", "commands of ADO.NET and Entity Framework",
		PROVIDER_TASKS_NAME ":0x80:4," PROVIDER_DIAGNOSTIC_SOURCE_NAME
				    ":0x3:5:FilterAndPayloadSpecs="
				    "\"" DATABASE_SPECS "\"",
		0 },
	{ 0 },
};

struct named_keyword {
	const char *name;
	uint64_t keyword;
};

static const struct named_keyword clr_keywords[] = {
	{ "gc", 0x1 },
	{ "gchandle", 0x2 },
	{ "assemblyloader", 0x4 },
	{ "fusion", 0x4 },
	{ "loader", 0x8 },
	{ "jit", 0x10 },
	{ "ngen", 0x20 },
	{ "startenumeration", 0x40 },
	{ "endenumeration", 0x80 },
	{ "security", 0x400 },
	{ "appdomainresourcemanagement", 0x800 },
	{ "jittracing", 0x1000 },
	{ "interop", 0x2000 },
	{ "contention", 0x4000 },
	{ "exception", 0x8000 },
	{ "threading", 0x10000 },
	{ "jittedmethodiltonativemap", 0x20000 },
	{ "overrideandsuppressngenevents", 0x40000 },
	{ "type", 0x80000 },
	{ "gcheapdump", 0x100000 },
	{ "gcsampledobjectallocationhigh", 0x200000 },
	{ "gcheapsurvivalandmovement", 0x400000 },
	{ "gcheapcollect", 0x800000 },
	{ "managedheapcollect", 0x800000 },
	{ "gcheapandtypenames", 0x1000000 },
	{ "gcsampledobjectallocationlow", 0x2000000 },
	{ "perftrack", 0x20000000 },
	{ "stack", 0x40000000 },
	{ "threadtransfer", 0x80000000 },
	{ "debugger", 0x100000000 },
	{ "monitoring", 0x200000000 },
	{ "codesymbols", 0x400000000 },
	{ "eventsource", 0x800000000 },
	{ "compilation", 0x1000000000 },
	{ "compilationdiagnostic", 0x2000000000 },
	{ "methoddiagnostic", 0x4000000000 },
	{ "typediagnostic", 0x8000000000 },
	{ "jitinstrumentationdata", 0x10000000000 },
	{ "profiler", 0x20000000000 },
	{ "waithandle", 0x40000000000 },
	{ "allocationsampling", 0x80000000000 },
};

static const char *const levels[] = { "logalways", "critical", "error", "warning", "informational",
	"verbose" };

const char *provider_level_name(uint32_t level)
{
	return level < sizeof(levels) / sizeof(levels[0]) ? levels[level] : "?";
}

void provider_offer_known(struct nearest *near)
{
	static const char known[] = PROVIDERS_OF_EVENT_COUNTERS
		"," PROVIDER_CLR_NAME "," PROVIDER_CLR_PRIVATE_NAME "," PROVIDER_CLR_RUNDOWN_NAME
		"," PROVIDER_CLR_STRESS_NAME "," PROVIDER_SAMPLE_NAME "," PROVIDER_EVENTPIPE_NAME
		"," PROVIDER_DIAGNOSTIC_SOURCE_NAME
		",Microsoft-Extensions-Logging,Microsoft-Extensions-DependencyInjection,"
		"System.Buffers.ArrayPoolEventSource,System.Collections.Concurrent.ConcurrentCollectionsEventSource,"
		"System.Data.DataCommonEventSource," PROVIDER_METRICS_NAME
		",System.Linq.Parallel.PlinqEventSource,"
		"System.Threading.Tasks.Parallel.EventSource," PROVIDER_TASKS_NAME
		",Private.InternalDiagnostics.System.Net.Http,"
		"Private.InternalDiagnostics.System.Net.Sockets";

	for (const char *at = known; *at;) {
		char name[NEAREST_NAME_MAX];
		size_t len = strcspn(at, ",");
		text_set(name, "%.*s", (int)len, at);
		nearest_offer(near, name);
		at += len;
		at += *at == ',';
	}
}

/* "5" or "verbose". */
static bool provider_parse_level(const char *text, uint32_t *ret_level)
{
	uint64_t number;

	if (text_parse_u64(text, &number) && number <= IPC_LEVEL_MAX) {
		*ret_level = (uint32_t)number;
		return true;
	}
	for (uint32_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
		if (strcasecmp(text, levels[i]) == 0) {
			*ret_level = i;
			return true;
		}
	}
	return false;
}

/* Hexadecimal, with or without 0x. */
static bool parse_keywords(const char *text, uint64_t *ret_keywords)
{
	char *end;

	if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
		text += 2;
	if (!*text || strspn(text, "0123456789abcdefABCDEF") != strlen(text))
		return false;
	errno = 0;
	*ret_keywords = strtoull(text, &end, 16);
	return errno == 0;
}

static char *keep(struct provider_list *list, const char *text, size_t len)
{
	char *copy = arena_alloc(&list->arena, len + 1);

	if (copy) {
		memcpy(copy, text, len);
		copy[len] = '\0';
	}
	return copy;
}

static struct provider_choice *find(struct provider_list *list, const char *name)
{
	for (uint32_t i = 0; i < list->items.count; i++)
		if (strcmp(list->items.items[i].name, name) == 0)
			return &list->items.items[i];
	return NULL;
}

/* Whether the line is one of the text's lines, which \r\n separates. */
static bool has_line(const char *text, size_t text_len, const char *line, size_t len)
{
	for (const char *at = text; at < text + text_len;) {
		size_t next = strcspn(at, "\r\n\"");
		if (next == len && strncmp(at, line, len) == 0)
			return true;
		at += next + strspn(at + next, "\r\n\"");
	}
	return false;
}

/*
 * The bridge of DiagnosticSource has one argument, whose lines are what it sends. Two choices of it
 * are the lines of both; for any other argument the later one counts. NULL: no memory.
 */
static const char *join_arguments(struct provider_list *list, const char *before, const char *after)
{
	static const char start[] = "FilterAndPayloadSpecs=\"";
	const size_t start_len = sizeof(start) - 1;
	size_t len = strlen(before);

	if (strncmp(before, start, start_len) != 0 || strncmp(after, start, start_len) != 0 ||
		before[len - 1] != '"')
		return after;
	struct bytes joined = { 0 };
	bytes_add(&joined, before, len - 1);
	for (const char *at = after + start_len; *at && *at != '"';) {
		size_t line = strcspn(at, "\r\n\"");
		if (!has_line(before + start_len, len - start_len, at, line)) {
			bytes_text(&joined, "\r\n");
			bytes_add(&joined, at, line);
		}
		at += line + strspn(at + line, "\r\n");
	}
	bytes_text(&joined, "\"");
	const char *kept = joined.failed ? NULL : keep(list, bytes_z(&joined), joined.len);
	bytes_done(&joined);
	return kept;
}

/* The same option again adds keywords; a different option that comes later changes nothing. */
static int add(struct provider_list *list, const struct provider_choice *choice, struct diag *diag)
{
	struct provider_choice *same = find(list, choice->name);

	if (!same)
		return vec_add(&list->items, *choice)
			       ? 0
			       : diag_set(diag, -ENOMEM, "cannot choose events: %m");
	if (strcmp(same->from, choice->from) != 0)
		return 0;
	same->keywords |= choice->keywords;
	if (choice->level > same->level)
		same->level = choice->level;
	if (choice->arguments && same->arguments) {
		same->arguments = join_arguments(list, same->arguments, choice->arguments);
		if (!same->arguments)
			return diag_set(diag, -ENOMEM, "cannot choose events: %m");
	} else if (choice->arguments) {
		same->arguments = choice->arguments;
	}
	return 0;
}

static bool is_runtime(const char *name)
{
	return strncmp(name, PROVIDER_CLR_NAME, strlen(PROVIDER_CLR_NAME)) == 0;
}

/* The next part between colons; the last keeps its colons. NULL: none left. */
static char *next_part(char **at, bool last)
{
	char *part = *at;

	if (!part)
		return NULL;
	char *colon = last ? NULL : strchr(part, ':');

	if (colon)
		*colon = '\0';
	*at = colon ? colon + 1 : NULL;
	return part;
}

/* One provider; `text` belongs to the list and is cut into its parts. */
static int add_one(struct provider_list *list, char *text, const char *from, struct diag *diag)
{
	struct provider_choice choice = { .from = from, .level = LEVEL_DEFAULT };
	char *at = text;

	choice.name = next_part(&at, false);
	const char *keywords = next_part(&at, false);
	const char *level = next_part(&at, false);
	const char *arguments = next_part(&at, true);

	if (!*choice.name)
		return diag_set(diag, -EINVAL, "a provider needs a name");
	choice.keywords = is_runtime(choice.name) ? COMMON_KEYWORDS : UINT64_MAX;
	if (keywords && *keywords && !parse_keywords(keywords, &choice.keywords))
		return diag_set(diag, -EINVAL,
			"the keywords of %s are a hexadecimal number, not '%s'", choice.name,
			keywords);
	if (level && *level && !provider_parse_level(level, &choice.level))
		return diag_set(diag, -EINVAL,
			"the level of %s is 0 to 5 or a name such as informational or verbose, not "
			"'%s'",
			choice.name, level);
	if (arguments && *arguments)
		choice.arguments = arguments;
	return add(list, &choice, diag);
}

/* Length of the text before the next comma outside quotes. */
static size_t provider_len(const char *text)
{
	bool quoted = false;
	size_t len = 0;

	for (; text[len] && (quoted || text[len] != ','); len++)
		quoted ^= text[len] == '"';
	return len;
}

int provider_list_add_text(struct provider_list *list, const char *text, const char *from,
	struct diag *diag)
{
	for (;;) {
		size_t len = provider_len(text);
		char *copy = keep(list, text, len);
		int result = copy ? add_one(list, copy, from, diag)
				  : diag_set(diag, -ENOMEM, "cannot choose events: %m");
		if (result < 0 || !text[len])
			return result;
		text += len + 1;
	}
}

static const struct provider_profile *find_profile(const char *name, size_t len)
{
	for (const struct provider_profile *profile = provider_profiles; profile->name; profile++)
		if (strlen(profile->name) == len && strncasecmp(profile->name, name, len) == 0)
			return profile;
	return NULL;
}

int provider_list_add_profiles(struct provider_list *list, const char *names, struct diag *diag)
{
	bool whole = list->items.count && !list->rundown_keywords;

	for (const char *at = names;;) {
		size_t len = strcspn(at, ",");
		const struct provider_profile *profile = find_profile(at, len);
		if (!profile) {
			diag_set(diag, -EINVAL, "there is no profile '%.*s'", (int)len, at);
			diag_remedy(diag, "spoor trace --list-profiles shows them");
			return -EINVAL;
		}
		int result = provider_list_add_text(list, profile->providers, "--profile", diag);
		if (result < 0)
			return result;
		whole |= !profile->rundown_keywords;
		list->rundown_keywords |= profile->rundown_keywords;
		if (!at[len])
			break;
		at += len + 1;
	}
	if (whole)
		list->rundown_keywords = 0;
	return 0;
}

int provider_list_add_clr_events(struct provider_list *list, const char *names, const char *level,
	bool *ret_ignored, struct diag *diag)
{
	struct provider_choice choice = {
		.name = PROVIDER_CLR_NAME,
		.from = "--clrevents",
		.level = LEVEL_DEFAULT,
	};

	*ret_ignored = find(list, PROVIDER_CLR_NAME) != NULL;
	if (level && !provider_parse_level(level, &choice.level))
		return diag_set(diag, -EINVAL,
			"--clreventlevel is 0 to 5 or a name such as informational or verbose, not "
			"'%s'",
			level);
	for (const char *at = names;;) {
		size_t len = strcspn(at, "+");
		size_t i = 0;
		size_t count = sizeof(clr_keywords) / sizeof(clr_keywords[0]);
		while (i < count && (strlen(clr_keywords[i].name) != len ||
					    strncasecmp(clr_keywords[i].name, at, len) != 0))
			i++;
		if (i == count) {
			diag_set(diag, -EINVAL, "the runtime has no events called '%.*s'", (int)len,
				at);
			diag_remedy(diag, "man spoor-trace lists the names; + stands between them");
			return -EINVAL;
		}
		choice.keywords |= clr_keywords[i].keyword;
		if (!at[len])
			break;
		at += len + 1;
	}
	return *ret_ignored ? 0 : add(list, &choice, diag);
}

static bool has_event_id(const struct provider_choice *choice, uint32_t id)
{
	for (uint32_t i = 0; i < choice->event_ids.count; i++)
		if (choice->event_ids.items[i] == id)
			return true;
	return false;
}

int provider_list_add_event_ids(struct provider_list *list, const char *text, struct diag *diag)
{
	const char *colon = strrchr(text, ':');
	char *name = keep(list, text, colon ? (size_t)(colon - text) : 0);

	if (!name)
		return diag_set(diag, -ENOMEM, "cannot choose events: %m");
	struct provider_choice *choice = colon ? find(list, name) : NULL;

	if (!choice) {
		diag_set(diag, -EINVAL,
			"--event-ids takes a provider that is traced and numbers, Name:1,2, not "
			"'%s'",
			text);
		diag_remedy(diag, "add the provider with --providers");
		return -EINVAL;
	}
	for (const char *at = colon + 1;;) {
		bool without = *at == '-';
		char number[16];
		uint64_t id;
		size_t len;
		at += without;
		len = strcspn(at, ",");
		if (len >= sizeof(number))
			return diag_set(diag, -EINVAL, "'%s' is no list of event ids", colon + 1);
		memcpy(number, at, len);
		number[len] = '\0';
		if (!text_parse_u64(number, &id) || id > 0xffff)
			return diag_set(diag, -EINVAL, "'%s' is no event id", number);
		if (choice->event_ids.count && choice->only_event_ids == without)
			return diag_set(diag, -EINVAL,
				"--event-ids takes either the ids wanted or those left out, not "
				"both: '%s'",
				text);
		choice->only_event_ids = !without;
		/* .NET 10 sends no event of a provider whose filter has an id twice. */
		if (!has_event_id(choice, (uint32_t)id) &&
			!vec_add(&choice->event_ids, (uint32_t)id))
			return diag_set(diag, -ENOMEM, "cannot choose events: %m");
		if (!at[len])
			return 0;
		at += len + 1;
	}
}

void provider_list_describe(const struct provider_list *list, struct bytes *text)
{
	for (uint32_t i = 0; i < list->items.count; i++) {
		const struct provider_choice *choice = &list->items.items[i];
		bytes_printf(text, "%s%s:0x%" PRIx64 ":%u", i ? "," : "", choice->name,
			choice->keywords, choice->level);
	}
}

struct ipc_provider *provider_list_request(const struct provider_list *list)
{
	struct ipc_provider *providers = calloc((size_t)list->items.count + 1, sizeof(*providers));

	for (uint32_t i = 0; providers && i < list->items.count; i++) {
		const struct provider_choice *choice = &list->items.items[i];
		providers[i] = (struct ipc_provider){
			.name = choice->name,
			.arguments = choice->arguments,
			.keywords = choice->keywords,
			.level = choice->level,
			.event_ids = choice->event_ids.items,
			.event_id_count = choice->event_ids.count,
			.only_event_ids = choice->only_event_ids,
		};
	}
	return providers;
}

void provider_list_done(struct provider_list *list)
{
	for (uint32_t i = 0; i < list->items.count; i++)
		vec_done(&list->items.items[i].event_ids);
	vec_done(&list->items);
	arena_done(&list->arena);
	*list = (struct provider_list){ 0 };
}
