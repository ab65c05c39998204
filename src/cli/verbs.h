/*
 * The verbs of spoor: one table, from which help, completion and the check for man pages are made.
 *
 * A verb is a file cli/cmd_<name>.c with a function and an option table, both declared here, a row
 * in verbs.def, a page docs/man/spoor-<name>.1 and cases in tests/cli/<name>/. Its function gets its
 * own row and the arguments from its name on, calls options_parse() first, and returns the exit
 * code. A verb prints results to stdout and words to stderr.
 */
#ifndef SPOOR_CLI_VERBS_H
#define SPOOR_CLI_VERBS_H

#include "cli/options.h"
#include "cli/verb.h"

/* NULL when there is no such verb. */
const struct verb *verb_find(const char *name);

/* Prints that there is no such verb, the nearest one, and how to list all. EXIT_MISUSED. */
int verb_say_unknown(const char *name);

#define VERB(name, synopsis, takes_command, summary)                    \
	int cmd_##name(const struct verb *self, int argc, char **argv); \
	extern const struct option name##_options[];
#include "cli/verbs.def"
#undef VERB

#endif
