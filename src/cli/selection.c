/* See selection.h. */
#include "cli/selection.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/missing_symbols.h"
#include "analysis/profile_lines.h"
#include "analysis/recording.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "base/nearest.h"
#include "base/text.h"
#include "cli/message.h"
#include "cli/verbs.h"
#include "diagnose/observation_events.h"
#include "machine/output_file.h"
#include "machine/rights.h"
#include "pipeline/saved.h"
#include "symbolize/symbol_cache.h"
#include "symbols/line_names.h"
#include "symbols/managed_lines.h"
#include "symbols/symbol_names.h"
#include "trace/event.h"
#include "trace/event_count.h"

#define NS_PER_MS 1000000u

static void add_words(struct bytes *words, const char *option, const char *value)
{
	bytes_printf(words, "%s%s %s", words->len ? " " : "", option, value);
}

int selection_numbers(const struct texts *texts, const char *option, const struct verb *verb,
	void *vec_of_u32, struct bytes *words)
{
	VEC(uint32_t) *numbers = vec_of_u32;

	for (uint32_t i = 0; i < texts->list.count; i++) {
		uint64_t number;
		const char *text = texts->list.items[i];
		if (!text_parse_u64(text, &number) || number > UINT32_MAX)
			return options_misused(verb, "'%s' is no number for %s", text, option);
		if (!vec_add(numbers, (uint32_t)number))
			return EXIT_FAILED;
		if (words)
			add_words(words, option, text);
	}
	return EXIT_DONE;
}

static bool copy_texts(const struct texts *texts, const char *option, void *vec_of_text,
	struct bytes *words)
{
	VEC(const char *) *list = vec_of_text;

	for (uint32_t i = 0; i < texts->list.count; i++) {
		if (!vec_add(list, texts->list.items[i]))
			return false;
		add_words(words, option, texts->list.items[i]);
	}
	return true;
}

static void add_arguments(struct bytes *out, const char *option, const struct texts *texts)
{
	for (uint32_t i = 0; i < texts->list.count; i++) {
		bytes_printf(out, " %s ", option);
		text_add_shell_word(out, texts->list.items[i]);
	}
}

static void add_time_argument(struct bytes *out, const char *option, uint64_t ns)
{
	if (ns && ns % NS_PER_MS == 0)
		bytes_printf(out, " %s %" PRIu64 "ms", option, ns / NS_PER_MS);
	else if (ns)
		bytes_printf(out, " %s %.9fs", option, (double)ns / 1e9);
}

/* The selection as options, for a command to be pasted. */
static void make_arguments(const struct selection_values *values, struct bytes *out)
{
	add_arguments(out, "-p", &values->pids);
	add_arguments(out, "-n", &values->names);
	add_arguments(out, "-t", &values->tids);
	add_arguments(out, "-m", &values->modules);
	add_arguments(out, "--event", &values->events);
	add_time_argument(out, "--from", values->from_ns);
	add_time_argument(out, "--to", values->to_ns);
}

static int make_filter(const struct selection_values *values, const struct verb *verb,
	struct selection *s)
{
	struct profile_filter *filter = &s->profile.filter;
	int code = selection_numbers(&values->pids, "-p", verb, &filter->pids, &s->words);

	if (code == EXIT_DONE)
		code = selection_numbers(&values->tids, "-t", verb, &filter->tids, &s->words);
	if (code != EXIT_DONE)
		return code;
	if (values->to_ns && values->to_ns <= values->from_ns)
		return options_misused(verb, "--to is not after --from");
	for (uint32_t i = 0; i < values->events.list.count; i++)
		add_words(&s->words, "--event", values->events.list.items[i]);
	if (!copy_texts(&values->names, "-n", &filter->process_names, &s->words) ||
		!copy_texts(&values->modules, "-m", &filter->modules, &s->words))
		return EXIT_FAILED;
	filter->from_ns = values->from_ns;
	filter->to_ns = values->to_ns;
	if (values->from_ns || values->to_ns) {
		bytes_printf(&s->words, "%s%.3g s to ", s->words.len ? " " : "",
			(double)values->from_ns / 1e9);
		if (values->to_ns)
			bytes_printf(&s->words, "%.3g s", (double)values->to_ns / 1e9);
		else
			bytes_text(&s->words, "the end");
	}
	return EXIT_DONE;
}

int selection_choose_file(const char *input, const struct arguments *arguments,
	const struct verb *verb, char *path, size_t room)
{
	struct diag diag = { 0 };

	if (arguments->command || arguments->words.count + (input != NULL) > 1)
		return options_misused(verb, "more than one recording given");
	if (arguments->words.count || input) {
		const char *word = input ? input : arguments->words.items[0];
		if (strlen(word) >= room)
			return options_misused(verb, "the name of the recording is too long");
		memcpy(path, word, strlen(word) + 1);
		return EXIT_DONE;
	}
	if (saved_newest(".", path, room, &diag) < 0) {
		diag_remedy(&diag, "name one: spoor %s FILE; or make one: spoor record",
			verb->name);
		return message_fail(&diag);
	}
	if (strncmp(path, "./", 2) == 0)
		memmove(path, path + 2, strlen(path + 2) + 1);
	message_print("the newest recording here is %s", path);
	return EXIT_DONE;
}

/* After the first event of a schema: most files have many events of kinds that no analysis takes. */
static int note_schema(struct selection *s, uint32_t schema_index)
{
	bool counted = !s->choice.patterns.count && !s->observations &&
		       profile_only_counts(&s->profile, schema_index) &&
		       (!s->answers || answers_ignore(s->answers, schema_index));

	while (s->passing.count <= schema_index)
		if (!vec_push(&s->passing))
			return -ENOMEM;
	s->passing.items[schema_index] = counted ? PASSING_COUNTED : PASSING_EACH;
	return 0;
}

/* A damaged file is reported up to the damage; a file without any readable event is a failure. */
static int on_event(void *context, const struct event *event)
{
	struct selection *s = context;
	struct event unwritten;
	struct event_counted counted = { .count = 1 };
	enum selection_passing passing = event->schema_index < s->passing.count
						 ? s->passing.items[event->schema_index]
						 : PASSING_UNKNOWN;

	if (passing == PASSING_COUNTED && event->kind != EVENT_SAMPLE) {
		profile_count_event(&s->profile, event->schema_index);
		return 0;
	}
	int error = profile_event(&s->profile, event);

	if (!error && s->choice.patterns.count) {
		bool only_counted = event_count_read(&s->trace, event, &unwritten, &counted);
		const struct event *weighed = only_counted ? &unwritten : event;
		if (event_choice_has(&s->choice, weighed))
			error = profile_count_events(&s->profile, weighed, counted.count,
				only_counted);
	}
	if (!error && s->observations)
		error = observation_events_event(s->observations, event);
	if (!error && s->answers)
		error = answers_event(s->answers, event);
	return error || passing ? error : note_schema(s, event->schema_index);
}

static int read_file(struct selection *s, struct diag *diag)
{
	int error = saved_read(s->path, &s->trace, on_event, s, diag);

	if (error < 0) {
		if (error == -ENOMEM && !diag->error)
			diag_set(diag, error, "cannot read '%s': %m", s->path);
		int code = message_fail(diag);
		if (error == -ENOMEM || !s->trace.recording.end_ns)
			return code;
		message_print("What could be read before that is reported");
	}
	return EXIT_DONE;
}

static void say_unmatched(const char *what, const char *pattern, const struct nearest *near)
{
	cleanup(bytes_done) struct bytes text = { 0 };

	bytes_printf(&text, "no %s of this recording is '", what);
	text_add_safe_z(&text, pattern);
	bytes_text(&text, "'");
	if (near->count) {
		bytes_text(&text, "; did you mean ");
		(void)nearest_add(near, &text); /* there are some */
		bytes_text(&text, "?");
	}
	message_print("%s", bytes_z(&text));
}

static bool explain_pids(const struct selection *s)
{
	bool said = false;

	for (uint32_t i = 0; i < s->profile.filter.pids.count; i++) {
		bool found = false;
		for (uint32_t p = 1; p < s->trace.processes.count && !found; p++)
			found = s->trace.processes.items[p].pid == s->profile.filter.pids.items[i];
		if (!found)
			message_print("process %u is not in this recording",
				s->profile.filter.pids.items[i]);
		said |= !found;
	}
	return said;
}

/* Explains an empty result by the names that the filter could have meant. */
static bool explain_process_names(const struct selection *s)
{
	bool said = false;

	for (uint32_t i = 0; i < s->profile.filter.process_names.count; i++) {
		const char *pattern = s->profile.filter.process_names.items[i];
		struct nearest near = { .wanted = pattern };
		bool found = false;
		for (uint32_t p = 1; p < s->trace.processes.count && !found; p++) {
			found = profile_matches_process(&s->trace, &s->trace.processes.items[p],
				pattern);
			nearest_offer(&near,
				trace_text(&s->trace, s->trace.processes.items[p].name));
		}
		if (!found)
			say_unmatched("process", pattern, &near);
		said |= !found;
	}
	return said;
}

static bool explain_modules(const struct selection *s)
{
	bool said = false;

	/* Functions are known for chosen processes only: none means that no process matched. */
	for (uint32_t i = 0; i < s->profile.filter.modules.count && s->names.functions.count > 1;
		i++) {
		const char *pattern = s->profile.filter.modules.items[i];
		struct nearest near = { .wanted = pattern };
		bool found = false;
		for (uint32_t f = 1; f < s->names.functions.count && !found; f++) {
			const char *module =
				trace_text(&s->trace, s->names.functions.items[f].module);
			found = profile_matches_module(module, pattern);
			nearest_offer(&near, module);
		}
		if (!found)
			say_unmatched("module", pattern, &near);
		said |= !found;
	}
	return said;
}

/* A time of day, as `spoor events` prints it, reads as an offset of many hours. */
static bool explain_time(const struct selection *s)
{
	bool late = s->profile.filter.from_ns > s->report.duration_ns;

	if (late)
		selection_say_late(s->profile.filter.from_ns, s->report.duration_ns);
	return late;
}

/* Events can be chosen that have no stack. */
static bool explain_events(const struct selection *s)
{
	bool said = event_choice_say_unmatched(&s->choice);
	bool stacks = !s->choice.patterns.count || !s->profile.stacks.count;

	for (uint32_t i = 0; i < s->profile.stacks.count && !stacks; i++)
		stacks = s->profile.stacks.items[i].frame_count != 0;
	if (!stacks)
		message_print(
			"these events have no stacks; spoor record --event-stacks and spoor trace record them");
	return said;
}

void selection_say_late(uint64_t from_ns, uint64_t duration_ns)
{
	cleanup(bytes_done) struct bytes text = { 0 };

	bytes_printf(&text,
		"--from counts from the begin of the recording, which is %s long: %s lies after its end",
		TEXT_DURATION((double)duration_ns / 1e9), TEXT_DURATION((double)from_ns / 1e9));
	message_print("%s", bytes_z(&text));
}

bool selection_is_empty(const struct selection *s)
{
	return s->words.len && !s->profile.count && (s->profile.all_count || s->unmatched);
}

/* Completes the trace's symbols from the symbol cache; `names` is made again if there are any. */
static int name_from_cache(struct selection *s)
{
	struct missing_symbols missing = { .trace = &s->trace };
	struct symbol_names found = { 0 };
	struct symbol_cache cache;
	enum method_name_form form = s->names.form;
	int error = 0;

	(void)symbol_cache_open(&cache, false, NULL); /* without: the machine's store */
	if (symbol_names_possible(&s->trace, &cache)) {
		for (uint32_t i = 0; i < s->profile.stacks.count && !error; i++) {
			const struct profile_stack *stack = &s->profile.stacks.items[i];
			if (!missing_symbols_add(&missing, stack->process, stack->stack,
				    stack->count))
				error = -ENOMEM;
		}
		if (!error)
			error = missing_symbols_find(&missing, &s->names);
		if (!error)
			error = symbol_names_find(&found, &s->trace, &missing, &cache);
		if (!error && !symbol_names_use(&found, &s->trace))
			error = -ENOMEM;
		if (!error && found.names.count) {
			symbolmap_done(&s->names);
			error = symbolmap_init(&s->names, &s->trace, form);
		}
	}
	symbol_names_done(&found);
	missing_symbols_done(&missing);
	symbol_cache_close(&cache);
	return error;
}

static void say_without_lines(const struct selection *s, const struct line_names *lines)
{
	cleanup(bytes_done) struct bytes text = { 0 };

	bytes_text(&text, "no debug information here for ");
	text_add_safe_z(&text, trace_text(&s->trace, lines->first_without));
	if (lines->without > 1)
		bytes_printf(&text, " and %s other %s", TEXT_COUNT(lines->without - 1),
			lines->without == 2 ? "image" : "images");
	bytes_text(&text, ": their functions have no lines");
	message_print("%s", bytes_z(&text));
}

/* Turns frames into lines of functions, as far as there is debug information. */
static int add_lines(struct selection *s)
{
	struct line_names lines = { .trace = &s->trace };
	struct symbol_cache cache;
	int error = 0;

	(void)symbol_cache_open(&cache, false, NULL); /* without: the machine's store */
	for (uint32_t i = 0; i < s->profile.stacks.count && !error; i++) {
		const struct profile_stack *stack = &s->profile.stacks.items[i];
		if (!line_names_add(&lines, stack->process, stack->stack, stack->epoch))
			error = -ENOMEM;
	}
	if (!error)
		error = line_names_find(&lines, &s->names, &cache);
	if (!error)
		error = managed_lines_find(&lines, &cache);
	if (!error)
		error = profile_add_lines(&s->profile, &s->names);
	if (!error && lines.without)
		say_without_lines(s, &lines);
	line_names_done(&lines);
	symbol_cache_close(&cache);
	return error;
}

/* Is the profile that of blocked time, and of that the wall-clock form? */
static bool is_blocked(const struct selection_values *values)
{
	return values->weighs_answer && values->weighed == ANSWER_OFF_CPU;
}

static bool is_wall(const struct selection_values *values)
{
	return is_blocked(values) && values->answers->blocked_form == BLOCKED_WALL;
}

/* Names and sorts the trace. -ENOMEM. */
static int analyse(const struct selection_values *values, enum method_name_form form,
	struct selection *s)
{
	int error =
		symbolmap_init(&s->names, &s->trace, values->raw_names ? METHOD_NAME_RAW : form);
	if (!error && values->weighs_answer)
		error = answers_fill_profile(s->answers, values->weighed, &s->profile);
	if (!error) /* before any function is looked up: it may make the names anew */
		error = name_from_cache(s);
	if (!error && s->answers)
		error = answers_find(s->answers, &s->names);
	if (!error)
		error = profile_name(&s->profile, &s->names);
	if (!error && is_blocked(values))
		error = blocked_profile_mark(&s->profile, &s->names);
	if (!error)
		error = recording_describe(&s->report, &s->trace, &s->names, &s->profile);
	if (!error && values->lines)
		error = add_lines(s);
	if (!error && s->answers)
		error = answers_finish(s->answers, &s->profile, &s->names, s->report.duration_ns);
	return error;
}

/* Explains a selection that is empty, and describes it for the report. */
static void describe(const struct selection_values *values, struct selection *s)
{
	bool said = explain_pids(s);
	said |= explain_process_names(s);
	said |= explain_modules(s);
	said |= explain_time(s);
	said |= explain_events(s);
	s->unmatched = said;
	if (values->weighs_answer)
		s->report.weighing = values->weighed == ANSWER_ALLOC ? REPORT_ALLOCATIONS
				     : is_wall(values)               ? REPORT_WALL
								     : REPORT_WAITING;
	if (s->choice.patterns.count)
		s->report.weighing = REPORT_EVENTS;
	if (!said && !values->without_samples && selection_is_empty(s))
		message_print("no sample is left by this selection");
	make_arguments(values, &s->arguments);
	s->report.arguments = s->arguments.len ? bytes_z(&s->arguments) : NULL;
	s->report.one_process = values->pids.list.count > 0;
	s->report.file = s->path;
	s->report.selection = s->words.len ? bytes_z(&s->words) : NULL;
}

int selection_open(const struct selection_values *values, enum method_name_form form,
	const struct arguments *arguments, const struct verb *verb, struct selection *s)
{
	struct diag diag = { 0 };

	/*
	 * Any user may have written the file, so it is read with no rights but those to read and
	 * write files; KILL is for a command of `record` that keeps running meanwhile. If reducing
	 * fails, more rights remain, and the report is still made.
	 */
	(void)rights_reduce(rights_are_borrowed() ? 0 : RIGHTS_OF_FILES | RIGHT_KILL);
	memset(s, 0, sizeof(*s));
	if (trace_init(&s->trace) < 0) {
		diag_set(&diag, -ENOMEM, "cannot read a recording: %m");
		return message_fail(&diag);
	}
	s->trace.code.wanted = values->code;
	s->profile.trace = &s->trace;
	s->answers = values->answers;
	s->profile.ignores_samples =
		(values->weighs_answer && !is_wall(values)) || values->events.list.count;
	s->observations = values->observations;
	if (s->observations) {
		s->observations->trace = &s->trace;
		s->observations->filter = &s->profile.filter;
	}
	if (s->answers) {
		s->answers->trace = &s->trace;
		s->answers->filter = &s->profile.filter;
	}
	if (event_choice_init(&s->choice, &s->trace, NULL, &values->events) < 0) {
		diag_set(&diag, -ENOMEM, "cannot read a recording: %m");
		return message_fail(&diag);
	}
	int code = make_filter(values, verb, s);
	if (code == EXIT_DONE)
		code = selection_choose_file(values->input, arguments, verb, s->path,
			sizeof(s->path));
	if (code == EXIT_DONE)
		code = read_file(s, &diag);
	if (code != EXIT_DONE)
		return code;

	int error = analyse(values, form, s);

	if (error < 0) {
		diag = (struct diag){ 0 };
		diag_set(&diag, error, "cannot analyse '%s': %m", s->path);
		return message_fail(&diag);
	}
	describe(values, s);
	return EXIT_DONE;
}

int selection_print(const struct bytes *out)
{
	errno = 0;
	if (out->len && fwrite(out->data, 1, out->len, stdout) != out->len && errno == EPIPE)
		return EXIT_DONE;
	return message_finish_output();
}

static int write_file(const char *path, const struct bytes *content, bool quiet, struct diag *diag)
{
	struct output_file out;
	int result = output_file_open(&out, path, diag);

	for (size_t at = 0; result == 0 && at < content->len;) {
		ssize_t got = write(out.fd, content->data + at, content->len - at);
		if (got >= 0)
			at += (size_t)got;
		else if (errno != EINTR)
			result = diag_set(diag, -errno, "cannot write '%s': %m", path);
	}
	if (result == 0)
		result = output_file_keep(&out, diag);
	if (result == 0 && out.replaced && !quiet)
		message_print_replaced(path);
	output_file_close(&out);
	return result;
}

int selection_write(const struct selection *s, const char *path, const struct bytes *out,
	bool quiet)
{
	struct diag diag = { 0 };
	struct stat input;
	int known = strcmp(s->path, "-") == 0 ? fstat(STDIN_FILENO, &input) : stat(s->path, &input);

	/* The output must not replace the recording; a deleted one needs no check. */
	if (known == 0 && output_file_spares(path, &input, &diag) < 0)
		return message_fail(&diag);
	return write_file(path, out, quiet, &diag) < 0 ? message_fail(&diag) : EXIT_DONE;
}

void selection_close(struct selection *s)
{
	report_done(&s->report);
	symbolmap_done(&s->names);
	profile_done(&s->profile);
	event_choice_done(&s->choice);
	vec_done(&s->passing);
	trace_done(&s->trace);
	bytes_done(&s->words);
	bytes_done(&s->arguments);
}
