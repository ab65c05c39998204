/*
 * spoor forward: the events of a .NET process in a tracer of the system.
 *
 * Chooses the process, the events and the destination, forwards, and prints what happened.
 */
#include <errno.h>
#include <inttypes.h>
#include <spoor/logger.h>
#include <spoor/spoor.h>
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
#include "cli/verbs.h"
#include "dotnet/guard.h"
#include "dotnet/ipc.h"
#include "dotnet/port.h"
#include "dotnet/providers.h"
#include "forward/forwarding.h"
#include "forward/refire.h"
#include "machine/output_file.h"

#define OPTIONS_VERB forward
#define OPTIONS_LIST "cli/forward_options.def"
#include "cli/option_list.h"

#define BUFFER_MB 256u

/* Where events can go. `logger` counts only if `is_logger`. */
struct destination {
	const char *name;
	bool is_logger;
	enum spoor_logger logger;
	const char *missing; /* what to do if its library or kernel feature is not here */
};

static const struct destination destinations[] = {
	{ "usdt", true, SPOOR_LOGGER_USDT, "" },
	{ "lttng", true, SPOOR_LOGGER_LTTNG,
		"it needs liblttng-ust 2.12 or later (Debian: liblttng-ust1, lttng-tools); the static spoor cannot load it" },
	{ "user-events", true, SPOOR_LOGGER_USER_EVENTS,
		"it needs Linux 6.4 or newer with CONFIG_USER_EVENTS and rights for user_events_data in tracefs; spoor doctor says what is missing" },
	{ "file", false, 0, "" },
};

static const struct destination *destination_of(const char *name)
{
	for (size_t i = 0; name && i < sizeof(destinations) / sizeof(*destinations); i++)
		if (strcmp(destinations[i].name, name) == 0)
			return &destinations[i];
	return NULL;
}

struct forward_run {
	const struct forward_values *values;
	const struct target *target;
	const struct destination *to;
	struct run_control control;
	struct output_file out;
	struct spoor_session *session; /* writes it */
	bool opened;
};

static bool on_turn(void *user, uint64_t now_ns)
{
	struct forward_run *run = user;

	(void)now_ns;
	(void)run_control_take(&run->control);
	return !run->control.reason;
}

static void on_open(void *user)
{
	struct forward_run *run = user;
	cleanup(bytes_done) struct bytes line = { 0 };

	run->opened = true;
	if (run->values->quiet)
		return;
	bytes_text(&line, "forwarding events of ");
	text_add_safe_z(&line, run->target->name);
	bytes_printf(&line, " (%u) to %s", run->target->pid, run->to->name);
	if (run->to->logger == SPOOR_LOGGER_USDT && run->to->is_logger)
		bytes_printf(&line, ", as probes of process %u", (unsigned)getpid());
	message_print("%s; %s", bytes_z(&line),
		run->values->duration_ns ? "Ctrl-C ends it earlier" : "Ctrl-C ends it");
}

static int choose_providers(const struct forward_values *values, struct provider_list *list,
	struct diag *diag)
{
	int result = 0;

	for (uint32_t i = 0; result == 0 && i < values->providers.list.count; i++)
		result = provider_list_add_text(list, values->providers.list.items[i],
			"--providers", diag);
	for (uint32_t i = 0; result == 0 && i < values->profiles.list.count; i++)
		result = provider_list_add_profiles(list, values->profiles.list.items[i], diag);
	for (uint32_t i = 0; result == 0 && i < values->event_ids.list.count; i++)
		result = provider_list_add_event_ids(list, values->event_ids.list.items[i], diag);
	return result;
}

/*
 * The file is opened as every file of this program, so that its content is only the user's and no
 * link is followed; libspoor opens it once more by its descriptor.
 */
static int open_file(struct forward_run *run, const struct spoor_session_options *session,
	struct diag *diag)
{
	char path[32];
	const struct spoor_file_options file = { .size = sizeof(file), .path = path };
	int result = output_file_open(&run->out, run->values->output, diag);

	if (result < 0)
		return result;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", run->out.fd);
	result = spoor_session_start_file(session, &file, &run->session);
	if (result < 0)
		return diag_set(diag, result, "cannot write '%s': %m", run->values->output);
	return output_file_keep(&run->out, diag);
}

/* libspoor runs in this process, without another diagnostics socket. */
static int open_destination(struct forward_run *run, struct diag *diag)
{
	const struct spoor_options options = { .size = sizeof(options),
		.flags = SPOOR_START_NO_SERVER };
	const struct spoor_want want = {
		.size = sizeof(want), .name = "*", .keywords = UINT64_MAX, .level = SPOOR_VERBOSE
	};
	const struct spoor_session_options session = {
		.size = sizeof(session), .wants = &want, .want_count = 1
	};
	int result = spoor_start(&options);

	if (result < 0)
		return diag_set(diag, result, "cannot start the event library: %m");
	if (run->to->is_logger) {
		result = spoor_logger_start(run->to->logger);
		if (result < 0) {
			diag_set(diag, result, "cannot forward to %s: %m", run->to->name);
			if (*run->to->missing)
				diag_remedy(diag, "%s", run->to->missing);
		}
	} else {
		result = open_file(run, &session, diag);
	}
	return result;
}

static int close_destination(struct forward_run *run, struct diag *diag)
{
	int result = 0;

	if (run->session) {
		result = spoor_session_stop(run->session);
		spoor_session_free(run->session);
		if (result < 0)
			diag_set(diag, result, "cannot write '%s': %m", run->values->output);
	}
	spoor_stop();
	output_file_close(&run->out);
	return result;
}

static void say_end(const struct forward_run *run, const struct forward_result *result,
	const struct refire_counts *counts)
{
	cleanup(bytes_done) struct bytes line = { 0 };

	bytes_printf(&line, "%s of %s received in ", TEXT_THINGS(result->events, "event", "events"),
		TEXT_THINGS(counts->kinds, "kind", "kinds"));
	text_add_duration(&line, (double)result->took_ns / 1e9);
	bytes_printf(&line, ", %s forwarded", TEXT_COUNT(counts->fired));
	if (counts->as_json)
		bytes_printf(&line, " (%s with the payload as JSON)", TEXT_COUNT(counts->as_json));
	if (counts->unheard)
		bytes_printf(&line, ", %s that no tool enabled", TEXT_COUNT(counts->unheard));
	if (counts->failed)
		bytes_printf(&line, ", %s could not be forwarded", TEXT_COUNT(counts->failed));
	if (result->lost)
		bytes_printf(&line, ", %s lost by the runtime", TEXT_COUNT(result->lost));
	else
		bytes_text(&line, ", nothing lost");
	message_print("%s", bytes_z(&line));
	if (result->has_ended && !run->control.reason)
		message_print("the process has ended, or its runtime has ended the session");
}

static int forward(struct forward_run *run, const struct provider_list *list, struct guard *guard,
	struct diag *diag)
{
	cleanup(freep) struct ipc_provider *providers = provider_list_request(list);
	struct refire *refire = refire_new(run->values->as_json);
	struct dotnet_target port;
	struct forward_result result = { 0 };
	struct refire_counts counts;
	int code = providers && refire ? 0 : diag_set(diag, -ENOMEM, "cannot forward events: %m");

	if (code == 0)
		code = dotnet_target_read(run->target->pid, &port, diag);
	if (code == 0) {
		const struct forward_options options = {
			.target = &port,
			.providers = providers,
			.provider_count = list->items.count,
			.guard = guard,
			.refire = refire,
			.buffer_mb = run->values->buffer_mb ? (uint32_t)run->values->buffer_mb
							    : BUFFER_MB,
			.duration_ns = run->values->duration_ns,
			.watched = run->control.watched,
			.watched_count = run->control.watched_count,
			.turn = on_turn,
			.user = run,
		};
		code = forward_run(&options, on_open, &result, diag);
		refire_count(refire, &counts);
		if (run->opened && !run->values->quiet)
			say_end(run, &result, &counts);
		if (code == 0 && counts.failed)
			code = diag_set(diag, -EIO, "%" PRIu64 " events could not be forwarded",
				counts.failed);
	}
	refire_free(refire);
	return code;
}

static int run_all(const struct forward_values *values, const struct verb *self,
	const struct destination *to)
{
	struct target_choice choice;
	struct targets targets = { 0 };
	struct provider_list list = { 0 };
	struct guard *guard = NULL;
	struct diag diag = { 0 };
	struct forward_run run = { .values = values,
		.to = to,
		.out = { .fd = -1, .folder = -1 },
		.control.watched = { { .fd = -1 } } };
	int code = target_options_dotnet(&values->targets, self, &choice);

	if (code != EXIT_DONE) {
		target_options_done(&choice);
		return code;
	}
	int result = choose_providers(values, &list, &diag);
	if (result == 0)
		result = target_options_choose_own(&choice.query, &targets, &diag);
	if (result == 0 && targets.list.count > 1)
		code = options_misused(self, "it forwards one process, and %u were chosen",
			targets.list.count);
	/* Before libspoor's thread exists: the guard is forked. */
	if (result == 0 && code == EXIT_DONE)
		result = guard_start(&guard, &diag);
	if (result == 0 && code == EXIT_DONE)
		result = run_control_start(&run.control, 0, true, &diag);
	if (result == 0 && code == EXIT_DONE) {
		run.target = &targets.list.items[0];
		result = open_destination(&run, &diag);
		if (result == 0)
			result = forward(&run, &list, guard, &diag);
		int closed = close_destination(&run, &diag);
		result = result ? result : closed;
	}
	if (result < 0)
		code = message_fail(&diag);
	run_control_end(&run.control);
	guard_free(guard);
	provider_list_done(&list);
	targets_done(&targets);
	target_options_done(&choice);
	return code;
}

int cmd_forward(const struct verb *self, int argc, char **argv)
{
	struct forward_values values = { 0 };
	struct arguments args;
	int code;

	if (!options_parse(self, argc, argv, &values, &args, &code))
		return code;
	const struct destination *to = destination_of(values.to);

	if (args.words.count || args.command)
		code = options_misused(self,
			"it takes options only, as in: spoor forward -p PID --to usdt --providers My-Source");
	else if (!to)
		code = options_misused(self,
			values.to ? "--to is usdt, lttng, user-events or file, not '%s'"
				  : "--to is missing: usdt, lttng, user-events or file%s",
			values.to ? values.to : "");
	else if (!to->is_logger != (values.output != NULL))
		code = options_misused(self, "-o FILE goes with --to file");
	else if (!values.providers.list.count && !values.profiles.list.count)
		code = options_misused(self, "--providers or --profile is missing: whose events?");
	else
		code = run_all(&values, self, to);
	options_done(self, &values, &args);
	return code;
}
