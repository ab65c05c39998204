/* See options.h. One pass over argv; errors have the same wording in every verb. */
#include "cli/options.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/diag.h"
#include "base/text.h"
#include "cli/message.h"
#include "cli/verb.h"

/* --help is everybody's. */
static const struct option help_row = { 'h', "help", NULL, "this page", OPTION_FLAG, 0, 0 };

#define HELP_COLUMN 26u /* where the help texts begin */

int options_misused(const struct verb *verb, const char *format, ...)
{
	struct diag diag = { 0 };
	char text[512];
	va_list args;

	va_start(args, format);
	if (vsnprintf(text, sizeof(text), format, args) < 0)
		text[0] = '\0';
	va_end(args);
	(void)diag_set(&diag, -EINVAL, "%s", text); /* only the text is wanted */
	diag_remedy(&diag, "spoor %s --help shows what it takes", verb->name);
	(void)message_fail(&diag); /* a misuse has its own code */
	return EXIT_MISUSED;
}

bool option_is_near(const char *typed, const char *name)
{
	size_t len = strlen(name);
	size_t typed_len = strlen(typed);

	/* A beginning of at least two letters, or at most a third of the letters wrong. */
	if (typed_len >= 2 && typed_len < len && strncmp(typed, name, typed_len) == 0)
		return true;
	return text_distance(typed, name) <= (len + 2) / 3;
}

static size_t field_size(enum option_kind kind)
{
	switch (kind) {
	case OPTION_FLAG:
		return sizeof(bool);
	case OPTION_TEXT:
		return sizeof(const char *);
	case OPTION_TEXTS:
		return sizeof(struct texts);
	case OPTION_COUNT:
	case OPTION_POSITIVE:
	case OPTION_DURATION:
	case OPTION_SIZE:
		return sizeof(uint64_t);
	case OPTION_CHOICE:
		return sizeof(unsigned);
	}
	return 0;
}

static const struct option *find_long(const struct option *rows, const char *name, size_t len)
{
	for (const struct option *row = rows; row && row->name; row++) {
		if (strlen(row->name) == len && strncmp(row->name, name, len) == 0)
			return row;
	}
	if (len == strlen(help_row.name) && strncmp(name, help_row.name, len) == 0)
		return &help_row;
	return NULL;
}

static const struct option *find_letter(const struct option *rows, char letter)
{
	for (const struct option *row = rows; row && row->name; row++) {
		if (row->letter == letter)
			return row;
	}
	return letter == help_row.letter ? &help_row : NULL;
}

/* The verb that knows a long option, when this one does not: "--tree" of report, typed at flame. */
static const struct verb *other_verb_with(const struct verb *self, const char *name, size_t len)
{
	for (const struct verb *verb = verbs; verb->name; verb++) {
		const struct option *row = find_long(verb->options, name, len);
		if (verb != self && row && row != &help_row)
			return verb;
	}
	return NULL;
}

static int unknown_long(const struct verb *verb, const char *name, size_t len)
{
	char typed[64];
	const struct option *nearest = NULL;
	unsigned least = 0;

	text_set(typed, "%.*s", (int)(len < 63 ? len : 63), name);
	const struct verb *other = other_verb_with(verb, name, len);

	if (other)
		return options_misused(verb, "spoor %s has no option '--%s'; spoor %s has",
			verb->name, typed, other->name);
	for (const struct option *row = verb->options; row && row->name; row++) {
		unsigned distance = text_distance(typed, row->name);
		if (!option_is_near(typed, row->name) || (nearest && distance >= least))
			continue;
		nearest = row;
		least = distance;
	}
	if (nearest)
		return options_misused(verb, "spoor %s has no option '--%s'; did you mean '--%s'?",
			verb->name, typed, nearest->name);
	return options_misused(verb, "spoor %s has no option '--%s'", verb->name, typed);
}

/* Which of the words of "auto|always|never"; false when it is none of them. */
static bool choice_find(const char *words, const char *text, unsigned *ret_index)
{
	size_t len = strlen(text);

	for (unsigned i = 0;; i++) {
		size_t word_len = strcspn(words, "|");
		if (word_len == len && strncmp(words, text, len) == 0) {
			*ret_index = i;
			return true;
		}
		if (!words[word_len])
			return false;
		words += word_len + 1;
	}
}

/* Stores the option's argument into the verb's values; 0 or the exit code. */
static int take(const struct verb *verb, const struct option *row, const char *text, void *values)
{
	void *field = (char *)values + row->offset;
	size_t size = field_size(row->kind);

	assert(row->size == size && (row->argument || row->kind == OPTION_FLAG));
	(void)size; /* a release build has no assert */
	switch (row->kind) {
	case OPTION_FLAG:
		*(bool *)field = true;
		return 0;
	case OPTION_TEXT:
		*(const char **)field = text;
		return 0;
	case OPTION_TEXTS:
		if (vec_add(&((struct texts *)field)->list, text))
			return 0;
		message_print("out of memory");
		return EXIT_FAILED;
	case OPTION_COUNT:
		if (text_parse_u64(text, field))
			return 0;
		return options_misused(verb, "--%s takes a whole number, not '%s'", row->name,
			text);
	case OPTION_POSITIVE:
		if (text_parse_u64(text, field) && *(uint64_t *)field)
			return 0;
		return options_misused(verb, "--%s takes a whole number of 1 or more, not '%s'",
			row->name, text);
	case OPTION_DURATION:
		if (text_parse_duration(text, field))
			return 0;
		return options_misused(verb,
			"--%s takes a duration such as 30s, 500ms, 5m or 00:01:30, not '%s'",
			row->name, text);
	case OPTION_SIZE:
		if (text_parse_size(text, field))
			return 0;
		return options_misused(verb, "--%s takes a size such as 64M or 1.5G, not '%s'",
			row->name, text);
	case OPTION_CHOICE:
		if (choice_find(row->argument, text, field))
			return 0;
		return options_misused(verb, "--%s takes %s, not '%s'", row->name, row->argument,
			text);
	}
	return 0;
}

struct parse {
	const struct verb *verb;
	char **argv; /* NULL-terminated; the next word is argv[0] */
	void *values;
	bool help;
};

/* "--name", "--name=value" or "--name value"; 0 or the exit code. */
static int take_long(struct parse *p)
{
	const char *name = *p->argv++ + 2;
	size_t len = strcspn(name, "=");
	const struct option *row = find_long(p->verb->options, name, len);
	const char *text = name[len] ? name + len + 1 : NULL;

	if (!row)
		return unknown_long(p->verb, name, len);
	if (!row->argument && text)
		return options_misused(p->verb, "--%s takes no value", row->name);
	if (row == &help_row) {
		p->help = true;
		return 0;
	}
	if (row->argument && !text) {
		text = *p->argv;
		if (!text)
			return options_misused(p->verb, "--%s needs a value: %s", row->name,
				row->argument);
		p->argv++;
	}
	return take(p->verb, row, text ? text : "", p->values); /* a flag has no text */
}

/* "-a", "-ab", "-p4711" or "-p 4711"; 0 or the exit code. */
static int take_letters(struct parse *p)
{
	const char *letters = *p->argv++ + 1;

	for (; *letters; letters++) {
		const struct option *row = find_letter(p->verb->options, *letters);
		if (!row)
			return options_misused(p->verb, "spoor %s has no option '-%c'",
				p->verb->name, *letters);
		if (row == &help_row) {
			p->help = true;
			continue;
		}
		if (!row->argument) {
			int code = take(p->verb, row, "", p->values);
			if (code)
				return code;
			continue;
		}
		const char *text = letters[1] ? letters + 1 : *p->argv;
		if (!text)
			return options_misused(p->verb, "-%c needs a value: %s", row->letter,
				row->argument);
		if (!letters[1])
			p->argv++;
		return take(p->verb, row, text, p->values);
	}
	return 0;
}

static int parse(struct parse *p, struct arguments *arguments)
{
	while (*p->argv) {
		const char *text = *p->argv;
		int code = 0;

		if (strcmp(text, "--") == 0 ||
			(p->verb->takes_command && (text[0] != '-' || !text[1]))) {
			p->argv += text[0] == '-' && text[1];
			arguments->command = p->argv;
			while (p->argv[arguments->command_count])
				arguments->command_count++;
			if (!arguments->command_count || !*p->argv[0])
				return options_misused(p->verb, "no command is given after --");
			return 0;
		}
		if (text[0] == '-' && text[1] == '-') {
			code = take_long(p);
		} else if (text[0] == '-' && text[1]) {
			code = take_letters(p);
		} else {
			p->argv++;
			if (!vec_add(&arguments->words, text)) {
				message_print("out of memory");
				code = EXIT_FAILED;
			}
		}
		if (code)
			return code;
	}
	return 0;
}

bool options_parse(const struct verb *verb, int argc, char **argv, void *values,
	struct arguments *ret_arguments, int *ret_code)
{
	struct parse p = { .verb = verb, .argv = argv + (argc ? 1 : 0), .values = values };
	struct arguments arguments = { 0 };
	int code = parse(&p, &arguments);

	if (!code && !p.help) {
		*ret_arguments = arguments;
		return true;
	}
	if (!code) {
		options_print_help(verb);
		code = message_finish_output();
	}
	options_done(verb, values, &arguments);
	*ret_code = code;
	return false;
}

void options_done(const struct verb *verb, void *values, struct arguments *arguments)
{
	for (const struct option *row = verb->options; row && row->name; row++) {
		struct texts *texts = (struct texts *)(void *)((char *)values + row->offset);
		if (row->kind == OPTION_TEXTS)
			vec_done(&texts->list);
	}
	vec_done(&arguments->words);
}

/* "  -p, --pid PID           only this process"; a long left side has a line of its own. */
static void print_row(const struct option *row)
{
	char letter[] = "    ";
	char left[128];

	if (row->letter)
		text_set(letter, "-%c, ", row->letter);
	text_set(left, "  %s--%s%s%s", row->letter ? letter : "    ", row->name,
		row->argument ? " " : "", row->argument ? row->argument : "");
	if (strlen(left) + 2 > HELP_COLUMN)
		printf("%s\n%*s%s\n", left, (int)HELP_COLUMN, "", row->help);
	else
		printf("%-*s%s\n", (int)HELP_COLUMN, left, row->help);
}

void options_print_help(const struct verb *verb)
{
	printf("spoor %s %s\n", verb->name, verb->synopsis);
	printf("%s\n\n", verb->summary);
	for (const struct option *row = verb->options; row && row->name; row++)
		print_row(row);
	print_row(&help_row);
	printf("\nThe whole page: man spoor-%s\n", verb->name);
}
