/*
 * Describes a failure for the user.
 *
 * The function that fails sets one sentence (what failed and why) and, if it knows one, a second
 * (what to do), and returns the error code. Only `cli` prints both. The first sentence is kept,
 * because it is nearest to the cause; callers that know more about the purpose add it with
 * diag_context().
 */
#ifndef SPOOR_BASE_DIAG_H
#define SPOOR_BASE_DIAG_H

struct diag {
	int error;        /* negative errno of the failure; 0: nothing failed */
	char text[640];   /* "cannot open 'x': No such file or directory" */
	char remedy[512]; /* "run it with sudo"; "" if there is no advice */
	/*
	 * of a list of the module that failed (dotnet/reason.h), for callers that act on it; 0:
	 * none
	 */
	unsigned reason;
};

/*
 * Records a failure and returns `error` (a negative errno). %m in `format` prints strerror(-error).
 * `diag` may be NULL: then only the code is returned. Control characters in the sentence are
 * escaped for a terminal.
 */
int diag_set(struct diag *diag, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Adds what to do, unless the diag has a remedy already. */
void diag_remedy(struct diag *diag, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Puts "PREFIX: " in front of the sentence. No effect if nothing failed. */
void diag_context(struct diag *diag, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
