/* See compilations.h. */
#include "analysis/compilations.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/profile.h"
#include "analysis/runtime_event.h"
#include "base/bytes.h"
#include "base/text.h"
#include "code/method_name.h"
#include "trace/clr_event.h"
#include "trace/event.h"
#include "trace/schema.h"
#include "trace/symbolmap.h"
#include "trace/trace.h"

/* MethodFlags of MethodLoadVerbose. */
enum method_flag {
	METHOD_IS_JITTED = 1 << 3,
	METHOD_PROFILER_REJECTED = 1 << 5,
	METHOD_READYTORUN_REJECTED = 1 << 6,
};

#define TIER_SHIFT     7u
#define NAME_UNITS_MAX 1024u

static uint64_t key_of(uint32_t thread, uint64_t method_id)
{
	return hash_u64(method_id) + thread;
}

/* The open compilation of the method on this thread, as an index + 1; 0: none. */
static uint32_t find_open(const struct compilations *compilations, uint32_t thread,
	uint64_t method_id)
{
	for (struct map_walk w = map_find(&compilations->open, key_of(thread, method_id)); w.value;
		map_next(&w)) {
		const struct compilation_begun *begun = &compilations->begun.items[w.value - 1];
		if (begun->thread == thread && begun->method_id == method_id)
			return w.value;
	}
	return 0;
}

/* MethodJittingStarted: u64 method, u64 module, u32 token, u32 size of the IL; then names. */
static int begin(struct compilations *compilations, const struct runtime_event *event)
{
	uint32_t thread = event->event->thread_index;
	struct cursor c = event->payload;
	struct compilation_begun begun = { .at_ns = event->at_ns, .thread = thread };

	begun.method_id = cursor_u64(&c);
	cursor_skip(&c, 8 + 4);
	begun.il_bytes = cursor_u32(&c);
	if (c.short_read)
		return 0;
	uint32_t open = find_open(compilations, thread, begun.method_id);
	if (open) { /* its end was lost */
		compilations->begun.items[open - 1] = begun;
		return 0;
	}
	return vec_add(&compilations->begun, begun) &&
			       map_add(&compilations->open, key_of(thread, begun.method_id),
				       compilations->begun.count)
		       ? 0
		       : -ENOMEM;
}

/* "Shop.Parse::Number(int32)" of namespace and type, name, "instance int32  (int32)". 0: too short. */
static uint32_t read_name(struct compilations *compilations, struct cursor *c)
{
	struct bytes text = { 0 };
	struct bytes signature = { 0 };
	uint32_t name = 0;

	for (unsigned i = 0; i < 3; i++) {
		size_t units;
		const uint8_t *part = cursor_utf16z(c, &units);
		if (!c->short_read)
			text_add_utf16(i == 2 ? &signature : &text, part,
				units < NAME_UNITS_MAX ? units : NAME_UNITS_MAX);
		bytes_text(&text, i == 0 ? "::" : "");
	}
	const char *arguments = strchr(bytes_z(&signature), '(');
	bytes_text(&text, arguments ? arguments : "()");
	if (!c->short_read && !text.failed && !signature.failed)
		name = strtab_add(&compilations->names, (const char *)text.data, text.len);
	bytes_done(&text);
	bytes_done(&signature);
	return name;
}

/* MethodLoadVerbose: u64 method, u64 module, u64 address, u32 size, u32 token, u32 flags; names. */
static int end(struct compilations *compilations, const struct runtime_event *event,
	const struct trace *trace)
{
	struct compilation row = { .at_ns = event->at_ns,
		.from_ns = event->from_ns,
		.process = event->process,
		.thread = event->event->thread_index };
	struct cursor c = event->payload;
	uint64_t method_id = cursor_u64(&c);
	bool is_selected = event->is_selected;

	cursor_skip(&c, 8);
	row.address = cursor_u64(&c);
	row.code_bytes = cursor_u32(&c);
	cursor_skip(&c, 4);
	uint32_t flags = cursor_u32(&c);
	if (c.short_read || !(flags & METHOD_IS_JITTED))
		return 0;
	row.name = read_name(compilations, &c);
	uint32_t open = find_open(compilations, row.thread, method_id);
	if (open) {
		const struct compilation_begun *begun = &compilations->begun.items[open - 1];
		row.is_timed = true;
		row.il_bytes = begun->il_bytes;
		row.at_ns = begun->at_ns;
		row.lasts_ns = event->at_ns > begun->at_ns ? event->at_ns - begun->at_ns : 0;
		map_remove(&compilations->open, key_of(row.thread, method_id), open);
	}
	row.tier = flags >> TIER_SHIFT & (COMPILATION_TIERS - 1);
	row.is_rejected = flags & (METHOD_PROFILER_REJECTED | METHOD_READYTORUN_REJECTED);
	row.epoch = row.process < trace->processes.count
			    ? trace->processes.items[row.process].code_epoch
			    : 0;
	return !is_selected || vec_add(&compilations->rows, row) ? 0 : -ENOMEM;
}

int compilations_event(struct compilations *compilations, const struct runtime_event *event,
	const struct trace *trace)
{
	return event->schema->event_id == CLR_ID_MethodJittingStarted
		       ? begin(compilations, event)
		       : end(compilations, event, trace);
}

/* The name of the event in the form of the symbolmap, where that has none. */
static uint32_t choose_name(struct compilations *compilations, const struct symbolmap *names,
	const struct compilation *row)
{
	struct method_name parts;
	struct bytes text = { 0 };
	const char *name = strtab_get(&compilations->names, row->name);

	if (!row->name || names->functions.items[row->function].named)
		return 0;
	if (!method_name_parse(name, strlen(name), &parts))
		return row->name;
	method_name_format(&parts, names->form, &text);
	uint32_t formatted =
		text.failed ? 0
			    : strtab_add(&compilations->names, (const char *)text.data, text.len);
	bytes_done(&text);
	return formatted ? formatted : row->name;
}

int compilations_find(struct compilations *compilations, struct symbolmap *names)
{
	for (uint32_t i = 0; i < compilations->rows.count; i++) {
		struct compilation *row = &compilations->rows.items[i];
		row->function = symbolmap_find(names, row->process, row->address, row->epoch);
		if (!row->function)
			return -ENOMEM;
		row->name = choose_name(compilations, names, row);
	}
	return 0;
}

static int compare_rows(const void *a, const void *b)
{
	const struct compilation *x = a;
	const struct compilation *y = b;

	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	if (x->lasts_ns != y->lasts_ns)
		return x->lasts_ns > y->lasts_ns ? -1 : 1;
	return x->at_ns < y->at_ns ? -1 : x->at_ns > y->at_ns;
}

static int compare_processes(const void *a, const void *b)
{
	const struct compilations_process *x = a;
	const struct compilations_process *y = b;

	if (x->all.lasts_ns != y->all.lasts_ns)
		return x->all.lasts_ns > y->all.lasts_ns ? -1 : 1;
	return x->process < y->process ? -1 : x->process > y->process;
}

static void add(struct compilations_sum *sum, const struct compilation *row)
{
	sum->count++;
	sum->lasts_ns += row->lasts_ns;
	sum->il_bytes += row->il_bytes;
	sum->code_bytes += row->code_bytes;
}

static void find_steady(struct compilations_process *process)
{
	uint64_t width_ns = timeline_width_ns(&process->line);

	for (uint32_t i = 0; i < TIMELINE_PLACES; i++)
		if ((double)process->line.amounts[i] > COMPILATION_STEADY_SHARE * (double)width_ns)
			process->steady_ns = (i + 1) * width_ns;
}

static int sum_process(struct compilations *compilations, uint32_t at, uint32_t count)
{
	struct compilations_process *process = vec_push(&compilations->processes);

	if (!process)
		return -ENOMEM;
	process->process = compilations->rows.items[at].process;
	process->row_at = at;
	process->row_count = count;
	for (uint32_t i = at; i < at + count; i++) {
		const struct compilation *row = &compilations->rows.items[i];
		add(&process->all, row);
		add(&process->by_tier[row->tier], row);
		process->untimed_count += !row->is_timed;
		process->rejected_count += row->is_rejected;
		timeline_add_time(&process->line,
			row->at_ns > row->from_ns ? row->at_ns - row->from_ns : 0, row->lasts_ns);
	}
	find_steady(process);
	process->steady_ns += process->steady_ns ? compilations->rows.items[at].from_ns : 0;
	return 0;
}

int compilations_finish(struct compilations *compilations, const struct profile *profile)
{
	const struct compilation *rows = compilations->rows.items;
	uint32_t kept = 0;
	int error = 0;

	vec_done(&compilations->begun);
	map_done(&compilations->open);
	for (uint32_t i = 0; i < compilations->rows.count; i++)
		if (profile_wants_process(profile, rows[i].process))
			compilations->rows.items[kept++] = rows[i];
	compilations->rows.count = kept;
	if (kept > 1)
		qsort(compilations->rows.items, kept, sizeof(*rows), compare_rows);
	for (uint32_t at = 0, until; at < kept && !error; at = until) {
		for (until = at; until < kept && rows[until].process == rows[at].process;)
			until++;
		error = sum_process(compilations, at, until - at);
	}
	if (compilations->processes.count > 1)
		qsort(compilations->processes.items, compilations->processes.count,
			sizeof(compilations->processes.items[0]), compare_processes);
	return error;
}

void compilations_done(struct compilations *compilations)
{
	strtab_done(&compilations->names);
	vec_done(&compilations->rows);
	vec_done(&compilations->processes);
	vec_done(&compilations->begun);
	map_done(&compilations->open);
}
