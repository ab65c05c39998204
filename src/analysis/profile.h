/*
 * CPU samples counted: first by (process, stack, epoch), then named once for each distinct stack.
 *
 *   struct profile profile = { .trace = &trace, .filter = filter };
 *   saved_read(path, &trace, profile_event, &profile, &diag);
 *   symbolmap_init(&names, &trace, METHOD_NAME_SHORT);
 *   profile_name(&profile, &names);               names may follow, in the file, the samples they name
 *   recording_describe(...), top_count(...), tree_build(...)
 *   profile_done(&profile);
 *
 * A recording may be of any length: memory grows with distinct stacks, not with samples.
 */
#ifndef SPOOR_ANALYSIS_PROFILE_H
#define SPOOR_ANALYSIS_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"
#include "trace/clock_join.h"

struct event;
struct process;
struct symbolmap;
struct trace;

/*
 * Which samples count. Within a list one match is enough; all lists that are not empty must match.
 * Texts are the caller's. Zero is everything.
 */
struct profile_filter {
	VEC(uint32_t) pids;
	VEC(uint32_t) tids;
	VEC(const char *) process_names; /* names or globs */
	VEC(const char *) modules;       /* globs; a frame of the stack is in such a module */
	uint64_t from_ns;                /* since the begin of the recording */
	uint64_t to_ns;                  /* exclusive; 0 = to the end */
};

bool profile_filter_is_empty(const struct profile_filter *filter);
/*
 * Whether a name or glob of a filter means this process (its name or the file name of its
 * executable), or this module ("Shop" means "Shop.dll").
 */
bool profile_matches_process(const struct trace *trace, const struct process *process,
	const char *pattern);
bool profile_matches_module(const char *module, const char *pattern);

/* One distinct stack of one process. */
struct profile_stack {
	uint64_t weight_ns;
	uint64_t count;
	uint64_t only_counted; /* of these: events that were not written */
	uint32_t process;
	uint32_t stack; /* in trace.stacks */
	uint32_t epoch; /* process.code_epoch when it was sampled */
	uint32_t at;    /* functions.items[at], leaf first; set by profile_name() */
	uint32_t frame_count;
	uint8_t role; /* enum thread_role of the threads that were sampled */
};

/* What the runtime's own samples of its managed threads are worth. */
enum profile_samples {
	PROFILE_UNDECIDED, /* no sample has arrived yet */
	PROFILE_UNUSED,    /* nothing: the file has CPU samples */
	PROFILE_BY_CLOCKS, /* CPU time, by the threads' clocks beside them */
	/*
	 * the time to their thread's next sample; of the last one, which has no successor, the
	 * median of these times
	 */
	PROFILE_THREAD_TIME,
};

/* A thread's last sample, without clocks. */
struct profile_latest {
	uint64_t time_ns; /* 0: none yet */
	uint32_t stack;
};

/* Times of about one size: four sizes to each power of two. */
#define PROFILE_INTERVALS 256u
struct profile_interval {
	uint64_t sum_ns;
	uint64_t count;
};

struct profile {
	struct trace *trace;
	struct profile_filter filter; /* the caller's lists */
	/* after profile_name(): what passed the filter, by process */
	VEC(struct profile_stack) stacks;
	/* the symbol that represents the method, if there is one */
	VEC(uint32_t) functions;
	VEC(uint32_t) bodies; /* the same frames as they were compiled */
	struct map index;
	enum profile_samples samples;
	/* set by the caller, which adds events by profile_count_events() or stacks by profile_add() */
	bool ignores_samples;
	bool ignores_pids; /* added stacks of any process are wanted */
	struct clock_join join;
	uint64_t settled_ns;
	VEC(struct profile_latest) latest;                    /* by thread */
	struct profile_interval intervals[PROFILE_INTERVALS]; /* times between samples, by size */
	uint64_t first_ns; /* of the samples; UINT64_MAX when there are none */
	uint64_t last_ns;
	/* events of the whole recording that are no samples, by schema */
	VEC(uint64_t) by_schema;
	uint64_t counted;   /* of these: counted, but not written (trace/event_count.h) */
	uint64_t all_count; /* the whole recording */
	uint64_t all_weight_ns;
	uint64_t count;        /* after profile_name(): what passed the filter */
	uint64_t only_counted; /* of these, likewise */
	uint64_t weight_ns;
	uint64_t frame_count; /* frames of these samples */
	uint64_t named_frame_count;
};

/*
 * Takes an event; events that are no samples, of the recorder or of a runtime, are ignored.
 * `context` is the profile. 0, or -ENOMEM.
 */
int profile_event(void *context, const struct event *event);

/*
 * Whether events of this schema, of which at least one was passed to profile_event(), are only
 * counted: then profile_count_event() does the same in less time.
 */
bool profile_only_counts(const struct profile *profile, uint32_t schema_index);

static inline void profile_count_event(struct profile *profile, uint32_t schema_index)
{
	profile->by_schema.items[schema_index]++;
}

/* Counts events as samples of the weight 1, if they pass the filter. 0, or -ENOMEM. */
int profile_count_events(struct profile *profile, const struct event *event, uint64_t count,
	bool only_counted);

/* Adds to a stack what the caller has counted. 0, or -ENOMEM. */
int profile_add(struct profile *profile, const struct profile_stack *stack);

/* Whether the filter lets this process pass, by its pid and name. */
bool profile_wants_process(const struct profile *profile, uint32_t index);
bool profile_filter_has_process(const struct profile_filter *filter, const struct trace *trace,
	uint32_t index);

/*
 * Gives the profile the functions and bodies of another one, to which its stacks refer now; or, if
 * the other one could not be completed, drops them. 0, or -ENOMEM when not completed.
 */
int profile_take_frames(struct profile *profile, struct profile *other, bool completed);

/* Names the stacks and drops those that the filter refuses. Once. */
int profile_name(struct profile *profile, struct symbolmap *names);

/*
 * Merges adjacent frames without a symbol in one module into one frame: their addresses mean little
 * to a reader, and would split equal stacks. Functions that count frames must be called before it.
 * 0 or -ENOMEM.
 */
int profile_fold_unnamed(struct profile *profile, struct symbolmap *names);

/*
 * Puts the runtime's threads of one role below one step: a label becomes the outermost frame of
 * their stacks. Functions that count frames must be called before it. 0 or -ENOMEM.
 */
int profile_add_roles(struct profile *profile, struct symbolmap *names);

void profile_done(struct profile *profile);

#endif
