/*
 * What went wrong, for a person.
 *
 * The failing place writes one sentence (what failed and why) and, where it knows one, a second (what to do), and
 * returns the code. Only `cli` prints it. The first sentence set wins: it is nearest to the cause; a caller
 * that knows more about the purpose says so with diag_context().
 */
#ifndef SPOOR_BASE_DIAG_H
#define SPOOR_BASE_DIAG_H

struct diag {
	int error;         /* negative errno of the failure; 0 while nothing failed */
	char text[640];    /* "cannot open 'x': No such file or directory" */
	char remedy[512];  /* "run it with sudo"; empty when there is no advice */
};

/*
 * Records a failure and returns `error` (a negative errno). %m in `format` prints strerror(-error).
 * `diag` may be NULL: then only the code goes back. Foreign text in the sentence is made safe for a terminal.
 */
int diag_set(struct diag *diag, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Adds what to do. Keeps an advice that is there already. */
void diag_remedy(struct diag *diag, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Puts "PREFIX: " in front of the sentence. Harmless when nothing failed. */
void diag_context(struct diag *diag, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
