/*
 * The writer of a live session's file: `record` and `trace` write the same facts with it.
 *
 *   session_writer_init(&writer, &trace, &window);
 *   session_writer_open(&writer, &file, &diag);       the file's head; without it nothing is written
 *   session_writer_head(&writer, &session);           the session and the machine
 *   session_writer_process(&writer, ...), session_writer_event(&writer, &event), ...
 *   session_writer_flush(&writer);                    every SESSION_FLUSH_NS
 *   session_writer_end(&writer, "reason", counts, count);
 *   session_writer_done(&writer);
 *
 * An event of Spoor has the time that the reorder window has reached, and its payload is put into
 * `payload`, which is empty between two calls. After a failure, kept in `error`, nothing more is
 * written. All zero is a writer without a file, which ignores every event. The trace and the window
 * are borrowed.
 */
#ifndef SPOOR_PIPELINE_SESSION_WRITER_H
#define SPOOR_PIPELINE_SESSION_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/diag.h"
#include "dotnet/reason.h"
#include "machine/box.h"
#include "pipeline/output_limit.h"
#include "trace/loss_words.h"
#include "trace/notice_codes.h"
#include "trace/schema.h"
#include "trace/session_counts.h"

struct event;
struct guard;
struct ipc_process_info;
struct payload_loss;
struct payload_runtime;
struct payload_session;
struct proc_reader;
struct relay;
struct reorder_window;
struct sink;
struct sink_ops;
struct stack_table;
struct trace;

#define SESSION_FLUSH_NS UINT64_C(500000000)
/* A sentence that ends with the reason why there is no guard (dotnet/guard.h). */
#define SESSION_UNGUARDED ".NET processes may have to wait for spoor if it is stopped or hangs: "

struct session_writer {
	struct trace *trace;
	struct reorder_window *window;
	const struct sink_ops *sink_ops; /* NULL: no file */
	struct sink *sink;
	struct box box;
	struct output_limit limit; /* all zero: none */
	struct bytes payload;
	struct bytes text;      /* scratch for the caller's texts */
	size_t unflushed_bytes; /* estimate, of events in the sink */
	size_t unflushed_most;  /* upper bound of their bytes; only with a file size limit */
	uint32_t recorder_process;
	uint64_t begin_ns;
	uint64_t end_ns; /* when the session began to end; 0: it runs */
	int error;
	struct diag diag; /* of `error` */
};

struct session_file {
	int fd;           /* borrowed until session_writer_done() */
	const char *name; /* borrowed until session_writer_done() */
	const char *version;
	bool packed; /* compressed with zstd */
};

/* Returns 0 or -ENOMEM. */
int session_writer_init(struct session_writer *writer, struct trace *trace,
	struct reorder_window *window);

/* Sets the trace's facts about the machine and its clock, and writes the file's head. */
int session_writer_open(struct session_writer *writer, const struct session_file *file,
	struct diag *diag);

/* `session` without the members that are the same in every session: event_set, clock, utc_ns. */
void session_writer_head(struct session_writer *writer, const struct payload_session *session);

/* Writes an event as it is. */
void session_writer_event(struct session_writer *writer, const struct event *event);

/*
 * Writes an event of Spoor with the payload in writer->payload. The caller sets what the event has:
 * thread_index, cpu, stack_index, value, lost_before; time_ns 0: the time of the window; payload, if
 * it is in other memory. A payload that ran out of memory is not written.
 */
void session_writer_emit(struct session_writer *writer, enum known_event known, struct event event);

/* As session_writer_emit(), of the main thread of a process. */
void session_writer_emit_about(struct session_writer *writer, enum known_event known,
	uint32_t process);

/*
 * Writes a process's first events: its name, its facts and its command line. `proc` reads the facts
 * that the row lacks; NULL: the process has ended or cannot be seen. Returns the hash of its
 * /proc/PID/cgroup; 0: not read.
 */
enum session_process_flag {
	SESSION_PROCESS_CREATED = 1 << 0,      /* it was created during the session */
	SESSION_PROCESS_NO_ARGUMENTS = 1 << 1, /* its arguments are not written */
};
uint64_t session_writer_process(struct session_writer *writer, struct proc_reader *proc,
	uint32_t process, unsigned flags);

/*
 * Writes the facts about a process's runtime: `runtime` has the members reachable, reason and
 * sessions. `info` is the runtime's own answer; NULL: there is none.
 */
void session_writer_runtime(struct session_writer *writer, uint32_t process,
	const struct ipc_process_info *info, const struct payload_runtime *runtime);

/*
 * Writes a notice about a limit of the session, with the text that `format` makes. `process`: that it
 * is about; 0: the recorder's. `remedy`: a sentence part, or "".
 */
void session_writer_notice(struct session_writer *writer, uint32_t process, enum notice_code code,
	const char *remedy, const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Likewise about a process that could not be reached for this reason. */
void session_writer_unreachable(struct session_writer *writer, uint32_t process,
	enum reason_kind kind, const char *remedy, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

/* Writes a notice that spoor was stopped; `effect` continues the sentence. */
void session_writer_paused(struct session_writer *writer, uint64_t paused_ns, const char *effect);

/*
 * Appends the sentence for a notice "guard": in its last round the guard ended this program's sessions
 * in `process_count` processes. `opens_again`: as long as this program continues, they are opened again.
 */
void session_add_guarded(struct bytes *text, const struct guard *guard, uint32_t process_count,
	bool opens_again, uint64_t now_ns);

/*
 * Writes a loss; loss->provider may be NULL, and loss->source and ->unit are not read. `gap`: the
 * count is also a sequence number gap.
 */
void session_writer_loss(struct session_writer *writer, uint32_t process, enum loss_source source,
	enum loss_unit unit, const struct payload_loss *loss, bool gap);

/* Writes a loss that belongs to no process and no CPU, from the session's begin to `last_ns`. */
void session_writer_loss_at_all(struct session_writer *writer, enum loss_source source,
	enum loss_unit unit, uint64_t count, uint64_t last_ns);

/* Writes what the sink holds. session_writer_relieve() does it only when the sink holds much. */
void session_writer_flush(struct session_writer *writer);
void session_writer_relieve(struct session_writer *writer);

/*
 * session_writer_is_full(): the file has room for names and final events only.
 * session_writer_is_over(): not even for names. Both may flush the sink to learn its size.
 */
bool session_writer_is_full(struct session_writer *writer);
bool session_writer_is_over(struct session_writer *writer);

/*
 * Called after a flush. When the stack table has grown too large, drops all stacks except those that
 * the relay's streams (NULL: no relay), the window, and the caller still use: `move` puts the
 * caller's stacks into `fresh`; it may be NULL.
 */
typedef void session_move_stacks(void *context, struct stack_table *fresh);
void session_writer_trim_stacks(struct session_writer *writer, struct relay *relay,
	session_move_stacks *move, void *context);

/* Called right after a flush: the thread's row is about to be given to another thread. */
void session_writer_forget_thread(struct session_writer *writer, uint32_t thread);

/* Writes the final event and ends the file. `count` is at most SESSION_COUNTS. */
void session_writer_end(struct session_writer *writer, const char *reason,
	const struct session_count *counts, size_t count);

/* writer->error, with its sentence in `diag` if that has none. */
int session_writer_error(const struct session_writer *writer, struct diag *diag);

/* Size of the file. */
uint64_t session_writer_bytes(const struct session_writer *writer);

void session_writer_done(struct session_writer *writer);

#endif
