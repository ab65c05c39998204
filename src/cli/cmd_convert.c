/* spoor convert: a recording as files for other tools. */
#include "cli/verbs.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "base/text.h"
#include "cli/message.h"
#include "cli/selection.h"
#include "machine/output_file.h"
#include "machine/rights.h"
#include "pipeline/saved.h"
#include "symbolize/symbol_cache.h"
#include "symbols/line_names.h"
#include "symbols/perf_files.h"
#include "trace/symbolmap.h"
#include "trace/trace.h"

#define OPTIONS_VERB convert
#define OPTIONS_LIST "cli/convert_options.def"
#include "cli/option_list.h"

/* The state while a recording is converted. */
struct convert_run {
	struct trace trace;
	struct symbolmap map;
	struct line_names lines;
	struct perf_files files;
	struct output_file samples;
	struct symbol_cache cache;
	VEC(uint32_t) pids;
	bool damaged; /* the recording; it was reported */
	char folder[PATH_MAX];
	char path[PATH_MAX + 16]; /* of perf.data */
};

static int on_event(void *context, const struct event *event)
{
	struct perf_files *files = context;

	perf_files_sample(files, event);
	return files->samples.error;
}

static int open_folder(struct convert_run *c, const char *folder, struct diag *diag)
{
	int result = output_folder_make(folder, false, diag);

	if (result < 0)
		return result;
	if (!realpath(folder, c->folder))
		return diag_set(diag, -errno, "cannot open '%s': %m", folder);
	text_set(c->path, "%s/perf.data", c->folder);
	return output_file_open_regular(&c->samples, c->path, diag);
}

static int convert(struct convert_run *c, const struct convert_values *values, const char *path,
	struct diag *diag)
{
	int result = trace_init(&c->trace);

	if (result < 0)
		return diag_set(diag, result, "cannot read '%s': %m", path);
	c->trace.code.wanted = true;
	(void)symbol_cache_open(&c->cache, false, NULL); /* without: PDBs at their paths */
	c->lines.trace = &c->trace;
	c->files = (struct perf_files){ .trace = &c->trace,
		.folder = c->folder,
		.cache = &c->cache,
		.pids = c->pids.items,
		.pid_count = c->pids.count };
	/* The period is the weight of a sample, which each has. */
	perf_data_begin(&c->files.samples, c->samples.fd, 1);
	result = saved_read(path, &c->trace, on_event, &c->files, diag);
	if (c->files.samples.error)
		result = 0; /* it is reported below */
	if (result < 0 && c->trace.recording.end_ns) {
		(void)message_fail(diag); /* the events before the damage are converted */
		c->damaged = true;
		*diag = (struct diag){ 0 };
		result = 0;
	}
	if (result == 0) {
		result = symbolmap_init(&c->map, &c->trace,
			values->raw_names ? METHOD_NAME_RAW : METHOD_NAME_LONG);
		if (result < 0)
			return diag_set(diag, result, "cannot read '%s': %m", path);
	}
	if (result == 0)
		result = perf_files_finish(&c->files, &c->map, &c->lines, diag);
	int written = perf_data_end(&c->files.samples);
	if (result == 0 && written < 0)
		result = diag_set(diag, written, "cannot write '%s': %m", c->path);
	if (result == 0 && !c->files.sample_count) {
		result = diag_set(diag, -ENODATA, "'%s' has no CPU samples%s", path,
			c->pids.count ? " of these processes" : "");
	}
	return result == 0 ? output_file_keep(&c->samples, diag) : result;
}

static void say_done(const struct convert_run *c, const char *recording)
{
	const struct perf_files *files = &c->files;
	cleanup(bytes_done) struct bytes folder = { 0 };
	cleanup(bytes_done) struct bytes again = { 0 };

	text_add_shell_word(&folder, c->folder);
	if (!files->body_count) {
		message_print("%s: %s; '%s' has no machine code: spoor record --code records it",
			c->path, TEXT_THINGS(files->sample_count, "sample", "samples"), recording);
		return;
	}
	message_print("%s: %s; %s with the code of %s, %s with source lines", c->path,
		TEXT_THINGS(files->sample_count, "sample", "samples"),
		TEXT_THINGS(files->dump_count, "jitdump", "jitdumps"),
		TEXT_THINGS(files->body_count, "method body", "method bodies"),
		TEXT_COUNT(files->with_line_count));
	if (files->without_code_count)
		message_print(
			"%s no code: it can be freed, the process had ended, or the recording was at its limit",
			TEXT_THINGS(files->without_code_count, "other body has",
				"other bodies have"));
	bytes_printf(&again,
		"next  perf inject --jit -i %s/perf.data -o %s/perf.jit.data && perf annotate -i %s/perf.jit.data",
		bytes_z(&folder), bytes_z(&folder), bytes_z(&folder));
	fprintf(stderr, "%s\n", bytes_z(&again));
}

static void close_conversion(struct convert_run *c)
{
	output_file_close(&c->samples);
	symbol_cache_close(&c->cache);
	line_names_done(&c->lines);
	symbolmap_done(&c->map);
	trace_done(&c->trace);
	vec_done(&c->pids);
	bytes_done(&c->files.samples.out);
}

int cmd_convert(const struct verb *self, int argc, char **argv)
{
	struct convert_values values = { 0 };
	struct convert_run conversion = { .samples = { .fd = -1 }, .cache = { .fd = -1 } };
	char path[PATH_MAX];
	struct arguments args;
	struct diag diag = { 0 };
	int code;

	if (!options_parse(self, argc, argv, &values, &args, &code))
		return code;
	/* Any user may have written the recording. */
	(void)rights_reduce(rights_are_borrowed() ? 0 : RIGHTS_OF_FILES | RIGHT_KILL);
	if (args.command)
		code = options_misused(self, "no command can be started here");
	else if (!values.to || strcmp(values.to, "jitdump") != 0)
		code = options_misused(self, "--to jitdump says what to make of the recording");
	else
		code = selection_numbers(&values.pids, "-p", self, &conversion.pids, NULL);
	if (code == EXIT_DONE)
		code = selection_choose_file(NULL, &args, self, path, sizeof(path));
	if (code == EXIT_DONE) {
		int result =
			open_folder(&conversion, values.folder ? values.folder : "perf", &diag);
		if (result == 0)
			result = convert(&conversion, &values, path, &diag);
		if (result < 0)
			code = message_fail(&diag);
		else if (!values.quiet)
			say_done(&conversion, path);
		if (result == 0 && conversion.damaged)
			code = EXIT_FAILED;
	}
	close_conversion(&conversion);
	options_done(self, &values, &args);
	return code;
}
