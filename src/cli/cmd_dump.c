/* spoor dump: a core dump written by the runtime, after checks of free space and rights. */
#include "cli/verbs.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "base/text.h"
#include "cli/message.h"
#include "cli/run_control.h"
#include "cli/target_options.h"
#include "dotnet/ask.h"
#include "dotnet/exchange.h"
#include "dotnet/ipc.h"
#include "machine/dump_check.h"
#include "machine/dump_place.h"
#include "machine/output_file.h"
#include "machine/proc.h"

#define BOUND_NS   UINT64_C(1800000000000) /* a large process takes minutes */
#define SMALL_DUMP (UINT64_C(32) << 20)    /* mini and triage */

#define OPTIONS_VERB dump
#define OPTIONS_LIST "cli/dump_options.def"
#include "cli/option_list.h"

enum { TYPE_HEAP, TYPE_FULL, TYPE_MINI, TYPE_TRIAGE };

/* The path as the process sees it, absolute; its folder's length in *ret_folder_len. */
static int name_file(const struct dump_values *values, const struct target *target,
	char path[DUMP_PATH_ROOM], size_t *ret_folder_len, struct diag *diag)
{
	char stem[64];
	char stamp[OUTPUT_STAMP_ROOM];
	char here[DUMP_PATH_ROOM] = "";
	int n;

	target_file_stem(target->name, stem, sizeof(stem));
	output_file_stamp(stamp);
	if (!values->output)
		n = snprintf(path, DUMP_PATH_ROOM, "/tmp/%s_%u_%s.core", stem, target->inner_pid,
			stamp);
	else if (values->output[0] == '/')
		n = snprintf(path, DUMP_PATH_ROOM, "%s", values->output);
	else if (getcwd(here, sizeof(here)))
		n = snprintf(path, DUMP_PATH_ROOM, "%s/%s", here, values->output);
	else
		return diag_set(diag, -errno, "cannot tell the current folder: %m");
	if (n < 0 || (size_t)n >= DUMP_PATH_ROOM)
		return diag_set(diag, -ENAMETOOLONG, "the name of the file is too long");
	const char *slash = strrchr(path, '/');

	*ret_folder_len = slash == path ? 1 : (size_t)(slash - path);
	return 0;
}

/* An upper estimate of the dump's size from the memory of the process. */
static uint64_t expected_bytes(const struct dump_values *values, const struct target *target)
{
	if (values->type == TYPE_MINI || values->type == TYPE_TRIAGE)
		return SMALL_DUMP;
	return target->resident_bytes * (values->type == TYPE_FULL ? 3 : 2);
}

static int check(const struct dump_values *values, const struct target *target, const char *path,
	size_t folder_len, bool *ret_other_mounts, struct diag *diag)
{
	struct dump_facts facts;
	char folder[DUMP_PATH_ROOM];

	memcpy(folder, path, folder_len);
	folder[folder_len] = '\0';
	int result = dump_check(&(struct dump_question){ .pid = target->pid,
					.folder = folder,
					.runtime_path = target->runtime_path,
					.single_file = target->kind == DOTNET_SINGLE_FILE,
					.all_memory = values->type == TYPE_FULL },
		&facts, diag);

	if (result < 0)
		return result;
	*ret_other_mounts = facts.other_mounts;
	if (facts.other_mounts && values->output && values->output[0] != '/') {
		diag_set(diag, -EINVAL,
			"process %u sees other files than this shell: '%s' needs to be a path from its root on",
			target->pid, values->output);
		return -EINVAL;
	}
	if (facts.free_bytes < expected_bytes(values, target) && !values->yes) {
		struct bytes text = { 0 };
		bytes_printf(&text, "%s are free in '", TEXT_SIZE(facts.free_bytes));
		text_add_safe(&text, folder, folder_len);
		bytes_printf(&text, "', and a dump may take %s",
			TEXT_SIZE(expected_bytes(values, target)));
		diag_set(diag, -ENOSPC, "%s", bytes_z(&text));
		diag_remedy(diag,
			"name another place with -o, take less with --type mini, or say --yes");
		bytes_done(&text);
		return -ENOSPC;
	}
	if (facts.seccomp && !values->quiet)
		message_print(
			"process %u has a seccomp filter: should the dump fail, let it allow ptrace and process_vm_readv",
			target->pid);
	return 0;
}

/* The output of createdump, line by line, after our own sentence. */
static int refused(const struct exchange *exchange, const struct target *target, struct diag *diag)
{
	cleanup(freep) char *text =
		ipc_decode_error_text(exchange->payload, exchange->payload_size);

	if (!text || !*text)
		return diag->error;
	for (char *at = text; *at; at++)
		if (*at == '\n' || *at == '\r')
			*at = at[1] ? ';' : ' ';
	int error = diag->error;

	*diag = (struct diag){ 0 };
	return diag_set(diag, error, "process %u could not write its dump: %.400s", target->pid,
		text);
}

/* The runtime's forked copy of the process remains even after a failed or interrupted dump. */
static void end_copy(const struct target *target, uint64_t since_ticks)
{
	uint32_t copy_pid = 0;
	int ended = dump_end_copy(target->pid, since_ticks, &copy_pid);

	if (ended < 0)
		message_print(
			"the runtime of process %u left a copy of it behind, process %u, which answers in its place: end it with kill -9 %u",
			target->pid, copy_pid, copy_pid);
}

/* A dump takes minutes, an answer does not: a runtime that does not answer is not waited for. */
static int check_answers(const struct target *target, struct pollfd *watched, struct diag *diag)
{
	const struct ipc_request request = { .command = IPC_PROCESS_INFO };
	struct exchange exchange = { 0 };
	int result = ask_process(target->pid, &request, ASK_ANSWER_NS, watched, &exchange, diag);

	exchange_done(&exchange);
	if (result != -EIO && result != -EOPNOTSUPP)
		return result;
	*diag = (struct diag){ 0 }; /* it has answered */
	return 0;
}

static int dump(const struct dump_values *values, const struct target *target, const char *path,
	struct pollfd *watched, struct diag *diag)
{
	static const enum ipc_dump_type types[] = { [TYPE_HEAP] = IPC_DUMP_HEAP,
		[TYPE_FULL] = IPC_DUMP_FULL,
		[TYPE_MINI] = IPC_DUMP_MINI,
		[TYPE_TRIAGE] = IPC_DUMP_TRIAGE };
	static const enum ipc_command commands[] = { IPC_CORE_DUMP_3, IPC_CORE_DUMP_2,
		IPC_CORE_DUMP };
	struct ipc_request request = { .path = path,
		.dump_type = types[values->type],
		.dump_flags = values->crash_report ? IPC_DUMP_CRASH_REPORT : 0 };
	struct exchange exchange = { 0 };
	uint64_t began_ticks = proc_now_ticks();
	int result = -EOPNOTSUPP;

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]) && result == -EOPNOTSUPP;
		i++) {
		*diag = (struct diag){ 0 };
		request.command = commands[i];
		if (commands[i] == IPC_CORE_DUMP)
			request.dump_flags = 0; /* it knows none */
		result = ask_process(target->pid, &request, BOUND_NS, watched, &exchange, diag);
	}
	if (result == -EIO)
		result = refused(&exchange, target, diag);
	if (target->kind == DOTNET_SINGLE_FILE)
		end_copy(target, began_ticks);
	exchange_done(&exchange);
	return result;
}

/* `elsewhere`: the process sees other files than this shell, so the path from here is said too. */
static void tell(const struct target *target, const char *path, uint64_t size_bytes, bool elsewhere)
{
	cleanup(bytes_done) struct bytes line = { 0 };

	text_add_safe_z(&line, path);
	bytes_printf(&line, "  %s", TEXT_SIZE(size_bytes));
	if (elsewhere) {
		bytes_printf(&line, "; from here /proc/%u/root", target->pid);
		text_add_safe_z(&line, path);
	}
	message_print("%s", bytes_z(&line));
}

static int dump_to(const struct dump_values *values, const struct target *target,
	struct dump_place *place, struct pollfd *watched, uint64_t *ret_size_bytes,
	struct diag *diag)
{
	int result = dump(values, target, place->path, watched, diag);

	if (result == 0 && !dump_place_is_written(place))
		return diag_set(diag, -EIO,
			"process %u says that its dump is written, but there is no file '%s'",
			target->pid, place->path);
	if (result == 0)
		return dump_place_keep(place, ret_size_bytes, diag);
	/* A runtime that has not answered may begin to write after this. */
	if ((result == -EINTR || result == -ETIMEDOUT) && !dump_place_is_written(place))
		message_print("process %u may still write its dump, as '%s'", target->pid,
			place->path);
	return result;
}

static int dump_one(const struct dump_values *values, const struct target *target,
	struct pollfd *watched)
{
	char path[DUMP_PATH_ROOM];
	size_t folder_len = 0;
	bool elsewhere = false;
	uint64_t size_bytes = 0;
	struct dump_place place = { .core = { .fd = -1, .folder = -1 },
		.report = { .fd = -1, .folder = -1 } };
	struct diag diag = { 0 };
	int result = ask_may(target->pid, &diag);

	if (result == 0)
		result = name_file(values, target, path, &folder_len, &diag);
	if (result == 0)
		result = check(values, target, path, folder_len, &elsewhere, &diag);
	const struct dump_place_question question = { .pid = target->pid,
		.uid = target->uid,
		.path = path,
		.crash_report = values->crash_report };

	if (result == 0)
		result = check_answers(target, watched, &diag);
	if (result == 0)
		result = dump_place_open(&question, &place, &diag);
	if (result == 0 && !values->quiet)
		message_print("dumping %s (%u); it stands still meanwhile", target->name,
			target->pid);
	if (result == 0)
		result = dump_to(values, target, &place, watched, &size_bytes, &diag);
	dump_place_close(&place);
	if (result < 0)
		return message_fail(&diag);
	if (!values->quiet)
		tell(target, path, size_bytes, elsewhere);
	return EXIT_DONE;
}

int cmd_dump(const struct verb *self, int argc, char **argv)
{
	struct dump_values values = { 0 };
	struct arguments args;
	struct target_choice choice = { 0 };
	struct targets targets = { 0 };
	struct run_control control = { .watched = { { .fd = -1 } } };
	struct diag diag = { 0 };
	int code;

	if (!options_parse(self, argc, argv, &values, &args, &code))
		return code;
	if (args.command || args.words.count)
		code = options_misused(self, "it takes no words: -o FILE names the file");
	else
		code = target_options_dotnet(&values.targets, self, &choice);
	choice.query.details |= TARGET_DOTNET | TARGET_PLACE;
	if (code == EXIT_DONE && target_options_choose_own(&choice.query, &targets, &diag) < 0)
		code = message_fail(&diag);
	if (code == EXIT_DONE && values.output && targets.list.count > 1)
		code = options_misused(self, "-o names one file, and %u processes were chosen",
			targets.list.count);
	if (code == EXIT_DONE && run_control_start(&control, 0, false, &diag) < 0)
		code = message_fail(&diag);
	for (uint32_t i = 0; code != EXIT_MISUSED && i < targets.list.count; i++) {
		int each = dump_one(&values, &targets.list.items[i], &control.watched[0]);
		code = code ? code : each;
	}
	run_control_end(&control);
	targets_done(&targets);
	target_options_done(&choice);
	options_done(self, &values, &args);
	return code;
}
