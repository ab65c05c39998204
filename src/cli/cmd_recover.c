/* spoor recover: the last events of a crashed or hung libspoor program, from its rings. */
#include "cli/verbs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <spoor/recover.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "base/text.h"
#include "cli/message.h"
#include "machine/output_file.h"

#define RINGS_LINK "/memfd:spoor-rings"

#define OPTIONS_VERB recover
#define OPTIONS_LIST "cli/recover_options.def"
#include "cli/option_list.h"

/* Regular files only: a pipe or a device could keep us waiting. */
static int open_rings(const char *path, struct diag *diag)
{
	struct stat what;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return diag_set(diag, -errno, "cannot open '%s': %m", path), -1;
	if (fstat(fd, &what) < 0 || !S_ISREG(what.st_mode)) {
		closep(&fd);
		return diag_set(diag, -EINVAL, "'%s' is no regular file", path), -1;
	}
	return fd;
}

/* The memory file of a process that has one. */
static int open_process(uint64_t pid, struct diag *diag)
{
	char folder[64];
	char path[320];
	char link[64];
	int found = -1;

	(void)snprintf(folder, sizeof(folder), "/proc/%" PRIu64 "/fd", pid); /* fits */
	DIR *fds = opendir(folder);
	if (!fds) {
		int error = errno;
		if (error == ENOENT)
			diag_set(diag, -ESRCH, "no process has the id %" PRIu64, pid);
		else
			diag_set(diag, -error,
				"cannot look at the files of process %" PRIu64 ": %m", pid);
		diag_remedy(diag,
			error == ENOENT
				? "what a program leaves behind is the file its recover_path names: spoor recover FILE."
				: "its own user or root may.");
		return -1;
	}
	for (struct dirent *entry; found < 0 && (entry = readdir(fds));) {
		(void)snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		ssize_t len = readlink(path, link, sizeof(link) - 1);
		link[len > 0 ? len : 0] = '\0';
		if (strncmp(link, RINGS_LINK, strlen(RINGS_LINK)) == 0)
			found = open_rings(path, diag);
	}
	closedir(fds);
	if (found < 0 && !diag->error) {
		diag_set(diag, -ENOENT, "process %" PRIu64 " has no rings to be recovered", pid);
		diag_remedy(diag,
			"a program has them that starts libspoor with SPOOR_START_RECOVERABLE and no recover_path.");
	}
	return found;
}

static int recover(int rings, const char *name, const char *output, bool quiet,
	struct spoor_recovered *recovered, struct diag *diag)
{
	struct output_file out = { .fd = -1 };
	char path[64];
	struct stat input;
	int result = fstat(rings, &input) == 0 ? output_file_spares(output, &input, diag) : 0;

	if (result == 0)
		result = output_file_open(&out, output, diag);

	if (result < 0)
		return result;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", out.fd); /* fits */
	result = spoor_recover(rings, path, recovered);
	if (result == -EBADMSG)
		diag_set(diag, result, "'%s' holds no rings of libspoor", name);
	else if (result == -ENODATA)
		diag_set(diag, result, "the rings in '%s' hold no event", name);
	else if (result < 0)
		diag_set(diag, result, "cannot recover '%s' into '%s': %s", name, output,
			strerror(-result));
	else
		result = output_file_keep(&out, diag);
	if (result == 0 && out.replaced && !quiet)
		message_print_replaced(output);
	if (result == -ENODATA)
		diag_remedy(diag,
			"events get there while a session wants them; spoor_session_start_rings() is the cheapest.");
	output_file_close(&out);
	return result;
}

static void tell(const struct spoor_recovered *recovered, const char *output)
{
	cleanup(bytes_done) struct bytes line = { 0 };

	text_add_safe_z(&line, output);
	bytes_printf(&line, "  %s", TEXT_THINGS(recovered->events, "event", "events"));
	bytes_printf(&line, " of process %" PRIu64, recovered->process_id);
	if (recovered->command_line[0]) {
		bytes_text(&line, " (");
		text_add_safe_z(&line, recovered->command_line);
		bytes_text(&line, ")");
	}
	bytes_printf(&line, ", its last %.3g s",
		(double)(recovered->last_ns - recovered->first_ns) / 1e9);
	if (recovered->broken)
		bytes_printf(&line, ", %s",
			TEXT_THINGS(recovered->broken, "record broken", "records broken"));
	bytes_printf(&line, "\nnext       %s events ", text_program());
	text_add_shell_word(&line, output);
	fprintf(stderr, "%s\n", bytes_z(&line));
}

int cmd_recover(const struct verb *self, int argc, char **argv)
{
	struct recover_values values = { 0 };
	struct spoor_recovered recovered = { .size = sizeof(recovered) };
	struct arguments args;
	struct diag diag = { 0 };
	char process[32];
	int code;

	if (!options_parse(self, argc, argv, &values, &args, &code))
		return code;
	const char *output = values.output ? values.output : "recovered.nettrace";
	const char *name = args.words.count ? args.words.items[0] : process;

	code = EXIT_DONE;
	(void)snprintf(process, sizeof(process), "process %" PRIu64, values.pid);
	if (args.command || args.words.count + (values.pid != 0) != 1) {
		code = options_misused(self, "one file, or one process with -p");
	} else {
		/* The rings hold payloads: only the user's own rights decide who may read them. */
		cleanup(closep) int rings =
			values.pid ? open_process(values.pid, &diag) : open_rings(name, &diag);
		if (rings < 0 || recover(rings, name, output, values.quiet, &recovered, &diag) < 0)
			code = message_fail(&diag);
		else if (!values.quiet)
			tell(&recovered, output);
	}
	options_done(self, &values, &args);
	return code;
}
