/* spoor env: the environment of .NET processes as their runtimes have it now. */
#include "cli/verbs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/diag.h"
#include "base/json.h"
#include "base/nearest.h"
#include "base/text.h"
#include "cli/message.h"
#include "cli/selection.h"
#include "cli/target_options.h"
#include "dotnet/ask.h"
#include "dotnet/exchange.h"
#include "dotnet/ipc.h"

#define OPTIONS_VERB env
#define OPTIONS_LIST "cli/env_options.def"
#include "cli/option_list.h"

/* One process's variables, on their way out. */
struct env_listing {
	const struct arguments *wanted; /* names or patterns; none: all */
	/* in the order of `wanted`; its `wanted` is NULL once a variable was found */
	VEC(struct nearest) missing;
	VEC(char *) variables; /* "NAME=value", owned */
};

static bool listing_begin(struct env_listing *listing)
{
	for (uint32_t i = 0; i < listing->wanted->words.count; i++) {
		const struct nearest near = { .wanted = listing->wanted->words.items[i] };
		if (!vec_add(&listing->missing, near))
			return false;
	}
	return true;
}

static bool is_wanted(struct env_listing *listing, const char *variable)
{
	char name[256];
	size_t len = strcspn(variable, "=");

	bool wanted = !listing->wanted->words.count;

	if (wanted)
		return true;
	if (len >= sizeof(name))
		return false;
	memcpy(name, variable, len);
	name[len] = '\0';
	for (uint32_t i = 0; i < listing->missing.count; i++) {
		struct nearest *near = &listing->missing.items[i];
		if (text_glob(listing->wanted->words.items[i], name)) {
			near->wanted = NULL;
			wanted = true;
		} else if (near->wanted) {
			nearest_offer(near, name);
		}
	}
	return wanted;
}

/* EXIT_FAILED when a requested variable is not set. */
static int say_missing(const struct env_listing *listing, const struct target *target)
{
	int code = EXIT_DONE;

	vec_each(near, &listing->missing) {
		struct bytes names = { 0 };
		if (!near->wanted)
			continue;
		if (nearest_add(near, &names))
			message_print("%s (%u) has no variable '%s'; did you mean %s?",
				target->name, target->pid, near->wanted, bytes_z(&names));
		else
			message_print("%s (%u) has no variable '%s'", target->name, target->pid,
				near->wanted);
		bytes_done(&names);
		code = EXIT_FAILED;
	}
	return code;
}

static int keep(void *user, const char *variable)
{
	struct env_listing *listing = user;

	if (!is_wanted(listing, variable))
		return 0;
	char *copy = strdup(variable);
	if (copy && vec_add(&listing->variables, copy))
		return 0;
	free(copy);
	return -ENOMEM;
}

static int compare_texts(const void *left, const void *right)
{
	return strcmp(*(char *const *)left, *(char *const *)right);
}

static void listing_done(struct env_listing *listing)
{
	for (uint32_t i = 0; i < listing->variables.count; i++)
		free(listing->variables.items[i]);
	vec_done(&listing->variables);
	vec_done(&listing->missing);
}

static int read_environment(const struct target *target, struct env_listing *listing,
	struct diag *diag)
{
	const struct ipc_request request = { .command = IPC_PROCESS_ENVIRONMENT };
	struct exchange exchange = { 0 };
	int result = ask_process(target->pid, &request, ASK_ANSWER_NS, NULL, &exchange, diag);

	if (result == 0)
		result = ipc_decode_environment(exchange.payload, exchange.payload_size, keep,
			listing, diag);
	if (result == -ENOMEM && !diag->error)
		diag_set(diag, result, "cannot list the environment: %m");
	exchange_done(&exchange);
	if (result == 0 && listing->variables.count)
		qsort(listing->variables.items, listing->variables.count,
			sizeof(listing->variables.items[0]), compare_texts);
	return result;
}

static void add_lines(const struct env_listing *listing, const struct target *target, bool several,
	struct bytes *out)
{
	if (several) {
		bytes_text(out, out->len ? "\n" : "");
		text_add_safe_z(out, target->name);
		bytes_printf(out, " (%u)\n", target->pid);
	}
	for (uint32_t i = 0; i < listing->variables.count; i++) {
		text_add_safe(out, listing->variables.items[i],
			strlen(listing->variables.items[i]));
		bytes_text(out, "\n");
	}
}

static void add_json(struct json *j, const struct env_listing *listing, const struct target *target)
{
	json_object(j, NULL);
	json_u64(j, "pid", target->pid);
	json_z(j, "name", target->name);
	json_object(j, "environment");
	for (uint32_t i = 0; i < listing->variables.count; i++) {
		char *variable = listing->variables.items[i];
		char *equals = strchr(variable, '=');
		if (!equals)
			continue;
		*equals = '\0';
		json_z(j, variable, equals + 1);
		*equals = '=';
	}
	json_end(j);
	json_end(j);
}

static int list(const struct env_values *values, const struct arguments *args,
	const struct targets *targets)
{
	struct bytes out = { 0 };
	struct json json = { .out = &out };
	int code = EXIT_DONE;

	if (values->json) {
		json_object(&json, NULL);
		json_array(&json, "processes");
	}
	vec_each(target, &targets->list) {
		struct env_listing listing = { .wanted = args };
		struct diag diag = { 0 };
		if (!listing_begin(&listing))
			diag_set(&diag, -ENOMEM, "cannot list the environment: %m");
		if (diag.error || read_environment(target, &listing, &diag) < 0) {
			int each = message_fail(&diag);
			code = code ? code : each;
			listing_done(&listing);
			continue;
		}
		int each = say_missing(&listing, target);
		code = code ? code : each;
		if (values->json)
			add_json(&json, &listing, target);
		else
			add_lines(&listing, target, targets->list.count > 1, &out);
		listing_done(&listing);
	}
	if (values->json) {
		json_end(&json);
		json_end(&json);
		bytes_u8(&out, '\n');
	}
	int printed = out.failed ? EXIT_FAILED : selection_print(&out);

	bytes_done(&out);
	return code ? code : printed;
}

int cmd_env(const struct verb *self, int argc, char **argv)
{
	struct env_values values = { 0 };
	struct arguments args;
	struct target_choice choice;
	struct targets targets = { 0 };
	struct diag diag = { 0 };
	int code;

	if (!options_parse(self, argc, argv, &values, &args, &code))
		return code;
	code = target_options_dotnet(&values.targets, self, &choice);
	if (code == EXIT_DONE && args.command)
		code = options_misused(self, "no command can be started here");
	if (code == EXIT_DONE)
		code = target_options_choose_own(&choice.query, &targets, &diag) < 0
			       ? message_fail(&diag)
			       : list(&values, &args, &targets);
	targets_done(&targets);
	target_options_done(&choice);
	options_done(self, &values, &args);
	return code;
}
