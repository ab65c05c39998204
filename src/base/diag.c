/* See diag.h. */
#include "base/diag.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

int diag_set(struct diag *diag, int error, const char *format, ...)
{
	if (!diag || diag->error)
		return error;
	va_list args;
	char raw[sizeof(diag->text)];

	va_start(args, format);
	errno = -error; /* glibc's and musl's %m reads errno */
	int len = vsnprintf(raw, sizeof(raw), format, args);
	va_end(args);
	if (len < 0)
		raw[0] = '\0';
	text_make_safe(raw, strlen(raw), diag->text, sizeof(diag->text));
	diag->error = error ? error : -EINVAL;
	return error;
}

void diag_remedy(struct diag *diag, const char *format, ...)
{
	if (!diag || diag->remedy[0])
		return;
	va_list args;
	char raw[sizeof(diag->remedy)];

	va_start(args, format);
	if (vsnprintf(raw, sizeof(raw), format, args) < 0)
		raw[0] = '\0';
	va_end(args);
	text_make_safe(raw, strlen(raw), diag->remedy, sizeof(diag->remedy));
}

void diag_context(struct diag *diag, const char *format, ...)
{
	if (!diag || !diag->error)
		return;
	char old[sizeof(diag->text)];
	char prefix[256];
	va_list args;

	memcpy(old, diag->text, sizeof(old));
	va_start(args, format);
	if (vsnprintf(prefix, sizeof(prefix), format, args) < 0)
		prefix[0] = '\0';
	va_end(args);
	text_make_safe(prefix, strlen(prefix), diag->text, sizeof(diag->text));
	size_t used = strlen(diag->text);
	/* a truncated end is acceptable */
	(void)snprintf(diag->text + used, sizeof(diag->text) - used, ": %s", old);
}
