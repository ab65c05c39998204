/*
 * Messages: sentences for a person on stderr, and the width and colours of the terminal that a
 * stream writes to.
 *
 * A failure arrives as a struct diag: what failed and why, then the remedy, each on its own line.
 */
#ifndef SPOOR_CLI_MESSAGE_H
#define SPOOR_CLI_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct bytes;
struct diag;

/* The values of `--color auto|always|never`, in this order. */
enum color_when { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

/* The size and colours of a stream's terminal. */
struct screen {
	bool terminal;
	bool color; /* --color, else NO_COLOR and TERM, else whether it is a terminal */
	unsigned
		/* COLUMNS, else the terminal's width, else 0: lines are never cut in a pipe */
		columns;
};

void screen_look(FILE *stream, enum color_when when, struct screen *ret_screen);

/* Prints the diagnosis to stderr; returns the exit code that fits its error (message_exit_code()). */
int message_fail(const struct diag *diag);

/* The same for a failure whose -EINVAL is a wrong argument: EXIT_MISUSED. */
int message_fail_argument(const struct diag *diag);

/* Prints a sentence to stderr, with a full stop; control characters are made safe. */
void message_print(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Appends "spoor VERB ARGUMENT...", for the file: at most 8 KiB. */
void message_add_command_line(struct bytes *line, int argc, char **argv);

/* One line: the earlier file at this path is now PATH.old. */
void message_print_replaced(const char *path);

/* Suggests verbs (NULL-terminated) for a process, on a terminal only. */
void message_next(uint32_t pid, const char *const *names);

/*
 * Flushes stdout and checks that everything got there: EXIT_DONE, or an exit code after the failure
 * was printed. A reader that closed the pipe (EPIPE) is no failure. Every verb that prints results
 * ends with it.
 */
int message_finish_output(void);

#endif
