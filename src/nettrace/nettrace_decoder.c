/* See nettrace_decoder.h. */
#include "nettrace/nettrace_decoder.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "trace/trace.h"

int stream_broken(struct nettrace_decoder *d, uint64_t offset, struct diag *diag,
	const char *format, ...)
{
	char what[256];
	va_list args;

	va_start(args, format);
	if (vsnprintf(what, sizeof(what), format, args) < 0)
		what[0] = '\0';
	va_end(args);
	d->state = STATE_BROKEN;
	d->broken = (struct diag){ 0 };
	diag_set(&d->broken, -EBADMSG, "cannot read '%s' beyond offset %llu: %s", d->name,
		(unsigned long long)offset, what);
	return diag_set(diag, -EBADMSG, "%s", d->broken.text);
}

int stream_no_memory(struct nettrace_decoder *d, struct diag *diag)
{
	d->state = STATE_BROKEN;
	d->broken = (struct diag){ 0 };
	diag_set(&d->broken, -ENOMEM, "cannot read '%s': %m", d->name);
	return diag_set(diag, -ENOMEM, "%s", d->broken.text);
}

uint32_t span_text(struct nettrace_decoder *d, struct text_span span)
{
	return strtab_add(&d->trace->strings, span.text, span.len);
}
