/* See symbols_recording.h. */
#include "cli/symbols_recording.h"

#include "base/diag.h"
#include "cli/message.h"
#include "cli/verb.h"
#include "pipeline/saved.h"
#include "symbols/managed_lines.h"

static int on_event(void *context, const struct event *event)
{
	struct symbols_recording *r = context;
	int error = missing_symbols_event(&r->missing, event);

	return error ? error : line_names_event(&r->lines, event);
}

int symbols_recording_open(struct symbols_recording *r, const char *path, bool make_cache)
{
	struct diag diag = { 0 };

	*r = (struct symbols_recording){ .cache = { .fd = -1 } };
	r->missing.trace = &r->trace;
	r->lines.trace = &r->trace;
	int error = trace_init(&r->trace);

	if (!error && symbol_cache_open(&r->cache, make_cache, make_cache ? &diag : NULL) < 0 &&
		make_cache)
		return message_fail(&diag);
	if (!error)
		error = saved_read(path, &r->trace, on_event, r, &diag);
	if (!error)
		error = symbolmap_init(&r->map, &r->trace, METHOD_NAME_SHORT);
	if (!error)
		error = missing_symbols_find(&r->missing, &r->map);
	if (!error)
		error = symbol_names_find(&r->found, &r->trace, &r->missing, &r->cache);
	if (error && !diag.error)
		diag_set(&diag, error, "cannot read '%s': %m", path);
	return error ? message_fail(&diag) : EXIT_DONE;
}

int symbols_recording_find_lines(struct symbols_recording *r)
{
	struct diag diag = { 0 };
	int error = line_names_find(&r->lines, &r->map, &r->cache);

	if (!error)
		error = managed_lines_find(&r->lines, &r->cache);
	if (!error)
		return EXIT_DONE;
	diag_set(&diag, error, "cannot find the source lines: %m");
	return message_fail(&diag);
}

void symbols_recording_close(struct symbols_recording *r)
{
	line_names_done(&r->lines);
	symbol_names_done(&r->found);
	missing_symbols_done(&r->missing);
	symbolmap_done(&r->map);
	symbol_cache_close(&r->cache);
	trace_done(&r->trace);
}
