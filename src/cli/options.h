/*
 * Options of a verb: one static table, from which they are parsed, `--help` is printed and
 * completion is made.
 *
 *   FLAG(tree, 0, "tree", "callers and callees as a tree")                       the verb's list (option_list.h)
 *   TEXTS(pids, 'p', "pid", "PID", "only this process; may be repeated")
 *   COUNT(top, 0, "top", "N", "functions a table (default 20)")
 *   CHOICE(color, 0, "color", "auto|always|never", "colour")
 *
 *   int cmd_report(const struct verb *self, int argc, char **argv)
 *   {
 *           struct report_values values = { .top = 20 };          what is not given keeps its value
 *           struct arguments args;
 *           int code;
 *
 *           if (!options_parse(self, argc, argv, &values, &args, &code))
 *                   return code;                                  --help was printed, or the misuse was reported
 *
 * Understood: `--pid 4711`, `--pid=4711`, `-p 4711`, `-p4711`, short flags in a bundle (`-ab`); the
 * beginning of a long name is not (scripts would break when options are added). Options and other
 * words may be mixed; `--` ends the options, and what follows it is the command; of a verb that
 * takes a command the first word begins it too. `-` alone is a word. Every table has -h, --help
 * without a row in it.
 *
 * Letters mean the same in every verb, so this is their only list:
 *
 *   -a --all         -p --pid PID      -n --name NAME   -t --thread TID   -m --module NAME
 *   -F --freq HZ     -o --output FILE  -f --format F        -q --quiet       -h --help
 *   -i --input FILE  -C --cpu LIST     -D --delay MS        -d --folder DIR  -g (perf's)
 *   -v --verbose     -z --compress     -y --yes
 */
#ifndef SPOOR_CLI_OPTIONS_H
#define SPOOR_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

struct verb;

enum option_kind {
	OPTION_FLAG = 1, /* bool */
	OPTION_TEXT,     /* const char *, borrowed from argv; the last one wins */
	OPTION_TEXTS,    /* struct texts; may be repeated */
	OPTION_COUNT,    /* uint64_t: a whole decimal number */
	OPTION_POSITIVE, /* the same, 1 or more */
	OPTION_DURATION, /* uint64_t of nanoseconds: 30s 500ms 5m 00:01:30 */
	OPTION_SIZE,     /* uint64_t of bytes: 64M 1.5G 512KiB */
	/* unsigned: which of the words in `argument`, "auto|always|never", counted from 0 */
	OPTION_CHOICE,
};

struct texts {
	VEC(const char *) list;
};

struct option {
	char letter;          /* 0: none */
	const char *name;     /* without the dashes */
	const char *argument; /* how help calls it; NULL for a flag */
	const char *help;
	enum option_kind kind;
	uint16_t offset; /* of the field in the verb's values */
	uint16_t size;   /* of the field, checked against the kind */
};

/* The last two members of a row. */
#define INTO(values_type, field) \
	(uint16_t) offsetof(values_type, field), (uint16_t)sizeof(((values_type *)NULL)->field)

/* The other arguments, borrowed: `words` before `--`, `command` after it. */
struct arguments {
	VEC(const char *) words;
	char **command; /* NULL-terminated, as execvp() wants it; NULL when there was no `--` */
	int command_count;
};

/*
 * Parses argv[1..] of a verb into `values`. True: the caller continues, and frees with
 * options_done(). False: --help was printed to stdout or the misuse reported on stderr, nothing is
 * to be freed, *ret_code is the exit code.
 */
bool options_parse(const struct verb *verb, int argc, char **argv, void *values,
	struct arguments *ret_arguments, int *ret_code);

/* Frees the lists (struct texts) in `values` and in `arguments`. */
void options_done(const struct verb *verb, void *values, struct arguments *arguments);

/* Prints the sentence and how to get help; returns EXIT_MISUSED. */
int options_misused(const struct verb *verb, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Whether a mistyped word is near enough to a name to be offered. */
bool option_is_near(const char *typed, const char *name);

/* The page that --help prints, to stdout. */
void options_print_help(const struct verb *verb);

#define DURATION_HELP "end after 30s, 500ms, 5m or dd:hh:mm:ss; a bare number is seconds"

/* The words of "true|false", in this order. */
enum yes_no { YES, NO };

#endif
