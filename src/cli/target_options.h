/*
 * The options that choose processes, the same in every verb that is about processes.
 *
 *   struct trace_values { struct target_values targets; ... }; options: TARGET_OPTIONS(struct
 *   trace_values, targets), TARGET_ALL_OPTION(struct trace_values, targets, "every .NET process"),
 *
 *   code = target_options_query(&values.targets, self, &query)       EXIT_DONE: continue; else the error was printed
 *   ... targets_choose(&query.query, ...) ...
 *   target_options_done(&query)
 *
 * -a, --all has another meaning for record (the machine) than for the verbs that work on .NET
 * processes, so the macro of its row takes the text.
 */
#ifndef SPOOR_CLI_TARGET_OPTIONS_H
#define SPOOR_CLI_TARGET_OPTIONS_H

#include <stdbool.h>

#include "base/vec.h"
#include "cli/options.h"
#include "target/targets.h"

struct diag;

struct target_values {
	struct texts pids;
	struct texts names;
	struct texts containers;
	struct texts pods;
	struct texts cgroups;
	struct texts trees;
	bool all;
};

/* The rows of a verb's option table that fill the target_values `field` of `type`. */
#define TARGET_OPTIONS(type, field)                                                                \
	{ 'p', "pid", "PID", "this process; may be repeated, or PID,PID", OPTION_TEXTS,            \
		INTO(type, field.pids) },                                                          \
		{ 'n', "name", "NAME",                                                             \
			"processes of this name (* and ? allowed); may be repeated", OPTION_TEXTS, \
			INTO(type, field.names) },                                                 \
		{ 0, "container", "CONTAINER",                                                     \
			"processes of this container: its id or the beginning of it, or its name", \
			OPTION_TEXTS, INTO(type, field.containers) },                              \
		{ 0, "pod", "POD", "processes whose container has this host name", OPTION_TEXTS,   \
			INTO(type, field.pods) },                                                  \
		{ 0, "cgroup", "CGROUP", "processes of this control group and those below it",     \
			OPTION_TEXTS, INTO(type, field.cgroups) },                                 \
	{                                                                                          \
		0, "tree", "PID", "this process and all that descend from it", OPTION_TEXTS,       \
			INTO(type, field.trees)                                                    \
	}

/* dotnet-trace's and dotnet-counters' name of --pid. */
#define TARGET_PROCESS_ID_OPTION(type, field)                                            \
	{                                                                                \
		0, "process-id", "PID", "as --pid", OPTION_TEXTS, INTO(type, field.pids) \
	}

#define TARGET_ALL_OPTION(type, field, help)                               \
	{                                                                  \
		'a', "all", NULL, help, OPTION_FLAG, INTO(type, field.all) \
	}

/* The query for targets_choose(); its lists are borrowed from here and the values. */
struct target_choice {
	struct target_query query;
	VEC(uint32_t) pids;
	VEC(uint32_t) trees;
};

/* EXIT_DONE, or the error was printed. target_options_done() follows in any case. */
int target_options_query(const struct target_values *values, const struct verb *verb,
	struct target_choice *ret_choice);

/*
 * For verbs that send requests to .NET processes: as target_options_query(), of .NET processes
 * only. With nothing chosen, the only .NET process of the container is taken; outside a container
 * that is a misuse.
 */
int target_options_dotnet(const struct target_values *values, const struct verb *verb,
	struct target_choice *ret_choice);

/*
 * targets_choose() for verbs that make a process act or that show its memory, environment or
 * payloads. All may be chosen that spoor may look at, then rights borrowed from the program's file
 * are dropped permanently: the rest of the run takes the caller's own.
 */
int target_options_choose_own(const struct target_query *query, struct targets *ret_targets,
	struct diag *diag);

/* Reads "12,34" into a VEC(uint32_t); `what` is "process" or "thread". The exit code. */
int target_options_ids(const struct texts *texts, const char *option, const char *what,
	const struct verb *verb, void *vec_of_u32);

void target_options_done(struct target_choice *choice);

/* True when any of the options but --all was given. */
bool target_options_given(const struct target_values *values);

#endif
