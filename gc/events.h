/*
 * Events of a collector that is a library of its own, as cheap as those of a built-in one.
 *
 * gc_events.def lists the events. For each entry X of the list this header makes
 *
 *   bool gc_event_on_X(void)       does any session enable it? Inline: a relaxed load and a branch while no session does,
 *                                  two loads while one may
 *   void gc_event_X(fields...)     fires it if a session enables it; a known event through its slot of the runtime's sink, a
 *                                  dynamic one serialized, through the sink's slot for dynamic events
 *
 * Order of calls: gc_events_init() in GC_Initialize(); gc_events_control() from
 * IGCHeap::ControlEvents and ControlPrivateEvents, which the runtime first calls before Initialize;
 * gc_events_poll() at the end of Initialize and at every collection. Until a session enables an
 * event all tests return false. Any thread may fire at any time, also one that the runtime does not
 * know; nothing is allocated, no lock is taken.
 *
 * Events that cannot be sent are counted (gc_events_lost()) and reported by the event SpoorGCLost
 * at the next poll.
 *
 * A collector with another list compiles this header and events.c with -DGC_EVENTS_DEF='"its.def"';
 * the entry SpoorGCLost must be in it. A process has one collector, so the status is a variable of
 * the library, not an object.
 *
 * Compiles as C11 (GNU) and C++11.
 */
#ifndef SPOOR_GC_EVENTS_H
#define SPOOR_GC_EVENTS_H

#include <stdbool.h>
#include <stdint.h>
#ifndef __cplusplus
#include <uchar.h>
#endif

#include "gc/interface.h"

#ifndef GC_EVENTS_DEF
#define GC_EVENTS_DEF "gc/gc_events.def"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Maximum length of a dynamic event's name, in UTF-16 units: the runtime drops longer ones without
 * an error.
 */
#define GC_EVENT_NAME_UNITS_MAX 254u
/* The runtime's limit for a whole payload: name with its NUL, size, data, instance id. */
#define GC_EVENT_WIRE_MAX 65536u
/*
 * Maximum payload of a dynamic event with texts or arrays: it is built on the stack of the firing
 * thread.
 */
#define GC_EVENT_DATA_MAX 8192u

enum gc_event_provider { GC_EVENT_DEFAULT, GC_EVENT_PRIVATE, GC_EVENT_PROVIDERS };

/*
 * What all sessions together enable of each provider. Written by gc_events_control(), read by every
 * enabled test.
 */
struct gc_event_status {
	int32_t level;
	int32_t keyword;
};

extern struct gc_event_status gc_event_status[GC_EVENT_PROVIDERS];
/* The destination of events; not NULL once a session has enabled one. */
extern struct gc_sink *gc_event_sink;

/* Dynamic events that could not be sent, since the start. */
struct gc_events_lost {
	uint64_t long_names;
	uint64_t long_payloads;
};

/* Takes the sink from the runtime. Called in GC_Initialize(), before the other functions. */
void gc_events_init(struct gc_to_clr *ee);

/*
 * Stores what the runtime says is enabled. Two threads may call it at the same time; the later call
 * counts. Level 0 with a keyword means every level, as in the runtime's own sessions.
 */
void gc_events_control(enum gc_event_provider provider, int32_t keyword, int32_t level);

/*
 * Asks the runtime for changes of the status: only then it reports the end of sessions, and LTTng's
 * sessions. Then reports losses.
 */
void gc_events_poll(void);

/* Reports losses only; for a proxy whose collector polls. */
void gc_events_tell_lost(void);

struct gc_events_lost gc_events_lost(void);

/*
 * Fires a dynamic event with this name (UTF-8) and a finished payload, if a session enables it. 0;
 * -ENAMETOOLONG and -EMSGSIZE: beyond the limits above, and counted.
 */
int gc_event_send(int32_t level, int32_t keyword, const char *name, const void *data, size_t size);

/* Does a session enable events of this level and keyword? */
static inline bool gc_event_wanted(enum gc_event_provider provider, int32_t level, int32_t keyword)
{
	/* While no session exists the level is 0, and the second load is not executed. */
	return __atomic_load_n(&gc_event_status[provider].level, __ATOMIC_RELAXED) >= level &&
	       (__atomic_load_n(&gc_event_status[provider].keyword, __ATOMIC_RELAXED) & keyword) !=
		       0;
}

/* ---- from the list to functions ---- */

/* GC_EACH(m, (a, b), (c, d)) is m(a, b) m(c, d); GC_LIST() the same with commas between. */
#define GC_EACH(m, ...)             __VA_OPT__(GC_AGAIN(GC_EACH_STEP(m, __VA_ARGS__)))
#define GC_EACH_STEP(m, field, ...) m field __VA_OPT__(GC_EACH_NEXT GC_PARENS(m, __VA_ARGS__))
#define GC_EACH_NEXT()              GC_EACH_STEP
#define GC_LIST(m, ...)             __VA_OPT__(GC_AGAIN(GC_LIST_STEP(m, __VA_ARGS__)))
#define GC_LIST_STEP(m, field, ...) m field __VA_OPT__(, GC_LIST_NEXT GC_PARENS(m, __VA_ARGS__))
#define GC_LIST_NEXT()              GC_LIST_STEP
#define GC_PARENS                   ()
/* 3^4 scans: more than any event has fields. */
#define GC_AGAIN(...)   GC_AGAIN_1(GC_AGAIN_1(GC_AGAIN_1(__VA_ARGS__)))
#define GC_AGAIN_1(...) GC_AGAIN_2(GC_AGAIN_2(GC_AGAIN_2(__VA_ARGS__)))
#define GC_AGAIN_2(...) GC_AGAIN_3(GC_AGAIN_3(GC_AGAIN_3(__VA_ARGS__)))
#define GC_AGAIN_3(...) __VA_ARGS__

/* A field as a parameter. An array is two: values, count. */
#define GC_PARAMETER(type, name)  GC_PARAMETER_##type(name)
#define GC_PARAMETER_u8(name)     uint8_t name
#define GC_PARAMETER_u16(name)    uint16_t name
#define GC_PARAMETER_u32(name)    uint32_t name
#define GC_PARAMETER_u64(name)    uint64_t name
#define GC_PARAMETER_i8(name)     int8_t name
#define GC_PARAMETER_i16(name)    int16_t name
#define GC_PARAMETER_i32(name)    int32_t name
#define GC_PARAMETER_i64(name)    int64_t name
#define GC_PARAMETER_f32(name)    float name
#define GC_PARAMETER_f64(name)    double name
#define GC_PARAMETER_ptr(name)    void *name
#define GC_PARAMETER_size(name)   size_t name
#define GC_PARAMETER_text16(name) const char16_t *name
#define GC_PARAMETER_u8s(name)    const uint8_t *name, size_t name##_count
#define GC_PARAMETER_u16s(name)   const uint16_t *name, size_t name##_count
#define GC_PARAMETER_u32s(name)   const uint32_t *name, size_t name##_count
#define GC_PARAMETER_u64s(name)   const uint64_t *name, size_t name##_count
#define GC_PARAMETER_i8s(name)    const int8_t *name, size_t name##_count
#define GC_PARAMETER_i16s(name)   const int16_t *name, size_t name##_count
#define GC_PARAMETER_i32s(name)   const int32_t *name, size_t name##_count
#define GC_PARAMETER_i64s(name)   const int64_t *name, size_t name##_count
#define GC_PARAMETER_f32s(name)   const float *name, size_t name##_count
#define GC_PARAMETER_f64s(name)   const double *name, size_t name##_count

/* A field as an argument of a call with the same parameters. */
#define GC_ARGUMENT(type, name)  GC_ARGUMENT_##type(name)
#define GC_ARGUMENT_u8(name)     name
#define GC_ARGUMENT_u16(name)    name
#define GC_ARGUMENT_u32(name)    name
#define GC_ARGUMENT_u64(name)    name
#define GC_ARGUMENT_i8(name)     name
#define GC_ARGUMENT_i16(name)    name
#define GC_ARGUMENT_i32(name)    name
#define GC_ARGUMENT_i64(name)    name
#define GC_ARGUMENT_f32(name)    name
#define GC_ARGUMENT_f64(name)    name
#define GC_ARGUMENT_ptr(name)    name
#define GC_ARGUMENT_size(name)   name
#define GC_ARGUMENT_text16(name) name
#define GC_ARGUMENT_u8s(name)    name, name##_count
#define GC_ARGUMENT_u16s(name)   name, name##_count
#define GC_ARGUMENT_u32s(name)   name, name##_count
#define GC_ARGUMENT_u64s(name)   name, name##_count
#define GC_ARGUMENT_i8s(name)    name, name##_count
#define GC_ARGUMENT_i16s(name)   name, name##_count
#define GC_ARGUMENT_i32s(name)   name, name##_count
#define GC_ARGUMENT_i64s(name)   name, name##_count
#define GC_ARGUMENT_f32s(name)   name, name##_count
#define GC_ARGUMENT_f64s(name)   name, name##_count

/* "(void)" if there are no fields. */
#define GC_PARAMETERS(...)  (GC_LIST(GC_PARAMETER, __VA_ARGS__) GC_VOID_UNLESS(__VA_ARGS__))
#define GC_VOID_UNLESS(...) GC_VOID##__VA_OPT__(_NOT)
#define GC_VOID             void
#define GC_VOID_NOT

#define GC_KNOWN(symbol, provider, level_, keyword_, ...)                               \
	static inline bool gc_event_on_##symbol(void)                                   \
	{                                                                               \
		return gc_event_wanted(GC_EVENT_##provider, level_, keyword_);          \
	}                                                                               \
	static inline void gc_event_##symbol GC_PARAMETERS(__VA_ARGS__)                 \
	{                                                                               \
		if (__builtin_expect(gc_event_on_##symbol(), 0))                        \
			gc_event_sink->table->Fire##symbol(gc_event_sink __VA_OPT__(, ) \
					GC_LIST(GC_ARGUMENT, __VA_ARGS__));             \
	}
#define GC_DYNAMIC(symbol, version_, level_, keyword_, what, ...)                  \
	void gc_event_send_##symbol GC_PARAMETERS(__VA_ARGS__);                    \
	static inline bool gc_event_on_##symbol(void)                              \
	{                                                                          \
		return gc_event_wanted(GC_EVENT_DEFAULT, level_, keyword_);        \
	}                                                                          \
	static inline void gc_event_##symbol GC_PARAMETERS(__VA_ARGS__)            \
	{                                                                          \
		if (__builtin_expect(gc_event_on_##symbol(), 0))                   \
			gc_event_send_##symbol(GC_LIST(GC_ARGUMENT, __VA_ARGS__)); \
	}
#include GC_EVENTS_DEF

#ifdef __cplusplus
}
#endif

#endif
