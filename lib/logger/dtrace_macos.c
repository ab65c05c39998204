/*
 * DTrace of macOS: its probes are made when a program is linked, so there is one for each level
 * (spoor_dtrace.d), and events made at run time reach it as well. A script chooses events by their
 * names:
 *
 *   dtrace -p PID -n 'libspoor$target:::info /copyinstr(arg0) == "Shop"/ { trace(copyinstr(arg4)); }'
 */
#include <stdlib.h>

#include <spoor_dtrace.h>

#include "lib/event/firing.h"
#include "lib/logger/logger.h"
#include "lib/logger/payload_json.h"

/* Fields are on the stack of the firing thread; an event with more is not passed. */
#define FIELDS_BYTES 8192u

static void *dtrace_add(const struct event_entry *entry, const struct logger_names *names)
{
	(void)names;
	return (void *)(uintptr_t)entry;
}

static bool dtrace_is_on(const void *part)
{
	const struct event_entry *entry = part;

	switch (entry->info.level) {
	case SPOOR_ALWAYS:
		return LIBSPOOR_ALWAYS_ENABLED();
	case SPOOR_CRITICAL:
		return LIBSPOOR_CRITICAL_ENABLED();
	case SPOOR_ERROR:
		return LIBSPOOR_ERROR_ENABLED();
	case SPOOR_WARNING:
		return LIBSPOOR_WARNING_ENABLED();
	case SPOOR_INFO:
		return LIBSPOOR_INFO_ENABLED();
	default:
		return LIBSPOOR_VERBOSE_ENABLED();
	}
}

static void dtrace_fire(void *part, const struct event_entry *entry, const uint8_t *payload,
	size_t payload_size)
{
	char *provider = (char *)(uintptr_t)entry->info.provider;
	char *event = (char *)(uintptr_t)entry->info.name;
	const uint32_t id = entry->info.id;
	const uint64_t keywords = entry->info.keywords;
	char fields[FIELDS_BYTES];

	if (!dtrace_is_on(part) ||
		payload_json_put(entry, payload, payload_size, fields, sizeof(fields)) < 0)
		return;
	switch (entry->info.level) {
	case SPOOR_ALWAYS:
		LIBSPOOR_ALWAYS(provider, event, id, keywords, fields);
		break;
	case SPOOR_CRITICAL:
		LIBSPOOR_CRITICAL(provider, event, id, keywords, fields);
		break;
	case SPOOR_ERROR:
		LIBSPOOR_ERROR(provider, event, id, keywords, fields);
		break;
	case SPOOR_WARNING:
		LIBSPOOR_WARNING(provider, event, id, keywords, fields);
		break;
	case SPOOR_INFO:
		LIBSPOOR_INFO(provider, event, id, keywords, fields);
		break;
	default:
		LIBSPOOR_VERBOSE(provider, event, id, keywords, fields);
		break;
	}
}

static int dtrace_open(void)
{
	return 0;
}

/* The probes are the program's, and exist until it ends. */
static void dtrace_close(void)
{
}

const struct logger_ops logger_dtrace = {
	.name = "dtrace",
	.open = dtrace_open,
	.add = dtrace_add,
	.is_on = dtrace_is_on,
	.fire = dtrace_fire,
	.close = dtrace_close,
};
