/* See verbs.h. */
#include "cli/verbs.h"

#include <stddef.h>
#include <string.h>

#include "base/text.h"
#include "cli/words.h"

const struct verb verbs[] = {
	{ "ps", cmd_ps, "[options]",
		"the .NET processes here: which runtime, whose, and whether they can be asked",
		ps_options, false },
	{ "record", cmd_record, "[options] [[--] COMMAND [ARGUMENT...]]",
		"samples the machine, some processes or a command into a file", record_options,
		true },
	{ "trace", cmd_trace, "[options] [[--] COMMAND [ARGUMENT...]]",
		"records the events of .NET runtimes, of any number of processes, in one file",
		trace_options, true },
	{ "report", cmd_report, "[FILE] [options]",
		"what a recording holds, and where its CPU time went", report_options, false },
	{ "events", cmd_events, "[FILE] [options]",
		"the events of a recording or trace, one a line, or how many there are of each",
		events_options, false },
	{ "flame", cmd_flame, "[FILE] [-o FILE] [options]", "a recording as a flame graph",
		flame_options, false },
	{ "symbols", cmd_symbols,
		"list FILE | fetch FILE | apply FILE | import PATH... | cache [options]",
		"gets the symbol files that a recording lacks, and names its functions",
		symbols_options, false },
	{ "counters", cmd_counters, "-p PID [--counters LIST] [options] | [options] -- COMMAND",
		"what .NET processes count of themselves, live, into a file or out of the machine",
		counters_options, false },
	{ "stacks", cmd_stacks, "-p PID [options]",
		"where all threads of a .NET process stand, and what they wait for", stacks_options,
		false },
	{ "heap", cmd_heap,
		"[-p PID] [report FILE | roots FILE TYPE | diff BEFORE AFTER] [options]",
		"what lives in the heap of a .NET process, and what keeps it alive", heap_options,
		false },
	{ "dump", cmd_dump, "-p PID [-o FILE] [options]",
		"a core dump of a .NET process, written by its runtime", dump_options, false },
	{ "env", cmd_env, "-p PID [NAME...] [options]",
		"the environment of a .NET process as its runtime has it", env_options, false },
	{ "perfmap", cmd_perfmap, "on|off -p PID [options]",
		"lets a .NET runtime write a perf map for other tools", perfmap_options, false },
	{ "recover", cmd_recover, "FILE | -p PID [-o FILE]",
		"the last events of a program with libspoor that crashed, hangs or was killed",
		recover_options, false },
	{ "diagnose", cmd_diagnose, "[FILE] [options]",
		"what is wrong with a .NET process: findings with evidence, cost and advice",
		diagnose_options, false },
	{ "doctor", cmd_doctor, "[--json]",
		"what this machine and user can record, and the rights to grant for the rest",
		doctor_options, false },
	{ "help", cmd_help, "[VERB]", "what a verb does and takes", help_options, false },
	{ 0 },
};

const struct verb *verb_find(const char *name)
{
	for (const struct verb *verb = verbs; verb->name; verb++) {
		if (strcmp(verb->name, name) == 0)
			return verb;
	}
	return NULL;
}

const struct verb *verb_nearest(const char *name)
{
	const struct verb *nearest = NULL;
	unsigned least = 0;

	for (const struct verb *verb = verbs; verb->name; verb++) {
		unsigned distance = text_distance(name, verb->name);
		/* of two, the later: help */
		if (!option_is_near(name, verb->name) || (nearest && distance > least))
			continue;
		nearest = verb;
		least = distance;
	}
	return nearest;
}

/* What other tools call it. */
static const char *known_elsewhere(const char *name)
{
	static const char *const words[][2] = { { "collect", "trace" }, { "monitor", "counters" },
		{ "stat", "counters" }, { "gcdump", "heap" }, { "script", "events" },
		{ "top", "report" }, { "annotate", "report" }, { "list", "ps" },
		{ "check", "doctor" }, { "bt", "stacks" }, { "flamegraph", "flame" } };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(words[i][0], name) == 0)
			return words[i][1];
	return NULL;
}

int verb_say_unknown(const char *name)
{
	const struct verb *nearest = verb_nearest(name);
	const char *known = known_elsewhere(name);

	if (known || nearest)
		words_say("there is no verb '%s'; did you mean '%s'?", name,
			known ? known : nearest->name);
	else
		words_say("there is no verb '%s'", name);
	words_say("spoor help lists what there is.");
	return EXIT_MISUSED;
}
