/* spoor VERB ...: finds the verb and calls its function. */
#include <signal.h>
#include <string.h>

#include "base/diag.h"
#include "cli/message.h"
#include "cli/verbs.h"
#include "machine/rights.h"

static int unknown_option(const char *text)
{
	if (option_is_near(text + strspn(text, "-"), "version"))
		message_print("there is no option '%s'; did you mean '--version'?", text);
	else
		message_print("there is no option '%s' before the verb", text);
	message_print("spoor help lists what there is.");
	return EXIT_MISUSED;
}

int main(int argc, char **argv)
{
	/*
	 * When the reader of a pipe exits (| head), write() returns EPIPE; the default, death by
	 * SIGPIPE, could come half-way through a file. A verb that runs a child gives the child
	 * SIG_DFL back: exec keeps ignored signals ignored.
	 */
	(void)signal(SIGPIPE, SIG_IGN); /* cannot fail for SIGPIPE */
	/* a limit of file sizes is an error of the write (EFBIG), as a full disk is */
	(void)signal(SIGXFSZ, SIG_IGN);

	struct diag diag = { 0 };

	if (rights_begin(&diag) < 0)
		return message_fail(&diag);
	if (argc < 2) {
		const char *help[] = { "help", NULL };
		(void)cmd_help(verb_find("help"), 1, (char **)help); /* the misuse is what counts */
		return EXIT_MISUSED;
	}
	const char *name = argv[1];

	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
		name = "help";
	if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
		printf("spoor %s\n", SPOOR_VERSION);
		return message_finish_output();
	}
	if (name[0] == '-')
		return unknown_option(name);
	const struct verb *verb = verb_find(name);

	return verb ? verb->run(verb, argc - 1, argv + 1) : verb_say_unknown(name);
}
