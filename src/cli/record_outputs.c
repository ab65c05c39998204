/* See record_outputs.h. */
#include "cli/record_outputs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/text.h"
#include "cli/verbs.h"
#include "machine/output_file.h"

static const struct {
	const char *suffix;
	enum record_output_kind kind;
} suffixes[] = {
	{ ".nettrace", RECORD_OUTPUT_RECORDING },
	{ ".zst", RECORD_OUTPUT_RECORDING },
	{ ".svg", RECORD_OUTPUT_FLAME },
	{ ".folded", RECORD_OUTPUT_FOLDED },
	{ ".txt", RECORD_OUTPUT_REPORT },
	{ ".json", RECORD_OUTPUT_JSON },
};

/* What -d puts into its folder. */
static const struct {
	const char *name;
	enum record_output_kind kind;
} folder_files[] = {
	{ "flamegraph.svg", RECORD_OUTPUT_FLAME },
	{ "folded_stacks.txt", RECORD_OUTPUT_FOLDED },
	{ "report.txt", RECORD_OUTPUT_REPORT },
};

static enum record_output_kind kind_of(const char *path)
{
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++)
		if (text_ends_with(path, suffixes[i].suffix))
			return suffixes[i].kind;
	return RECORD_OUTPUT_RECORDING;
}

const char *record_outputs_problem(const struct texts *files)
{
	bool recording = false;

	for (uint32_t i = 0; i < files->list.count; i++) {
		const char *path = files->list.items[i];
		if (!*path)
			return "-o takes the name of a file";
		if (kind_of(path) != RECORD_OUTPUT_RECORDING)
			continue;
		if (recording)
			return "there is one recording: of several -o only one names it, the others end in .svg, "
			       ".folded, .txt or .json";
		recording = true;
	}
	return NULL;
}

bool record_outputs_have_stdout(const struct texts *files)
{
	for (uint32_t i = 0; i < files->list.count; i++)
		if (strcmp(files->list.items[i], "-") == 0)
			return true;
	return false;
}

static int add_made(struct record_outputs *outputs, const char *path, enum record_output_kind kind)
{
	struct record_output output = { .path = strdup(path), .kind = kind };

	if (output.path && vec_add(&outputs->made, output))
		return 0;
	free(output.path);
	return -ENOMEM;
}

static int too_long(struct diag *diag)
{
	return diag_set(diag, -ENAMETOOLONG, "cannot write the recording: its path is too long");
}

/* Into outputs->path; false when it does not fit. */
static bool set_path(struct record_outputs *outputs, const char *folder, size_t folder_len,
	const char *name, const char *suffix)
{
	int n = snprintf(outputs->path, sizeof(outputs->path), "%.*s%s%s", (int)folder_len, folder,
		name, suffix);

	return n >= 0 && (size_t)n < sizeof(outputs->path);
}

static int fill_folder(struct record_outputs *outputs, const struct record_outputs_wish *wish,
	const char *stamp, struct diag *diag)
{
	char path[sizeof(outputs->path)];
	size_t len = strlen(wish->folder);

	while (len > 1 && wish->folder[len - 1] == '/')
		len--;
	if ((size_t)snprintf(path, sizeof(path), "%.*s", (int)len, wish->folder) >=
		sizeof(path) - 80)
		return too_long(diag);
	int result = output_folder_make(path, false, diag);
	if (result < 0)
		return result;
	if ((size_t)snprintf(path + len, sizeof(path) - len, "/%s", stamp) >= sizeof(path) - len)
		return too_long(diag);
	result = output_folder_make(path, true, diag);
	if (result < 0)
		return result;
	len = strlen(path);
	for (size_t i = 0; result == 0 && i < sizeof(folder_files) / sizeof(folder_files[0]); i++) {
		/* fits, as above */
		(void)snprintf(path + len, sizeof(path) - len, "/%s", folder_files[i].name);
		result = add_made(outputs, path, folder_files[i].kind);
	}
	if (result < 0)
		return diag_set(diag, result, "cannot record: %m");
	path[len] = '/';
	if (!set_path(outputs, path, len + 1, "recording",
		    outputs->packed ? ".nettrace.zst" : ".nettrace"))
		return too_long(diag);
	return 0;
}

int record_outputs_choose(struct record_outputs *outputs, const struct record_outputs_wish *wish,
	struct diag *diag)
{
	char stamp[OUTPUT_STAMP_ROOM];
	char name[128];
	const char *recording = NULL;

	output_file_stamp(stamp);
	outputs->packed = wish->packed;
	if (wish->folder)
		return fill_folder(outputs, wish, stamp, diag);
	for (uint32_t i = 0; i < wish->files->list.count; i++) {
		const char *path = wish->files->list.items[i];
		enum record_output_kind kind = kind_of(path);
		if (kind == RECORD_OUTPUT_RECORDING)
			recording = path;
		else if (add_made(outputs, path, kind) < 0)
			return diag_set(diag, -ENOMEM, "cannot record: %m");
	}
	if (recording) {
		outputs->packed |= text_ends_with(recording, ".zst");
		return set_path(outputs, "", 0, recording, "") ? 0 : too_long(diag);
	}
	const char *beside = outputs->made.count ? outputs->made.items[0].path : "";
	const char *slash = strrchr(beside, '/');

	outputs->temporary = outputs->made.count != 0;
	text_set(name, "%s_%s", wish->name, stamp); /* cut if need be */
	if (!set_path(outputs, beside, slash ? (size_t)(slash + 1 - beside) : 0, name,
		    outputs->packed ? ".nettrace.zst" : ".nettrace"))
		return too_long(diag);
	return 0;
}

int record_outputs_open(const struct record_outputs *outputs, struct output_file *ret_out,
	struct diag *diag)
{
	if (strcmp(outputs->path, "-") == 0) {
		if (isatty(STDOUT_FILENO)) {
			diag_set(diag, -EINVAL, "a recording is not written to a terminal");
			diag_remedy(diag, "give a file with -o, or a pipe");
			return -EINVAL;
		}
		int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
		if (fd < 0)
			return diag_set(diag, -errno, "cannot write to standard output: %m");
		*ret_out = (struct output_file){ .fd = fd, .folder = -1 };
		return 0;
	}
	return output_file_open(ret_out, outputs->path, diag);
}

static int run_verb(const char *name, char **words)
{
	int count = 0;
	const struct verb *verb = verb_find(name);

	while (words[count])
		count++;
	return verb->run(verb, count, words);
}

static int make(const struct record_outputs *outputs, const struct record_output *output,
	bool quiet)
{
	/* a verb's argv is not const; it does not write there */
	char *recording = (char *)outputs->path;

	switch (output->kind) {
	case RECORD_OUTPUT_RECORDING:
		break;
	case RECORD_OUTPUT_FLAME:
		return run_verb("flame", (char *[]){ "flame", "--output", output->path, "--input",
						 recording, quiet ? "--quiet" : NULL, NULL });
	case RECORD_OUTPUT_FOLDED:
		return run_verb("flame",
			(char *[]){ "flame", "--format", "folded", "--output", output->path,
				"--input", recording, quiet ? "--quiet" : NULL, NULL });
	case RECORD_OUTPUT_REPORT:
		return run_verb("report", (char *[]){ "report", "--output", output->path, "--input",
						  recording, quiet ? "--quiet" : NULL, NULL });
	case RECORD_OUTPUT_JSON:
		return run_verb("report",
			(char *[]){ "report", "--json", "--output", output->path, "--input",
				recording, quiet ? "--quiet" : NULL, NULL });
	}
	return EXIT_DONE;
}

int record_outputs_make(const struct record_outputs *outputs, bool quiet)
{
	int code = EXIT_DONE;

	for (uint32_t i = 0; i < outputs->made.count; i++) {
		int each = make(outputs, &outputs->made.items[i], quiet);
		code = code ? code : each;
	}
	if (outputs->temporary && code == EXIT_DONE)
		(void)unlink(outputs->path); /* then it stays: no harm */
	return code;
}

void record_outputs_done(struct record_outputs *outputs)
{
	for (uint32_t i = 0; i < outputs->made.count; i++)
		free(outputs->made.items[i].path);
	vec_done(&outputs->made);
}
