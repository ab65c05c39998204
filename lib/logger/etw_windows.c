/*
 * ETW: events that describe themselves as those of TraceLogging do, so that WPR, PerfView, tracelog
 * and others record and decode them without a manifest. The GUID of a provider is that of its name
 * (etw_guid.h).
 *
 * Providers and parts exist until the process ends, because a thread may be inside
 * EventWriteTransfer(). A closed logger has no provider registered with ETW.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <windows.h>

#include <evntprov.h>

#include "lib/event/firing.h"
#include "lib/logger/counted_payload.h"
#include "lib/logger/etw_guid.h"
#include "lib/logger/etw_metadata.h"
#include "lib/logger/logger.h"
#include "lib/logger/loggers.h"

/* Converted payloads are on the stack of the firing thread. */
#define CONVERTED_USUAL 1024u
/* ETW records events of up to 64 KiB with all their headers. */
#define CONVERTED_MAX 32768u

#define CHANNEL_TRACELOGGING 11u

/* The kinds of a descriptor, in its first reserved byte. */
#define DATA_EVENT_METADATA    1u
#define DATA_PROVIDER_METADATA 2u

/* EventSetInformation(): the header of mingw has no name for it */
#define SET_TRAITS 2

struct etw_provider {
	GUID guid;
	REGHANDLE handle; /* atomic; 0: not registered */
	struct outbuf traits;
	struct etw_provider *next;
	char name[];
};

struct etw_part {
	struct etw_provider *provider;
	EVENT_DESCRIPTOR descriptor;
	enum counted_payload payload;
	struct outbuf description;
	struct etw_part *next; /* for leak checkers */
};

static struct {
	struct etw_provider *first;
	struct etw_part *first_part;
} etw;

/* Called by ETW when a session begins, changes or ends, on any thread, also in EventRegister(). */
static void NTAPI enabled(LPCGUID source, ULONG is_enabled, UCHAR level, ULONGLONG any,
	ULONGLONG all, PEVENT_FILTER_DESCRIPTOR filter, PVOID context)
{
	(void)source, (void)is_enabled, (void)level, (void)any, (void)all, (void)filter;
	(void)context;
	loggers_look_soon();
}

static void provider_open(struct etw_provider *provider)
{
	REGHANDLE handle = 0;

	if (provider->handle || EventRegister(&provider->guid, enabled, provider, &handle) != 0)
		return;
	/* Windows before 8.1 does not know traits; each event has them as well. */
	(void)EventSetInformation(handle, (EVENT_INFO_CLASS)SET_TRAITS, provider->traits.data,
		(ULONG)provider->traits.size);
	__atomic_store_n(&provider->handle, handle, __ATOMIC_RELEASE);
}

static int etw_open(void)
{
	for (struct etw_provider *each = etw.first; each; each = each->next)
		provider_open(each);
	return 0;
}

static void etw_close(void)
{
	for (struct etw_provider *each = etw.first; each; each = each->next) {
		REGHANDLE handle = each->handle;
		__atomic_store_n(&each->handle, 0, __ATOMIC_RELEASE);
		if (handle)
			(void)EventUnregister(handle);
	}
}

static struct etw_provider *provider_of(const char *name)
{
	const size_t size = strlen(name) + 1;
	uint8_t guid[16];

	for (struct etw_provider *each = etw.first; each; each = each->next)
		if (strcmp(each->name, name) == 0)
			return each;
	struct etw_provider *made = calloc(1, sizeof(*made) + size);
	if (!made)
		return NULL;
	memcpy(made->name, name, size);
	etw_guid_of_name(name, guid);
	memcpy(&made->guid, guid, sizeof(made->guid));
	if (etw_metadata_traits(name, &made->traits)) {
		outbuf_done(&made->traits);
		free(made);
		return NULL;
	}
	made->next = etw.first;
	etw.first = made;
	provider_open(made);
	return made;
}

static void *etw_add(const struct event_entry *entry, const struct logger_names *names)
{
	struct etw_part *made = calloc(1, sizeof(*made));

	(void)names;
	if (!made)
		return NULL;
	made->payload = counted_payload_of(entry, COUNTED_GUIDS_SAME);
	made->descriptor = (EVENT_DESCRIPTOR){ .Id = (USHORT)entry->info.id,
		.Version = (UCHAR)entry->info.version,
		.Channel = CHANNEL_TRACELOGGING,
		.Level = (UCHAR)entry->info.level,
		.Opcode = (UCHAR)entry->info.opcode,
		.Keyword = entry->info.keywords };
	if (etw_metadata_describe(entry, &made->description) == 0)
		made->provider = provider_of(entry->info.provider);
	if (!made->provider) {
		outbuf_done(&made->description);
		free(made);
		return NULL;
	}
	made->next = etw.first_part;
	etw.first_part = made;
	return made;
}

static REGHANDLE handle_of(const struct etw_part *part)
{
	return __atomic_load_n(&part->provider->handle, __ATOMIC_ACQUIRE);
}

static bool etw_is_on(const void *part)
{
	const struct etw_part *own = part;
	const REGHANDLE handle = handle_of(own);

	return handle && EventEnabled(handle, &own->descriptor);
}

static bool is_zero(const uint8_t id[16])
{
	static const uint8_t zeros[16];

	return memcmp(id, zeros, sizeof(zeros)) == 0;
}

static void data_set(EVENT_DATA_DESCRIPTOR *data, const void *bytes, size_t size, ULONG kind)
{
	data->Ptr = (uintptr_t)bytes;
	data->Size = (ULONG)size;
	data->Reserved = kind;
}

static void write_event(const struct etw_part *own, const uint8_t *payload, size_t size)
{
	const struct pipe_activity *activity = pipe_activity();
	const bool has_activity = activity->set;
	EVENT_DATA_DESCRIPTOR data[3];
	GUID current, related;
	bool has_related = false;

	if (has_activity) {
		memcpy(&current, activity->current, sizeof(current));
		memcpy(&related, activity->related, sizeof(related));
		has_related = !is_zero(activity->related);
	}
	data_set(&data[0], own->provider->traits.data, own->provider->traits.size,
		DATA_PROVIDER_METADATA);
	data_set(&data[1], own->description.data, own->description.size, DATA_EVENT_METADATA);
	data_set(&data[2], payload, size, 0);
	/* A session that has just ended is no error. */
	(void)EventWriteTransfer(handle_of(own), &own->descriptor, has_activity ? &current : NULL,
		has_related ? &related : NULL, size ? 3 : 2, data);
}

static __attribute__((noinline)) int write_usual(const struct etw_part *own,
	const struct event_entry *entry, const uint8_t *payload, size_t size)
{
	uint8_t converted[CONVERTED_USUAL];
	int r = counted_payload_convert(entry, COUNTED_GUIDS_SAME, payload, size, converted,
		sizeof(converted));

	if (r >= 0)
		write_event(own, converted, (size_t)r);
	return r;
}

static __attribute__((noinline)) void write_large(const struct etw_part *own,
	const struct event_entry *entry, const uint8_t *payload, size_t size)
{
	uint8_t converted[CONVERTED_MAX];
	int r = counted_payload_convert(entry, COUNTED_GUIDS_SAME, payload, size, converted,
		sizeof(converted));

	if (r >= 0)
		write_event(own, converted, (size_t)r);
}

static void etw_fire(void *part, const struct event_entry *entry, const uint8_t *payload,
	size_t payload_size)
{
	const struct etw_part *own = part;

	if (!etw_is_on(own))
		return;
	if (own->payload == COUNTED_PAYLOAD_SAME)
		write_event(own, payload, payload_size);
	else if (write_usual(own, entry, payload, payload_size) == -E2BIG)
		write_large(own, entry, payload, payload_size);
}

const struct logger_ops logger_etw = {
	.name = "etw",
	.open = etw_open,
	.add = etw_add,
	.is_on = etw_is_on,
	.fire = etw_fire,
	.close = etw_close,
};
