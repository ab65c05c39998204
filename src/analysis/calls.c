/* See calls.h. */
#include "analysis/calls.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/activity_spans.h"
#include "analysis/event_stacks.h"
#include "analysis/profile.h"
#include "analysis/runtime_event.h"
#include "base/bytes.h"
#include "base/text.h"
#include "trace/event.h"
#include "trace/schema.h"
#include "trace/trace.h"

#define TARGET_UNITS_MAX 256u
#define ACTIVITY_ID_SIZE 16u
#define NESTED_MAX       16u
#define STATUS_FAILED    500 /* of HTTP, the first one that is the server's failure */

/* ---- targets ---- */

static void add_utf16(struct cursor *c, struct bytes *out)
{
	size_t units;
	const uint8_t *text = cursor_utf16z(c, &units);

	if (!c->short_read)
		text_add_utf16(out, text, units < TARGET_UNITS_MAX ? units : TARGET_UNITS_MAX);
}

/* The next number of "1,2,3}" below 256; -1: none. */
static int take_byte(const char **at)
{
	char *end;
	long value = strtol(*at, &end, 10);

	if (end == *at || value < 0 || value > 255)
		return -1;
	*at = *end == ',' ? end + 1 : end;
	return (int)value;
}

/*
 * A socket address as .NET prints it: "InterNetwork:16:{31,144,10,0,0,7,...}" is 10.0.0.7:8080: the
 * port, then the address; of "InterNetworkV6:28:{" the port, a flow of 4 bytes, the address.
 * Other text is shown as it is.
 */
static void add_address(const char *text, struct bytes *out)
{
	bool is_v6 = strncmp(text, "InterNetworkV6:", 15) == 0;
	const char *at = strchr(text, '{');
	int part[22];
	int count = 0;

	if ((!is_v6 && strncmp(text, "InterNetwork:", 13) != 0) || !at) {
		bytes_text(out, text);
		return;
	}
	for (at++; count < (is_v6 ? 22 : 6); count++) {
		part[count] = take_byte(&at);
		if (part[count] < 0) {
			bytes_text(out, text);
			return;
		}
	}
	static const int mapped[12] = { [10] = 255, [11] = 255 };
	int address = is_v6 ? 6 : 2;
	if (is_v6 && memcmp(&part[6], mapped, sizeof(mapped)) == 0) {
		is_v6 = false; /* of a socket for both versions */
		address = 18;
	}
	bytes_text(out, is_v6 ? "[" : "");
	for (int i = 0; is_v6 && i < 16; i += 2)
		bytes_printf(out, "%s%x", i ? ":" : "", part[6 + i] << 8 | part[7 + i]);
	if (is_v6)
		bytes_text(out, "]");
	else
		bytes_printf(out, "%d.%d.%d.%d", part[address], part[address + 1],
			part[address + 2], part[address + 3]);
	bytes_printf(out, ":%d", part[0] << 8 | part[1]);
}

/*
 * RequestStart: scheme, host, i32 port. ResolutionStart: host. HandshakeStart: i32 whether it is the
 * server's, host. ConnectStart: address. False: the payload is too short.
 */
static bool read_target(enum activity_kind kind, struct cursor c, struct bytes *out)
{
	struct bytes text = { 0 };
	bool is_server = false;

	switch (kind) {
	case ACTIVITY_HTTP:
		add_utf16(&c, out);
		bytes_text(out, "://");
		add_utf16(&c, out);
		bytes_printf(out, ":%" PRIu32, cursor_u32(&c));
		break;
	case ACTIVITY_TLS:
		is_server = cursor_u32(&c) != 0;
		add_utf16(&c, out);
		if (is_server) {
			bytes_reset(out);
			bytes_text(out, CALL_AS_SERVER);
		}
		break;
	case ACTIVITY_CONNECT:
		add_utf16(&c, &text);
		add_address(bytes_z(&text), out);
		break;
	default:
		add_utf16(&c, out);
		break;
	}
	out->failed |= text.failed;
	bytes_done(&text);
	return !c.short_read;
}

/* ---- events ---- */

static struct calls_process *process_of(struct calls *calls, uint32_t process)
{
	for (uint32_t i = 0; i < calls->processes.count; i++)
		if (calls->processes.items[i].process == process)
			return &calls->processes.items[i];
	struct calls_process *fresh = vec_push(&calls->processes);
	if (fresh)
		fresh->process = process;
	return fresh;
}

/* The row, as an index + 1; 0: no memory. */
static uint32_t row_of(struct calls *calls, uint32_t process, enum activity_kind kind,
	const struct bytes *target)
{
	calls->targets.full = calls->targets.entries.count >= CALL_TARGETS_MAX;
	uint32_t text = strtab_add(&calls->targets, (const char *)target->data, target->len);

	if (!text && !calls->targets.full && target->len)
		return 0;
	uint64_t key = hash_u64((uint64_t)process << 32 | text) + kind;
	for (struct map_walk w = map_find(&calls->row_index, key); w.value; map_next(&w)) {
		const struct call_row *row = &calls->rows.items[w.value - 1];
		if (row->process == process && row->target == text && row->kind == kind)
			return w.value;
	}
	struct call_row *fresh = vec_push(&calls->rows);
	if (!fresh)
		return 0;
	fresh->process = process;
	fresh->target = text;
	fresh->kind = kind;
	return map_add(&calls->row_index, key, calls->rows.count) ? calls->rows.count : 0;
}

static uint64_t id_of(const struct runtime_event *event, enum activity_kind kind)
{
	uint64_t id = hash_bytes(event->event->activity, ACTIVITY_ID_SIZE) + event->process +
		      ((uint64_t)kind << 32);

	return id ? id : 1;
}

static struct calls_outer *outer_of(struct calls *calls, uint32_t process, enum activity_kind kind)
{
	vec_each(outer, &calls->outer) {
		if (outer->process == process && outer->kind == kind)
			return outer;
	}
	return NULL;
}

/* Keeps the place of a call that has not ended while a later one has its id. 0, or -ENOMEM. */
static int put_outside(struct calls *calls, uint32_t process, enum activity_kind kind,
	uint32_t place)
{
	struct calls_outer *outer = outer_of(calls, process, kind);

	if (!outer) {
		outer = vec_push(&calls->outer);
		if (!outer)
			return -ENOMEM;
		outer->process = process;
		outer->kind = kind;
	}
	if (outer->first == outer->places.count) {
		outer->first = 0;
		vec_reset(&outer->places);
	}
	return vec_add(&outer->places, place) ? 0 : -ENOMEM;
}

static uint64_t thread_key(uint32_t thread, enum activity_kind kind)
{
	return ((uint64_t)thread << 8 | (uint64_t)kind) + 1;
}

/*
 * The place of the call that an event without an id is of; 0: none. Without an outer call, the last
 * one that the thread has begun, such as a lookup by name within which another one has ended.
 */
static uint32_t outer_place(struct calls *calls, const struct runtime_event *event,
	enum activity_kind kind)
{
	const struct calls_outer *outer = outer_of(calls, event->process, kind);
	uint32_t thread = event->event->thread_index;

	if (outer && outer->first < outer->places.count)
		return outer->places.items[outer->first];
	uint32_t place = map_get(&calls->latest, thread_key(thread, kind));
	for (unsigned i = 0; place && i < NESTED_MAX; i++) {
		const struct call_begun *begun = &calls->begun.items[place - 1];
		if (begun->id && begun->thread == thread &&
			calls->rows.items[begun->row].kind == kind)
			return place;
		place = begun->previous;
	}
	return 0;
}

static int begin(struct calls *calls, struct calls_process *process,
	const struct runtime_event *event, enum activity_kind kind)
{
	struct bytes target = { 0 };
	uint32_t row = 0;
	bool is_whole = read_target(kind, event->payload, &target);
	bool failed = target.failed;

	if (is_whole && !target.len)
		bytes_text(&target, "(empty)"); /* an empty target is that of further ones */
	if (is_whole && !failed)
		row = row_of(calls, event->process, kind, &target);
	bytes_done(&target);
	if (!is_whole && !failed)
		return 0;
	if (!row)
		return -ENOMEM;
	uint32_t place = calls->free;
	if (place)
		calls->free = calls->begun.items[place - 1].next_free;
	else if (vec_push(&calls->begun))
		place = calls->begun.count;
	else
		return -ENOMEM;
	struct call_begun *begun = &calls->begun.items[place - 1];
	uint64_t latest = thread_key(event->event->thread_index, kind);
	*begun = (struct call_begun){ .id = id_of(event, kind),
		.at_ns = event->at_ns,
		.from_ns = event->from_ns,
		.thread = event->event->thread_index,
		.previous = map_get(&calls->latest, latest),
		.row = row - 1 };
	if (begun->previous == place)
		begun->previous = 0; /* that one has ended: its place is taken again */
	process->count++;
	int error = event_stacks_add(event->stacks, event->process, event->event, &begun->stack);
	uint32_t outside = map_get(&calls->open, begun->id);
	if (!error && outside)
		error = put_outside(calls, event->process, kind, outside);
	if (!error && (!map_put(&calls->open, begun->id, place) ||
			      !map_put(&calls->latest, latest, place)))
		error = -ENOMEM;
	return error;
}

static int add(struct calls *calls, const struct call_begun *begun, uint64_t lasts_ns)
{
	const struct call_row *row = &calls->rows.items[begun->row];
	const struct tally_key key = { .process = row->process,
		.kind = row->kind,
		.text = row->target,
		.stack = begun->stack };
	const struct tally_amount amount = {
		.amount = lasts_ns, .at_ns = begun->at_ns, .from_ns = begun->from_ns, .lasts = true
	};

	return tally_add(&calls->tally, &key, &amount);
}

/* The place of the call that an end or a failure is of; 0: none. */
static uint32_t place_of(struct calls *calls, const struct runtime_event *event,
	enum activity_kind kind)
{
	return event->event->activity ? map_get(&calls->open, id_of(event, kind))
				      : outer_place(calls, event, kind);
}

static int end(struct calls *calls, const struct runtime_event *event, enum activity_kind kind)
{
	uint32_t place = place_of(calls, event, kind);

	if (!place) /* it began before the selected time */
		return 0;
	struct call_begun *begun = &calls->begun.items[place - 1];
	struct call_row *row = &calls->rows.items[begun->row];
	uint64_t lasts_ns = event->at_ns > begun->at_ns ? event->at_ns - begun->at_ns : 0;
	struct cursor c = event->payload;
	int32_t status = kind == ACTIVITY_HTTP ? (int32_t)cursor_u32(&c) : 0;

	durations_add(&row->durations, begun->at_ns, lasts_ns);
	row->failed += begun->has_failed || (!c.short_read && status >= STATUS_FAILED);
	int error = add(calls, begun, lasts_ns);
	struct calls_outer *outer = outer_of(calls, event->process, kind);
	if (!event->event->activity && outer && outer->first < outer->places.count)
		outer->first++;
	else
		map_remove(&calls->open, begun->id, place);
	*begun = (struct call_begun){ .next_free = calls->free, .previous = begun->previous };
	calls->free = place;
	return error;
}

static void fail(struct calls *calls, const struct runtime_event *event, enum activity_kind kind)
{
	uint32_t place = place_of(calls, event, kind);

	if (place)
		calls->begun.items[place - 1].has_failed = true;
}

int calls_event(struct calls *calls, const struct runtime_event *event, const struct trace *trace)
{
	const struct activity_event what =
		activity_event_of(trace_text(trace, event->schema->provider),
			event->schema->event_id);

	/* A begin without an activity cannot be paired with an end. */
	if (what.kind == ACTIVITY_NONE || (what.step == ACTIVITY_BEGIN && !event->event->activity))
		return 0;
	struct calls_process *process = process_of(calls, event->process);
	if (!process)
		return -ENOMEM;
	switch (what.step) {
	case ACTIVITY_BEGIN:
		return event->is_selected ? begin(calls, process, event, what.kind) : 0;
	case ACTIVITY_END:
		return end(calls, event, what.kind);
	case ACTIVITY_FAILS:
		fail(calls, event, what.kind);
		break;
	}
	return 0;
}

/* ---- results ---- */

int calls_settle(struct calls *calls, const struct activity_spans *spans, uint64_t end_ns)
{
	int error = 0;

	for (uint32_t i = 0; i < calls->begun.count && !error; i++) {
		const struct call_begun *begun = &calls->begun.items[i];
		if (!begun->id)
			continue;
		struct call_row *row = &calls->rows.items[begun->row];
		uint64_t to_ns = activity_spans_end(spans, row->process, end_ns);
		uint64_t lasts_ns = to_ns > begun->at_ns ? to_ns - begun->at_ns : 0;
		row->unfinished++;
		row->unfinished_ns += lasts_ns;
		error = add(calls, begun, lasts_ns);
	}
	vec_done(&calls->begun);
	vec_each(outer, &calls->outer) {
		vec_done(&outer->places);
	}
	vec_done(&calls->outer);
	map_done(&calls->open);
	map_done(&calls->latest);
	map_done(&calls->row_index);
	return error;
}

static int compare_rows(const void *a, const void *b)
{
	const struct call_row *x = a;
	const struct call_row *y = b;
	uint64_t x_ns = x->durations.total_ns + x->unfinished_ns;
	uint64_t y_ns = y->durations.total_ns + y->unfinished_ns;

	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (x_ns != y_ns)
		return x_ns > y_ns ? -1 : 1;
	return x->target < y->target ? -1 : x->target > y->target;
}

static int compare_processes(const void *a, const void *b)
{
	const struct calls_process *x = a;
	const struct calls_process *y = b;

	if (x->count != y->count)
		return x->count > y->count ? -1 : 1;
	return x->process < y->process ? -1 : x->process > y->process;
}

void calls_finish(struct calls *calls, const struct profile *profile)
{
	uint32_t kept = 0;

	if (calls->rows.count > 1)
		qsort(calls->rows.items, calls->rows.count, sizeof(calls->rows.items[0]),
			compare_rows);
	for (uint32_t i = 0; i < calls->processes.count; i++) {
		struct calls_process process = calls->processes.items[i];
		if (!process.count || !profile_wants_process(profile, process.process))
			continue;
		for (uint32_t r = 0; r < calls->rows.count; r++)
			if (calls->rows.items[r].process == process.process && !process.row_count++)
				process.row_at = r;
		calls->processes.items[kept++] = process;
	}
	calls->processes.count = kept;
	if (kept > 1)
		qsort(calls->processes.items, kept, sizeof(calls->processes.items[0]),
			compare_processes);
}

const char *call_kind_words(enum activity_kind kind)
{
	switch (kind) {
	case ACTIVITY_HTTP:
		return "HTTP requests";
	case ACTIVITY_DNS:
		return "name lookups";
	case ACTIVITY_TLS:
		return "TLS handshakes";
	case ACTIVITY_CONNECT:
		return "connections";
	default:
		return "";
	}
}

void calls_done(struct calls *calls)
{
	strtab_done(&calls->targets);
	vec_done(&calls->rows);
	vec_done(&calls->processes);
	vec_done(&calls->begun);
	vec_each(outer, &calls->outer) {
		vec_done(&outer->places);
	}
	vec_done(&calls->outer);
	tally_done(&calls->tally);
	map_done(&calls->row_index);
	map_done(&calls->open);
	map_done(&calls->latest);
}
