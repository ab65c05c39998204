/* See requests.h. */
#include "analysis/requests.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/activity_spans.h"
#include "analysis/profile.h"
#include "analysis/runtime_event.h"
#include "base/bytes.h"
#include "base/text.h"
#include "trace/event.h"
#include "trace/provider_kind.h"
#include "trace/schema.h"
#include "trace/source_event.h"
#include "trace/trace.h"

#define PATH_UNITS_MAX   512u
#define ACTIVITY_ID_SIZE 16u

/*
 * RequestStart and RequestStop: connection id, request id, HTTP version, path, method in UTF-16. Of
 * the hosting's: method, path; and nothing.
 */
struct request_fields {
	const uint8_t *text[5];
	size_t units[5];
};

enum request_field { CONNECTION_ID, REQUEST_ID, HTTP_VERSION, PATH, METHOD };

static bool read_fields(const struct runtime_event *event, struct request_fields *ret)
{
	struct cursor c = event->payload;

	for (unsigned i = 0; i < 5; i++)
		ret->text[i] = cursor_utf16z(&c, &ret->units[i]);
	return !c.short_read;
}

static bool read_hosting_fields(const struct runtime_event *event, struct request_fields *ret)
{
	struct cursor c = event->payload;

	*ret = (struct request_fields){ 0 };
	if (!event->event->activity)
		return false;
	ret->text[REQUEST_ID] = event->event->activity;
	ret->units[REQUEST_ID] = ACTIVITY_ID_SIZE / 2;
	if (event->schema->event_id == SOURCE_ID_HOSTING_REQUEST_START) {
		ret->text[METHOD] = cursor_utf16z(&c, &ret->units[METHOD]);
		ret->text[PATH] = cursor_utf16z(&c, &ret->units[PATH]);
	}
	return !c.short_read;
}

static uint64_t id_of(const struct request_fields *fields, uint32_t process)
{
	uint64_t id = hash_bytes(fields->text[REQUEST_ID], fields->units[REQUEST_ID] * 2) + process;

	return id ? id : 1;
}

static bool has_digit(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (text[i] >= '0' && text[i] <= '9')
			return true;
	return false;
}

static size_t limited(size_t units)
{
	return units < PATH_UNITS_MAX ? units : PATH_UNITS_MAX;
}

/* "GET /orders" and a star for each part with a digit. */
static void make_route(const struct request_fields *fields, struct bytes *out)
{
	struct bytes path = { 0 };

	text_add_utf16(out, fields->text[METHOD], limited(fields->units[METHOD]));
	bytes_text(out, " ");
	text_add_utf16(&path, fields->text[PATH], limited(fields->units[PATH]));
	for (const char *at = bytes_z(&path); *at;) {
		size_t len = strcspn(at, "/");
		if (has_digit(at, len))
			bytes_text(out, "*");
		else
			bytes_add(out, at, len);
		at += len;
		if (*at) {
			bytes_text(out, "/");
			at++;
		}
	}
	out->failed |= path.failed;
	bytes_done(&path);
}

/* The row of the route, as an index + 1; 0: no memory. */
static uint32_t row_of(struct requests *requests, uint32_t process, const struct bytes *route)
{
	requests->routes.full = requests->routes.entries.count >= REQUEST_ROUTES_MAX;
	uint32_t text = strtab_add(&requests->routes, (const char *)route->data, route->len);

	if (!text && !requests->routes.full)
		return 0;
	uint64_t key = (uint64_t)process << 32 | text;
	uint32_t row = map_get(&requests->row_index, key);
	if (row)
		return row;
	struct request_route *fresh = vec_push(&requests->rows);
	if (!fresh)
		return 0;
	fresh->process = process;
	fresh->route = text;
	return map_put(&requests->row_index, key, requests->rows.count) ? requests->rows.count : 0;
}

static struct requests_process *process_of(struct requests *requests, uint32_t process)
{
	for (uint32_t i = 0; i < requests->processes.count; i++)
		if (requests->processes.items[i].process == process)
			return &requests->processes.items[i];
	struct requests_process *fresh = vec_push(&requests->processes);
	if (fresh)
		fresh->process = process;
	return fresh;
}

static int begin(struct requests *requests, const struct runtime_event *event,
	const struct request_fields *fields)
{
	struct requests_process *process = process_of(requests, event->process);
	struct bytes route = { 0 };

	make_route(fields, &route);
	uint32_t row = route.failed ? 0 : row_of(requests, event->process, &route);
	bytes_done(&route);
	if (!row || !process)
		return -ENOMEM;
	timeline_add(&process->line,
		event->at_ns > event->from_ns ? event->at_ns - event->from_ns : 0, 1);
	uint32_t place = requests->free;
	if (place)
		requests->free = requests->begun.items[place - 1].next_free;
	else if (vec_push(&requests->begun))
		place = requests->begun.count;
	else
		return -ENOMEM;
	const struct request_begun begun = {
		.id = id_of(fields, event->process), .at_ns = event->at_ns, .row = row - 1
	};
	requests->begun.items[place - 1] = begun;
	process->unfinished++;
	return map_put(&requests->open, begun.id, place) ? 0 : -ENOMEM;
}

static void add_slow(struct requests_process *process, struct request_route *row, uint64_t lasts_ns)
{
	process->total_ns += lasts_ns;
	if (lasts_ns < REQUEST_SLOW_NS)
		return;
	row->slow_count++;
	row->slow_ns += lasts_ns;
	process->slow_count++;
	process->slow_ns += lasts_ns;
}

static int end(struct requests *requests, const struct runtime_event *event,
	const struct request_fields *fields)
{
	uint64_t id = id_of(fields, event->process);
	uint32_t place = map_get(&requests->open, id);
	struct requests_process *process = process_of(requests, event->process);

	if (!process)
		return -ENOMEM;
	if (!place) /* it began before the selected time */
		return 0;
	struct request_begun *begun = &requests->begun.items[place - 1];
	struct request_route *row = &requests->rows.items[begun->row];
	uint64_t lasts_ns = event->at_ns > begun->at_ns ? event->at_ns - begun->at_ns : 0;
	durations_add(&row->durations, begun->at_ns, lasts_ns);
	add_slow(process, row, lasts_ns);
	process->count++;
	process->unfinished--;
	map_remove(&requests->open, id, place);
	*begun = (struct request_begun){ .next_free = requests->free };
	requests->free = place;
	return 0;
}

static_assert((int)SOURCE_ID_KESTREL_REQUEST_START == (int)SOURCE_ID_HOSTING_REQUEST_START &&
		      (int)SOURCE_ID_KESTREL_REQUEST_STOP == (int)SOURCE_ID_HOSTING_REQUEST_STOP,
	"the ids of both providers");

int requests_event(struct requests *requests, const struct runtime_event *event,
	const struct trace *trace)
{
	struct request_fields fields;
	uint32_t provider = event->schema->provider;
	bool is_hosting = strcmp(trace_text(trace, provider), PROVIDER_HOSTING_NAME) == 0;

	if (!(is_hosting ? read_hosting_fields(event, &fields) : read_fields(event, &fields)))
		return 0;
	struct requests_process *process = process_of(requests, event->process);
	if (!process)
		return -ENOMEM;
	/* a server with both sends Kestrel's begin first */
	if (!process->provider && event->schema->event_id == SOURCE_ID_HOSTING_REQUEST_START)
		process->provider = provider;
	if (process->provider != provider)
		return 0;
	if (event->schema->event_id == SOURCE_ID_HOSTING_REQUEST_STOP)
		return end(requests, event, &fields);
	return event->is_selected ? begin(requests, event, &fields) : 0;
}

static int compare_rows(const void *a, const void *b)
{
	const struct request_route *x = a;
	const struct request_route *y = b;

	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	if (x->durations.total_ns != y->durations.total_ns)
		return x->durations.total_ns > y->durations.total_ns ? -1 : 1;
	return x->route < y->route ? -1 : x->route > y->route;
}

static int compare_processes(const void *a, const void *b)
{
	const struct requests_process *x = a;
	const struct requests_process *y = b;

	if (x->count != y->count)
		return x->count > y->count ? -1 : 1;
	return x->process < y->process ? -1 : x->process > y->process;
}

void requests_settle(struct requests *requests, const struct activity_spans *spans, uint64_t end_ns)
{
	for (uint32_t i = 0; i < requests->begun.count; i++) {
		const struct request_begun *begun = &requests->begun.items[i];
		struct request_route *row = begun->id ? &requests->rows.items[begun->row] : NULL;
		struct requests_process *process = row ? process_of(requests, row->process) : NULL;
		if (!process)
			continue;
		uint64_t to_ns = activity_spans_end(spans, process->process, end_ns);
		if (to_ns > begun->at_ns)
			add_slow(process, row, to_ns - begun->at_ns);
	}
}

int requests_finish(struct requests *requests, const struct profile *profile)
{
	uint32_t kept = 0;

	vec_done(&requests->begun);
	map_done(&requests->open);
	map_done(&requests->row_index);
	if (requests->rows.count > 1)
		qsort(requests->rows.items, requests->rows.count, sizeof(requests->rows.items[0]),
			compare_rows);
	for (uint32_t i = 0; i < requests->processes.count; i++) {
		struct requests_process process = requests->processes.items[i];
		if (!profile_wants_process(profile, process.process) ||
			!(process.count + process.unfinished))
			continue;
		for (uint32_t r = 0; r < requests->rows.count; r++) {
			struct request_route *row = &requests->rows.items[r];
			if (row->process != process.process)
				continue;
			if (!process.row_count++)
				process.row_at = r;
		}
		requests->processes.items[kept++] = process;
	}
	requests->processes.count = kept;
	if (kept > 1)
		qsort(requests->processes.items, kept, sizeof(requests->processes.items[0]),
			compare_processes);
	return 0;
}

void requests_done(struct requests *requests)
{
	strtab_done(&requests->routes);
	vec_done(&requests->rows);
	vec_done(&requests->processes);
	vec_done(&requests->begun);
	map_done(&requests->row_index);
	map_done(&requests->open);
}
