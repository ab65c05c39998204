/*
 * spoor counters: the counters of .NET processes, shown live, written into a file, or sent to a
 * monitoring system.
 *
 * Parses, drives the sessions until there is a reason to end, and passes each interval's values to
 * the chosen outputs: the screen, lines, a file, a Prometheus server that fetches a page, a
 * collector that receives them over the network.
 */
#include "base/clocks.h"
#include "cli/verbs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "base/nearest.h"
#include "base/poll_set.h"
#include "base/text.h"
#include "base/vec.h"
#include "cli/counters_outlets.h"
#include "cli/interrupt.h"
#include "cli/listen_port.h"
#include "cli/message.h"
#include "cli/run_control.h"
#include "cli/selection.h"
#include "cli/target_options.h"
#include "counters/counter_choice.h"
#include "counters/counters.h"
#include "counters/counters_list.h"
#include "counters/counting.h"
#include "dotnet/guard.h"
#include "dotnet/providers.h"
#include "dotnet/reason.h"
#include "machine/box.h"
#include "machine/descriptors.h"
#include "target/targets.h"

#define SECOND_NS UINT64_C(1000000000)
#define STOP_NS   UINT64_C(6000000000)
/* a command that Ctrl-Z has stopped ends no session; the guard does */
#define STOPPED_NS UINT64_C(500000000)
/* a provider that has sent nothing for so long is said to be missing */
#define MISSING_NS       UINT64_C(3000000000)
#define MAX_TIME_SERIES  1000u
#define MAX_HISTOGRAMS   100u
#define LIMIT_MAX        1000000u
#define DEFAULT_COUNTERS PROVIDER_SYSTEM_RUNTIME_NAME "," PROVIDER_HOSTING_NAME
#define ALL_METERS       "*" /* of a program with libspoor, whose meters have no known names */
#define DEFAULT_ADDRESS  "127.0.0.1:9464"

/* The words of --format, in its order. */
enum counters_format { FORMAT_AUTO, FORMAT_TABLE, FORMAT_LINES, FORMAT_CSV, FORMAT_JSON };

#define OPTIONS_VERB counters
#define OPTIONS_LIST "cli/counters_options.def"
#include "cli/option_list.h"
#include "trace/provider_kind.h"

struct show {
	const struct counters_values *values;
	const struct arguments *args;
	struct listen_port port;
	struct run_control control;
	bool stops; /* Ctrl-Z, which ends the counting and stops the program */
	struct counting *counting;
	struct counter_choice choice;
	struct counters_outlets outlets;
	VEC(struct counters_view) views; /* one a process, in the same order */
	VEC(uint32_t) reported;          /* processes that were reported as late */
	struct diag broken;              /* the file cannot be written any more */
	uint64_t interval_ns;
	bool missing_looked_for;
	uint32_t missing_count; /* names of --counters that no counter has */
};

static bool look(struct show *show)
{
	uint32_t count = counting_count(show->counting);

	vec_reset(&show->views);
	for (uint32_t i = 0; i < count; i++) {
		struct counting_process process;
		counting_process(show->counting, i, &process);
		const struct counters_view view = {
			.process = process.name,
			.pid = process.pid,
			.runtime = process.runtime_version,
			.trouble = process.reason,
			.counters = process.counters,
			.utc_ns = process.utc_ns,
			.interval_s = (double)show->interval_ns / 1e9,
		};
		if (!vec_add(&show->views, view))
			return false;
	}
	return true;
}

static void on_ready(void *context, uint32_t index)
{
	struct show *show = context;

	if (!show->broken.error && look(show))
		(void)counters_outlets_interval(&show->outlets, show->views.items,
			show->views.count, index,
			&show->broken); /* show->broken is checked in each turn */
}

static void on_tell(void *context, uint32_t index, const char *sentence)
{
	struct show *show = context;
	struct counting_process process;
	char line[700];

	counting_process(show->counting, index, &process);
	text_set(line, "%s (%u): %s", process.name, process.pid, sentence);
	counters_outlets_say(&show->outlets, line);
}

/* Seconds, as dotnet-counters takes them, or a time with a unit. */
static int read_interval(const struct counters_values *values, const struct verb *verb,
	uint64_t *ret_ns)
{
	char *end;

	*ret_ns = SECOND_NS;
	if (!values->interval)
		return EXIT_DONE;
	double seconds = strtod(values->interval, &end);

	if (end != values->interval && !*end && seconds > 0 && seconds < 1e6)
		*ret_ns = (uint64_t)(seconds * 1e9 + 0.5);
	else if (!text_parse_duration(values->interval, ret_ns))
		return options_misused(verb,
			"--refresh-interval takes seconds or a time such as 500ms, not '%s'",
			values->interval);
	if (*ret_ns < COUNTING_INTERVAL_MIN_NS)
		return options_misused(verb, "--refresh-interval is 100ms at the least");
	return EXIT_DONE;
}

static int read_choice(const struct counters_values *values, struct counter_choice *choice,
	struct diag *diag)
{
	int result = 0;

	if (values->list && !values->counters.list.count)
		return counter_choice_add(choice, PROVIDERS_OF_EVENT_COUNTERS, diag);
	for (uint32_t i = 0; result == 0 && i < values->counters.list.count; i++)
		result = counter_choice_add(choice, values->counters.list.items[i], diag);
	return result;
}

/* What is shown if the user names no counters. */
static int choose_default(const struct counters_values *values, const struct targets *targets,
	struct counter_choice *choice, struct diag *diag)
{
	bool libspoor = targets->list.count != 0;

	if (values->list || values->counters.list.count)
		return 0;
	vec_each(target, &targets->list)
		libspoor = libspoor && target->kind == DOTNET_LIBSPOOR;
	return counter_choice_add(choice, libspoor ? ALL_METERS : DEFAULT_COUNTERS, diag);
}

/* `name`: "" for any counter of the provider. `near` gets the names that exist. */
static bool has_counter(const struct counting_process *process,
	const struct counter_provider *provider, const char *name, struct nearest *near)
{
	const struct strtab *strings = &process->counters->strings;
	bool found = false;

	for (uint32_t i = DERIVED_COUNT; i < process->counters->series.count; i++) {
		const struct counter_series *series = &process->counters->series.items[i];
		const char *of = strtab_get(strings, series->id.provider);
		const char *own = strtab_get(strings, series->id.name);
		if (series->hidden)
			continue;
		if (!*name)
			nearest_offer(near, of);
		else if (counter_provider_fits(provider, of))
			nearest_offer(near, own);
		found |= counter_provider_fits(provider, of) && (!*name || strcmp(name, own) == 0);
	}
	if (!*name)
		provider_offer_known(near);
	return found;
}

static void say_one_missing(struct show *show, const struct counting_process *process,
	const char *what, const char *of, const struct nearest *near)
{
	cleanup(bytes_done) struct bytes line = { 0 };

	show->missing_count++;
	bytes_printf(&line, "%s (%u) has sent no counter of ", process->name, process->pid);
	bytes_printf(&line, of ? "'%s[%s]'" : "'%s'", of ? of : what, what);
	if (near->count && near->found[0].distance) {
		bytes_text(&line, "; did you mean ");
		(void)nearest_add(near, &line); /* there are some */
		bytes_text(&line, "?");
	} else {
		bytes_printf(&line, "; spoor counters -p %u --list shows which it has",
			process->pid);
	}
	counters_outlets_say(&show->outlets, bytes_z(&line));
}

/* Prints once which of --counters a process has sent nothing of. The default may lack some. */
static void say_missing(struct show *show)
{
	if (show->missing_looked_for || !show->values->counters.list.count || show->values->list)
		return;
	show->missing_looked_for = true;
	for (uint32_t i = 0; i < counting_count(show->counting); i++) {
		struct counting_process process;
		counting_process(show->counting, i, &process);
		bool asked = process.state != COUNTING_FAILED && process.state != COUNTING_OPENING;
		for (uint32_t k = 0; k < show->choice.providers.count && asked; k++) {
			const struct counter_provider *provider = &show->choice.providers.items[k];
			struct nearest near = { .wanted = provider->name };
			if (!has_counter(&process, provider, "", &near)) {
				say_one_missing(show, &process, provider->name, NULL, &near);
				continue;
			}
			for (uint32_t c = 0; c < provider->counters.count; c++) {
				near = (struct nearest){ .wanted = provider->counters.items[c] };
				if (!has_counter(&process, provider, provider->counters.items[c],
					    &near))
					say_one_missing(show, &process, provider->counters.items[c],
						provider->name, &near);
			}
		}
	}
}

/* Prints the processes that failed. If all of them did, this is the run's failure. */
static int tell_ends(const struct show *show)
{
	uint32_t failed = 0;
	bool refused = false;
	uint32_t count = counting_count(show->counting);

	for (uint32_t i = 0; i < count; i++) {
		struct counting_process process;
		counting_process(show->counting, i, &process);
		if (process.lost && !show->values->quiet)
			message_print("%s (%u): %llu %s lost on the way", process.name, process.pid,
				(unsigned long long)process.lost,
				process.lost == 1 ? "event was" : "events were");
		bool late = i < show->reported.count && show->reported.items[i];
		if (process.state != COUNTING_FAILED && !process.intervals && !show->values->list &&
			!show->values->quiet && !show->missing_count && !late)
			message_print(
				"no counters of %s (%u): the end came before its first interval was over",
				process.name, process.pid);
		if (!process.intervals && !process.listed &&
			(late || process.state == COUNTING_FAILED))
			failed++;
		if (process.state != COUNTING_FAILED || late)
			continue;
		message_print("%s counters of %s (%u): %s", process.intervals ? "no more" : "no",
			process.name, process.pid, process.reason);
		refused |= process.reason_kind == REASON_KIND_PERMISSION;
	}
	if (refused)
		message_print("run it as that user, or with sudo");
	if (!count)
		message_print("nothing was counted: no .NET runtime came to the port");
	if (failed < count || show->stops)
		return EXIT_DONE;
	return refused ? EXIT_MISSING : EXIT_FAILED;
}

/* After a table on the terminal: where that process computes, and where its threads are. */
static void say_next(const struct show *show)
{
	struct counting_process process;

	if (counting_count(show->counting) != 1)
		return;
	counting_process(show->counting, 0, &process);
	message_next(process.pid, (const char *const[]){ "record", "stacks", NULL });
}

/* Reports a late process once. say_missing() reports names that match nothing. */
static void tell_late(struct show *show, uint32_t index, const struct counting_process *process)
{
	cleanup(bytes_done) struct bytes text = { 0 };

	while (show->reported.count <= index)
		if (!vec_add(&show->reported, 0))
			return;
	if (show->reported.items[index])
		return;
	show->reported.items[index] = 1;
	bytes_printf(&text, "%s (%u) ", process->name, process->pid);
	if (process->wait == COUNTING_UNANSWERED)
		bytes_printf(&text, "is not counted: %s",
			*process->reason ? process->reason : "it does not answer");
	else if (process->intervals)
		bytes_text(&text, "has sent no values for long: it may be stopped");
	else
		bytes_text(&text, "has sent no values");
	if (!text.failed && (process->wait == COUNTING_UNANSWERED || process->intervals ||
				    !show->missing_count))
		counters_outlets_say(&show->outlets, bytes_z(&text));
}

/* Every process has sent its intervals or is late, or the time is over. */
static bool has_enough(const struct show *show, uint64_t end_ns)
{
	uint32_t count = counting_count(show->counting);

	if (clock_monotonic_ns() >= end_ns)
		return true;
	for (uint32_t i = 0; show->values->count && i < count; i++) {
		struct counting_process process;
		counting_process(show->counting, i, &process);
		if (process.intervals < show->values->count && process.state != COUNTING_ENDED &&
			process.state != COUNTING_FAILED && process.wait == COUNTING_ON_TIME)
			return false;
	}
	return show->values->count && count; /* runtimes may still connect to the port */
}

static void take_requests(struct show *show)
{
	unsigned requests = run_control_take(&show->control);

	if (requests & RUN_REQUEST_RESIZE)
		counters_outlets_resized(&show->outlets);
	if (requests & RUN_REQUEST_PAUSE)
		show->stops = true;
}

static bool all_listed(const struct show *show)
{
	if (show->port.reverse && !counting_count(show->counting))
		return false;
	for (uint32_t i = 0; i < counting_count(show->counting); i++) {
		struct counting_process process;
		counting_process(show->counting, i, &process);
		if (!process.listed && process.state != COUNTING_FAILED &&
			process.state != COUNTING_ENDED && process.wait == COUNTING_ON_TIME)
			return false;
	}
	return true;
}

static void tell_all_late(struct show *show)
{
	for (uint32_t i = 0; i < counting_count(show->counting); i++) {
		struct counting_process process;
		counting_process(show->counting, i, &process);
		if (process.wait != COUNTING_ON_TIME)
			tell_late(show, i, &process);
	}
}

static bool any_late(const struct show *show)
{
	for (uint32_t i = 0; i < show->reported.count; i++)
		if (show->reported.items[i])
			return true;
	return false;
}

static bool any_running(const struct show *show)
{
	for (uint32_t i = 0; i < counting_count(show->counting); i++) {
		struct counting_process process;
		counting_process(show->counting, i, &process);
		if (process.state != COUNTING_OPENING)
			return true;
	}
	return false;
}

static void run(struct show *show)
{
	const struct counters_values *values = show->values;
	uint64_t end_ns = UINT64_MAX;
	struct poll_set set = { 0 };
	uint64_t missing_ns = clock_monotonic_ns() + MISSING_NS + 2 * show->interval_ns;
	int running = 1;

	while (running > 0 && !has_enough(show, end_ns) && !show->broken.error &&
		!show->outlets.wants_end && !show->control.reason && !show->stops) {
		/* With a port the duration counts from the first session: runtimes start slowly. */
		if (end_ns == UINT64_MAX && values->duration_ns &&
			(!show->port.reverse || any_running(show) || any_late(show)))
			end_ns = clock_monotonic_ns() + values->duration_ns;
		poll_set_begin(&set, end_ns);
		poll_set_wake(&set, missing_ns);
		poll_set_add_callers(&set, show->control.watched, 1);
		counters_outlets_await(&show->outlets, &set);
		running = counting_step(show->counting, &set);
		take_requests(show);
		tell_all_late(show);
		if (values->list && all_listed(show))
			break;
		if (clock_monotonic_ns() >= missing_ns) {
			missing_ns =
				any_running(show) ? UINT64_MAX : clock_monotonic_ns() + MISSING_NS;
			if (missing_ns == UINT64_MAX)
				say_missing(show);
		}
		if (look(show))
			counters_outlets_advance(&show->outlets, show->views.items,
				show->views.count);
	}
	if (any_running(show) && !show->stops)
		say_missing(show);
	if (running == -EMFILE || running == -ENFILE) {
		char reason[160];
		descriptors_explain(reason, sizeof(reason));
		diag_set(&show->broken, running, "cannot take a runtime's connection: %s", reason);
	}
	counting_stop(show->counting);
	uint64_t until_ns = clock_monotonic_ns() + (show->stops ? STOPPED_NS : STOP_NS);

	/* After a second signal the guard ends the sessions that are left. */
	for (bool open = true;
		open && clock_monotonic_ns() < until_ns && show->control.end_signals < 2;
		take_requests(show)) {
		poll_set_begin(&set, until_ns);
		poll_set_add_callers(&set, show->control.watched, 1);
		open = counting_step(show->counting, &set) > 0;
	}
	poll_set_done(&set);
	if (show->control.end_signals > 1)
		message_print(
			"not every runtime has ended its session before the second signal; the guard ends the rest");
}

/* ---- --list ---- */

static int print_list(const struct show *show)
{
	cleanup(bytes_done) struct bytes out = { 0 };
	int code = EXIT_DONE;

	for (uint32_t i = 0; i < counting_count(show->counting); i++) {
		struct counting_process process;
		counting_process(show->counting, i, &process);
		const struct counters_offer offer = {
			.process = process.name,
			.pid = process.pid,
			.runtime = process.runtime_version,
			.counters = process.counters,
			.instruments = process.instruments,
			.instrument_count = process.instrument_count,
		};
		if (!process.listed)
			continue;
		if (show->values->json)
			counters_list_json(&offer, &out);
		else
			counters_list_text(&offer, &out);
	}
	if (out.len)
		code = selection_print(&out);
	return code;
}

/* ---- from the options to the sessions ---- */

static enum counters_form form_of(const struct counters_values *values, bool command)
{
	const char *dot = values->output ? strrchr(values->output, '.') : NULL;

	if (values->list)
		return COUNTERS_NOTHING;
	if (values->csv || values->format == FORMAT_CSV)
		return COUNTERS_CSV;
	if (values->json || values->format == FORMAT_JSON)
		return COUNTERS_JSON;
	if (values->output)
		return dot && strcmp(dot, ".json") == 0 ? COUNTERS_JSON : COUNTERS_CSV;
	if (values->format == FORMAT_TABLE)
		return COUNTERS_TABLE;
	if (values->format == FORMAT_LINES)
		return COUNTERS_LINES;
	if (values->prometheus || values->graphite || values->statsd)
		return COUNTERS_NOTHING;
	/* A command writes to the terminal, too, and reads from it: a table would be in its way. */
	return isatty(STDOUT_FILENO) == 1 && !command ? COUNTERS_TABLE : COUNTERS_LINES;
}

static int add_targets(struct show *show, const struct targets *targets, struct diag *diag)
{
	const char *path = show->port.connect_path;
	int result = path ? counting_add_path(show->counting, path, diag) : 0;

	for (uint32_t i = 0; result == 0 && i < targets->list.count; i++)
		result = counting_add(show->counting, &targets->list.items[i], diag);
	if (show->port.reverse)
		counting_listen(show->counting, show->port.reverse);
	return result;
}

/* The exit code. Failures are printed. */
static int count_targets(struct show *show, const struct targets *targets)
{
	struct diag failure = { 0 };
	struct diag *diag = &failure;
	int code = EXIT_DONE;
	struct guard *guard = NULL;
	const struct counters_values *values = show->values;
	struct box box;
	int result = run_control_start(&show->control,
		INTERRUPT_CHILD | INTERRUPT_PAUSE | INTERRUPT_RESIZE, false, diag);

	box_read(&box);
	if (result == 0)
		result = guard_start(&guard, diag);
	if (result == 0)
		result = listen_port_open(&show->port, "counters", values->start.port,
			show->args->command, diag);
	const struct counters_outlet_options outlets = {
		.form = form_of(values, show->args->command != NULL),
		.file = values->output,
		.prometheus = values->prometheus,
		.graphite = values->graphite,
		.statsd = values->statsd,
		.host = box.host,
		.several = targets->list.count > 1 || show->args->command ||
			   (values->start.port && !show->port.connect_path),
		.quiet = values->quiet,
	};
	const struct counting_options options = {
		.choice = &show->choice,
		.interval_ns = show->interval_ns,
		.max_histograms = (uint32_t)values->max_histograms,
		.max_time_series = (uint32_t)values->max_time_series,
		.list = values->list,
		.hold = values->start.resume == NO,
		.derive = !values->list &&
			  counter_choice_has_provider(&show->choice, PROVIDER_SYSTEM_RUNTIME_NAME),
		.guard = guard,
		.ready = on_ready,
		.tell = on_tell,
		.context = show,
	};
	bool opened = result == 0;

	if (opened)
		result = counters_outlets_open(&show->outlets, &outlets, diag);
	if (result == 0)
		result = counting_new(&options, &show->counting, diag);
	if (result == 0)
		result = add_targets(show, targets, diag);
	if (result == 0)
		result = listen_port_go(&show->port, &show->control.command, diag);
	if (result == 0)
		run(show);
	if (opened)
		counters_outlets_close(&show->outlets);
	if (opened && show->outlets.out.error && show->outlets.out.error != -EPIPE &&
		!show->broken.error)
		diag_set(&show->broken, show->outlets.out.error,
			"cannot write the result to standard output: %m");
	if (result == 0) {
		code = values->list ? print_list(show) : EXIT_DONE;
		int ends = tell_ends(show);
		code = code ? code : ends;
		if (code == EXIT_DONE && !values->list && !values->output && !show->args->command)
			say_next(show);
	}
	if (result == 0 && show->broken.error) {
		failure = show->broken;
		result = failure.error;
	}
	counting_free(show->counting);
	guard_free(guard); /* no session stays open while the command keeps running */
	if (result < 0)
		code = message_fail_argument(&failure);
	return listen_port_end(&show->port, &show->control, show->stops && show->args->command,
		values->quiet, code);
}

/* Inserts the default address after a bare --prometheus. The caller frees the copy of argv. */
static char **complete_arguments(int *argc, char **argv)
{
	static char address[] = DEFAULT_ADDRESS;
	char **copy = calloc((size_t)*argc * 2 + 1, sizeof(*copy));
	int count = 0;

	for (int i = 0; copy && i < *argc; i++) {
		copy[count++] = argv[i];
		if (strcmp(argv[i], "--") == 0) {
			while (++i < *argc)
				copy[count++] = argv[i];
			break;
		}
		if (strcmp(argv[i], "--prometheus") == 0 &&
			(i + 1 == *argc || argv[i + 1][0] == '-'))
			copy[count++] = address;
	}
	*argc = count;
	return copy;
}

/* Options that contradict each other. */
static int check(const struct counters_values *values, const struct arguments *args,
	const struct verb *verb)
{
	bool rows = values->csv || values->json || values->format == FORMAT_CSV ||
		    values->format == FORMAT_JSON;
	const char *port_misuse = listen_port_misuse(args->command, values->start.port,
		target_options_given(&values->targets) || values->targets.all);

	if (args->words.count)
		return options_misused(verb, "'%s' is no option; give a command after --",
			args->words.items[0]);
	if (port_misuse)
		return options_misused(verb, "%s", port_misuse);
	if (values->max_histograms > LIMIT_MAX || values->max_time_series > LIMIT_MAX)
		return options_misused(verb,
			"--maxHistograms and --maxTimeSeries take %u at the most", LIMIT_MAX);
	if (values->csv && values->json)
		return options_misused(verb, "--csv and --json do not go together");
	if (values->output && !rows && values->format != FORMAT_AUTO)
		return options_misused(verb, "-o takes CSV or JSON");
	if (values->list && (values->output || values->prometheus || values->graphite ||
				    values->statsd || values->csv))
		return options_misused(verb,
			"--list prints what there is to count; it goes with --json only");
	return EXIT_DONE;
}

int cmd_counters(const struct verb *self, int argc, char **argv)
{
	struct counters_values values = { .max_histograms = MAX_HISTOGRAMS,
		.max_time_series = MAX_TIME_SERIES };
	struct show show = { .values = &values, .control = { .watched = { { .fd = -1 } } } };
	struct target_choice choice = { 0 };
	struct targets targets = { 0 };
	struct diag diag = { 0 };
	struct arguments args;
	int code;

	cleanup(freep) char **completed = complete_arguments(&argc, argv);

	if (!completed || !options_parse(self, argc, completed, &values, &args, &code))
		return completed ? code : EXIT_FAILED;
	show.args = &args;
	code = check(&values, &args, self);
	if (code == EXIT_DONE)
		code = read_interval(&values, self, &show.interval_ns);
	bool by_port = args.command || values.start.port;

	if (code == EXIT_DONE && !by_port)
		code = target_options_dotnet(&values.targets, self, &choice);
	if (code == EXIT_DONE) {
		int result = read_choice(&values, &show.choice, &diag);
		if (result == 0 && !by_port) {
			choice.query.details |= TARGET_DOTNET;
			choice.query.libspoor = !values.targets.all;
			result = targets_choose(&choice.query, &targets, &diag);
		}
		if (result >= 0)
			result = choose_default(&values, &targets, &show.choice, &diag);
		code = result < 0 ? message_fail_argument(&diag) : count_targets(&show, &targets);
	}
	vec_done(&show.views);
	vec_done(&show.reported);
	counter_choice_done(&show.choice);
	targets_done(&targets);
	target_options_done(&choice);
	options_done(self, &values, &args);
	return code;
}
