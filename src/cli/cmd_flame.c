/* spoor flame: a recording as a flame graph. */
#include "base/cleanup.h"
#include "cli/verbs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "analysis/top.h"
#include "analysis/tree.h"
#include "base/bytes.h"
#include "base/diag.h"
#include "base/text.h"
#include "cli/message.h"
#include "cli/options.h"
#include "cli/selection.h"
#include "render/flame_svg.h"
#include "render/folded.h"
#include "render/frame_label.h"
#include "report/answer_report.h"

enum flame_format { FORMAT_SVG, FORMAT_FOLDED, FORMAT_BY_NAME };

#define OPTIONS_VERB flame
#define OPTIONS_LIST "cli/flame_options.def"
#include "cli/option_list.h"

static enum flame_format chosen_format(const struct flame_values *values)
{
	static const char folded[] = ".folded";

	if (values->format != FORMAT_BY_NAME)
		return (enum flame_format)values->format;
	return values->output && strlen(values->output) >= sizeof(folded) &&
			       text_ends_with(values->output, folded)
		       ? FORMAT_FOLDED
		       : FORMAT_SVG;
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
		if (len > suffix_len &&
			strncmp(base + len - suffix_len, suffixes[i], suffix_len) == 0)
			len -= suffix_len;
	}
	bytes_add(out, base, len);
	bytes_text(out, format == FORMAT_SVG ? ".svg" : ".folded");
}

/* Prints the file and its size, and on a desktop the command that opens it in a browser. */
static void tell(const char *path, const struct selection *s, size_t size, enum flame_format format)
{
	bool desktop = getenv("DISPLAY") || getenv("WAYLAND_DISPLAY");

	cleanup(bytes_done) struct bytes words = { 0 };

	text_add_safe(&words, path, strlen(path));
	bytes_text(&words, "  ");
	text_add_size(&words, size);
	bytes_text(&words, ", ");
	label_samples(&words, &s->report, s->report.samples);
	if (s->profile.only_counted)
		bytes_printf(&words,
			" (%s of them only counted: above the rate of spoor record --event-rate)",
			TEXT_COUNT(s->profile.only_counted));
	bytes_text(&words, format == FORMAT_SVG && !desktop ? "; open it in a browser" : "");
	message_print("%s", bytes_z(&words));
	if (format == FORMAT_SVG && desktop) {
		bytes_reset(&words);
		text_add_shell_word(&words, path);
		message_print("next   xdg-open %s", bytes_z(&words));
	}
}

static int write_flame(const struct flame_values *values, struct selection *s)
{
	enum flame_format format = chosen_format(values);
	struct call_tree tree = { 0 };
	cleanup(bytes_done) struct bytes out = { 0 };
	cleanup(bytes_done) struct bytes path = { 0 };
	struct diag diag = { 0 };
	int code = EXIT_DONE;
	enum tree_form form = values->reverse           ? TREE_REVERSED
			      : format == FORMAT_FOLDED ? TREE_BY_PROCESS_NAME
							: TREE_BY_PROCESS;
	int error = values->native ? 0 : profile_fold_unnamed(&s->profile, &s->names);

	if (!error)
		error = top_count(&s->report, &s->profile, &s->names, TOP_SELF);
	if (!error)
		error = profile_add_roles(&s->profile, &s->names);
	if (!error)
		error = tree_build(&tree, &s->profile, &s->names, form, NULL);
	if (!error && format == FORMAT_FOLDED) {
		folded_write(&tree, &s->trace, &s->names, values->selection.weighs_answer, &out);
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
		code = message_fail(&diag);
	} else if (strcmp(bytes_z(&path), "-") == 0) {
		code = selection_print(&out);
	} else {
		code = selection_write(s, bytes_z(&path), &out, values->quiet);
	}
	if (code == EXIT_DONE && !values->quiet && strcmp(bytes_z(&path), "-") != 0)
		tell(bytes_z(&path), s, out.len, format);
	call_tree_done(&tree);
	return code;
}

/* What other tools make of a picture; NULL for other names. */
static const char *foreign_suffix(const char *path)
{
	static const char *const suffixes[] = { ".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp",
		".pdf", ".ps", ".eps", ".html", ".htm" };

	for (size_t i = 0; path && i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		size_t len = strlen(path);
		size_t suffix_len = strlen(suffixes[i]);
		if (len > suffix_len && strcasecmp(path + len - suffix_len, suffixes[i]) == 0)
			return suffixes[i];
	}
	return NULL;
}

/* A suffix of another format is refused: viewers would not open an SVG file under it. */
static int refuse_suffix(const char *path, const char *suffix)
{
	int stem_len = (int)(strlen(path) - strlen(suffix)); /* of a command line's word: it fits */
	struct diag diag = { 0 };

	diag_set(&diag, -EINVAL, "spoor flame writes SVG pictures and folded lines, not '%s'",
		suffix);
	if (strcmp(suffix, ".png") == 0)
		diag_remedy(&diag,
			"spoor flame -o %.*s.svg makes the picture; chromium --headless --window-size=1200,800 --screenshot=%s %.*s.svg makes a PNG of it",
			stem_len, path, path, stem_len, path);
	else
		diag_remedy(&diag,
			"spoor flame -o %.*s.svg makes a picture that every browser opens and prints",
			stem_len, path);
	(void)message_fail(&diag); /* a misuse has its own code */
	return EXIT_MISUSED;
}

static int refuse_without_wakers(const struct selection *s)
{
	struct diag diag = { 0 };

	diag_set(&diag, -ENODATA, "no wakers are in '%s'", s->path);
	diag_remedy(&diag, "spoor record --off-cpu --wakers records them");
	return message_fail(&diag);
}

int cmd_flame(const struct verb *self, int argc, char **argv)
{
	struct flame_values values = { .format = FORMAT_BY_NAME };
	struct answers answers = { 0 };
	struct arguments arguments;
	struct selection selection;
	enum answer answer;
	bool several;
	const char *suffix;
	int code;

	if (!options_parse(self, argc, argv, &values, &arguments, &code))
		return code;
	values.answers[ANSWER_OFF_CPU] |= values.wakers || values.wall;
	answer = answer_report_requested(values.answers, &several);
	if ((suffix = foreign_suffix(values.output))) {
		code = refuse_suffix(values.output, suffix);
	} else if (answer != ANSWER_COUNT && values.selection.events.list.count) {
		code = options_misused(self, "--%s and --event exclude each other",
			answer_reports[answer]->option);
	} else if (values.width &&
		   (values.width < FLAME_WIDTH_MIN || values.width > FLAME_WIDTH_MAX)) {
		code = options_misused(self, "--width is a number of pixels from %u to %u",
			FLAME_WIDTH_MIN, FLAME_WIDTH_MAX);
	} else if (values.wakers && values.wall) {
		code = options_misused(self, "--wakers and --wall exclude each other");
	} else if (several) {
		code = options_misused(self, "--%s does not go with another analysis",
			answer_reports[answer]->option);
	} else {
		values.selection.answers = answer != ANSWER_COUNT ? &answers : NULL;
		values.selection.weighs_answer = answer != ANSWER_COUNT;
		values.selection.weighed = answer;
		answers.wanted = answer != ANSWER_COUNT ? 1u << answer : 0;
		answers.blocked_form = values.wakers ? BLOCKED_WAKERS
				       : values.wall ? BLOCKED_WALL
						     : BLOCKED_WAITS;
		code = selection_open(&values.selection, METHOD_NAME_LONG, &arguments, self,
			&selection);
		if (code == EXIT_DONE && selection_is_empty(&selection))
			code = EXIT_FAILED; /* selection_open() said why */
		if (code == EXIT_DONE && values.wakers && !selection.profile.count)
			code = refuse_without_wakers(&selection);
		if (code == EXIT_DONE)
			code = write_flame(&values, &selection);
		answers_done(&answers);
		selection_close(&selection);
	}
	options_done(self, &values, &arguments);
	return code;
}
