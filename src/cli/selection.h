/*
 * The parts that report and flame share: they choose the file and the samples, read them and find
 * the names.
 *
 *   struct report_values { struct selection_values selection; ... };
 *   options: SELECTION_OPTIONS(struct report_values, selection),
 *
 *   code = selection_open(&values.selection, &args, self, &s)   EXIT_DONE: continue; else the error was printed, return the code
 *   ... s.profile, s.names, s.report ...
 *   selection_close(&s)                                          in any case
 */
#ifndef SPOOR_CLI_SELECTION_H
#define SPOOR_CLI_SELECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/answers.h"
#include "analysis/profile.h"
#include "base/bytes.h"
#include "cli/event_choice.h"
#include "cli/options.h"
#include "trace/report.h"
#include "trace/symbolmap.h"
#include "trace/trace.h"

struct observation_events;

struct selection_values {
	const char *input;
	struct texts pids;
	struct texts names;
	struct texts tids;
	struct texts modules;
	uint64_t from_ns;
	uint64_t to_ns;
	bool raw_names;
	bool lines;              /* frames are lines of functions, after inlined ones */
	bool code;               /* the machine code in the file is kept, for annotate --asm */
	struct texts events;     /* patterns: these events are counted, and not CPU samples */
	struct answers *answers; /* gets the recording's events too; NULL: not wanted */
	bool without_samples;    /* the verb shows `answers` alone: no sample need be selected */
	struct observation_events *
		observations; /* gets the recording's events too; its facts are set. NULL: not wanted */
	/* with `answers`: the profile has the amounts of this one, and not CPU samples */
	bool weighs_answer;
	enum answer weighed;
};

/* The rows of a verb's option table that choose file, processes and times. */
#define SELECTION_BASIC_OPTIONS(type, field)                                                      \
	{ 'i', "input", "FILE", "the recording, as FILE without the option; - is standard input", \
		OPTION_TEXT, INTO(type, field.input) },                                           \
		{ 'p', "pid", "PID", "only this process; may be repeated", OPTION_TEXTS,          \
			INTO(type, field.pids) },                                                 \
		{ 0, "from", "TIME", "only from this time on, since the begin", OPTION_DURATION,  \
			INTO(type, field.from_ns) },                                              \
	{                                                                                         \
		0, "to", "TIME", "only up to this time, since the begin", OPTION_DURATION,        \
			INTO(type, field.to_ns)                                                   \
	}

/* All rows that fill the selection_values `field` of `type`. */
#define SELECTION_OPTIONS(type, field)                                                           \
	SELECTION_BASIC_OPTIONS(type, field),                                                    \
		{ 'n', "name", "NAME", "only processes of this name; a pattern with * and ?",    \
			OPTION_TEXTS, INTO(type, field.names) },                                 \
		{ 't', "thread", "TID", "only this thread; may be repeated", OPTION_TEXTS,       \
			INTO(type, field.tids) },                                                \
		{ 'm', "module", "NAME", "only stacks with a frame in such a module; a pattern", \
			OPTION_TEXTS, INTO(type, field.modules) },                               \
	{                                                                                        \
		0, "raw-names", NULL, "names as the compiler made them", OPTION_FLAG,            \
			INTO(type, field.raw_names)                                              \
	}

/* The row that fills `events`. */
#define SELECTION_EVENT_OPTION(type, field)                                                  \
	{                                                                                    \
		0, "event", "NAME",                                                          \
			"count the events of this name, in place of CPU samples; a pattern", \
			OPTION_TEXTS, INTO(type, field.events)                               \
	}

/* How the events of a schema are used. */
enum selection_passing {
	PASSING_UNKNOWN, /* none has come yet */
	PASSING_EACH,
	PASSING_COUNTED, /* nothing takes them one by one */
};

struct selection {
	struct trace trace;
	struct profile profile;
	struct answers *answers;                 /* the caller's */
	struct observation_events *observations; /* the caller's */
	struct event_choice choice;              /* of the events that are counted */
	VEC(uint8_t) passing;                    /* by schema: enum selection_passing */
	struct symbolmap names;
	struct report report; /* described; not yet counted */
	/* a process, module or time of the filter is not in the recording; stderr has it */
	bool unmatched;
	struct bytes words;     /* of the filter, for report.selection */
	struct bytes arguments; /* of the filter, for report.arguments */
	char path[4096];
};

/* Method names are shown in `form`; the option for raw names overrides it. */
int selection_open(const struct selection_values *values, enum method_name_form form,
	const struct arguments *arguments, const struct verb *verb,
	struct selection *ret_selection);

/* Appends the option's numbers to a VEC(uint32_t), and its text to `words` (may be NULL). */
int selection_numbers(const struct texts *texts, const char *option, const struct verb *verb,
	void *vec_of_u32, struct bytes *words);

/* The option's file, else the only word, else the newest here, which is printed. */
int selection_choose_file(const char *input, const struct arguments *arguments,
	const struct verb *verb, char *path, size_t room);

/* Prints why --from leaves no samples: it is after the end of a recording of this length. */
void selection_say_late(uint64_t from_ns, uint64_t duration_ns);

/* Prints the result as message_finish_output() does: a closed pipe is no failure. */
int selection_print(const struct bytes *out);

/* Writes a result file, never over the recording. EXIT_DONE, or the failure is printed. */
int selection_write(const struct selection *selection, const char *path, const struct bytes *out,
	bool quiet);

/* A filter was given that nothing matches; selection_open() has printed the reason. */
bool selection_is_empty(const struct selection *selection);

void selection_close(struct selection *selection);

#endif
