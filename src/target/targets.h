/*
 * The processes that a verb works on: every verb chooses them here, with the facts about each.
 *
 *   struct target_query query = { .names = names, .name_count = 1, .dotnet_only = true, .details =
 *   TARGET_REACH }; struct targets targets; targets_choose(&query, &targets, &diag); ...
 *   targets.list.items[i].pid ... targets_done(&targets);
 *
 * The ways of choosing add up: a process that any of them means is taken, once. A pid that is no
 * process, and a name, container, pod, control group or tree that no process fits, is a failure
 * with a sentence. The caller itself is never taken but by its pid.
 *
 * A pid may have been reused by the time the caller uses it: then start_ticks differs.
 */
#ifndef SPOOR_TARGET_TARGETS_H
#define SPOOR_TARGET_TARGETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/vec.h"
#include "dotnet/kind.h"

struct bytes;
struct diag;

/* The facts to read of each chosen process beyond its names; each needs further files. */
enum target_detail {
	/* kind, runtime_path, runtime_version: from its mappings and its program */
	TARGET_DOTNET = 1 << 0,
	/* reachable: connects to the diagnostics socket; nothing is sent. Includes TARGET_DOTNET */
	TARGET_REACH = 1 << 1,
	TARGET_PLACE = 1 << 2, /* cgroup, container, command_line */
};

struct target_query {
	const uint32_t *pids;
	size_t pid_count;
	const uint32_t *trees; /* a process and all that descend from it */
	size_t tree_count;
	const char *const *names; /* patterns with * and ? */
	size_t name_count;
	/* an id or its beginning, the last part of its control group, or its host name */
	const char *const *containers;
	size_t container_count;
	const char *const *pods; /* host names */
	size_t pod_count;
	/* paths, ends of paths, or patterns; control groups below them fit too */
	const char *const *cgroups;
	size_t cgroup_count;
	bool all;         /* every process except kernel threads */
	bool own;         /* every process of this user */
	bool dotnet_only; /* only .NET processes; those chosen by pid need not be */
	/* programs with libspoor too: kind DOTNET_LIBSPOOR. Else they are DOTNET_NOT */
	bool libspoor;
	/* when nothing is chosen, inside a container: its only .NET process */
	bool single;
	unsigned details; /* enum target_detail */
};

struct target {
	uint32_t pid;
	uint32_t inner_pid; /* as it sees itself */
	uint32_t parent_pid;
	uint32_t uid; /* effective */
	uint32_t thread_count;
	/* with pid: identifies the process, because pids are reused */
	uint64_t start_ticks;
	uint64_t start_ns; /* CLOCK_MONOTONIC */
	uint64_t resident_bytes;
	char state;            /* R S D T t Z X I */
	bool hidden;           /* this user may not read its mappings */
	bool reachable;        /* its diagnostics socket takes connections */
	enum dotnet_kind kind; /* DOTNET_NOT: no sign of .NET, or not looked for */
	uint16_t machine;      /* architecture of its program, ELF's e_machine; 0 unknown */
	/* Texts live as long as the list; "" when they are not known. */
	const char *name;      /* the application, else the program */
	const char *program;   /* comm */
	const char *container; /* id */
	const char *cgroup;
	const char *command_line;  /* arguments with blanks between them */
	const char *short_command; /* the same, shortened by command_line_shorten() */
	const char *runtime_path;  /* of libcoreclr.so, as the target sees it */
	/* from its path; runtime_info() replaces it by the runtime's own answer */
	const char *runtime_version;
	const char *architecture; /* "x64": runtime_info() */
	const char *remedy;       /* a command that helps: runtime_info() */
	const char *reason;       /* why it is not reachable: a sentence part */
	int reach_error;          /* the same as a negative errno */
	/* enum reason of dotnet/reason.h; 0 where only reach_error is known */
	unsigned reach_reason;
};

struct targets {
	struct arena arena;
	/* in order of their pids, but those chosen by pid first, as given */
	VEC(struct target) list;
	uint32_t hidden_count; /* processes whose mappings this user may not read */
};

/* -ESRCH: none fits. On failure *ret_targets is empty; targets_done() does no harm. */
int targets_choose(const struct target_query *query, struct targets *ret_targets,
	struct diag *diag);

void targets_done(struct targets *targets);

/* True when the query has at least one condition. */
bool target_query_chooses(const struct target_query *query);

/* "shop (4711), worker (4802)" appended. */
void targets_add_subject(const struct targets *targets, struct bytes *out);

/*
 * A file name for the process: letters, digits, dots, dashes and underlines of `name`, at most
 * `room` - 1; "recording" when none are left.
 */
void target_file_stem(const char *name, char *out, size_t room);

/*
 * Whether we run in a container: another pid namespace than the machine's first, or a container's
 * control group.
 */
bool targets_in_container(void);

#endif
