/* See verbs.h. */
#include "cli/verbs.h"

#include <stddef.h>
#include <string.h>

#include "base/text.h"
#include "cli/message.h"

const struct verb verbs[] = {
#define VERB(name, synopsis, takes_command, summary) \
	{ #name, cmd_##name, synopsis, summary, name##_options, takes_command },
#include "cli/verbs.def"
#undef VERB
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

/* The verb whose name is nearest to a mistyped one, NULL when none is near. */
static const struct verb *verb_nearest(const char *name)
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
		message_print("there is no verb '%s'; did you mean '%s'?", name,
			known ? known : nearest->name);
	else
		message_print("there is no verb '%s'", name);
	message_print("spoor help lists what there is.");
	return EXIT_MISUSED;
}
