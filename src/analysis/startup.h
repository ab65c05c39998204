/*
 * The start of .NET processes, from their exec to the answer of the first request: when each step
 * was reached, and what the time between two steps went into: CPU time, compilation, precompiled
 * methods, assemblies. Steps of the host come from StartStep events (trace/start_step.h), the others
 * from the runtime's and the server's.
 *
 *   startup_event(&startup, &event, trace)          for each event, in file order
 *   startup_finish(&startup, &profile, &stacks, to_ns)    once
 *   startup_done(&startup)
 *
 * A start is observed for at most STARTUP_MAX_NS. A step that is not reached by then is unknown.
 */
#ifndef SPOOR_ANALYSIS_STARTUP_H
#define SPOOR_ANALYSIS_STARTUP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/strtab.h"
#include "base/vec.h"

struct event_stacks;
struct profile;
struct runtime_event;
struct symbolmap;
struct trace;

#define STARTUP_MAX_NS UINT64_C(60000000000)
/* Of all processes: of samples, methods and assemblies, each. */
#define STARTUP_MARKS_MAX (1u << 20)

/* In the order of a start; any may be unknown. */
enum startup_step {
	STARTUP_EXEC,
	STARTUP_HOSTFXR,
	STARTUP_HOSTPOLICY,
	STARTUP_CORECLR,
	STARTUP_RUNTIME, /* the runtime begins to execute managed code */
	STARTUP_MAIN,
	STARTUP_READY,   /* ASP.NET Core accepts connections */
	STARTUP_REQUEST, /* the first one begins */
	STARTUP_ANSWER,  /* and ends */
	STARTUP_STEPS
};

enum startup_mark_kind {
	STARTUP_SAMPLE,   /* lasts: its weight; text: stack of event_stacks */
	STARTUP_JIT,      /* text: the method, as the next */
	STARTUP_R2R,      /* a precompiled method is prepared for its first call */
	STARTUP_ASSEMBLY, /* text: its name */
	STARTUP_MARK_KINDS
};

struct startup_mark {
	uint64_t at_ns; /* since the recording's begin, like all times here */
	uint64_t lasts_ns;
	uint32_t process;
	uint32_t text; /* in `texts`, but of samples */
	uint8_t kind;  /* enum startup_mark_kind */
};

/* The time from a known step to the next known one. */
struct startup_phase {
	enum startup_step step;
	enum startup_step until; /* STARTUP_STEPS: the end of the observation */
	uint64_t from_ns;
	uint64_t to_ns;
	uint64_t count[STARTUP_MARK_KINDS];
	uint64_t total_ns[STARTUP_MARK_KINDS]; /* of several threads, so it may exceed the phase */
};

/* CPU time of the program's innermost function on the stack; the leaf where there is none. */
struct startup_function {
	uint32_t function; /* of the symbolmap */
	uint64_t cpu_ns;
};

/* A process that started in the selected time. */
struct startup_process {
	uint32_t process;
	bool reached[STARTUP_STEPS];
	uint64_t at_ns[STARTUP_STEPS];
	uint64_t seen_ns;    /* of its first event */
	bool has_compiled;   /* the recording has its compilations */
	bool sampled;        /* the recording has samples of it */
	bool runs_managed;   /* managed_ns is known */
	uint64_t managed_ns; /* first sample in managed code */
	uint64_t end_ns;     /* of the observation */
	struct startup_phase phases[STARTUP_STEPS];
	uint32_t phase_count;
	uint32_t mark_at; /* marks.items: its own, longest first in each kind */
	uint32_t mark_count;
	uint32_t function_at; /* functions.items, most CPU time first */
	uint32_t function_count;
};

struct startup_begun {
	uint64_t id;
	uint64_t at_ns;
	uint32_t thread;
	uint8_t kind; /* enum startup_mark_kind */
};

struct startup {
	struct strtab texts;
	VEC(struct startup_process) processes; /* in the order of their starts */
	VEC(struct startup_mark) marks;
	VEC(struct startup_function) functions;
	VEC(struct startup_begun) begun; /* until startup_finish() */
	uint64_t dropped;                /* marks beyond STARTUP_MARKS_MAX */
};

/* 0, or -ENOMEM. Payloads that are too short are ignored. */
int startup_event(struct startup *startup, const struct runtime_event *event,
	const struct trace *trace);

struct startup_selection {
	const struct profile *profile;
	const struct symbolmap *names;
	const struct event_stacks *stacks;
	uint64_t from_ns;
	uint64_t to_ns;
};

int startup_finish(struct startup *startup, const struct startup_selection *selection);

/* "exec", "main": a constant text, as in JSON. */
const char *startup_step_name(enum startup_step step);

/* The step until which the process started: the answer does not count, nor a wait for a request. */
enum startup_step startup_last_step(const struct startup_process *process);

void startup_done(struct startup *startup);

#endif
