/*
 * The part of eventing that is not inline: the status of providers, the serializers of the dynamic
 * events, and losses.
 *
 * A dynamic payload is built on the stack of the thread that fires: u16 version, then the fields,
 * packed and little-endian. The types of the fields are known at compile time, so an event without
 * texts or arrays uses exactly its size and cannot fail; the others have GC_EVENT_DATA_MAX bytes.
 */
#include "gc/events.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are copied as they lie");
static_assert(2 * (GC_EVENT_NAME_UNITS_MAX + 1) + 6 + GC_EVENT_DATA_MAX <= GC_EVENT_WIRE_MAX,
	"the longest name and the largest payload fit into what the runtime takes");

struct gc_event_status gc_event_status[GC_EVENT_PROVIDERS];
struct gc_sink *gc_event_sink;

static struct gc_to_clr *runtime;
/*
 * The last status from the runtime, unchanged. gc_events_poll() sends it back, and the runtime
 * answers only if it is no longer valid.
 */
static struct gc_event_status last_status[GC_EVENT_PROVIDERS];
static struct gc_events_lost lost;
/* The losses that SpoorGCLost events have reported so far. */
static struct gc_events_lost lost_reported;

void gc_events_init(struct gc_to_clr *ee)
{
	runtime = ee;
	gc_event_sink = ee->table->EventSink(ee);
}

static void store(int32_t *word, int32_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELAXED);
}

static int32_t load(const int32_t *word)
{
	return __atomic_load_n(word, __ATOMIC_RELAXED);
}

/*
 * Two threads may set the status at the same time: the diagnostics server's thread when a session
 * ends (with an outdated union of sessions), and the collecting thread inside its poll (with the
 * current one). If their stores were mixed, the next poll would send a status that is not in force,
 * and the runtime would not correct it. The known runtimes hold a lock meanwhile; this code does
 * not rely on that.
 */
static bool status_writer;

void gc_events_control(enum gc_event_provider provider, int32_t keyword, int32_t level)
{
	while (__atomic_test_and_set(&status_writer, __ATOMIC_ACQUIRE))
		(void)sched_yield(); /* the other thread stores four words */
	store(&last_status[provider].level, level);
	store(&last_status[provider].keyword, keyword);
	if (gc_event_sink) {
		store(&gc_event_status[provider].level, level == 0 && keyword != 0 ? 5 : level);
		store(&gc_event_status[provider].keyword, keyword);
	}
	__atomic_clear(&status_writer, __ATOMIC_RELEASE);
}

struct gc_events_lost gc_events_lost(void)
{
	return (struct gc_events_lost){
		.long_names = __atomic_load_n(&lost.long_names, __ATOMIC_RELAXED),
		.long_payloads = __atomic_load_n(&lost.long_payloads, __ATOMIC_RELAXED),
	};
}

/* The losses since the last report. Each is reported once, whichever thread polls. */
static uint64_t unreported(const uint64_t *count, uint64_t *count_reported)
{
	uint64_t now = __atomic_load_n(count, __ATOMIC_RELAXED);

	return now - __atomic_exchange_n(count_reported, now, __ATOMIC_RELAXED);
}

void gc_events_tell_lost(void)
{
	if (!gc_event_on_SpoorGCLost())
		return;
	uint64_t names = unreported(&lost.long_names, &lost_reported.long_names);
	uint64_t payloads = unreported(&lost.long_payloads, &lost_reported.long_payloads);
	if (names || payloads)
		gc_event_SpoorGCLost(names, payloads);
}

void gc_events_poll(void)
{
	runtime->table->UpdateGCEventStatus(runtime, load(&last_status[GC_EVENT_DEFAULT].level),
		load(&last_status[GC_EVENT_DEFAULT].keyword),
		load(&last_status[GC_EVENT_PRIVATE].level),
		load(&last_status[GC_EVENT_PRIVATE].keyword));
	gc_events_tell_lost();
}

static int lose(uint64_t *count, int error)
{
	__atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
	return error;
}

/*
 * The number of UTF-16 units that the runtime will make of this text: one or two for each
 * character, one for each invalid byte.
 */
static size_t utf16_units(const char *name)
{
	const unsigned char *p = (const unsigned char *)name;
	size_t units = 0;

	while (*p) {
		size_t len = *p < 0xc2 ? 1 : *p < 0xe0 ? 2 : *p < 0xf0 ? 3 : *p < 0xf5 ? 4 : 1;
		size_t have = 1;
		while (have < len && (p[have] & 0xc0) == 0x80)
			have++;
		bool whole = have == len;
		units += whole && len == 4 ? 2 : 1;
		p += whole ? len : 1;
	}
	return units;
}

int gc_event_send(int32_t level, int32_t keyword, const char *name, const void *data, size_t size)
{
	if (!gc_event_wanted(GC_EVENT_DEFAULT, level, keyword))
		return 0;
	size_t units = utf16_units(name);
	if (units > GC_EVENT_NAME_UNITS_MAX)
		return lose(&lost.long_names, -ENAMETOOLONG);
	if (size > GC_EVENT_WIRE_MAX - 6 - 2 * (units + 1))
		return lose(&lost.long_payloads, -EMSGSIZE);
	gc_event_sink->table->FireDynamicEvent(gc_event_sink, name, (void *)(uintptr_t)data,
		(uint32_t)size);
	return 0;
}

/* ---- serializing; a list need not have texts or arrays ---- */

struct packed {
	uint8_t *at;
	uint8_t *end;
	bool full;
};

static inline void put(struct packed *out, const void *data, size_t size)
{
	if (__builtin_expect((size_t)(out->end - out->at) < size, 0)) {
		out->full = true;
		return;
	}
	if (size)
		memcpy(out->at, data, size);
	out->at += size;
}

__attribute__((unused)) static void put_array(struct packed *out, const void *values, size_t count,
	size_t size)
{
	uint16_t count16 = (uint16_t)count;

	/* More elements than fit are the same as a full payload, so the product cannot overflow. */
	if (count > GC_EVENT_DATA_MAX) {
		out->full = true;
		return;
	}
	put(out, &count16, sizeof(count16));
	put(out, values, count * size);
}

__attribute__((unused)) static void put_text16(struct packed *out, const char16_t *text)
{
	size_t units = 0;

	while (text && text[units]) {
		if (units == GC_EVENT_DATA_MAX) {
			out->full = true;
			return;
		}
		units++;
	}
	put(out, text, units * 2);
	put(out, u"", 2);
}

/* The bytes that a field always has, and whether it may have more. */
#define FIXED(type, name) +FIXED_##type
#define FIXED_u8          1
#define FIXED_u16         2
#define FIXED_u32         4
#define FIXED_u64         8
#define FIXED_i8          1
#define FIXED_i16         2
#define FIXED_i32         4
#define FIXED_i64         8
#define FIXED_f32         4
#define FIXED_f64         8
#define FIXED_ptr         8
#define FIXED_size        8
#define FIXED_text16      MORE
#define FIXED_u8s         MORE
#define FIXED_u16s        MORE
#define FIXED_u32s        MORE
#define FIXED_u64s        MORE
#define FIXED_i8s         MORE
#define FIXED_i16s        MORE
#define FIXED_i32s        MORE
#define FIXED_i64s        MORE
#define FIXED_f32s        MORE
#define FIXED_f64s        MORE
#define MORE              (1 << 20)

#define PUT(type, name)  PUT_##type(name)
#define PUT_NUMBER(name) put(&out, &name, sizeof(name));
#define PUT_u8(name)     PUT_NUMBER(name)
#define PUT_u16(name)    PUT_NUMBER(name)
#define PUT_u32(name)    PUT_NUMBER(name)
#define PUT_u64(name)    PUT_NUMBER(name)
#define PUT_i8(name)     PUT_NUMBER(name)
#define PUT_i16(name)    PUT_NUMBER(name)
#define PUT_i32(name)    PUT_NUMBER(name)
#define PUT_i64(name)    PUT_NUMBER(name)
#define PUT_f32(name)    PUT_NUMBER(name)
#define PUT_f64(name)    PUT_NUMBER(name)
#define PUT_ptr(name)    PUT_NUMBER(name)
#define PUT_size(name)   PUT_NUMBER(name)
#define PUT_text16(name) put_text16(&out, name);
#define PUT_ARRAY(name)  put_array(&out, name, name##_count, sizeof(*name));
#define PUT_u8s(name)    PUT_ARRAY(name)
#define PUT_u16s(name)   PUT_ARRAY(name)
#define PUT_u32s(name)   PUT_ARRAY(name)
#define PUT_u64s(name)   PUT_ARRAY(name)
#define PUT_i8s(name)    PUT_ARRAY(name)
#define PUT_i16s(name)   PUT_ARRAY(name)
#define PUT_i32s(name)   PUT_ARRAY(name)
#define PUT_i64s(name)   PUT_ARRAY(name)
#define PUT_f32s(name)   PUT_ARRAY(name)
#define PUT_f64s(name)   PUT_ARRAY(name)

#define GC_DYNAMIC(symbol, version_, level_, keyword_, what, ...)                             \
	static_assert((version_) >= 1 && (version_) <= UINT16_MAX,                            \
		#symbol ": versions are 1 to 65535");                                         \
	static_assert(sizeof(#symbol "_V" #version_) <= GC_EVENT_NAME_UNITS_MAX + 1,          \
		#symbol ": the runtime drops longer names");                                  \
	void gc_event_send_##symbol GC_PARAMETERS(__VA_ARGS__)                                \
	{                                                                                     \
		enum { FIXED_SIZE = 2 GC_EACH(FIXED, __VA_ARGS__) };                          \
		uint8_t data[FIXED_SIZE < MORE ? FIXED_SIZE : GC_EVENT_DATA_MAX];             \
		struct packed out = { .at = data, .end = data + sizeof(data) };               \
		const uint16_t version = version_;                                            \
		put(&out, &version, sizeof(version));                                         \
		GC_EACH(PUT, __VA_ARGS__)                                                     \
		if (FIXED_SIZE >= MORE && out.full) {                                         \
			(void)lose(&lost.long_payloads, 0); /* a failure is counted inside */ \
			return;                                                               \
		}                                                                             \
		gc_event_sink->table->FireDynamicEvent(gc_event_sink,                         \
			(version_) > 1 ? #symbol "_V" #version_ : #symbol, data,              \
			(uint32_t)(out.at - data));                                           \
	}
#include GC_EVENTS_DEF
