/*
 * spoor inject: the events of a .NET process to a tracer of the system, fired by the process itself.
 *
 * Puts the startup hook and libspoor into a folder of the process (forward/hook_folder.h), lets the
 * runtime run the hook, waits for its answer, and removes the folder: the process has loaded the
 * files. The runtime keeps the mark SPOOR_INJECT, "FOLDER HASH", in its environment: an assembly that
 * is loaded stays loaded, and the runtime ends the process if another one of its name follows. A
 * later call needs the same path, as the runtime knows the assembly by it.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/diag.h"
#include "base/map.h"
#include "base/text.h"
#include "cli/message.h"
#include "cli/target_options.h"
#include "cli/verbs.h"
#include "dotnet/ask.h"
#include "dotnet/exchange.h"
#include "dotnet/ipc.h"
#include "dotnet/kind.h"
#include "dotnet/providers.h"
#include "forward/hook_folder.h"
#include "image/image_file.h"

#define OPTIONS_VERB inject
#define OPTIONS_LIST "cli/inject_options.def"
#include "cli/option_list.h"

#define MARK      "SPOOR_INJECT"
#define MARK_ROOM 256u
#define CALL_ROOM 32u
#define WAIT_NS   UINT64_C(10000000000)
#define LOOK_NS   20000000

struct loaded {
	uint8_t *data;
	size_t size;
};

struct injection {
	const struct inject_values *values;
	const struct target *target;
	struct loaded hook;
	struct loaded library;
	char mark[MARK_ROOM]; /* of an earlier injection; "": none */
	char call[CALL_ROOM]; /* first line of the settings, and of their answer */
	struct hook_folder folder;
};

/* ---- the files ---- */

static int load(const char *path, size_t limit, struct loaded *ret, struct diag *diag)
{
	struct image_file file;
	struct stat st;
	/* It may be a FIFO, whose open would wait for a writer. */
	cleanup(closep) int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &st) < 0)
		return diag_set(diag, -errno, "cannot open '%s': %m", path);
	if (!S_ISREG(st.st_mode) || !st.st_size)
		return diag_set(diag, -EINVAL, "'%s' is not a file of bytes", path);
	int error = image_file_from_fd(&file, fd, diag);
	if (error == 0)
		error = image_file_load(&file, 0, (uint64_t)st.st_size, limit, &ret->data);
	if (error < 0)
		return diag_set(diag, error, "cannot read '%s': %m", path);
	ret->size = (size_t)st.st_size;
	return 0;
}

/* Loads the file that the user named, or the first of `below` that exists below the program's folder. */
static int load_chosen(const char *chosen, const char *const *below, const char *option,
	size_t limit, struct loaded *ret, struct diag *diag)
{
	char own[PATH_MAX], path[2 * PATH_MAX];

	if (chosen)
		return load(chosen, limit, ret, diag);
	ssize_t n = readlink("/proc/self/exe", own, sizeof(own) - 1);
	own[n > 0 ? n : 0] = '\0';
	char *end = strrchr(own, '/');
	if (end)
		*end = '\0';
	for (; *below; below++) {
		snprintf(path, sizeof(path), "%s/%s", own, *below);
		if (access(path, R_OK) == 0)
			return load(path, limit, ret, diag);
	}
	diag_set(diag, -ENOENT, "%s is not installed here", strrchr(below[-1], '/') + 1);
	diag_remedy(diag, "%s FILE names it; docs: spoor-inject(1)", option);
	return -ENOENT;
}

/* The end needs no library: it was loaded. */
static int load_files(struct injection *injection, bool on, struct diag *diag)
{
	static const char *const hooks[] = { HOOK_ASSEMBLY, "../lib/spoor/" HOOK_ASSEMBLY, NULL };
	static const char *const libraries[] = { HOOK_LIBRARY,
		"../" SPOOR_LIBRARY_FOLDER "/" HOOK_LIBRARY, "../lib64/" HOOK_LIBRARY,
		"../lib/" HOOK_LIBRARY, NULL };
	int error = load_chosen(injection->values->hook, hooks, "--hook", HOOK_ASSEMBLY_MAX,
		&injection->hook, diag);

	if (error == 0)
		error = hook_check(injection->hook.data, injection->hook.size, diag);
	if (error == 0 && on)
		error = load_chosen(injection->values->library, libraries, "--library",
			HOOK_LIBRARY_MAX, &injection->library, diag);
	return error;
}

/* ---- the runtime ---- */

static int take_mark(void *user, const char *variable)
{
	struct injection *injection = user;
	const char prefix[] = MARK "=";

	if (strncmp(variable, prefix, sizeof(prefix) - 1) == 0)
		snprintf(injection->mark, sizeof(injection->mark), "%s",
			variable + sizeof(prefix) - 1);
	return 0;
}

static int ask(const struct injection *injection, const struct ipc_request *request,
	struct exchange *ret_exchange, struct diag *diag)
{
	int error = ask_process(injection->target->pid, request, ASK_ANSWER_NS, NULL, ret_exchange,
		diag);

	if (error == -EOPNOTSUPP)
		diag_set(diag, error,
			"%s (%u) is older than .NET 8, which has no startup hooks for a process that runs",
			injection->target->name, injection->target->pid);
	return error;
}

static int read_mark(struct injection *injection, struct diag *diag)
{
	const struct ipc_request request = { .command = IPC_PROCESS_ENVIRONMENT };
	struct exchange exchange = { 0 };
	int error = ask(injection, &request, &exchange, diag);

	if (error == 0)
		error = ipc_decode_environment(exchange.payload, exchange.payload_size, take_mark,
			injection, diag);
	exchange_done(&exchange);
	return error;
}

static int ask_only(const struct injection *injection, const struct ipc_request *request,
	struct diag *diag)
{
	struct exchange exchange = { 0 };
	int error = ask(injection, request, &exchange, diag);

	exchange_done(&exchange);
	return error;
}

/*
 * Makes a new folder. The runtime gets the mark first: if this program is killed in between, the next
 * one finds the folder.
 */
static int make_folder(struct injection *injection, const char *hash, struct diag *diag)
{
	char mark[MARK_ROOM], path[HOOK_PATH_MAX];
	struct diag tried = { 0 };
	uint64_t number;
	int error = -EIO;

	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		return diag_set(diag, -EIO, "there are no random numbers here");
	for (unsigned i = 0; error < 0 && hook_folder_path(i, number, path); i++) {
		snprintf(mark, sizeof(mark), "%s %s", path, hash);
		error = ask_only(injection,
			&(struct ipc_request){
				.command = IPC_SET_ENVIRONMENT, .variable = MARK, .value = mark },
			diag);
		if (error < 0)
			return error;
		tried = (struct diag){ 0 };
		error = hook_folder_open(&injection->folder, injection->target->pid, path, &tried);
	}
	if (error < 0) {
		*diag = tried;
		diag_remedy(diag,
			"the process needs a /tmp, /var/tmp or /dev/shm that can be written");
	}
	return error;
}

/* Opens the folder: that of the mark, or a new one. */
static int open_folder(struct injection *injection, struct diag *diag)
{
	char hash[17];
	char *separator = strchr(injection->mark, ' ');

	snprintf(hash, sizeof(hash), "%016" PRIx64,
		hash_bytes(injection->hook.data, injection->hook.size));
	if (!separator)
		return make_folder(injection, hash, diag);
	if (strcmp(separator + 1, hash) != 0)
		return diag_set(diag, -EEXIST,
			"%s (%u) has loaded %s of another version of Spoor; it must start again before this one",
			injection->target->name, injection->target->pid, HOOK_ASSEMBLY);
	*separator = '\0';
	return hook_folder_open(&injection->folder, injection->target->pid, injection->mark, diag);
}

static bool has_ended(const struct target *target)
{
	return kill((pid_t)target->pid, 0) < 0 && errno == ESRCH;
}

/* Waits for the hook's answer to this call: another one may answer a call that was killed. */
static int await_state(const struct injection *injection, struct bytes *out, struct diag *diag)
{
	const uint64_t until_ns = clock_monotonic_ns() + WAIT_NS;
	const struct timespec pause = { .tv_nsec = LOOK_NS };

	for (;;) {
		bytes_reset(out);
		int error = hook_folder_state(&injection->folder, out, diag);
		if (error < 0 && error != -ENOENT)
			return error;
		if (error == 0 &&
			strncmp(bytes_z(out), injection->call, strlen(injection->call)) == 0)
			return 0;
		if (has_ended(injection->target))
			return diag_set(diag, -ESRCH, "%s (%u) has ended", injection->target->name,
				injection->target->pid);
		if (clock_monotonic_ns() > until_ns) {
			diag_set(diag, -ETIMEDOUT,
				"%s (%u) has not run the startup hook within 10 s",
				injection->target->name, injection->target->pid);
			diag_remedy(diag,
				"it may be suspended at its start, or was built without startup hooks (System.StartupHookProvider.IsSupported)");
			return -ETIMEDOUT;
		}
		(void)nanosleep(&pause, NULL);
	}
}

/* ---- one injection ---- */

static int add_settings(const struct injection *injection, bool on, struct bytes *out,
	struct diag *diag)
{
	struct provider_list list = { 0 };
	int error = 0;

	bytes_text(out, injection->call);
	if (!on)
		bytes_text(out, "off\n");
	else
		bytes_printf(out, "logger %u\n", (unsigned)injection->values->to);
	for (uint32_t i = 0; on && error == 0 && i < injection->values->providers.list.count; i++)
		error = provider_list_add_text(&list, injection->values->providers.list.items[i],
			"--providers", diag);
	for (uint32_t i = 0; error == 0 && i < list.items.count; i++) {
		const struct provider_choice *provider = &list.items.items[i];
		if (strchr(provider->name, '\n') ||
			(provider->arguments && strchr(provider->arguments, '\n')))
			error = diag_set(diag, -EINVAL, "a provider has a line end in it");
		bytes_printf(out, "provider %" PRIx64 " %u %s\n", provider->keywords,
			provider->level, provider->name);
		if (provider->arguments)
			bytes_printf(out, "arguments %s\n", provider->arguments);
	}
	provider_list_done(&list);
	if (error == 0 && out->failed)
		error = diag_set(diag, -ENOMEM, "cannot write the settings: %m");
	return error;
}

static int put_files(const struct injection *injection, struct bytes *settings, struct diag *diag)
{
	const struct hook_folder *folder = &injection->folder;
	int error = hook_folder_put(folder, HOOK_ASSEMBLY, injection->hook.data,
		injection->hook.size, diag);

	if (error == 0 && injection->library.size)
		error = hook_folder_put(folder, HOOK_LIBRARY, injection->library.data,
			injection->library.size, diag);
	if (error == 0)
		error = hook_folder_put(folder, "settings", settings->data, settings->len, diag);
	return error;
}

static int run_hook(struct injection *injection, bool on, struct bytes *state, struct diag *diag)
{
	cleanup(bytes_done) struct bytes settings = { 0 };
	char path[HOOK_PATH_MAX + sizeof(HOOK_ASSEMBLY) + 1];
	uint64_t call;

	if (getrandom(&call, sizeof(call), 0) != sizeof(call))
		return diag_set(diag, -EIO, "there are no random numbers here");
	snprintf(injection->call, sizeof(injection->call), "call %016" PRIx64 "\n", call);
	int error = add_settings(injection, on, &settings, diag);
	if (error == 0)
		error = load_files(injection, on, diag);
	if (error == 0)
		error = read_mark(injection, diag);
	if (error == 0 && !on && !*injection->mark)
		error = diag_set(diag, -ENOENT, "nothing was injected into %s (%u)",
			injection->target->name, injection->target->pid);
	if (error == 0)
		error = open_folder(injection, diag);
	if (error < 0)
		return error;
	error = put_files(injection, &settings, diag);
	if (error == 0) {
		hook_folder_forget_state(&injection->folder);
		snprintf(path, sizeof(path), "%s/%s", injection->folder.path, HOOK_ASSEMBLY);
		error = ask_only(injection,
			&(struct ipc_request){ .command = IPC_STARTUP_HOOK, .hook = path }, diag);
	}
	if (error == 0)
		error = await_state(injection, state, diag);
	hook_folder_remove(&injection->folder, injection->target->pid);
	return error;
}

static int say_state(const struct injection *injection, struct bytes *state, struct diag *diag)
{
	static const char *const tracers[] = { "USDT probes", "LTTng", "user_events" };
	const struct target *target = injection->target;
	const char *text = bytes_z(state) + strlen(injection->call);
	uint64_t fired, unheard, failed;
	cleanup(bytes_done) struct bytes reason = { 0 };
	cleanup(bytes_done) struct bytes hook = { 0 };

	if (strncmp(text, "on\n", 3) == 0) {
		if (injection->values->hook)
			bytes_text(&hook, " --hook ");
		if (injection->values->hook)
			text_add_shell_word(&hook, injection->values->hook);
		if (!injection->values->quiet)
			message_print(
				"%s (%u) fires its events as %s; spoor inject off -p %u%s ends it",
				target->name, target->pid, tracers[injection->values->to],
				target->pid, bytes_z(&hook));
		return 0;
	}
	if (sscanf(text, "off %" SCNu64 " %" SCNu64 " %" SCNu64, &fired, &unheard, &failed) == 3) {
		if (!injection->values->quiet)
			message_print(
				"%s (%u): off; %s fired, %s that no tool had enabled, %s could not be fired",
				target->name, target->pid, TEXT_THINGS(fired, "event", "events"),
				TEXT_COUNT(unheard), TEXT_COUNT(failed));
		return 0;
	}
	text += strncmp(text, "error ", 6) == 0 ? 6 : 0;
	text_add_safe(&reason, text, strcspn(text, "\n"));
	return diag_set(diag, -EIO, "%s (%u): %s", target->name, target->pid, bytes_z(&reason));
}

static int inject_one(const struct inject_values *values, const struct target *target, bool on)
{
	struct injection injection = { .values = values, .target = target, .folder.fd = -1 };
	cleanup(bytes_done) struct bytes state = { 0 };
	struct diag diag = { 0 };
	int error;

	if (target->kind == DOTNET_NATIVEAOT || target->kind == DOTNET_MONO ||
		target->kind == DOTNET_LIBSPOOR)
		error = diag_set(&diag, -EOPNOTSUPP, "%s (%u) cannot load an assembly: it is %s",
			target->name, target->pid, dotnet_kind_name(target->kind));
	else
		error = run_hook(&injection, on, &state, &diag);
	if (error == 0)
		error = say_state(&injection, &state, &diag);
	hook_folder_close(&injection.folder);
	free(injection.hook.data);
	free(injection.library.data);
	return error < 0 ? message_fail(&diag) : EXIT_DONE;
}

int cmd_inject(const struct verb *self, int argc, char **argv)
{
	struct inject_values values = { 0 };
	struct target_choice choice = { 0 };
	struct targets targets = { 0 };
	struct arguments args;
	struct diag diag = { 0 };
	int code;

	if (!options_parse(self, argc, argv, &values, &args, &code))
		return code;
	bool off = args.words.count == 1 && strcmp(args.words.items[0], "off") == 0;

	if (args.command || (args.words.count && !off))
		code = options_misused(self, "the only word it takes is off");
	else if (!off && !values.providers.list.count)
		code = options_misused(self, "--providers is missing: whose events?");
	else if (off && values.providers.list.count)
		code = options_misused(self, "off takes no --providers");
	else
		code = target_options_dotnet(&values.targets, self, &choice);
	if (code == EXIT_DONE && target_options_choose_own(&choice.query, &targets, &diag) < 0)
		code = message_fail(&diag);
	else if (code == EXIT_DONE && targets.list.count > 1)
		code = options_misused(self, "it works on one process, and %u were chosen",
			targets.list.count);
	else if (code == EXIT_DONE)
		code = inject_one(&values, &targets.list.items[0], !off);
	targets_done(&targets);
	target_options_done(&choice);
	options_done(self, &values, &args);
	return code;
}
