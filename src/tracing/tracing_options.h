/* The options of a trace, and what it reports about itself and its processes (tracing.h). */
#ifndef SPOOR_TRACING_TRACING_OPTIONS_H
#define SPOOR_TRACING_TRACING_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dotnet/reason.h"

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
	uint32_t buffer_mb;        /* in each target */
	uint64_t rundown_keywords; /* 0: none */
	bool hold;                 /* runtimes of tracing_listen() are not resumed */
	/*
	 * Not NULL: each process gets its own file instead of the one file. Returns its descriptor,
	 * which tracing closes; called again for a second session. A negative errno: that process
	 * is not traced.
	 */
	int (*open_raw)(void *context, const char *name, uint32_t pid, bool second,
		struct diag *diag);
	/*
	 * Called for each event as it is written to the file (with open_raw: in order of arrival,
	 * without stack). A nonzero result sets tracing_wants_end(). May be NULL.
	 */
	int (*event)(void *context, const struct trace *trace, const struct event *event);
	void *context;
	const char *command_line;   /* of the recorder, for the file */
	const char *providers_text; /* as given by the user, for the file */
	const char *version;
};

enum tracing_state {
	TRACING_OPENING,
	TRACING_RUNNING,
	TRACING_STOPPING,
	TRACING_ENDED,  /* its stream was read to its end */
	TRACING_FAILED, /* no session, or it broke off; see `reason` */
};

struct tracing_process {
	uint32_t pid;
	const char *name;
	enum tracing_state state;
	const char *reason; /* part of a sentence; "" for none */
	enum reason_kind reason_kind;
	const char *runtime_version; /* "" if unknown */
	uint64_t bytes;              /* of its stream */
	uint64_t events;
	uint64_t lost;
	bool held; /* it waits before its first instruction */
};

struct tracing_counts {
	uint64_t events; /* of the runtimes */
	uint64_t lost;
	uint64_t late;
	uint64_t stream_bytes; /* from the runtimes */
	uint64_t file_bytes;   /* written */
	uint64_t begin_ns;
	uint64_t first_open_ns; /* when the first session was open; 0: none yet */
	/* when the first session should have been open if its runtime answers; 0: none is known */
	uint64_t due_open_ns;
	uint64_t end_ns; /* when tracing_end() was called; 0: not yet */
	uint32_t processes;
	uint32_t running; /* open sessions */
	uint32_t opening;
};

#endif
