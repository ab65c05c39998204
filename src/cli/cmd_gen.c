/* spoor gen: a manifest of events becomes C code, a reference page and JSON. */
#include "base/write_all.h"
#include "cli/verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "base/input.h"
#include "base/text.h"
#include "cli/message.h"
#include "gen/gen.h"
#include "gen/manifest.h"
#include "gen/stack_walks.h"
#include "machine/output_file.h"

#define OPTIONS_VERB gen
#define OPTIONS_LIST "cli/gen_options.def"
#include "cli/option_list.h"

/* GEN_MARK is in the first line. */
#define MARK_BYTES 256u

/*
 * What is at the path: 1 a file of ours with this content, 0 one with another content or none
 * (ret_old->st_nlink is 0), or an error: it is not ours, and stays.
 */
static int compare(const char *path, const struct bytes *content, struct stat *ret_old,
	struct diag *diag)
{
	struct input in;
	uint8_t *data = NULL;
	size_t size = 0;

	*ret_old = (struct stat){ 0 };
	if (lstat(path, ret_old) < 0)
		return errno == ENOENT ? 0 : diag_set(diag, -errno, "cannot write '%s': %m", path);
	if (!S_ISREG(ret_old->st_mode))
		return diag_set(diag, -EEXIST, "'%s' is no regular file", path);
	int error = input_open_regular(&in, path, diag);
	if (error < 0)
		return error;
	/* Larger than all that is generated: not the same, and only its beginning is of interest. */
	size_t limit = content->len > MARK_BYTES ? content->len : MARK_BYTES;
	error = input_read_all(&in, limit, &data, &size, diag);
	input_close(&in);
	if (error == -EFBIG) {
		*diag = (struct diag){ 0 };
		if (input_open_regular(&in, path, diag) < 0)
			return diag->error;
		data = calloc(1, MARK_BYTES + 1);
		ssize_t n = data ? input_read(&in, data, MARK_BYTES, diag) : -ENOMEM;
		input_close(&in);
		error = n < 0 ? (int)n : 0;
		size = n < 0 ? 0 : (size_t)n;
	}
	cleanup(freep) uint8_t *freed = data;
	if (error < 0)
		return diag_set(diag, error, "cannot read '%s': %m", path);
	if (size == content->len && memcmp(freed, content->data, size) == 0)
		return 1;
	if (size &&
		!memmem(freed, size < MARK_BYTES ? size : MARK_BYTES, GEN_MARK, strlen(GEN_MARK))) {
		diag_set(diag, -EEXIST, "'%s' exists, and spoor gen did not make it", path);
		diag_remedy(diag, "remove it, or choose another folder with -o.");
		return -EEXIST;
	}
	return 0;
}

/* A file that has this content already is not touched, so that what depends on it is not made again. */
static int write_file(const char *folder, const struct gen_file *file, struct diag *diag)
{
	cleanup(bytes_done) struct bytes path = { 0 };
	struct output_file out = { .fd = -1 };
	struct stat old;

	bytes_printf(&path, "%s/%s", folder, file->name);
	if (path.failed)
		return diag_set(diag, -ENOMEM, "cannot write '%s': %m", file->name);
	const char *name = bytes_z(&path);
	int error = compare(name, &file->content, &old, diag);
	if (error)
		return error < 0 ? error : 0;
	error = output_file_open_regular(&out, name, diag);
	if (error < 0)
		return error;
	error = write_all(out.fd, file->content.data, file->content.len);
	if (error < 0) {
		diag_set(diag, error, "cannot write '%s': %m", name);
	} else if (old.st_nlink) {
		error = output_file_replace(&out, &old, diag);
	} else {
		/* Source files are for all who may see the folder. */
		mode_t mask = umask(0);
		(void)umask(mask);
		(void)fchmod(out.fd, 0666 & ~mask); /* at worst the file is its owner's */
		error = output_file_keep(&out, diag);
	}
	output_file_close(&out);
	return error;
}

/* The bits of the outputs named by --only; all if none is. */
static bool wanted_of(const struct gen_values *values, unsigned *ret_wanted, const char **ret_wrong)
{
	*ret_wanted = values->only.list.count ? 0 : (1u << GEN_OUTPUT_COUNT) - 1;
	vec_each(name, &values->only.list) {
		unsigned before = *ret_wanted;
		for (unsigned i = 0; i < GEN_OUTPUT_COUNT; i++)
			if (strcmp(*name, gen_output_names[i]) == 0)
				*ret_wanted |= 1u << i;
		if (*ret_wanted == before) {
			*ret_wrong = *name;
			for (unsigned i = 0; i < GEN_OUTPUT_COUNT; i++)
				if (strcmp(*name, gen_output_names[i]) == 0)
					*ret_wrong = NULL;
			if (*ret_wrong)
				return false;
		}
	}
	return true;
}

static int read_manifest(const char *path, struct manifest *ret_manifest, struct diag *diag)
{
	struct input in;
	uint8_t *data = NULL;
	size_t size;
	int error = input_open_regular(&in, path, diag);

	if (error == -EINVAL)
		diag_remedy(diag, "- reads the manifest from standard input.");
	if (error < 0)
		return error;
	error = input_read_all(&in, MANIFEST_BYTES_MAX, &data, &size, diag);
	input_close(&in);
	if (error == 0)
		error = manifest_read(data, size, path, ret_manifest, diag);
	free(data);
	return error;
}

static int read_stack_list(const char *path, struct manifest *manifest, struct diag *diag)
{
	struct input in;
	uint8_t *data = NULL;
	size_t size;
	int error = input_open_regular(&in, path, diag);

	if (error < 0)
		return error;
	error = input_read_all(&in, STACK_LIST_BYTES_MAX, &data, &size, diag);
	input_close(&in);
	if (error == 0)
		stack_walks_leave_out(manifest, (const char *)data, size);
	free(data);
	return error;
}

static void tell(const struct manifest *manifest, const struct gen_files *files, const char *folder)
{
	cleanup(bytes_done) struct bytes line = { 0 };
	uint64_t events = 0;

	vec_each(p, &manifest->providers)
		events += p->events.count;
	text_add_safe_z(&line, folder);
	bytes_printf(&line, "  %s", TEXT_THINGS(files->list.count, "file", "files"));
	bytes_printf(&line, " for %s", TEXT_THINGS(events, "event", "events"));
	bytes_printf(&line, " of %s",
		TEXT_THINGS(manifest->providers.count, "provider", "providers"));
	fprintf(stderr, "%s\n", bytes_z(&line));
}

static int generate(const struct gen_values *values, const char *path, unsigned wanted,
	struct diag *diag)
{
	struct manifest manifest;
	struct gen_files files;
	int error = read_manifest(path, &manifest, diag);

	if (error < 0)
		return error;
	if (values->no_walks)
		error = read_stack_list(values->no_walks, &manifest, diag);
	if (error < 0) {
		manifest_done(&manifest);
		return error;
	}
	error = gen_files(&manifest, wanted, &files);
	if (error < 0) {
		manifest_done(&manifest);
		return diag_set(diag, error, "cannot compile '%s': %m", path);
	}
	if (values->list) {
		vec_each(file, &files.list)
			printf("%s\n", file->name);
	} else {
		error = output_folder_make(values->output, false, diag);
		diag->remedy[0] = '\0'; /* it speaks of another option */
		vec_each(file, &files.list)
			if (error == 0)
				error = write_file(values->output, file, diag);
		if (error == 0 && !values->quiet)
			tell(&manifest, &files, values->output);
	}
	gen_files_done(&files);
	manifest_done(&manifest);
	return error;
}

int cmd_gen(const struct verb *self, int argc, char **argv)
{
	struct gen_values values = { 0 };
	struct arguments args;
	struct diag diag = { 0 };
	unsigned wanted = 0;
	const char *wrong = NULL;
	int code;

	if (!options_parse(self, argc, argv, &values, &args, &code))
		return code;
	if (args.command || args.words.count != 1)
		code = options_misused(self, "one manifest");
	else if (!values.output && !values.list)
		code = options_misused(self, "a folder for the files: -o DIR");
	else if (!wanted_of(&values, &wanted, &wrong))
		code = options_misused(self,
			"--only '%s': the outputs are libspoor, lttng, usdt, user-events, etw, markdown and json",
			wrong);
	else if (generate(&values, args.words.items[0], wanted, &diag) < 0)
		code = message_fail(&diag);
	else
		code = message_finish_output();
	options_done(self, &values, &args);
	return code;
}
