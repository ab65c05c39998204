/* spoor annotate: the source of a function, with the CPU time of each line. */
#include "base/cleanup.h"
#include "cli/verbs.h"

#include <errno.h>
#include <string.h>

#include "analysis/annotation.h"
#include "base/bytes.h"
#include "base/diag.h"
#include "base/nearest.h"
#include "base/text.h"
#include "cli/annotate_asm.h"
#include "cli/message.h"
#include "cli/options.h"
#include "cli/selection.h"
#include "report/annotation_report.h"

#define CONTEXT_LINES        3u
#define CONTEXT_INSTRUCTIONS 8u
#define CONTEXT_UNSET        UINT64_MAX
#define CONTEXT_MAX          10000u

#define OPTIONS_VERB annotate
#define OPTIONS_LIST "cli/annotate_options.def"
#include "cli/option_list.h"

static int refuse_function(const struct selection *s, const char *pattern)
{
	cleanup(bytes_done) struct bytes words = { 0 };
	struct nearest near = { .wanted = pattern };
	struct diag diag = { 0 };

	for (uint32_t i = 1; i < s->names.functions.count; i++) {
		const struct function *function = &s->names.functions.items[i];
		nearest_offer(&near,
			trace_text(&s->trace, function->plain ? function->plain : function->name));
	}
	diag_set(&diag, -ENODATA, "no sampled function is '%s'", pattern);
	if (near.count) {
		bytes_text(&words, "did you mean ");
		(void)nearest_add(&near, &words); /* there are some */
		bytes_text(&words, "?");
		diag_remedy(&diag, "%s", bytes_z(&words));
	} else {
		diag_remedy(&diag, "spoor report %s lists them", s->path);
	}
	return message_fail(&diag);
}

static int write_out(const struct annotate_values *values, struct selection *s, struct bytes *out)
{
	if (values->output && strcmp(values->output, "-") != 0)
		return selection_write(s, values->output, out, values->quiet);
	return selection_print(out);
}

static uint32_t context_of(const struct annotate_values *values)
{
	if (values->context == CONTEXT_UNSET)
		return values->asm_code ? CONTEXT_INSTRUCTIONS : CONTEXT_LINES;
	return values->context < CONTEXT_MAX ? (uint32_t)values->context : CONTEXT_MAX;
}

static int write_assembly(const struct annotate_values *values, const char *pattern,
	const struct annotation_options *options, struct selection *s)
{
	cleanup(bytes_done) struct bytes out = { 0 };
	struct diag diag = { 0 };
	bool found = false;

	if (annotate_asm(s, pattern, options, values->json, &out, &found, &diag) < 0)
		return message_fail(&diag);
	return found ? write_out(values, s, &out) : refuse_function(s, pattern);
}

static int write_annotation(const struct annotate_values *values, const char *pattern,
	struct selection *s)
{
	const struct annotation_options options = { .folders = values->sources.list.items,
		.folder_count = values->sources.list.count,
		.context = context_of(values) };
	cleanup(bytes_done) struct bytes out = { 0 };
	struct annotation annotation = { 0 };

	if (values->asm_code)
		return write_assembly(values, pattern, &options, s);
	int error = annotation_count(&annotation, &s->profile, &s->names, pattern);

	if (!error && !annotation.functions.count) {
		annotation_done(&annotation);
		return refuse_function(s, pattern);
	}
	if (!error)
		error = values->json ? annotation_json(&annotation, &s->report, &options, &out)
				     : annotation_text(&annotation, &s->report, &options, &out);
	annotation_done(&annotation);
	if (!error && out.failed)
		error = -ENOMEM;
	if (error) {
		struct diag diag = { 0 };
		diag_set(&diag, error, "cannot annotate '%s': %m", s->path);
		return message_fail(&diag);
	}
	return write_out(values, s, &out);
}

int cmd_annotate(const struct verb *self, int argc, char **argv)
{
	struct annotate_values values = { .context = CONTEXT_UNSET };
	struct arguments arguments;
	struct selection selection;
	int code;

	if (!options_parse(self, argc, argv, &values, &arguments, &code))
		return code;
	if (!arguments.words.count || arguments.words.count > 2) {
		code = options_misused(self, "it takes a function, then the recording");
	} else {
		struct arguments file = { 0 };
		bool added = arguments.words.count == 1 ||
			     vec_add(&file.words, arguments.words.items[1]);
		values.selection.lines = !values.asm_code;
		values.selection.code = values.asm_code;
		code = added ? selection_open(&values.selection,
				       values.long_names || values.json ? METHOD_NAME_LONG
									: METHOD_NAME_SHORT,
				       &file, self, &selection)
			     : EXIT_FAILED;
		if (added && code == EXIT_DONE)
			code = selection_is_empty(&selection)
				       ? EXIT_FAILED
				       : write_annotation(&values, arguments.words.items[0],
						 &selection);
		if (added)
			selection_close(&selection);
		vec_done(&file.words);
	}
	options_done(self, &values, &arguments);
	return code;
}
