/*
 * libspoor: events of C and C++ programs for tracing tools.
 *
 *   SPOOR_PROVIDER(shop, "Shop")                                             a named group of events that sessions enable
 *   SPOOR_EVENT(shop, order, 1, SPOOR_INFO, 0x1, (u32, id), (text, name))    makes shop_order(id, name) and shop_order_enabled()
 *
 *   spoor_start(NULL);                                                       sessions can start from here on
 *   spoor_provider_register(&shop);
 *   shop_order(7, "tea");                                                    one load and a branch while no session enables it
 *
 * A session enables providers (by keywords, level, single events) and has one destination: a
 * nettrace file, a callback, a queue that the program reads, or a tool on the diagnostics socket.
 * An event is written once, for all sessions, into memory of the thread that fires it. The
 * library's own thread copies it to the sessions. Firing takes no lock, allocates nothing and makes
 * no system call; exceptions are the first event of a thread, which maps its memory, and sessions
 * with SPOOR_BLOCK, for which the thread may wait.
 *
 * Rules. Unless a function says otherwise:
 * - Threads: it may be called from any thread.
 * - Signal handlers: only firing is safe there (shop_order(), shop_order_enabled(), spoor_fire(),
 *   spoor_fire_begin() with spoor_fire_end()).
 * - Errors: it returns 0 or a negative errno.
 * - NULL where an object, a view or a place for a result is needed is -EINVAL; functions without a
 *   result for errors return 0 or do nothing. Firing (spoor_fire(), spoor_event_enabled()) does not
 *   check its event.
 * - Ownership: the caller keeps what it passes; texts and tables are copied. Providers and events
 *   are not copied: they exist until they are unregistered.
 * - fork(): the child has no sessions and no library thread until it calls spoor_start(). Handles
 *   of the parent's sessions read as ended there.
 * - Process end: exit() ends sessions and completes their files. After exec(), _exit() or a crash
 *   the files are valid up to the last flush.
 */
#ifndef SPOOR_SPOOR_H
#define SPOOR_SPOOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <spoor/event_lists.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SPOOR_VERSION_MAJOR 0
#define SPOOR_VERSION_MINOR 1

#if defined(SPOOR_BUILDING) && !defined(_WIN32)
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

/*
 * The type of a field, and its bytes in a payload. Fields follow one another without padding,
 * little-endian.
 */
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
	SPOOR_TYPE_TEXT,    /* u16 length, UTF-8, a zero byte that is not counted in the length */
	SPOOR_TYPE_TEXT16,  /* UTF-16 and a 16-bit zero */
	SPOOR_TYPE_STRUCT,  /* its fields */
	SPOOR_TYPE_ARRAY = 0x40, /* flag: u16 count, then the elements. A blob is an array of U8 */
};

struct spoor_field {
	const char *name;
	uint32_t type;                    /* enum spoor_type, with SPOOR_TYPE_ARRAY for an array */
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
	/*
	 * Readers know this event by provider and id: streams contain neither its name nor its
	 * fields.
	 */
	SPOOR_EVENT_WELL_KNOWN = 1 << 0,
	/*
	 * Not an event, but how one source file defines the event that precedes it in the
	 * provider's list: registration compares the two.
	 */
	SPOOR_EVENT_DEFINITION = 1 << 1,
};

/*
 * One kind of event. Members that are not set may be zero. The first two members belong to the
 * library.
 */
struct spoor_event {
	uint64_t sessions; /* bit mask of the sessions that enable it */
	uint32_t index;
	uint32_t size; /* sizeof(struct spoor_event) */
	struct spoor_provider *provider;
	const char *name;
	uint64_t keywords;
	const struct spoor_field *fields;
	uint32_t field_count;
	uint16_t id; /* with the version unique in its provider */
	uint8_t version;
	uint8_t level;
	uint8_t opcode;
	uint8_t flags; /* enum spoor_event_flag */
	/*
	 * SPOOR_RING_PROTOCOL of the header whose functions write it into the ring; 0: only
	 * spoor_fire() writes it
	 */
	uint16_t protocol;
};

/*
 * The number of the way in which the inline functions of event_macros.h write into a thread's ring.
 * A library that reads rings in another way refuses their events.
 */
#define SPOOR_RING_PROTOCOL 1

struct spoor_session;

/* What an enable callback gets. Borrowed during the call. */
struct spoor_enable {
	size_t size;
	struct spoor_provider *provider;
	uint64_t session_id; /* unique in the process, never 0 */
	/* true: the session enables this provider from now on; false: no longer */
	bool enabled;
	uint8_t level; /* of this session */
	uint64_t keywords;
	/* this session's filter arguments, or NULL; borrowed during the call */
	const char *arguments;
	/* All sessions together, after the change. */
	bool any_enabled;
	uint8_t any_level;
	uint64_t any_keywords;
};

/*
 * Called when a session that enables the provider starts or ends, and, for each running session,
 * when the provider is registered. The calls are in the order of the changes, never two at a time,
 * and without a lock held. They are made on the thread that made the change, or on another thread
 * that made a change at the same time. The callback may call any function of the library;
 * spoor_provider_unregister() of its own provider then does not wait for it.
 */
typedef void spoor_enable_function(const struct spoor_enable *what, void *context);

struct spoor_provider {
	size_t size; /* sizeof(struct spoor_provider) */
	const char *name;
	/* may contain events of other providers, which are ignored */
	struct spoor_event *const *events;
	struct spoor_event *const *events_end;
	spoor_enable_function *enable; /* or NULL */
	void *enable_context;
	void *registered; /* used by the library */
};

/*
 * Registers a provider: sessions that enable it get its events from here on, running ones too.
 * Registering twice has no effect. May be called before spoor_start(). -EINVAL: the name is empty
 * or contains '*', or a description is invalid. -EPROTONOSUPPORT: the program was built with headers whose
 * SPOOR_RING_PROTOCOL this library does not have. -ENODATA: it has no events, because none is
 * declared or the linker has dropped them (SPOOR_LISTED). -EEXIST: two of its events
 * have one id and version, another registered provider of this name has another event with both, or
 * two source files define an event differently; no event of the provider is registered. Programs and
 * shared objects may register the same definitions, from one header. A shared object that may
 * be unloaded has to unregister its providers before (SPOOR_PROVIDER_OF_OBJECT does both).
 * Unregistering waits for a running enable callback; events that were fired before keep their
 * names. Neither is for signal handlers.
 */
SPOOR_API int spoor_provider_register(struct spoor_provider *provider);
/*
 * The sentence about the latest -EEXIST of this process, which names both definitions; "" if there
 * was none. Sessions that enable "Spoor-Library" get it as event "Conflict". Writes at most `size`
 * bytes with the final zero.
 */
SPOOR_API void spoor_provider_conflict(char *ret_text, size_t size);

/*
 * Ends a provider: its events are disabled, and its object may be unloaded. Events that were fired
 * keep their names.
 */
SPOOR_API void spoor_provider_unregister(struct spoor_provider *provider);

/* Does any session enable the event? One load; safe in signal handlers. */
static inline bool spoor_event_enabled(const struct spoor_event *event)
{
	return __builtin_expect(__atomic_load_n(&event->sessions, __ATOMIC_RELAXED) != 0, 0);
}

/*
 * Fires an event whose payload is already in bytes (layouts: enum spoor_type). For generated code
 * and other languages. Any thread, signal handlers.
 */
SPOOR_API void spoor_fire(struct spoor_event *event, const void *payload, size_t size);

/* ---- The library as a whole ---- */

enum spoor_clock {
	/* the time stamp counter if the kernel keeps time with it, else CLOCK_MONOTONIC */
	SPOOR_CLOCK_AUTO = 0,
	SPOOR_CLOCK_MONOTONIC, /* one clock_gettime() for each event */
	/* the time stamp counter; -ENOTSUP if the kernel does not keep time with it */
	SPOOR_CLOCK_COUNTER,
};

enum spoor_start_flag {
	/* no diagnostics socket: only this program starts sessions */
	SPOOR_START_NO_SERVER = 1 << 0,
	/*
	 * the rings are in one memory file, from which the last events can be read after a crash
	 * (recover.h)
	 */
	SPOOR_START_RECOVERABLE = 1 << 1,
	/*
	 * the library's thread and those that write files have the nice value -10, if the process may
	 * (CAP_SYS_NICE or RLIMIT_NICE): on a busy machine they get the CPU time that they need
	 */
	SPOOR_START_RAISED = 1 << 2,
};

struct spoor_options {
	size_t size; /* sizeof(struct spoor_options); members beyond it read as 0 */
	uint32_t flags;
	uint32_t clock;
	/*
	 * each thread has one ring of this size: a power of two from 64 KiB to 1 GiB; 0: a thread
	 * begins with 256 KiB and takes rings of 4 MiB as it needs them, from a quarter of
	 * memory_bytes (with SPOOR_START_RECOVERABLE: one ring of 4 MiB)
	 */
	size_t ring_bytes;
	/*
	 * of all rings together; beyond half of it new threads get smaller rings, and beyond all of
	 * it none: their events are lost and counted; 0: 512 MiB
	 */
	size_t memory_bytes;
	/* with SPOOR_START_RECOVERABLE: a file that outlives the process, in place of a memfd */
	const char *recover_path;
};

/*
 * Starts the library's thread, which blocks all signals, and the diagnostics server. Returns 0 also
 * if the library runs already, else a negative errno. -EINVAL: an unknown flag, a size of rings that is
 * not allowed, memory_bytes that hold no ring of that size (and 64 KiB), or recover_path without its
 * flag. Before, no session can exist and every event
 * is off. spoor_stop() ends all sessions and the thread, and waits for both; exit() calls it.
 * spoor_stop() in a callback on the library's own thread does nothing; in a callback of a listener
 * see spoor_listener_function. Neither is for signal
 * handlers.
 */
SPOOR_API int spoor_start(const struct spoor_options *options);
SPOOR_API void spoor_stop(void);

/*
 * In one file of a program or shared object that has no place for a call: starts the library before
 * main(), or when the object is loaded. `options` may be NULL; an error is ignored.
 */
#define SPOOR_START_IN_CONSTRUCTOR(options)                                        \
	__attribute__((constructor)) static void spoor_start_in_constructor_(void) \
	{                                                                          \
		(void)spoor_start(options);                                        \
	}

/* CLOCK_MONOTONIC in nanoseconds: the clock of all events. Safe in signal handlers. */
SPOOR_API uint64_t spoor_now_ns(void);

/* ---- Sessions ---- */

enum spoor_policy {
	SPOOR_DROP_NEWEST = 0,
	/*
	 * flight recorder: keeps the newest buffer_bytes; spoor_session_snapshot() or the session's
	 * end writes them
	 */
	SPOOR_OVERWRITE_OLDEST,
	/*
	 * the firing thread waits for room while the sink takes something, and for at most block_ms
	 * while it takes nothing; then events are lost until the sink takes something again
	 */
	SPOOR_BLOCK,
};

/*
 * A provider that a session enables. An event is enabled when its level is SPOOR_ALWAYS or at most
 * `level`, and its keywords are 0 or have a bit in common.
 */
struct spoor_want {
	size_t size; /* sizeof(struct spoor_want) */
	/*
	 * Compared without regard to ASCII case. "*" with level 5 and all keywords: every provider.
	 * There are no other patterns: a name with '*' is -EINVAL.
	 */
	const char *name;
	uint64_t keywords;
	uint32_t level;        /* 0 to 5 */
	const char *arguments; /* for the provider's enable callback; NULL: none */
	const uint32_t *ids;   /* ids of single events, applied after level and keywords */
	size_t id_count;
	bool ids_allowed; /* true: only the events in `ids`; false: all but these */
};

enum spoor_notice_kind {
	/* `count` events of this session were lost since the previous notice */
	SPOOR_NOTICE_LOST = 1,
	/*
	 * the sink failed with `error` (for example, a full disk or a closed connection) and the
	 * session has stopped
	 */
	SPOOR_NOTICE_FAILED,
	SPOOR_NOTICE_ENDED, /* the session has ended; no notice follows */
};

struct spoor_notice {
	size_t size;
	struct spoor_session *session;
	uint32_t kind;
	int error;
	uint64_t count;
};

/*
 * Called on the library's thread, without a lock held. It must not block; it may call
 * spoor_session_stop().
 */
typedef void spoor_notice_function(const struct spoor_notice *notice, void *context);

struct spoor_session_options {
	size_t size; /* sizeof(struct spoor_session_options) */
	const struct spoor_want *wants;
	size_t want_count;
	uint32_t policy; /* enum spoor_policy */
	/* record the call stack of the thread with each event, by frame pointers */
	bool stacks;
	uint32_t block_ms; /* SPOOR_BLOCK: 0 means 100 */
	uint32_t flush_ms; /* files: the maximum time until an event is written; 0 means 100 */
	/*
	 * memory for events that are not written yet, or that the flight recorder keeps; 0 means 64
	 * MiB
	 */
	size_t buffer_bytes;
	spoor_notice_function *notice;
	void *notice_context;
};

struct spoor_file_options {
	size_t size; /* sizeof(struct spoor_file_options) */
	/* nettrace 4; with rotation NAME.nettrace, NAME.1.nettrace, NAME.2.nettrace, ... */
	const char *path;
	uint64_t rotate_bytes; /* start a new file when this one has so many bytes; 0: never */
	uint32_t rotate_ms;    /* start a new file after this time; 0: never */
	uint32_t keep;         /* number of files to keep, the oldest is removed; 0: all */
};

/*
 * Starts a session that writes a file. With SPOOR_OVERWRITE_OLDEST the file is written by a
 * snapshot or at the end. The caller owns *ret_session and frees it with spoor_session_free().
 */
SPOOR_API int spoor_session_start_file(const struct spoor_session_options *options,
	const struct spoor_file_options *file, struct spoor_session **ret_session);

/*
 * Ends a session: events fired before are written and the file is closed. Waits for that (a few
 * ms), except on the library's thread and in a callback of this session, where it returns before
 * the end. -ETIMEDOUT: nothing could be written, or no callback has returned, for 5 s, and the rest
 * counts as lost. Returns the
 * error of the sink, if it failed. The handle stays valid until
 * spoor_session_free(), which may be called directly afterwards.
 */
SPOOR_API int spoor_session_stop(struct spoor_session *session);
SPOOR_API void spoor_session_free(struct spoor_session *session);

/*
 * Writes the events that a SPOOR_OVERWRITE_OLDEST session holds into another file; the session
 * continues. -EINVAL: the session holds none.
 */
SPOOR_API int spoor_session_snapshot(struct spoor_session *session, const char *path);

/*
 * Waits until all events that the calling thread has fired are with the sink (for a file: written).
 * -ETIMEDOUT after timeout_ms; -EDEADLK on the library's thread.
 */
SPOOR_API int spoor_session_flush(struct spoor_session *session, uint32_t timeout_ms);

/* The number of a session in this process; it is not used again. */
SPOOR_API uint64_t spoor_session_id(const struct spoor_session *session);

/* After the session has ended, written + lost is exactly the number of events fired for it. */
struct spoor_session_counts {
	size_t size;
	uint64_t written;
	uint64_t lost;
};
SPOOR_API void spoor_session_count(const struct spoor_session *session,
	struct spoor_session_counts *ret_counts);

/* ---- Listeners: events inside the process ---- */

/* The description of a kind of event. Valid until the process ends. */
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

/*
 * One event. All pointers are borrowed: until the callback returns, or until the next
 * spoor_listener_read().
 */
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
	/* number of events of this thread that this session lost directly before this one */
	uint64_t lost_before;
};

/*
 * Called on the listener's dispatch thread, without a lock held. Events of one thread arrive in
 * order; events of different threads arrive in batches of a few milliseconds. If it blocks, only
 * this session is delayed. If it does not return within 5 s after the session was stopped,
 * spoor_session_stop() returns -ETIMEDOUT; the event that it has counts as written, those that wait
 * for it are lost. `context` must stay valid as long as it runs. In it, spoor_session_stop() of this
 * session does not wait; spoor_stop() and exit() end this session immediately, with -ETIMEDOUT, as if it
 * had not returned: the events that wait for it are lost. It must not leave by longjmp() or an
 * exception, nor end its thread.
 */
typedef void spoor_listener_function(const struct spoor_event_view *event, void *context);

/*
 * Starts a session that calls a function with each event. spoor_session_stop() returns after the
 * last call.
 */
SPOOR_API int spoor_session_start_callback(const struct spoor_session_options *options,
	spoor_listener_function *function, void *context, struct spoor_session **ret_session);

/*
 * Starts a session whose events wait until the program reads them, one thread at a time.
 *
 * spoor_listener_read(), for which ret_event->size must be set: 1 an event, 0 no event within
 * timeout_ms, -ESHUTDOWN the session has ended and all events were read. Each call ends the
 * lifetime of the previous event.
 */
SPOOR_API int spoor_session_start_listener(const struct spoor_session_options *options,
	struct spoor_session **ret_session);
SPOOR_API int spoor_listener_read(struct spoor_session *session, struct spoor_event_view *ret_event,
	uint32_t timeout_ms);

/*
 * Starts a session without a destination: its events are only in the rings, until later ones
 * overwrite them. With SPOOR_START_RECOVERABLE they can be read after a crash (recover.h). It costs
 * no more than firing.
 */
SPOOR_API int spoor_session_start_rings(const struct spoor_session_options *options,
	struct spoor_session **ret_session);

/* The value of one field of an event's payload. Borrowed from the event. */
struct spoor_value {
	const struct spoor_field *field;
	uint32_t type; /* enum spoor_type of the value; for an array, of its elements */
	bool is_array;
	/* The member that is set depends on the type; integers are widened. */
	uint64_t u64; /* unsigned integers, BOOLEAN, CHAR16, POINTER, TIME */
	int64_t i64;  /* signed integers */
	double f64;   /* F32, F64 */
	/*
	 * TEXT: NUL-terminated UTF-8; TEXT16: ended by a 16-bit zero, unaligned; GUID; STRUCT and
	 * arrays: their bytes
	 */
	const void *bytes;
	size_t byte_count; /* without the final zero */
	size_t count;      /* elements of an array */
};

/*
 * Reads the fields in order; *position is 0 before the first call. 1 a field, 0 no more, -EBADMSG
 * the payload does not match the fields. No lock, no allocation.
 */
SPOOR_API int spoor_event_next_field(const struct spoor_event_view *event, size_t *position,
	struct spoor_value *ret_value);

/* Finds the field `name`; "outer.inner" inside structs. -ENOENT: the event has no such field. */
SPOOR_API int spoor_event_field(const struct spoor_event_view *event, const char *name,
	struct spoor_value *ret_value);

/*
 * Reads the fields of a struct or the elements of an array in order; *position and *offset are 0
 * before the first call. Returns as spoor_event_next_field().
 */
SPOOR_API int spoor_value_next(const struct spoor_value *value, size_t *position, size_t *offset,
	struct spoor_value *ret_value);

/* ---- Events made at run time ---- */

/*
 * The event is not declared before: each call describes it. Two events of one name with different
 * fields are two kinds of event. All functions may be called from any thread, but not in signal
 * handlers; a writer belongs to one thread.
 *
 *   struct spoor_writer w;
 *   if (spoor_source_begin(source, "Checkout", SPOOR_INFO, 0, &w)) {
 *           spoor_write_u32(&w, "status", 200);
 *           spoor_write_text(&w, "path", path);
 *           spoor_source_end(&w);
 *   }
 */
struct spoor_event_source;

/*
 * A source has at most 4096 kinds of event; further kinds are not written (spoor_source_end()
 * returns -ENOSPC).
 */
SPOOR_API struct spoor_event_source *spoor_source_new(const char *provider_name);
SPOOR_API void spoor_source_free(struct spoor_event_source *source);
SPOOR_API void spoor_source_set_enable(struct spoor_event_source *source,
	spoor_enable_function *function, void *context);

/* Does a session enable such an event? One load while no session enables the source. */
SPOOR_API bool spoor_source_enabled(const struct spoor_event_source *source, enum spoor_level level,
	uint64_t keywords);

/* an event of up to this many bytes is written without an allocation */
#define SPOOR_WRITER_BYTES  2048
#define SPOOR_WRITER_FIELDS 64
#define SPOOR_WRITER_DEPTH  8

/* On the stack of the caller; its members belong to the library. */
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

/*
 * False: no session enables the event, and spoor_source_end() must not be called. Names of fields
 * are borrowed until spoor_source_end().
 */
SPOOR_API bool spoor_source_begin(struct spoor_event_source *source, const char *name,
	enum spoor_level level, uint64_t keywords, struct spoor_writer *ret_writer);
/* Not an error: no session and no tool of a logger has enabled the event. */
#define SPOOR_NOT_ENABLED 1
/*
 * Writes the event. 0; SPOOR_NOT_ENABLED; -EINVAL: too many or too large fields, or a struct without its end; -ENOSPC:
 * the source has too many kinds of event; -ENOTSUP: it was written for sessions, but the tools of a
 * logger (<spoor/logger.h>) cannot have this kind of event, such as one with too long a name. A second
 * call, also after spoor_source_cancel(), is -EINVAL and has no effect.
 */
SPOOR_API int spoor_source_end(struct spoor_writer *writer);
/* In place of spoor_source_end(): the event is not written. After it: no effect. */
SPOOR_API void spoor_source_cancel(struct spoor_writer *writer);

/* Sets the event's opcode, which is SPOOR_OPCODE_INFO otherwise. */
static inline void spoor_writer_set_opcode(struct spoor_writer *writer, enum spoor_opcode opcode)
{
	if (writer)
		writer->opcode = SPOOR_CAST(uint8_t, opcode);
}

/*
 * Append a field to the event. A text that is NULL is empty; longer ones are cut as in declared
 * events. Errors are reported by spoor_source_end().
 */
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
SPOOR_API void spoor_write_char16(struct spoor_writer *writer, const char *name,
	spoor_char16 value);
SPOOR_API void spoor_write_guid(struct spoor_writer *writer, const char *name,
	const struct spoor_guid *value);
SPOOR_API void spoor_write_time(struct spoor_writer *writer, const char *name, int64_t unix_ns);
/* A time of any year, in the unit of SPOOR_TYPE_TIME: spoor_write_time() takes those from 1677 to 2262. */
SPOOR_API void spoor_write_time_steps(struct spoor_writer *writer, const char *name,
	uint64_t steps);
SPOOR_API void spoor_write_pointer(struct spoor_writer *writer, const char *name,
	const void *value);
SPOOR_API void spoor_write_text(struct spoor_writer *writer, const char *name, const char *value);
SPOOR_API void spoor_write_text16(struct spoor_writer *writer, const char *name,
	const spoor_char16 *value);
SPOOR_API void spoor_write_blob(struct spoor_writer *writer, const char *name, const void *bytes,
	size_t count);
/* Elements of a fixed size, with the layout of a C array; BOOLEAN as 32-bit values. */
SPOOR_API void spoor_write_array(struct spoor_writer *writer, const char *name,
	enum spoor_type type, const void *elements, size_t count);
SPOOR_API void spoor_write_text_array(struct spoor_writer *writer, const char *name,
	const char *const *texts, size_t count);
/*
 * Fields that are written between these two calls are members of a struct; structs nest up to
 * SPOOR_WRITER_DEPTH deep.
 */
SPOOR_API void spoor_write_struct_begin(struct spoor_writer *writer, const char *name);
SPOOR_API void spoor_write_struct_end(struct spoor_writer *writer);

#ifdef __cplusplus
}
#endif

#include <spoor/event_macros.h>

#endif
