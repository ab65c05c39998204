/*
 * spoor help: what there is, from the tables. `spoor help --completion` emits the same as words for
 * completion/spoor.bash and for the test that every verb has its page and every option one meaning:
 *
 *   verb help what a verb does and takes
 *   option help --completion - - the words for a shell's completion
 *
 * An option line holds the verb, the long name, the letter or -, the argument (without spaces) or
 * -, and the help.
 */

#include "cli/message.h"
#include "cli/options.h"
#include "cli/verbs.h"

#define OPTIONS_VERB help
#define OPTIONS_LIST "cli/help_options.def"
#include "cli/option_list.h"

static void print_overview(void)
{
	printf("spoor VERB [options]\n"
	       "Records a machine that runs .NET, names every frame, answers on the spot.\n\n");
	for (const struct verb *verb = verbs; verb->name; verb++)
		printf("  %-11s%s\n", verb->name, verb->summary);
	printf("  %-11s%s\n", "--version", "which spoor this is");
	printf("\nspoor VERB --help shows what a verb takes; man spoor has the whole story.\n");
	if (verb_find("record"))
		printf("First:  sudo spoor record --duration 10s\n");
}

static void print_completion(void)
{
	for (const struct verb *verb = verbs; verb->name; verb++)
		printf("verb %s %s\n", verb->name, verb->summary);
	for (const struct verb *verb = verbs; verb->name; verb++) {
		for (const struct option *row = verb->options; row && row->name; row++) {
			char letter[] = { '-', row->letter, '\0' };
			printf("option %s --%s %s %s %s\n", verb->name, row->name, letter,
				row->argument ? row->argument : "-", row->help);
		}
	}
}

int cmd_help(const struct verb *self, int argc, char **argv)
{
	struct help_values values = { 0 };
	struct arguments arguments;
	int code;

	if (!options_parse(self, argc, argv, &values, &arguments, &code))
		return code;
	const struct verb *about =
		arguments.words.count ? verb_find(arguments.words.items[0]) : NULL;

	if (arguments.words.count > 1) {
		code = options_misused(self, "spoor help takes one verb");
	} else if (arguments.words.count && !about) {
		code = verb_say_unknown(arguments.words.items[0]);
	} else {
		if (values.completion)
			print_completion();
		else if (about)
			options_print_help(about);
		else
			print_overview();
		code = message_finish_output();
	}
	options_done(self, &values, &arguments);
	return code;
}
