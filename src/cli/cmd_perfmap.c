/* spoor perfmap: lets .NET runtimes write perf maps or jitdumps for other tools. */
#include "cli/verbs.h"

#include <string.h>

#include "base/diag.h"
#include "base/text.h"
#include "cli/message.h"
#include "cli/target_options.h"
#include "dotnet/ask.h"
#include "dotnet/exchange.h"
#include "dotnet/ipc.h"
#include "machine/map_files.h"

#define OPTIONS_VERB perfmap
#define OPTIONS_LIST "cli/perfmap_options.def"
#include "cli/option_list.h"

static int switch_one(const struct perfmap_values *values, const struct target *target, bool on)
{
	static const enum ipc_perf_map kinds[] = { IPC_PERF_MAP_PERFMAP, IPC_PERF_MAP_JITDUMP,
		IPC_PERF_MAP_ALL };
	const struct ipc_request request = { .command = on ? IPC_ENABLE_PERF_MAP
							   : IPC_DISABLE_PERF_MAP,
		.perf_map = kinds[values->what] };
	struct exchange exchange = { 0 };
	struct diag diag = { 0 };
	int result = ask_process(target->pid, &request, ASK_ANSWER_NS, NULL, &exchange, &diag);
	int removed = 0;

	exchange_done(&exchange);
	if (result == 0 && !on && !values->keep)
		result = removed =
			map_files_remove(target->pid, target->inner_pid, target->uid, &diag);
	if (result < 0)
		return message_fail(&diag);
	if (values->quiet)
		return EXIT_DONE;
	if (!on)
		message_print("%s (%u): off; %s removed", target->name, target->pid,
			TEXT_THINGS((uint64_t)removed, "file", "files"));
	else if (values->what == 0)
		message_print(
			"%s (%u): on, /tmp/perf-%u.map as it sees it; spoor perfmap off -p %u ends it and removes the file",
			target->name, target->pid, target->inner_pid, target->pid);
	else
		message_print(
			"%s (%u): on, /tmp/jit-%u.dump as it sees it; spoor perfmap off -p %u ends it and removes the files",
			target->name, target->pid, target->inner_pid, target->pid);
	return EXIT_DONE;
}

int cmd_perfmap(const struct verb *self, int argc, char **argv)
{
	struct perfmap_values values = { 0 };
	struct arguments args;
	struct target_choice choice = { 0 };
	struct targets targets = { 0 };
	struct diag diag = { 0 };
	int code;

	if (!options_parse(self, argc, argv, &values, &args, &code))
		return code;
	bool on = args.words.count == 1 && strcmp(args.words.items[0], "on") == 0;
	bool off = args.words.count == 1 && strcmp(args.words.items[0], "off") == 0;

	if (args.command || (!on && !off))
		code = options_misused(self, "on or off?");
	else
		code = target_options_dotnet(&values.targets, self, &choice);
	if (code == EXIT_DONE && target_options_choose_own(&choice.query, &targets, &diag) < 0)
		code = message_fail(&diag);
	for (uint32_t i = 0; i < targets.list.count; i++) {
		int each = switch_one(&values, &targets.list.items[i], on);
		code = code ? code : each;
	}
	targets_done(&targets);
	target_options_done(&choice);
	options_done(self, &values, &args);
	return code;
}
