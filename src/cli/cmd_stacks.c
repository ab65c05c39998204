/* spoor stacks: where all threads of .NET processes stand, once or repeatedly. */
#include "base/clocks.h"
#include "cli/verbs.h"

#include <errno.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "base/poll_set.h"
#include "base/text.h"
#include "cli/interrupt.h"
#include "cli/message.h"
#include "cli/run_control.h"
#include "cli/selection.h"
#include "cli/target_options.h"
#include "dotnet/guard.h"
#include "machine/rights.h"
#include "stacks/lock_owners.h"
#include "stacks/thread_dump.h"
#include "stacks/thread_groups.h"
#include "stacks/thread_stacks.h"
#include "stacks/thread_waits.h"
#include "stacks/threads_text.h"

#define PROCESSES_MAX 256u /* in one run; more are refused */

#define OPTIONS_VERB stacks
#define OPTIONS_LIST "cli/stacks_options.def"
#include "cli/option_list.h"

/* EXIT_FAILED: managed frames are missing; EXIT_MISSING: the user lacks the rights. */
static int print_dump(const struct stacks_values *values, struct thread_dump *dump,
	unsigned columns, struct bytes *out)
{
	bool complete = thread_waits_find(dump) == 0;
	if (complete)
		lock_owners_find(dump);
	if (!complete || thread_groups_make(dump) < 0) {
		out->failed = true;
		return EXIT_FAILED;
	}
	if (values->json)
		threads_json(dump, out);
	else if (values->dotnet_stack)
		threads_dotnet_stack(dump, out);
	else
		threads_text(dump,
			&(struct threads_text_options){ .columns = columns,
				.long_names = values->long_names,
				.whole = values->whole },
			out);
	if (!dump->unsampled_reason)
		return EXIT_DONE;
	message_print("no managed frames from the runtime of %s (%u): %s",
		strtab_get(&dump->texts, dump->name), dump->pid,
		strtab_get(&dump->texts, dump->unsampled_reason));
	return dump->refused ? EXIT_MISSING : EXIT_FAILED;
}

static void say_withheld(const struct thread_dump *dumps, uint32_t count)
{
	uint32_t withheld = 0;

	for (uint32_t i = 0; i < count; i++)
		withheld += dumps[i].values_withheld;
	if (withheld)
		message_print(
			"the locks and files that %s of other users wait%s at were left out: the capabilities of spoor's file are "
			"for names and stacks only; sudo spoor stacks shows them",
			TEXT_THINGS(withheld, "process", "processes"), withheld == 1 ? "s" : "");
}

static int print_round(const struct stacks_values *values, struct thread_dump *dumps,
	uint32_t count, bool first)
{
	struct bytes out = { 0 };
	struct screen screen;
	int code = EXIT_DONE;

	screen_look(stdout, COLOR_AUTO, &screen);
	for (uint32_t i = 0; i < count; i++) {
		if ((i || !first) && !values->json && !values->dotnet_stack)
			bytes_text(&out, "\n");
		int each = print_dump(values, &dumps[i], screen.columns, &out);
		code = code ? code : each;
	}
	int printed = out.failed ? EXIT_FAILED : selection_print(&out);

	bytes_done(&out);
	if (first)
		say_withheld(dumps, count);
	return printed ? printed : code;
}

/* False when it was ended meanwhile. */
static bool wait_until(const struct pollfd *watched, uint64_t time_ns)
{
	for (uint64_t now_ns; (now_ns = clock_monotonic_ns()) < time_ns;)
		if (poll_one(watched->fd, POLLIN, clock_left_ms(time_ns, now_ns)))
			return false;
	return true;
}

/* After Ctrl-C: processes whose stacks were taken move to the front. */
static uint32_t keep_taken(struct thread_dump *dumps, uint32_t count)
{
	uint32_t taken = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (!dumps[i].threads.count)
			continue;
		struct thread_dump dump = dumps[i];
		dumps[i] = dumps[taken];
		dumps[taken++] = dump;
	}
	return taken;
}

static int take_rounds(const struct stacks_values *values, const struct targets *targets,
	struct thread_stacks *stacks, struct pollfd *watched)
{
	uint64_t rounds = values->count ? values->count : values->every_ns ? UINT64_MAX : 1;
	struct thread_dump *dumps = calloc(targets->list.count + 1, sizeof(*dumps));
	struct diag diag = { 0 };
	uint64_t next_ns = clock_monotonic_ns();
	int code = EXIT_DONE;

	for (uint64_t round = 0; dumps && round < rounds; round++) {
		if (round) {
			next_ns += values->every_ns;
			if (!wait_until(watched, next_ns))
				break;
		}
		int result = thread_stacks_take(stacks, targets->list.items, targets->list.count,
			dumps, &diag);
		uint32_t taken = targets->list.count;
		if (result == -EINTR)
			taken = values->every_ns ? 0 : keep_taken(dumps, targets->list.count);
		int each = result == 0 || result == -EINTR
				   ? print_round(values, dumps, taken, !round)
				   : EXIT_FAILED;
		for (uint32_t i = 0; i < targets->list.count; i++)
			thread_dump_done(&dumps[i]);
		if (result == -EINTR) {
			if (!values->every_ns)
				message_print(
					"it was interrupted: the stacks of %u of %s were taken",
					taken,
					TEXT_THINGS(targets->list.count, "process", "processes"));
			code = values->every_ns ? code : EXIT_FAILED;
			break;
		}
		if (result < 0) {
			code = message_fail(&diag);
			break;
		}
		code = code ? code : each;
	}
	free(dumps);
	return code;
}

static int take(const struct stacks_values *values, const struct target_choice *choice,
	const struct verb *verb)
{
	struct targets targets = { 0 };
	struct guard *guard = NULL;
	struct thread_stacks *stacks = NULL;
	struct run_control control = { .watched = { { .fd = -1 } } };
	struct diag diag = { 0 };
	int code = EXIT_DONE;
	int result = targets_choose(&choice->query, &targets, &diag);

	if (result == 0 && targets.list.count > PROCESSES_MAX)
		code = options_misused(verb,
			"%u processes were chosen; it takes at most %u at once", targets.list.count,
			PROCESSES_MAX);
	if (result == 0 && code == EXIT_DONE)
		/* stopped, it would hold up the processes: Ctrl-Z ends it */
		result = run_control_start(&control, INTERRUPT_PAUSE, false, &diag);
	if (result == 0 && code == EXIT_DONE)
		result = guard_start(&guard, &diag);
	const struct thread_stacks_options options = {
		.guard = guard,
		.timeout_ns = values->timeout_ns,
		.watched = &control.watched[0],
		.managed_only = values->managed,
	};

	if (result == 0 && code == EXIT_DONE)
		result = thread_stacks_new(&options, &stacks, &diag);
	if (result < 0)
		code = message_fail(&diag);
	else if (code == EXIT_DONE)
		code = take_rounds(values, &targets, stacks, &control.watched[0]);
	if (result == 0 && code == EXIT_DONE && targets.list.count == 1 && !values->json &&
		!values->dotnet_stack && !values->every_ns)
		message_next(targets.list.items[0].pid,
			(const char *const[]){ "record", "counters", NULL });
	thread_stacks_free(stacks);
	guard_free(guard);
	run_control_end(&control);
	targets_done(&targets);
	return code;
}

int cmd_stacks(const struct verb *self, int argc, char **argv)
{
	struct stacks_values values = { 0 };
	struct target_choice choice = { 0 };
	struct arguments args;
	int code;

	if (!options_parse(self, argc, argv, &values, &args, &code))
		return code;
	rights_raise();
	if (args.words.count || args.command)
		code = options_misused(self,
			"it takes no words; -p PID or -n NAME chooses processes");
	else if (values.count > 1 && !values.every_ns)
		code = options_misused(self, "--count needs --every, which says how often");
	else
		code = target_options_dotnet(&values.targets, self, &choice);
	if (code == EXIT_DONE)
		code = take(&values, &choice, self);
	target_options_done(&choice);
	options_done(self, &values, &args);
	return code;
}
