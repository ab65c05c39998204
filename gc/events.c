/*
 * The part of eventing that need not be inline: the status words, the serializers of the dynamic events, the losses.
 *
 * A dynamic payload is laid out on the stack of the thread that fires: u16 version, then the fields, packed and little-endian. What fields there can
 * be is known when this is compiled, so an event without texts or arrays takes exactly its bytes and cannot fail; the others have GC_EVENT_DATA_MAX.
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
/* What the runtime said last, word for word: gc_events_poll() says it back, and hears of it only when it is no longer so. */
static struct gc_event_status told[GC_EVENT_PROVIDERS];
static struct gc_events_lost lost;
/* What SpoorGCLost has told of. */
static struct gc_events_lost lost_told;

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
 * Two threads may tell at once: the diagnostics server's when a session ends (the stale union), the collecting one from inside its poll (the truth).
 * Were their words mixed, what is said back at the next poll would not be what is in force, and the runtime would not correct it. The runtimes seen hold
 * a lock of their own meanwhile; nothing here leans on that.
 */
static bool telling;

void gc_events_control(enum gc_event_provider provider, int32_t keyword, int32_t level)
{
	while (__atomic_test_and_set(&telling, __ATOMIC_ACQUIRE))
		(void)sched_yield(); /* the other one stores four words */
	store(&told[provider].level, level);
	store(&told[provider].keyword, keyword);
	if (gc_event_sink) {
		store(&gc_event_status[provider].level, level == 0 && keyword != 0 ? 5 : level);
		store(&gc_event_status[provider].keyword, keyword);
	}
	__atomic_clear(&telling, __ATOMIC_RELEASE);
}

struct gc_events_lost gc_events_lost(void)
{
	return (struct gc_events_lost){
		.long_names = __atomic_load_n(&lost.long_names, __ATOMIC_RELAXED),
		.long_payloads = __atomic_load_n(&lost.long_payloads, __ATOMIC_RELAXED),
	};
}

/* The losses since it was told of last: each is told once, whoever polls. */
static uint64_t untold(const uint64_t *count, uint64_t *count_told)
{
	uint64_t now = __atomic_load_n(count, __ATOMIC_RELAXED);

	return now - __atomic_exchange_n(count_told, now, __ATOMIC_RELAXED);
}

void gc_events_tell_lost(void)
{
	if (!gc_event_on_SpoorGCLost())
		return;
	uint64_t names = untold(&lost.long_names, &lost_told.long_names);
	uint64_t payloads = untold(&lost.long_payloads, &lost_told.long_payloads);
	if (names || payloads)
		gc_event_SpoorGCLost(names, payloads);
}

void gc_events_poll(void)
{
	runtime->table->UpdateGCEventStatus(runtime, load(&told[GC_EVENT_DEFAULT].level),
		load(&told[GC_EVENT_DEFAULT].keyword), load(&told[GC_EVENT_PRIVATE].level),
		load(&told[GC_EVENT_PRIVATE].keyword));
	gc_events_tell_lost();
}

static int lose(uint64_t *count, int error)
{
	__atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
	return error;
}

/* The UTF-16 units that the runtime will make of this: one or two a character, one for each byte that belongs to none. */
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
	gc_event_sink->table->FireDynamicEvent(
		gc_event_sink, name, (void *)(uintptr_t)data, (uint32_t)size);
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

__attribute__((unused)) static void put_array(
	struct packed *out, const void *values, size_t count, size_t size)
{
	uint16_t count16 = (uint16_t)count;

	/* More than fits is full whatever the count; so the product cannot overflow. */
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

/* Bytes of a field that are always there, and whether there may be more. */
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

#define GC_DYNAMIC(symbol, version_, level_, keyword_, what, ...)                                  \
	static_assert(                                                                             \
		(version_) >= 1 && (version_) <= UINT16_MAX, #symbol ": versions are 1 to 65535"); \
	static_assert(sizeof(#symbol "_V" #version_) <= GC_EVENT_NAME_UNITS_MAX + 1,               \
		#symbol ": the runtime drops longer names");                                       \
	void gc_event_send_##symbol GC_PARAMETERS(__VA_ARGS__)                                     \
	{                                                                                          \
		enum { FIXED_SIZE = 2 GC_EACH(FIXED, __VA_ARGS__) };                               \
		uint8_t data[FIXED_SIZE < MORE ? FIXED_SIZE : GC_EVENT_DATA_MAX];                  \
		struct packed out = { .at = data, .end = data + sizeof(data) };                    \
		const uint16_t version = version_;                                                 \
		put(&out, &version, sizeof(version));                                              \
		GC_EACH(PUT, __VA_ARGS__)                                                          \
		if (FIXED_SIZE >= MORE && out.full) {                                              \
			(void)lose(                                                                \
				&lost.long_payloads, 0); /* counted: nobody here could do more */  \
			return;                                                                    \
		}                                                                                  \
		gc_event_sink->table->FireDynamicEvent(gc_event_sink,                              \
			(version_) > 1 ? #symbol "_V" #version_ : #symbol, data,                   \
			(uint32_t)(out.at - data));                                                \
	}
#include GC_EVENTS_DEF
