/*
 * Describes a failure for the user: a sentence (what failed and why) and, if known, a second (what
 * to do).
 *
 * The function that fails sets them and returns the error code; only `cli` prints them. The first
 * sentence is kept, because it is nearest to the cause; callers add the purpose with
 * diag_context().
 */
#ifndef SPOOR_BASE_DIAG_H
#define SPOOR_BASE_DIAG_H

struct diag {
	int error;        /* negative errno of the failure; 0: nothing failed */
	char text[640];   /* "cannot open 'x': No such file or directory" */
	char remedy[512]; /* "run it with sudo"; "" if there is no advice */
	/* of the list of the module that failed (dotnet/reason.h), for callers; 0: none */
	unsigned reason;
};

/*
 * Returns `error` (a negative errno); %m prints strerror(-error). `diag` may be NULL. Control
 * characters in the sentence are escaped for a terminal.
 */
int diag_set(struct diag *diag, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Adds what to do, unless the diag has a remedy already. */
void diag_remedy(struct diag *diag, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Puts "PREFIX: " in front of the sentence. No effect if nothing failed. */
void diag_context(struct diag *diag, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
