/* spoor flame: a recording as a flame graph. */
#include "cli/verbs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "analyze/top.h"
#include "analyze/tree.h"
#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "base/text.h"
#include "cli/options.h"
#include "cli/selection.h"
#include "cli/words.h"
#include "export/flame_svg.h"
#include "export/folded.h"

enum flame_format { FORMAT_SVG, FORMAT_FOLDED, FORMAT_BY_NAME };

struct flame_values {
	struct selection_values selection;
	const char *output;
	unsigned format;
	bool reverse;
	const char *title;
	uint64_t width;
	bool quiet;
};

const struct option flame_options[] = {
	{ 'o', "output", "FILE", "where to (the recording's name with .svg or .folded); - is standard output",
		OPTION_TEXT, INTO(struct flame_values, output) },
	{ 'f', "format", "svg|folded", "a picture, or lines for other tools (what --output ends with, or svg)", OPTION_CHOICE,
		INTO(struct flame_values, format) },
	{ 0, "reverse", NULL, "from the leaf: what the CPU was in, and who led there", OPTION_FLAG,
		INTO(struct flame_values, reverse) },
	{ 0, "title", "TEXT", "title of the picture", OPTION_TEXT, INTO(struct flame_values, title) },
	{ 0, "width", "PIXELS", "width of the picture (that of the window; 1200)", OPTION_COUNT,
		INTO(struct flame_values, width) },
	SELECTION_OPTIONS(struct flame_values, selection),
	{ 'q', "quiet", NULL, "only errors", OPTION_FLAG, INTO(struct flame_values, quiet) },
	{ 0 },
};

static enum flame_format chosen_format(const struct flame_values *values)
{
	static const char folded[] = ".folded";

	if (values->format != FORMAT_BY_NAME)
		return (enum flame_format)values->format;
	return values->output && strlen(values->output) >= sizeof(folded) && text_ends_with(values->output, folded) ? FORMAT_FOLDED : FORMAT_SVG;
}

/* "x.nettrace" and "x.nettrace.zst" become "x.svg", in the current folder. */
static void default_output(const char *recording, enum flame_format format, struct bytes *out)
{
	static const char *const suffixes[] = { ".zst", ".nettrace" };
	const char *slash = strrchr(recording, '/');
	const char *base = slash ? slash + 1 : recording;

	if (strcmp(base, "-") == 0)
		base = "flame";
	size_t len = strlen(base);

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		size_t suffix_len = strlen(suffixes[i]);
		if (len > suffix_len && strncmp(base + len - suffix_len, suffixes[i], suffix_len) == 0)
			len -= suffix_len;
	}
	bytes_add(out, base, len);
	bytes_text(out, format == FORMAT_SVG ? ".svg" : ".folded");
}

/* Where it went and how much it is; the picture is opened by a browser, so that is the next step. */
static void tell(const char *path, const struct report *report, size_t size, enum flame_format format)
{
	struct bytes words = { 0 };

	text_add_safe(&words, path, strlen(path));
	bytes_text(&words, "  ");
	text_add_size(&words, size);
	bytes_text(&words, ", ");
	text_add_count(&words, report->samples);
	bytes_text(&words, report->samples == 1 ? " sample" : " samples");
	bytes_text(&words, format == FORMAT_SVG ? "; open it in a browser" : "");
	words_say("%s", bytes_z(&words));
	bytes_done(&words);
}

static int write_flame(const struct flame_values *values, struct selection *s)
{
	enum flame_format format = chosen_format(values);
	struct call_tree tree = { 0 };
	struct bytes out = { 0 };
	struct bytes path = { 0 };
	struct diag diag = { 0 };
	int code = EXIT_DONE;
	enum tree_form form = values->reverse ? TREE_REVERSED
		: format == FORMAT_FOLDED     ? TREE_BY_PROCESS_NAME
					      : TREE_BY_PROCESS;
	int error = top_count(&s->report, &s->profile, &s->names, TOP_SELF);

	if (!error)
		error = tree_build(&tree, &s->profile, &s->names, form, NULL);
	if (!error && format == FORMAT_FOLDED) {
		folded_write(&tree, &s->trace, &s->names, &out);
	} else if (!error) {
		const struct flame_options options = { .title = values->title,
			.width = (unsigned)values->width };
		flame_svg(&tree, &s->report, &options, &out);
	}
	if (values->output)
		bytes_text(&path, values->output);
	else
		default_output(s->path, format, &path);
	if (!error && (out.failed || path.failed))
		error = -ENOMEM;
	if (error) {
		diag_set(&diag, error, "cannot draw '%s': %m", s->path);
		code = words_fail(&diag);
	} else if (strcmp(bytes_z(&path), "-") == 0) {
		code = selection_print(&out);
	} else {
		code = selection_write(bytes_z(&path), &out);
	}
	if (code == EXIT_DONE && !values->quiet && strcmp(bytes_z(&path), "-") != 0) {
		tell(bytes_z(&path), &s->report, out.len, format);
	}
	call_tree_done(&tree);
	bytes_done(&out);
	bytes_done(&path);
	return code;
}

int cmd_flame(const struct verb *self, int argc, char **argv)
{
	struct flame_values values = { .format = FORMAT_BY_NAME };
	struct arguments arguments;
	struct selection selection;
	int code;

	if (!options_parse(self, argc, argv, &values, &arguments, &code))
		return code;
	if (values.width && (values.width < FLAME_WIDTH_MIN || values.width > FLAME_WIDTH_MAX)) {
		code = options_misused(self, "--width is a number of pixels from %u to %u",
			FLAME_WIDTH_MIN, FLAME_WIDTH_MAX);
	} else {
		code = selection_open(&values.selection, METHOD_NAME_LONG, &arguments, self, &selection);
		if (code == EXIT_DONE)
			code = write_flame(&values, &selection);
		selection_close(&selection);
	}
	options_done(self, &values, &arguments);
	return code;
}
