/*
 * libspoor: first-class events for C and C++ programs.
 *
 *   SPOOR_PROVIDER(shop, "Shop")                                             a family of events that sessions ask for by name
 *   SPOOR_EVENT(shop, order, 1, SPOOR_INFO, 0x1, (u32, id), (text, name))    makes shop_order(id, name) and shop_order_enabled()
 *
 *   spoor_start(NULL);                                                       from here on sessions can come
 *   spoor_provider_register(&shop);
 *   shop_order(7, "tea");                                                    one load and a branch while nobody listens
 *
 * A session says which providers it wants (keywords, level, single events), and where they go: a nettrace file, a callback, a queue that is read, a
 * tool on the diagnostics socket. An event is written once, whoever wants it, into memory of the thread that fires it; the library's own thread
 * carries it on. No lock, no allocation and no system call on that way (the first event of a thread sets its memory up; a session that was told to
 * block may wait).
 *
 * Everything here may be called from any thread, unless it says otherwise. Functions that can fail return 0 or a negative errno. Firing is
 * allowed in signal handlers too. After fork() the child has no sessions and no library thread until it calls spoor_start() itself. exec(), _exit() and a
 * crash leave files that are whole up to the last flush; exit() ends them.
 */
#ifndef SPOOR_SPOOR_H
#define SPOOR_SPOOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SPOOR_VERSION_MAJOR 0
#define SPOOR_VERSION_MINOR 1

#ifdef SPOOR_BUILDING
#define SPOOR_API __attribute__((visibility("default")))
#else
#define SPOOR_API
#endif

/* ---- What an event is made of ---- */

enum spoor_level {
	SPOOR_ALWAYS = 0,
	SPOOR_CRITICAL = 1,
	SPOOR_ERROR = 2,
	SPOOR_WARNING = 3,
	SPOOR_INFO = 4,
	SPOOR_VERBOSE = 5,
};

enum spoor_opcode {
	SPOOR_OPCODE_INFO = 0,
	SPOOR_OPCODE_START = 1,
	SPOOR_OPCODE_STOP = 2,
};

/* The type of a field, and how its bytes lie in a payload: one field behind the other, little-endian, nothing between them. */
enum spoor_type {
	SPOOR_TYPE_BOOLEAN = 1, /* 4 bytes, 0 or 1 */
	SPOOR_TYPE_I8,
	SPOOR_TYPE_U8,
	SPOOR_TYPE_I16,
	SPOOR_TYPE_U16,
	SPOOR_TYPE_I32,
	SPOOR_TYPE_U32,
	SPOOR_TYPE_I64,
	SPOOR_TYPE_U64,
	SPOOR_TYPE_F32,
	SPOOR_TYPE_F64,
	SPOOR_TYPE_CHAR16,  /* one UTF-16 unit */
	SPOOR_TYPE_GUID,    /* 16 bytes */
	SPOOR_TYPE_TIME,    /* 8 bytes: 100 ns steps since 1601-01-01 UTC */
	SPOOR_TYPE_POINTER, /* 8 bytes */
	SPOOR_TYPE_TEXT,    /* u16 length, UTF-8, a zero byte that the length leaves out */
	SPOOR_TYPE_TEXT16,  /* UTF-16 and a 16-bit zero */
	SPOOR_TYPE_STRUCT,  /* its fields */
	SPOOR_TYPE_ARRAY = 0x40, /* flag: u16 count, then the elements. A blob is an array of U8 */
};

struct spoor_field {
	const char *name;
	uint32_t type;                    /* enum spoor_type, perhaps | SPOOR_TYPE_ARRAY */
	uint32_t field_count;             /* of SPOOR_TYPE_STRUCT */
	const struct spoor_field *fields; /* of SPOOR_TYPE_STRUCT */
};

struct spoor_guid {
	uint8_t bytes[16]; /* u32, u16, u16 little-endian, then 8 bytes, as .NET writes them */
};

#ifdef __cplusplus
typedef char16_t spoor_char16;
#else
typedef uint_least16_t spoor_char16;
#endif

enum spoor_event_flag {
	/* Readers know this event by provider and id: it travels without name and fields. */
	SPOOR_EVENT_WELL_KNOWN = 1 << 0,
};

/* One kind of event. All zero behind what is given is fine. The first two members belong to the library. */
struct spoor_event {
	uint64_t sessions; /* bit mask of the sessions that want it */
	uint32_t index;
	uint32_t size; /* sizeof(struct spoor_event) */
	struct spoor_provider *provider;
	const char *name;
	uint64_t keywords;
	const struct spoor_field *fields;
	uint32_t field_count;
	uint16_t id; /* unique in its provider */
	uint8_t version;
	uint8_t level;
	uint8_t opcode;
	uint8_t flags; /* enum spoor_event_flag */
	uint16_t reserved;
};

struct spoor_session;

/* What an enable callback is told. */
struct spoor_enable {
	size_t size;
	struct spoor_provider *provider;
	uint64_t session_id;   /* unique in the process, never 0 */
	bool enabled;          /* the session wants this provider from now on, or no longer */
	uint8_t level;         /* what this session asked for */
	uint64_t keywords;
	const char *arguments; /* this session's own filter arguments, NULL without; borrowed during the call */
	/* What all sessions together want now. */
	bool any_enabled;
	uint8_t any_level;
	uint64_t any_keywords;
};

/*
 * Called when a session begins or ends to want the provider; also, for each running session, when the provider is registered. Never under a
 * lock, never two at once, in the order in which things happened, from the thread that made the change or another that did so at that time. It may call
 * anything here, but spoor_provider_unregister() of its own provider does not wait for it.
 */
typedef void spoor_enable_function(const struct spoor_enable *what, void *context);

struct spoor_provider {
	size_t size; /* sizeof(struct spoor_provider) */
	const char *name;
	struct spoor_event *const *events; /* a list that may hold others' events too: only those of this provider count */
	struct spoor_event *const *events_end;
	spoor_enable_function *enable; /* or NULL */
	void *enable_context;
	void *registered; /* the library's */
};

/*
 * From here on sessions can ask for it, and those that already have get its events. A shared object that may be unloaded has to unregister
 * its providers first (SPOOR_PROVIDER_OF_OBJECT does both). May be called before spoor_start(). Registered twice counts once.
 * Unregistering waits for a running enable callback; events that were fired keep their names.
 */
SPOOR_API int spoor_provider_register(struct spoor_provider *provider);
SPOOR_API void spoor_provider_unregister(struct spoor_provider *provider);

static inline bool spoor_event_enabled(const struct spoor_event *event)
{
	return __builtin_expect(__atomic_load_n(&event->sessions, __ATOMIC_RELAXED) != 0, 0);
}

/* Fires an event whose payload is there as bytes already (layouts: enum spoor_type). For generated code and other languages. */
SPOOR_API void spoor_fire(struct spoor_event *event, const void *payload, size_t size);

/* ---- The library as a whole ---- */

enum spoor_clock {
	SPOOR_CLOCK_AUTO = 0,  /* the time stamp counter where the kernel itself keeps time with it, else CLOCK_MONOTONIC */
	SPOOR_CLOCK_MONOTONIC, /* one clock_gettime() an event */
	SPOOR_CLOCK_COUNTER,   /* -ENOTSUP where the kernel does not trust the counter */
};

enum spoor_start_flag {
	SPOOR_START_NO_SERVER = 1 << 0,  /* no diagnostics socket: sessions come from this program alone */
	SPOOR_START_RECOVERABLE = 1 << 1, /* the rings stand in one memory file, from which the last events of a crash can be read (recover.h) */
};

struct spoor_options {
	size_t size; /* sizeof(struct spoor_options): what is behind it counts as 0 */
	uint32_t flags;
	uint32_t clock;
	size_t ring_bytes;        /* of a thread: a power of two from 64 KiB to 1 GiB; 0: 4 MiB */
	size_t memory_bytes;      /* of all rings together: beyond half of it new threads get smaller ones; 0: 256 MiB */
	const char *recover_path; /* with SPOOR_START_RECOVERABLE: a file instead of a memfd, which outlives the process */
};

/*
 * Starts the library's thread (all signals blocked in it) and, where wanted, the diagnostics server. 0, also when it runs already. Until then no session can
 * exist and every event is off. spoor_stop() ends all sessions and the thread; exit() calls it.
 */
SPOOR_API int spoor_start(const struct spoor_options *options);
SPOOR_API void spoor_stop(void);

/* CLOCK_MONOTONIC in nanoseconds: the clock of all events. */
SPOOR_API uint64_t spoor_now_ns(void);

/* ---- Sessions ---- */

enum spoor_policy {
	SPOOR_DROP_NEWEST = 0,
	SPOOR_OVERWRITE_OLDEST, /* flight recorder: keeps the newest buffer_bytes, written by spoor_session_snapshot() or at the end */
	SPOOR_BLOCK,            /* the firing thread waits for room, at most block_ms, then drops */
};

/* A provider that a session wants. An event is wanted when its level is SPOOR_ALWAYS or at most `level`, and its keywords are 0 or share a bit. */
struct spoor_want {
	size_t size;         /* sizeof(struct spoor_want) */
	const char *name;    /* exact, else without regard to ASCII case; "*" with level 5 and all keywords: every provider */
	uint64_t keywords;
	uint32_t level;      /* 0 to 5 */
	const char *arguments; /* for the provider's enable callback, or NULL */
	const uint32_t *ids; /* single events, applied after level and keywords */
	size_t id_count;
	bool ids_allowed;    /* true: only `ids`; false: all but `ids` */
};

enum spoor_notice_kind {
	SPOOR_NOTICE_LOST = 1, /* `count` events of this session are gone since the last notice */
	SPOOR_NOTICE_FAILED,   /* the sink failed with `error` (a full disk, a peer that went away): the session has stopped */
	SPOOR_NOTICE_ENDED,    /* the last one of a session */
};

struct spoor_notice {
	size_t size;
	struct spoor_session *session;
	uint32_t kind;
	int error;
	uint64_t count;
};

/* Called on the library's thread, never under a lock: it must not block, and may call spoor_session_stop(). */
typedef void spoor_notice_function(const struct spoor_notice *notice, void *context);

struct spoor_session_options {
	size_t size; /* sizeof(struct spoor_session_options) */
	const struct spoor_want *wants;
	size_t want_count;
	uint32_t policy;       /* enum spoor_policy */
	bool stacks;           /* with each event the call stack of its thread, by frame pointers */
	uint32_t block_ms;     /* SPOOR_BLOCK: 0 means 100 */
	uint32_t flush_ms;     /* files: at most so far behind; 0 means 100 */
	size_t buffer_bytes;   /* what may wait, or be kept, for this session; 0 means 64 MiB */
	spoor_notice_function *notice;
	void *notice_context;
};

struct spoor_file_options {
	size_t size;           /* sizeof(struct spoor_file_options) */
	const char *path;      /* nettrace 4; with rotation NAME.nettrace, NAME.1.nettrace, NAME.2.nettrace, ... */
	uint64_t rotate_bytes; /* a new file when this one has grown so large; 0: never */
	uint32_t rotate_ms;    /* a new file after so long; 0: never */
	uint32_t keep;         /* how many files to keep, the oldest is removed; 0: all */
};

/* A session that writes a file. With SPOOR_OVERWRITE_OLDEST the file is written at the end, or by a snapshot. */
SPOOR_API int spoor_session_start_file(const struct spoor_session_options *options,
	const struct spoor_file_options *file, struct spoor_session **ret_session);

/*
 * Ends it: all that was fired before is written, its file closed. Waits for that (a few ms), but on the library's thread or in a
 * callback of this session, where it returns at once. The handle stays valid until spoor_session_free(), which may be called right after.
 */
SPOOR_API int spoor_session_stop(struct spoor_session *session);
SPOOR_API void spoor_session_free(struct spoor_session *session);

/* Writes what a SPOOR_OVERWRITE_OLDEST session holds into a file of its own; the session goes on. */
SPOOR_API int spoor_session_snapshot(struct spoor_session *session, const char *path);

/* Waits until all that the calling thread has fired is with the sink (a file: written). At most timeout_ms: -ETIMEDOUT. */
SPOOR_API int spoor_session_flush(struct spoor_session *session, uint32_t timeout_ms);

SPOOR_API uint64_t spoor_session_id(const struct spoor_session *session);

/* written + lost = fired for this session, exactly once it has ended. */
struct spoor_session_counts {
	size_t size;
	uint64_t written;
	uint64_t lost;
};
SPOOR_API void spoor_session_count(const struct spoor_session *session, struct spoor_session_counts *ret_counts);

/* ---- Listeners: events inside the process ---- */

/* What is known of a kind of event. Valid as long as the process lives. */
struct spoor_event_info {
	size_t size;
	const char *provider;
	const char *name;
	uint64_t keywords;
	const struct spoor_field *fields;
	uint32_t field_count;
	uint16_t id;
	uint8_t version;
	uint8_t level;
	uint8_t opcode;
};

/* One event. All pointers are borrowed: until the callback returns, or the next spoor_listener_read(). */
struct spoor_event_view {
	size_t size;
	const struct spoor_event_info *info;
	struct spoor_session *session;
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint64_t thread_id;
	const uint8_t *activity_id;         /* 16 bytes, or NULL */
	const uint8_t *related_activity_id; /* 16 bytes, or NULL */
	const uint64_t *stack;              /* leaf first */
	size_t stack_count;
	const void *payload;
	size_t payload_size;
	uint64_t lost_before; /* events of this thread that this session lost directly before this one */
};

/*
 * Called on the listener's dispatch thread, never under a lock. Events of one thread come in order; those of different threads in
 * batches of a few milliseconds. Blocking in it delays this session alone.
 */
typedef void spoor_listener_function(const struct spoor_event_view *event, void *context);

/* A session whose events are handed to a function. spoor_session_stop() returns after its last call. */
SPOOR_API int spoor_session_start_callback(const struct spoor_session_options *options,
	spoor_listener_function *function, void *context, struct spoor_session **ret_session);

/*
 * A session whose events wait until they are read: nothing is called. Read by one thread at a time.
 *
 * spoor_listener_read(), which needs ret_event->size: 1 an event, 0 nothing came within timeout_ms, -ESHUTDOWN all read and the session has ended. After each event the one
 * before it is gone.
 */
SPOOR_API int spoor_session_start_listener(const struct spoor_session_options *options, struct spoor_session **ret_session);
SPOOR_API int spoor_listener_read(struct spoor_session *session, struct spoor_event_view *ret_event, uint32_t timeout_ms);

/*
 * A session that goes nowhere: its events stand in the rings until later ones take their place. With SPOOR_START_RECOVERABLE they are what is read after a
 * crash (recover.h), at the price of firing alone.
 */
SPOOR_API int spoor_session_start_rings(const struct spoor_session_options *options, struct spoor_session **ret_session);

/* A field of an event, taken out of its payload. */
struct spoor_value {
	const struct spoor_field *field;
	uint32_t type; /* enum spoor_type of the value: the element's, for arrays */
	bool is_array;
	/* Which one depends on the type; integers are widened. */
	uint64_t u64;  /* unsigned integers, BOOLEAN, CHAR16, POINTER, TIME */
	int64_t i64;   /* signed integers */
	double f64;    /* F32, F64 */
	const void *bytes;      /* TEXT: NUL-terminated UTF-8; TEXT16: ended by a 16-bit zero, unaligned; GUID; STRUCT and arrays: their bytes */
	size_t byte_count;      /* without the final zero */
	size_t count;           /* elements of an array */
};

/* The fields in order: *position is 0 before the first. 1 a field, 0 no more, -EBADMSG a payload that does not fit its fields. */
SPOOR_API int spoor_event_next_field(const struct spoor_event_view *event, size_t *position, struct spoor_value *ret_value);

/* The field `name`; "outer.inner" inside structs. -ENOENT when there is none. */
SPOOR_API int spoor_event_field(const struct spoor_event_view *event, const char *name, struct spoor_value *ret_value);

/* Fields of a struct value, elements of an array: *position and *offset are 0 before the first. */
SPOOR_API int spoor_value_next(const struct spoor_value *value, size_t *position, size_t *offset, struct spoor_value *ret_value);

/* ---- Events made at run time ---- */

/*
 * No declaration: an event is described as it is written. Two of the same name with other fields are two kinds of event.
 *
 *   struct spoor_writer w;
 *   if (spoor_source_begin(source, "Checkout", SPOOR_INFO, 0, &w)) {
 *           spoor_write_u32(&w, "status", 200);
 *           spoor_write_text(&w, "path", path);
 *           spoor_source_end(&w);
 *   }
 */
struct spoor_event_source;

/* At most 4096 different kinds of event a source: further ones are not written (-ENOSPC of spoor_source_end()). */
SPOOR_API struct spoor_event_source *spoor_source_new(const char *provider_name);
SPOOR_API void spoor_source_free(struct spoor_event_source *source);
SPOOR_API void spoor_source_set_enable(struct spoor_event_source *source, spoor_enable_function *function, void *context);

/* Does any session want such an event? One load where nobody wants anything of this source. */
SPOOR_API bool spoor_source_enabled(const struct spoor_event_source *source, enum spoor_level level, uint64_t keywords);

#define SPOOR_WRITER_BYTES  2048 /* an event of up to so many bytes needs no allocation */
#define SPOOR_WRITER_FIELDS 64
#define SPOOR_WRITER_DEPTH  8

/* On the caller's stack; its members are the library's. */
struct spoor_writer {
	struct spoor_event_source *source;
	const char *name;
	uint64_t keywords;
	uint8_t level;
	uint8_t opcode;
	uint8_t depth;
	uint8_t failed;
	uint32_t field_count;
	uint64_t hash;
	uint8_t *payload;
	size_t payload_size;
	size_t payload_room;
	struct {
		const char *name;
		uint32_t type;
	} fields[SPOOR_WRITER_FIELDS];
	uint8_t inline_payload[SPOOR_WRITER_BYTES];
};

/* False when nobody wants it: then there is nothing to end. Names of fields are borrowed until spoor_source_end(). */
SPOOR_API bool spoor_source_begin(struct spoor_event_source *source, const char *name, enum spoor_level level,
	uint64_t keywords, struct spoor_writer *ret_writer);
SPOOR_API int spoor_source_end(struct spoor_writer *writer); /* -EINVAL: too many or too large fields, structs that are not ended */
static inline void spoor_writer_set_opcode(struct spoor_writer *writer, enum spoor_opcode opcode)
{
	writer->opcode = (uint8_t)opcode;
}

SPOOR_API void spoor_write_boolean(struct spoor_writer *writer, const char *name, bool value);
SPOOR_API void spoor_write_i8(struct spoor_writer *writer, const char *name, int8_t value);
SPOOR_API void spoor_write_u8(struct spoor_writer *writer, const char *name, uint8_t value);
SPOOR_API void spoor_write_i16(struct spoor_writer *writer, const char *name, int16_t value);
SPOOR_API void spoor_write_u16(struct spoor_writer *writer, const char *name, uint16_t value);
SPOOR_API void spoor_write_i32(struct spoor_writer *writer, const char *name, int32_t value);
SPOOR_API void spoor_write_u32(struct spoor_writer *writer, const char *name, uint32_t value);
SPOOR_API void spoor_write_i64(struct spoor_writer *writer, const char *name, int64_t value);
SPOOR_API void spoor_write_u64(struct spoor_writer *writer, const char *name, uint64_t value);
SPOOR_API void spoor_write_f32(struct spoor_writer *writer, const char *name, float value);
SPOOR_API void spoor_write_f64(struct spoor_writer *writer, const char *name, double value);
SPOOR_API void spoor_write_char16(struct spoor_writer *writer, const char *name, spoor_char16 value);
SPOOR_API void spoor_write_guid(struct spoor_writer *writer, const char *name, const struct spoor_guid *value);
SPOOR_API void spoor_write_time(struct spoor_writer *writer, const char *name, int64_t unix_ns);
SPOOR_API void spoor_write_pointer(struct spoor_writer *writer, const char *name, const void *value);
SPOOR_API void spoor_write_text(struct spoor_writer *writer, const char *name, const char *value);
SPOOR_API void spoor_write_text16(struct spoor_writer *writer, const char *name, const spoor_char16 *value);
SPOOR_API void spoor_write_blob(struct spoor_writer *writer, const char *name, const void *bytes, size_t count);
/* Elements of a fixed size, as they lie in memory; BOOLEAN as 32-bit values. */
SPOOR_API void spoor_write_array(struct spoor_writer *writer, const char *name, enum spoor_type type, const void *elements, size_t count);
SPOOR_API void spoor_write_text_array(struct spoor_writer *writer, const char *name, const char *const *texts, size_t count);
/* What is written between them is inside a struct; up to SPOOR_WRITER_DEPTH of them nest. */
SPOOR_API void spoor_write_struct_begin(struct spoor_writer *writer, const char *name);
SPOOR_API void spoor_write_struct_end(struct spoor_writer *writer);

#ifdef __cplusplus
}
#endif

#include <spoor/event_macros.h>

#endif
