/* See host_events.h. */
#include "gc/host/host_events.h"

#include <spoor/event_macros.h>
#include <spoor/spoor.h>

#include "gc/host/host_threads.h"
#include "gc/host/host_types.h"

/* Longer than any event but the dynamic ones. */
#define PAYLOAD_MAX 2048u

struct payload {
	uint8_t *bytes;
	size_t size;
	size_t room;
	bool is_full; /* something did not fit: the event is dropped */
};

static void put_bytes(struct payload *payload, const void *bytes, size_t size)
{
	if (size > payload->room - payload->size) {
		payload->is_full = true;
		return;
	}
	if (size)
		memcpy(payload->bytes + payload->size, bytes, size);
	payload->size += size;
}

static void put(struct payload *payload, size_t size, uint64_t value)
{
	put_bytes(payload, &value, size); /* little-endian, as the whole interface is */
}

/* UTF-8 as UTF-16 with a zero. A byte that is not UTF-8 becomes U+FFFD. */
static void put_text(struct payload *payload, const char *text)
{
	const uint8_t *at = (const uint8_t *)text;

	while (*at) {
		unsigned more = *at < 0x80   ? 0
				: *at < 0xc2 ? 9
				: *at < 0xe0 ? 1
				: *at < 0xf0 ? 2
				: *at < 0xf5 ? 3
					     : 9;
		uint32_t code = more ? *at & (0x3fu >> more) : *at;
		unsigned used = 0;

		while (more < 9 && used < more && (at[used + 1] & 0xc0) == 0x80)
			code = code << 6 | (at[++used] & 0x3f);
		if (used != more || code > 0x10ffff || (code & 0xfffff800) == 0xd800) {
			code = 0xfffd;
			used = 0;
		}
		at += used + 1;
		if (code > 0xffff)
			put(payload, 4, (0xdc00 | (code & 0x3ff)) << 16 | (0xd7c0 + (code >> 10)));
		else
			put(payload, 2, code);
	}
	put(payload, 2, 0);
}

/* ---- the list of events ---- */

static struct spoor_provider providers[GC_EVENT_PROVIDERS];

#define HOST_EVENT(symbol, owner, id_, version_, level_, keywords_, arguments, puts) \
	static struct spoor_event event_##symbol = {                                 \
		.size = sizeof(struct spoor_event),                                  \
		.provider = &providers[GC_EVENT_##owner],                            \
		.name = #symbol,                                                     \
		.keywords = keywords_,                                               \
		.id = id_,                                                           \
		.version = version_,                                                 \
		.level = level_,                                                     \
		.flags = SPOOR_EVENT_WELL_KNOWN,                                     \
	};
HOST_EVENT(GCDynamicEvent, DEFAULT, 39, 0, 4, 0x3f00003, , )
#include "gc/host/manifest_events.def"
#undef HOST_EVENT

#define HOST_EVENT(symbol, ...) &event_##symbol,
static struct spoor_event *const events[] = {
	&event_GCDynamicEvent,
#include "gc/host/manifest_events.def"
};
#undef HOST_EVENT

/* The type of the object for which this thread calls the collector. */
static const struct gc_host_type *allocated_type(void)
{
	return host_thread_current() ? host_thread_current()->allocating : NULL;
}

static const struct gc_host_type *type_of(void *object)
{
	return object ? gc_host_type_of(object) : NULL;
}

static uint64_t size_of(void *object)
{
	return object ? host_object_size(object) : 0;
}

#define ARGUMENTS(...)         __VA_OPT__(, GC_LIST(GC_PARAMETER, __VA_ARGS__))
#define PUT(bytes, value)      put(&payload, bytes, (uint64_t)(uintptr_t)(value));
#define PUT_BYTES(begin, size) put_bytes(&payload, begin, size);
#define PUT_NAME(type)         put_text(&payload, (type) ? gc_host_type_name(type) : "");
#define HOST_EVENT(symbol, owner, id_, version_, level_, keywords_, arguments, puts) \
	static void fire_##symbol(struct gc_sink *self arguments)                    \
	{                                                                            \
		uint8_t bytes[PAYLOAD_MAX];                                          \
		struct payload payload = { .bytes = bytes, .room = sizeof(bytes) };  \
                                                                                     \
		(void)self;                                                          \
		if (!spoor_event_enabled(&event_##symbol))                           \
			return;                                                      \
		puts if (!payload.is_full)                                           \
			spoor_fire(&event_##symbol, payload.bytes, payload.size);    \
	}
#include "gc/host/manifest_events.def"
#undef HOST_EVENT

/* A payload that libspoor cannot send is fired with its true size, so that it counts as lost. */
static void fire_dynamic(struct gc_sink *self, const char *name, void *data, uint32_t size)
{
	uint8_t bytes[SPOOR_PAYLOAD_MAX + 1];
	struct payload payload = { .bytes = bytes, .room = sizeof(bytes) };

	(void)self;
	if (!spoor_event_enabled(&event_GCDynamicEvent))
		return;
	put_text(&payload, name);
	put(&payload, 4, size);
	put_bytes(&payload, data, size);
	put(&payload, 2, 0);
	spoor_fire(&event_GCDynamicEvent, bytes, payload.is_full ? sizeof(bytes) : payload.size);
}

/* Collectors for .NET 8 to 10 fire version 4 of this event in its place. */
static void fire_tick_1(struct gc_sink *self, uint32_t amount, uint32_t kind)
{
	(void)self;
	(void)amount;
	(void)kind;
}

#define GC_KNOWN(symbol, ...) .Fire##symbol = fire_##symbol,
static const struct gc_sink_table sink_table = {
	.FireDynamicEvent = fire_dynamic,
	.FireGCAllocationTick_V1 = fire_tick_1,
#include "gc/gc_events.def"
};
static struct gc_sink sink = { &sink_table };

struct gc_sink *host_events_sink(void)
{
	return &sink;
}

void host_events_suspend_begin(uint32_t reason, uint32_t collection)
{
	fire_GCSuspendEEBegin_V1(&sink, reason, collection);
}

void host_events_suspend_end(void)
{
	fire_GCSuspendEEEnd_V1(&sink);
}

void host_events_restart_begin(void)
{
	fire_GCRestartEEBegin_V1(&sink);
}

void host_events_restart_end(void)
{
	fire_GCRestartEEEnd_V1(&sink);
}

void host_events_finalizers_begin(void)
{
	fire_GCFinalizersBegin_V1(&sink);
}

void host_events_finalizers_end(uint32_t count)
{
	fire_GCFinalizersEnd_V1(&sink, count);
}

/* ---- sessions ---- */

static host_status_function *status_changed;

static void enabled(const struct spoor_enable *enable, void *context)
{
	struct gc_event_status status = { 0, 0 };

	(void)context;
	if (enable->any_enabled) {
		status.level = enable->any_level ? enable->any_level : SPOOR_VERBOSE;
		status.keyword = (int32_t)(uint32_t)enable->any_keywords;
	}
	status_changed(enable->provider == &providers[GC_EVENT_PRIVATE] ? GC_EVENT_PRIVATE
									: GC_EVENT_DEFAULT,
		status);
}

int host_events_open(host_status_function *changed)
{
	static const char *const names[GC_EVENT_PROVIDERS] = {
		[GC_EVENT_DEFAULT] = "Microsoft-Windows-DotNETRuntime",
		[GC_EVENT_PRIVATE] = "Microsoft-Windows-DotNETRuntimePrivate",
	};
	int r = 0;

	status_changed = changed;
	for (int i = 0; i < GC_EVENT_PROVIDERS && r == 0; i++) {
		providers[i] = (struct spoor_provider){
			.size = sizeof(providers[i]),
			.name = names[i],
			.events = events,
			.events_end = events + sizeof(events) / sizeof(*events),
			.enable = enabled,
		};
		r = spoor_provider_register(&providers[i]);
	}
	if (r < 0)
		host_events_close();
	return r;
}

void host_events_close(void)
{
	for (int i = 0; i < GC_EVENT_PROVIDERS; i++)
		if (providers[i].size)
			spoor_provider_unregister(&providers[i]);
}
