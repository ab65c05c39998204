/* The struct of a verb, and the exit codes. verbs.h has the functions on the table of verbs. */
#ifndef SPOOR_CLI_VERB_H
#define SPOOR_CLI_VERB_H

#include <stdbool.h>

struct option;

/* The exit codes. `record -- CMD` exits with CMD's own code when the recording itself succeeded. */
enum exit_code {
	EXIT_DONE = 0,
	EXIT_FAILED = 1,
	EXIT_MISUSED = 2,
	EXIT_MISSING = 3, /* a right or a feature of this machine is missing */
};

struct verb {
	const char *name; /* "report" */
	int (*run)(const struct verb *self, int argc, char **argv);
	const char *synopsis;         /* what follows the name: "[FILE] [options]" */
	const char *summary;          /* "what a recording holds, and where its CPU time went" */
	const struct option *options; /* ends with a row of zeros; NULL when there are none */
	/* the first argument that is no option begins a command, as after -- */
	bool takes_command;
};

extern const struct verb verbs[]; /* ends with a row of zeros */

#endif
