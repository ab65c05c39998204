/* See words.h. */
#include "cli/message.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/diag.h"
#include "base/text.h"
#include "cli/verb.h"

#define COMMAND_LINE_MAX 8191u

static bool wants_color(bool terminal, enum color_when when)
{
	const char *none = getenv("NO_COLOR");
	const char *term = getenv("TERM");

	if (when != COLOR_AUTO)
		return when == COLOR_ALWAYS;
	return terminal && !(none && *none) && term && strcmp(term, "dumb") != 0;
}

void screen_look(FILE *stream, enum color_when when, struct screen *ret_screen)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size = { 0 };
	uint64_t given = 0;
	int fd = fileno(stream);
	bool terminal = isatty(fd) == 1;

	if (columns && text_parse_u64(columns, &given) && given > 0 && given < 10000)
		size.ws_col = (unsigned short)given;
	else if (!terminal || ioctl(fd, TIOCGWINSZ, &size) < 0)
		size.ws_col = 0;
	*ret_screen = (struct screen){
		.terminal = terminal,
		.color = wants_color(terminal, when),
		.columns = size.ws_col,
	};
}

/* Adds a full stop, unless the text ends with one or with "?", "!" or ":". */
static void print_sentence(const char *text)
{
	size_t len = strlen(text);
	bool ended = len && strchr(".?!:", text[len - 1]);

	fprintf(stderr, "%s%s\n", text, ended ? "" : ".");
}

/* EXIT_MISSING for EPERM, EACCES, ENOSYS and EOPNOTSUPP, else EXIT_FAILED. */
static int message_exit_code(int error)
{
	switch (error < 0 ? -error : error) {
	case 0:
		return EXIT_DONE;
	case EPERM:
	case EACCES:
	case ENOSYS:
	case EOPNOTSUPP:
		return EXIT_MISSING;
	default:
		return EXIT_FAILED;
	}
}

int message_fail(const struct diag *diag)
{
	/* A failing place that had no memory left could not write its sentence either. */
	print_sentence(diag->text[0] ? diag->text : "out of memory");
	if (diag->remedy[0])
		print_sentence(diag->remedy);
	return diag->error ? message_exit_code(diag->error) : EXIT_FAILED;
}

int message_fail_argument(const struct diag *diag)
{
	int code = message_fail(diag);

	return diag->error == -EINVAL ? EXIT_MISUSED : code;
}

void message_print(const char *format, ...)
{
	char raw[1024];
	char safe[1024];
	va_list args;

	va_start(args, format);
	if (vsnprintf(raw, sizeof(raw), format, args) < 0)
		raw[0] = '\0';
	va_end(args);
	text_make_safe(raw, strlen(raw), safe, sizeof(safe));
	print_sentence(safe);
}

void message_add_command_line(struct bytes *line, int argc, char **argv)
{
	bytes_text(line, "spoor");
	for (int i = 0; i < argc && line->len < COMMAND_LINE_MAX; i++)
		bytes_printf(line, " %s", argv[i]);
	line->len = line->len < COMMAND_LINE_MAX ? line->len : COMMAND_LINE_MAX;
}

void message_print_replaced(const char *path)
{
	message_print("the file that was '%s' is now '%s.old'", path, path);
}

void message_next(uint32_t pid, const char *const *names)
{
	if (isatty(STDOUT_FILENO) != 1 || isatty(STDERR_FILENO) != 1)
		return;
	fflush(stdout); /* a failure is noticed when it is flushed at the end */
	for (size_t i = 0; names[i]; i++)
		fprintf(stderr, "%s%s %s -p %u%s\n", i ? "       " : "next   ", text_program(),
			names[i], pid, strcmp(names[i], "record") == 0 ? " --duration 10s" : "");
}

int message_finish_output(void)
{
	struct diag diag = { 0 };
	bool torn = ferror(stdout) != 0;

	errno = 0;
	if (fflush(stdout) == 0 && !torn)
		return EXIT_DONE;
	if (errno == EPIPE)
		return EXIT_DONE;
	(void)diag_set(&diag, errno ? -errno : -EIO,
		"cannot write the result to standard output: %m");
	return message_fail(&diag);
}
