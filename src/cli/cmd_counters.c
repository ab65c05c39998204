/*
 * spoor counters: what .NET processes count of themselves, live, into a file, or out of the machine.
 *
 * Parses, drives the sessions until there is a reason to end, and gives each interval to what was asked for: the screen, lines, a file, the scraper that
 * comes by, the collector that listens elsewhere.
 */
#include "cli/verbs.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "base/text.h"
#include "cli/target_options.h"
#include "cli/words.h"
#include "dotnet/guard.h"
#include "export/counters_rows.h"
#include "model/counter_choice.h"
#include "model/counters.h"
#include "session/counting.h"
#include "session/targets.h"

#define SECOND_NS        UINT64_C(1000000000)
#define STOP_NS          UINT64_C(6000000000)
#define MAX_TIME_SERIES  1000u
#define MAX_HISTOGRAMS   10u
#define LIMIT_MAX        1000000u
#define DEFAULT_COUNTERS "System.Runtime,Microsoft.AspNetCore.Hosting"

enum counters_format { FORMAT_AUTO, FORMAT_LINES, FORMAT_CSV, FORMAT_JSON };

struct counters_values {
	struct target_values targets;
	struct texts counters;
	const char *interval;
	uint64_t duration_ns;
	uint64_t count;
	uint64_t max_histograms;
	uint64_t max_time_series;
	bool quiet;
};

const struct option counters_options[] = {
	TARGET_OPTIONS(struct counters_values, targets),
	TARGET_ALL_OPTION(struct counters_values, targets, "every .NET process"),
	{ 0, "counters", "LIST", "what to read: Provider,Other[counter,counter]; may be repeated", OPTION_TEXTS,
		INTO(struct counters_values, counters) },
	{ 0, "refresh-interval", "SECONDS", "seconds, or a time such as 100ms (1)", OPTION_TEXT,
		INTO(struct counters_values, interval) },
	{ 0, "maxHistograms", "N", "the most histograms a runtime keeps for us (10)", OPTION_COUNT,
		INTO(struct counters_values, max_histograms) },
	{ 0, "maxTimeSeries", "N", "the most time series a runtime keeps for us (1000)", OPTION_COUNT,
		INTO(struct counters_values, max_time_series) },
	{ 0, "duration", "TIME", "end after so long", OPTION_DURATION, INTO(struct counters_values, duration_ns) },
	{ 0, "count", "N", "end after so many intervals", OPTION_COUNT, INTO(struct counters_values, count) },
	{ 'q', "quiet", NULL, "only errors on standard error", OPTION_FLAG, INTO(struct counters_values, quiet) },
	{ 0 },
};

struct show {
	const struct counters_values *values;
	struct counting *counting;
	struct counter_choice choice;
	uint64_t interval_ns;
	struct bytes out;
	int code;
	bool done;              /* there is nobody left to show it to, or it cannot be written */
};

static uint64_t now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail for this clock */
	return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

static struct counters_view view_of(const struct show *show, const struct counting_process *process)
{
	return (struct counters_view){
		.process = process->name,
		.pid = process->pid,
		.runtime = process->runtime_version,
		.trouble = process->reason,
		.counters = process->counters,
		.utc_ns = process->utc_ns,
		.interval_s = (double)show->interval_ns / 1e9,
	};
}

static void on_ready(void *context, uint32_t index)
{
	struct show *show = context;
	struct counting_process process;

	counting_process(show->counting, index, &process);
	const struct counters_view view = view_of(show, &process);

	bytes_reset(&show->out);
	counters_lines(&view, &show->out);
	if (fwrite(show->out.data, 1, show->out.len, stdout) != show->out.len || fflush(stdout) != 0)
		show->done = true;
}

static void on_tell(void *context, uint32_t index, const char *sentence)
{
	struct show *show = context;
	struct counting_process process;

	if (show->values->quiet)
		return;
	counting_process(show->counting, index, &process);
	words_say("%s (%u): %s", process.name, process.pid, sentence);
}

static int watch_signals(struct pollfd *ret_watched, struct diag *diag)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGTSTP); /* a reader that stands still would hold up the processes: the end comes first */
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return diag_set(diag, -errno, "cannot block signals: %m");
	int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);

	if (fd < 0)
		return diag_set(diag, -errno, "cannot watch signals: %m");
	*ret_watched = (struct pollfd){ .fd = fd, .events = POLLIN };
	return 0;
}

/* Seconds, as dotnet-counters takes them, or any time of ours. */
static int read_interval(const struct counters_values *values, const struct verb *verb, uint64_t *ret_ns)
{
	char *end;

	*ret_ns = SECOND_NS;
	if (!values->interval)
		return EXIT_DONE;
	double seconds = strtod(values->interval, &end);

	if (end != values->interval && !*end && seconds > 0 && seconds < 1e6)
		*ret_ns = (uint64_t)(seconds * 1e9 + 0.5);
	else if (!text_parse_duration(values->interval, ret_ns))
		return options_misused(verb, "--refresh-interval takes seconds or a time such as 500ms, not '%s'", values->interval);
	if (*ret_ns < COUNTING_INTERVAL_MIN_NS)
		return options_misused(verb, "--refresh-interval is 100ms at the least");
	return EXIT_DONE;
}

static int read_choice(const struct counters_values *values, struct counter_choice *choice, struct diag *diag)
{
	int result = 0;

	for (uint32_t i = 0; result == 0 && i < values->counters.list.count; i++)
		result = counter_choice_add(choice, values->counters.list.items[i], diag);
	if (!values->counters.list.count)
		result = counter_choice_add(choice, DEFAULT_COUNTERS, diag);
	return result;
}

/* Those that could not be asked, or broke off; all of them: a failure. */
static int tell_ends(const struct show *show)
{
	uint32_t failed = 0;
	uint32_t count = counting_count(show->counting);

	for (uint32_t i = 0; i < count; i++) {
		struct counting_process process;
		counting_process(show->counting, i, &process);
		if (process.lost && !show->values->quiet)
			words_say("%s (%u): %llu events were lost on the way", process.name, process.pid,
				(unsigned long long)process.lost);
		if (process.state != COUNTING_FAILED)
			continue;
		if (!process.intervals)
			failed++;
		words_say("%s counters of %s (%u): %s", process.intervals ? "no more" : "no", process.name, process.pid,
			process.reason);
	}
	return count && failed == count ? EXIT_FAILED : EXIT_DONE;
}

static bool has_enough(const struct show *show, uint64_t begin_ns)
{
	uint64_t most = 0;

	if (show->values->duration_ns && now_ns() >= begin_ns + show->values->duration_ns)
		return true;
	for (uint32_t i = 0; i < counting_count(show->counting); i++) {
		struct counting_process process;
		counting_process(show->counting, i, &process);
		if (process.intervals > most)
			most = process.intervals;
	}
	return show->values->count && most >= show->values->count;
}

static void run(struct show *show, struct pollfd *watched)
{
	uint64_t begin_ns = now_ns();
	uint64_t end_ns = show->values->duration_ns ? begin_ns + show->values->duration_ns : UINT64_MAX;

	while (!show->done && !has_enough(show, begin_ns) && counting_step(show->counting, watched, 1, end_ns) > 0) {
		if (watched->revents)
			break;
	}
	counting_stop(show->counting);
	uint64_t until_ns = now_ns() + STOP_NS;

	while (now_ns() < until_ns && counting_step(show->counting, NULL, 0, until_ns) > 0)
		;
}

static int count_targets(struct show *show, const struct targets *targets, struct diag *diag)
{
	struct pollfd watched = { .fd = -1 };
	struct guard *guard = NULL;
	const struct counters_values *values = show->values;
	int result = watch_signals(&watched, diag);

	if (result == 0)
		result = guard_start(&guard, diag);
	const struct counting_options options = {
		.choice = &show->choice,
		.interval_ns = show->interval_ns,
		.max_histograms = (uint32_t)values->max_histograms,
		.max_time_series = (uint32_t)values->max_time_series,
		.derive = counter_choice_has_provider(&show->choice, "System.Runtime"),
		.guard = guard,
		.ready = on_ready,
		.tell = on_tell,
		.context = show,
	};

	if (result == 0)
		result = counting_new(&options, &show->counting, diag);
	for (uint32_t i = 0; result == 0 && i < targets->list.count; i++)
		result = counting_add(show->counting, &targets->list.items[i], diag);
	if (result == 0) {
		run(show, &watched);
		show->code = tell_ends(show);
	}
	counting_free(show->counting);
	guard_free(guard);
	closep(&watched.fd);
	return result;
}

int cmd_counters(const struct verb *self, int argc, char **argv)
{
	struct counters_values values = { .max_histograms = MAX_HISTOGRAMS, .max_time_series = MAX_TIME_SERIES };
	struct show show = { .values = &values };
	struct target_choice choice = { 0 };
	struct targets targets = { 0 };
	struct diag diag = { 0 };
	struct arguments args;
	int code;

	if (!options_parse(self, argc, argv, &values, &args, &code))
		return code;
	if (args.command || args.words.count)
		code = options_misused(self, "it takes options only, and -p PID says of what");
	else if (values.max_histograms > LIMIT_MAX || values.max_time_series > LIMIT_MAX)
		code = options_misused(self, "--maxHistograms and --maxTimeSeries take %u at the most", LIMIT_MAX);
	else
		code = read_interval(&values, self, &show.interval_ns);
	if (code == EXIT_DONE)
		code = target_options_dotnet(&values.targets, self, &choice);
	if (code == EXIT_DONE) {
		int result = read_choice(&values, &show.choice, &diag);
		if (result == 0) {
			choice.query.details |= TARGET_DOTNET;
			result = targets_choose(&choice.query, &targets, &diag);
		}
		if (result == 0)
			result = count_targets(&show, &targets, &diag);
		code = result < 0 ? words_fail(&diag) : show.code;
	}
	bytes_done(&show.out);
	counter_choice_done(&show.choice);
	targets_done(&targets);
	target_options_done(&choice);
	options_done(self, &values, &args);
	return code;
}
