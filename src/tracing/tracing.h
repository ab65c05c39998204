/*
 * A trace: EventPipe sessions of any number of processes into one file, or each runtime's bytes as they are.
 *
 *   tracing_new(&options, &tracing, &diag);
 *   tracing_add(tracing, target, &diag);                     each chosen process
 *   tracing_write_to(tracing, fd, name, &diag);              the one file; not with options.raw
 *   tracing_start(tracing, &diag);
 *   while (tracing_step(tracing, fds, count, until_ns, &diag) > 0) ...    until the caller has a reason to end
 *   tracing_end(tracing, "reason", &diag);                   begins the end; then further steps until tracing_ended()
 *   tracing_finish(tracing, &diag);                          whatever is still open is left, and the file is ended
 *   tracing_close(tracing);
 *
 * Runtimes that connect to a port of ours (tracing_listen()) are taken as they come: their session is opened before their first instruction, then they go on.
 * What a runtime must not be asked for during its start (late_providers.h) comes through a second session, which is opened when that is over.
 *
 * One thread, nothing blocks. A session that could not be opened, or broke off, is told by tracing_process(); the others go on. What is lost
 * becomes an event, and a gap in the file's sequence numbers.
 */
#ifndef SPOOR_TRACING_TRACING_H
#define SPOOR_TRACING_TRACING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct diag;
struct event;
struct ipc_provider;
struct pollfd;
struct reverse;
struct target;
struct trace;
struct tracing;

struct tracing_options {
	const struct ipc_provider *providers; /* borrowed until tracing_close() */
	uint32_t provider_count;
	uint32_t buffer_mb;                   /* in each target */
	uint64_t rundown_keywords;            /* 0 none */
	bool hold;                            /* runtimes of tracing_listen() are not told to go on */
	/*
	 * Not one file: a descriptor for each process, which tracing closes, and one more for a second session. Negative errno: that process is not traced.
	 * NULL: one file.
	 */
	int (*open_raw)(void *context, const char *name, uint32_t pid, bool second, struct diag *diag);
	/* Each event as it goes into the file (with open_raw: as it comes, without stack). Not 0: tracing_wants_end(). May be NULL. */
	int (*event)(void *context, const struct trace *trace, const struct event *event);
	void *context;
	const char *command_line;             /* of ours, for the file */
	const char *providers_text;           /* as they were chosen, for the file */
	const char *version;
};

enum tracing_state {
	TRACING_OPENING,
	TRACING_RUNNING,
	TRACING_STOPPING,
	TRACING_ENDED,   /* its stream was read to its end */
	TRACING_FAILED,  /* no session, or it broke off: the reason */
};

struct tracing_process {
	uint32_t pid;
	const char *name;
	enum tracing_state state;
	const char *reason;      /* sentence part; "" */
	const char *reason_code;
	const char *runtime_version; /* "" not known */
	uint64_t bytes;          /* of its stream */
	uint64_t events;
	uint64_t lost;
	bool held;               /* it waits before its first instruction */
};

struct tracing_counts {
	uint64_t events;         /* of the runtimes */
	uint64_t lost;
	uint64_t late;
	uint64_t stream_bytes;   /* from the runtimes */
	uint64_t file_bytes;     /* written */
	uint64_t begin_ns;
	uint64_t first_open_ns;  /* when the first session was open; 0 none yet */
	uint64_t due_open_ns;    /* when it should have been, had its runtime answered; 0: no runtime is known yet */
	uint64_t end_ns;         /* when the end was asked for; 0 not yet */
	uint32_t processes;
	uint32_t running;        /* sessions that are open */
	uint32_t opening;
};

int tracing_new(const struct tracing_options *options, struct tracing **ret_tracing, struct diag *diag);

/* -ENOMEM; that it cannot be traced is told by tracing_process(). */
int tracing_add(struct tracing *tracing, const struct target *target, struct diag *diag);

/* A runtime that listens at a path; its pid is what it says. `path` is borrowed until tracing_close(). */
int tracing_add_path(struct tracing *tracing, const char *path, struct diag *diag);

/* Takes the runtimes that connect there. The port stays the caller's and outlives the trace. */
void tracing_listen(struct tracing *tracing, struct reverse *reverse);

int tracing_write_to(struct tracing *tracing, int fd, const char *name, struct diag *diag);

int tracing_start(struct tracing *tracing, struct diag *diag);

/*
 * Waits until something is to be done (at most until `until_ns`, or until one of the caller's `fds` is ready, whose revents are then set) and does it. 1: goes on.
 * 0: every session has ended, and nobody can come any more. Negative: the file cannot be written; what it holds up to then is valid.
 */
int tracing_step(struct tracing *tracing, struct pollfd *fds, size_t fd_count, uint64_t until_ns,
	struct diag *diag);

/* Why no guard (dotnet/guard.h) looks after the sessions: a sentence, which is in the file as a notice too. NULL while all is well. */
const char *tracing_unguarded(const struct tracing *tracing);

/* An event of options.event said so. */
bool tracing_wants_end(const struct tracing *tracing);

/*
 * Around a stop of this process (Ctrl-Z), so that nothing stands still with it: tracing_pause() begins the end of the sessions; then further steps until
 * tracing_paused(), which does not wait for targets that are stopped themselves; what has not ended by then the guard ends. tracing_flush() writes
 * what has come. tracing_resume() opens a session again in each process that had one, and writes a notice with the gap. Not with options.open_raw, where
 * a file is one session: it ends.
 */
void tracing_pause(struct tracing *tracing);
bool tracing_paused(const struct tracing *tracing);
int tracing_flush(struct tracing *tracing, struct diag *diag);
void tracing_resume(struct tracing *tracing, uint64_t paused_ns);

/* Runtimes that come from now on go on without a session. */
void tracing_end(struct tracing *tracing, const char *reason);
bool tracing_ended(const struct tracing *tracing);

int tracing_finish(struct tracing *tracing, struct diag *diag);

size_t tracing_process_count(const struct tracing *tracing);
void tracing_process(const struct tracing *tracing, size_t i, struct tracing_process *ret_process);

void tracing_count(const struct tracing *tracing, struct tracing_counts *ret_counts);

void tracing_close(struct tracing *tracing);

#endif
