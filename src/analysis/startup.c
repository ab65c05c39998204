/* See startup.h. */
#include "analysis/startup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/event_stacks.h"
#include "analysis/profile.h"
#include "analysis/requests.h"
#include "analysis/runtime_event.h"
#include "base/bytes.h"
#include "base/cursor.h"
#include "base/map.h"
#include "base/text.h"
#include "trace/clr_event.h"
#include "trace/event.h"
#include "trace/schema.h"
#include "trace/source_event.h"
#include "trace/start_step.h"
#include "trace/symbolmap.h"
#include "trace/trace.h"

#define NAME_UNITS_MAX 512u
#define BEGUN_MAX      4096u

/* ---- rows ---- */

static struct startup_process *find_process(struct startup *startup, uint32_t process)
{
	for (uint32_t i = startup->processes.count; i-- > 0;)
		if (startup->processes.items[i].process == process)
			return &startup->processes.items[i];
	return NULL;
}

static struct startup_process *add_process(struct startup *startup,
	const struct runtime_event *event)
{
	struct startup_process *fresh = vec_push(&startup->processes);
	if (fresh) {
		fresh->process = event->process;
		fresh->seen_ns = event->at_ns;
	}
	return fresh;
}

static void reach(struct startup_process *process, enum startup_step step, uint64_t at_ns)
{
	if (process->reached[step])
		return;
	process->reached[step] = true;
	process->at_ns[step] = at_ns;
}

static uint64_t begin_of(const struct startup_process *process)
{
	for (unsigned i = 0; i < STARTUP_STEPS; i++)
		if (process->reached[i])
			return process->at_ns[i];
	return process->seen_ns;
}

/* Whether the start is over, so that nothing more belongs to it. */
static bool is_over(const struct startup_process *process, uint64_t at_ns)
{
	return process->reached[STARTUP_ANSWER] || at_ns > begin_of(process) + STARTUP_MAX_NS;
}

static int add_mark(struct startup *startup, const struct startup_mark *mark)
{
	if (startup->marks.count >= STARTUP_MARKS_MAX) {
		startup->dropped++;
		return 0;
	}
	return vec_add(&startup->marks, *mark) ? 0 : -ENOMEM;
}

/* ---- begins and ends on one thread ---- */

static uint32_t find_begun(const struct startup *startup, uint32_t thread, uint64_t id,
	enum startup_mark_kind kind)
{
	for (uint32_t i = startup->begun.count; i-- > 0;) {
		const struct startup_begun *begun = &startup->begun.items[i];
		if (begun->thread == thread && begun->id == id && begun->kind == kind)
			return i + 1;
	}
	return 0;
}

static int begin(struct startup *startup, const struct runtime_event *event, uint64_t id,
	enum startup_mark_kind kind)
{
	const struct startup_begun begun = { .id = id,
		.at_ns = event->at_ns,
		.thread = event->event->thread_index,
		.kind = (uint8_t)kind };
	uint32_t known = find_begun(startup, begun.thread, id, kind);

	if (known) { /* its end was lost, or it was already loaded */
		startup->begun.items[known - 1] = begun;
		return 0;
	}
	return startup->begun.count >= BEGUN_MAX || vec_add(&startup->begun, begun) ? 0 : -ENOMEM;
}

/* Ends a mark. Its begin is that of the open one, if there is one. */
static int end(struct startup *startup, const struct runtime_event *event, uint64_t id,
	struct startup_mark *mark)
{
	uint32_t begun = find_begun(startup, event->event->thread_index, id, mark->kind);

	mark->at_ns = event->at_ns;
	if (begun) {
		mark->at_ns = startup->begun.items[begun - 1].at_ns;
		mark->lasts_ns = event->at_ns > mark->at_ns ? event->at_ns - mark->at_ns : 0;
		startup->begun.items[begun - 1] = *vec_last(&startup->begun);
		startup->begun.count--;
	}
	return add_mark(startup, mark);
}

/* ---- payloads ---- */

static void add_utf16(struct cursor *c, struct bytes *out)
{
	size_t units;
	const uint8_t *text = cursor_utf16z(c, &units);

	if (!c->short_read)
		text_add_utf16(out, text, units < NAME_UNITS_MAX ? units : NAME_UNITS_MAX);
}

static bool is_main(const char *name)
{
	return strcmp(name, "Main") == 0 || strcmp(name, "<Main>$") == 0 ||
	       strcmp(name, "<Main>") == 0;
}

/*
 * Namespace and type, name, signature; appends "Shop.Program.Main". *ret_is_main: it is the entry
 * point of a program. False: too short.
 */
static bool read_method(struct cursor *c, struct bytes *out, bool *ret_is_main)
{
	struct bytes name = { 0 };

	add_utf16(c, out);
	add_utf16(c, &name);
	*ret_is_main = is_main(bytes_z(&name));
	bytes_text(out, out->len ? "." : "");
	bytes_add(out, name.data, name.len);
	out->failed |= name.failed;
	bytes_done(&name);
	return !c->short_read;
}

/* "System.Console" of "System.Console, Version=10.0.0.0, ..."; 0: no memory, or too short. */
static uint32_t read_assembly(struct startup *startup, struct cursor *c)
{
	struct bytes name = { 0 };
	uint32_t text = 0;

	add_utf16(c, &name);
	if (!c->short_read && !name.failed) {
		const char *all = bytes_z(&name);
		text = strtab_add(&startup->texts, all, strcspn(all, ","));
	}
	bytes_done(&name);
	return text;
}

/* ---- events ---- */

static int take_step(struct startup_process *process, const struct runtime_event *event)
{
	static const enum startup_step steps[START_STEPS] = { [START_STEP_EXEC] = STARTUP_EXEC,
		[START_STEP_HOSTFXR] = STARTUP_HOSTFXR,
		[START_STEP_HOSTPOLICY] = STARTUP_HOSTPOLICY,
		[START_STEP_CORECLR] = STARTUP_CORECLR };
	struct bytes name = { 0 };
	struct cursor c = event->payload;
	uint64_t begin_ns = event->event->time_ns - event->at_ns;

	add_utf16(&c, &name);
	uint64_t time_ns = cursor_u64(&c);
	enum start_step step = start_step_of_name(bytes_z(&name));
	int error = name.failed ? -ENOMEM : 0;
	bytes_done(&name);
	if (!error && !c.short_read && step)
		reach(process, steps[step], time_ns > begin_ns ? time_ns - begin_ns : 0);
	return error;
}

/* The names of a method that is prepared for its first call. False: they are not complete. */
static bool take_first_call(struct startup_process *process, const struct runtime_event *event,
	struct cursor *c)
{
	struct bytes name = { 0 };
	bool is_entry;

	bool is_whole = read_method(c, &name, &is_entry);
	bytes_done(&name);
	process->has_compiled |= is_whole;
	if (is_whole && is_entry)
		reach(process, STARTUP_MAIN, event->at_ns);
	return is_whole;
}

/* MethodJittingStarted: u64 method, u64 module, u32 token, u32 size of the IL; names. */
static int take_jitting(struct startup *startup, struct startup_process *process,
	const struct runtime_event *event)
{
	struct cursor c = event->payload;
	uint64_t id = cursor_u64(&c);

	cursor_skip(&c, 8 + 4 + 4);
	return take_first_call(process, event, &c) ? begin(startup, event, id, STARTUP_JIT) : 0;
}

/* MethodLoadVerbose: u64 method, u64 module, u64 address, u32 size, u32 token, u32 flags; names. */
static int take_loaded(struct startup *startup, const struct runtime_event *event)
{
	struct startup_mark mark = { .process = event->process, .kind = STARTUP_JIT };
	struct cursor c = event->payload;
	struct bytes name = { 0 };
	bool is_entry;
	uint64_t id = cursor_u64(&c);

	if (!find_begun(startup, event->event->thread_index, id, STARTUP_JIT))
		return 0; /* precompiled code, or compiled before the selected time */
	cursor_skip(&c, 8 + 8 + 4 + 4 + 4);
	bool is_whole = read_method(&c, &name, &is_entry);
	if (is_whole && !name.failed)
		mark.text = strtab_add(&startup->texts, (const char *)name.data, name.len);
	bool failed = name.failed;
	bytes_done(&name);
	return failed ? -ENOMEM : is_whole ? end(startup, event, id, &mark) : 0;
}

/* R2RGetEntryPoint: u64 method, names, ... */
static int take_entry_point(struct startup *startup, struct startup_process *process,
	const struct runtime_event *event)
{
	const struct startup_mark mark = {
		.process = event->process, .kind = STARTUP_R2R, .at_ns = event->at_ns
	};
	struct cursor c = event->payload;

	cursor_skip(&c, 8);
	return take_first_call(process, event, &c) ? add_mark(startup, &mark) : 0;
}

/* AssemblyLoadStart: u16 instance, full name, ...: the runtime looks for it. */
static int take_assembly_begin(struct startup *startup, const struct runtime_event *event)
{
	struct cursor c = event->payload;

	cursor_skip(&c, 2);
	uint32_t name = read_assembly(startup, &c);
	return name ? begin(startup, event, name, STARTUP_ASSEMBLY) : 0;
}

/* AssemblyLoad: u64 assembly, u64 domain, u64 binding, u32 flags, full name: it is loaded. */
static int take_assembly(struct startup *startup, const struct runtime_event *event)
{
	struct startup_mark mark = { .process = event->process, .kind = STARTUP_ASSEMBLY };
	struct cursor c = event->payload;

	cursor_skip(&c, 8 + 8 + 8 + 4);
	mark.text = read_assembly(startup, &c);
	return mark.text ? end(startup, event, mark.text, &mark) : 0;
}

static int take_sample(struct startup *startup, struct startup_process *process,
	const struct runtime_event *event)
{
	struct startup_mark mark = { .process = event->process,
		.kind = STARTUP_SAMPLE,
		.at_ns = event->at_ns,
		.lasts_ns = event->event->value };
	int error = event_stacks_add(event->stacks, event->process, event->event, &mark.text);

	process->sampled = true;
	return error ? error : add_mark(startup, &mark);
}

static void take_request(struct startup_process *process, const struct runtime_event *event)
{
	switch (event->schema->event_id) {
	case SOURCE_ID_HOSTING_SERVER_READY:
		reach(process, STARTUP_READY, event->at_ns);
		break;
	case SOURCE_ID_HOSTING_REQUEST_START:
		reach(process, STARTUP_REQUEST, event->at_ns);
		break;
	default:
		if (process->reached[STARTUP_REQUEST])
			reach(process, STARTUP_ANSWER, event->at_ns);
		break;
	}
}

int startup_event(struct startup *startup, const struct runtime_event *event,
	const struct trace *trace)
{
	const struct schema *schema = event->schema;
	bool is_step = schema->provider_kind == PROVIDER_SPOOR;
	struct startup_process *process = find_process(startup, event->process);

	/* one that ran before the recording, or before its exec, has no start without such a step */
	if (!event->process ||
		(!process && !is_step && trace->processes.items[event->process].existed))
		return 0;
	process = process ? process : add_process(startup, event);
	if (!process)
		return -ENOMEM;
	if (is_step)
		return take_step(process, event);
	if (is_over(process, event->at_ns))
		return 0;
	if (schema->provider_kind == PROVIDER_OTHER) {
		take_request(process, event);
		return 0;
	}
	if (schema->kind == EVENT_SAMPLE)
		return take_sample(startup, process, event);
	switch (schema->event_id) {
	case CLR_ID_RuntimeInformationStart:
		reach(process, STARTUP_RUNTIME, event->at_ns);
		return 0;
	case CLR_ID_MethodJittingStarted:
		return take_jitting(startup, process, event);
	case CLR_ID_MethodLoadVerbose:
		return take_loaded(startup, event);
	case CLR_ID_R2RGetEntryPoint:
		return take_entry_point(startup, process, event);
	case CLR_ID_AssemblyLoadStart:
		return take_assembly_begin(startup, event);
	case CLR_ID_AssemblyLoad:
		return take_assembly(startup, event);
	default:
		return 0;
	}
}

/* ---- results ---- */

static int compare_marks(const void *a, const void *b)
{
	const struct startup_mark *x = a;
	const struct startup_mark *y = b;

	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (x->lasts_ns != y->lasts_ns)
		return x->lasts_ns > y->lasts_ns ? -1 : 1;
	return x->at_ns < y->at_ns ? -1 : x->at_ns > y->at_ns;
}

static int compare_processes(const void *a, const void *b)
{
	uint64_t x_ns = begin_of(a);
	uint64_t y_ns = begin_of(b);

	return x_ns < y_ns ? -1 : x_ns > y_ns;
}

static int compare_functions(const void *a, const void *b)
{
	const struct startup_function *x = a;
	const struct startup_function *y = b;

	if (x->cpu_ns != y->cpu_ns)
		return x->cpu_ns > y->cpu_ns ? -1 : 1;
	return x->function < y->function ? -1 : x->function > y->function;
}

enum startup_step startup_last_step(const struct startup_process *process)
{
	static const enum startup_step last[] = { STARTUP_READY, STARTUP_MAIN, STARTUP_RUNTIME,
		STARTUP_CORECLR, STARTUP_HOSTPOLICY, STARTUP_HOSTFXR };

	for (size_t i = 0; i < sizeof(last) / sizeof(last[0]); i++)
		if (process->reached[last[i]])
			return last[i];
	return STARTUP_EXEC;
}

/* Steps out of order are clock differences between the kernel's records and the runtime's events. */
static void set_phases(struct startup_process *process)
{
	uint64_t from_ns = 0;

	for (unsigned i = 0; i < STARTUP_STEPS; i++) {
		if (!process->reached[i])
			continue;
		if (process->at_ns[i] < from_ns)
			process->at_ns[i] = from_ns;
		from_ns = process->at_ns[i];
		if (process->phase_count) {
			struct startup_phase *before = &process->phases[process->phase_count - 1];
			before->to_ns = from_ns;
			before->until = (enum startup_step)i;
		}
		if (i == STARTUP_ANSWER)
			break;
		process->phases[process->phase_count++] =
			(struct startup_phase){ .step = (enum startup_step)i,
				.until = STARTUP_STEPS,
				.from_ns = from_ns,
				.to_ns = process->end_ns > from_ns ? process->end_ns : from_ns };
	}
}

static void set_end(struct startup_process *process, const struct trace *trace, uint64_t to_ns)
{
	const struct process *owner = &trace->processes.items[process->process];
	uint64_t begin_ns = trace->recording.sync_ns;

	process->end_ns = process->reached[STARTUP_ANSWER] ? process->at_ns[STARTUP_ANSWER] : to_ns;
	if (owner->end_ns > begin_ns && owner->end_ns - begin_ns < process->end_ns)
		process->end_ns = owner->end_ns - begin_ns;
	if (process->end_ns > begin_of(process) + STARTUP_MAX_NS)
		process->end_ns = begin_of(process) + STARTUP_MAX_NS;
}

static struct startup_phase *phase_at(struct startup_process *process, uint64_t at_ns)
{
	for (uint32_t i = process->phase_count; i-- > 0;)
		if (at_ns >= process->phases[i].from_ns)
			return at_ns < process->phases[i].to_ns ? &process->phases[i] : NULL;
	return NULL;
}

static bool is_managed(const struct startup_selection *s, const struct event_stack *stack)
{
	for (uint32_t i = 0; i < stack->frame_count; i++) {
		uint8_t kind =
			s->names->functions.items[s->stacks->functions.items[stack->at + i]].kind;
		if (kind == FUNCTION_JIT || kind == FUNCTION_READYTORUN)
			return true;
	}
	return false;
}

static int add_function(struct startup *startup, struct startup_process *process, struct map *index,
	uint32_t function, uint64_t cpu_ns)
{
	uint32_t known = map_get(index, function);

	if (!known) {
		const struct startup_function fresh = { .function = function };
		if (!vec_add(&startup->functions, fresh) ||
			!map_put(index, function, startup->functions.count))
			return -ENOMEM;
		known = startup->functions.count;
		process->function_count++;
	}
	startup->functions.items[known - 1].cpu_ns += cpu_ns;
	return 0;
}

static int take_samples(struct startup *startup, struct startup_process *process,
	const struct startup_selection *s)
{
	struct map index = { 0 };
	int error = 0;

	process->function_at = startup->functions.count;
	for (uint32_t i = 0; i < process->mark_count && !error; i++) {
		const struct startup_mark *mark = &startup->marks.items[process->mark_at + i];
		if (mark->kind != STARTUP_SAMPLE || !mark->text || !phase_at(process, mark->at_ns))
			continue;
		const struct event_stack *stack = &s->stacks->items.items[mark->text];
		if (is_managed(s, stack) &&
			(!process->runs_managed || mark->at_ns < process->managed_ns)) {
			process->runs_managed = true;
			process->managed_ns = mark->at_ns;
		}
		if (stack->own)
			error = add_function(startup, process, &index, stack->own, mark->lasts_ns);
	}
	map_done(&index);
	if (process->function_count > 1)
		qsort(&startup->functions.items[process->function_at], process->function_count,
			sizeof(startup->functions.items[0]), compare_functions);
	return error;
}

static bool is_wanted(const struct startup_process *process, const struct startup_selection *s)
{
	unsigned steps = 0;
	bool is_start = false; /* a request alone is only the first one of the recording */
	uint64_t begin_ns = begin_of(process);

	for (unsigned i = 0; i < STARTUP_STEPS; i++) {
		steps += process->reached[i];
		is_start |= process->reached[i] && i <= STARTUP_RUNTIME;
	}
	return steps >= 2 && is_start && begin_ns >= s->from_ns && begin_ns < s->to_ns &&
	       profile_wants_process(s->profile, process->process);
}

static int finish_process(struct startup *startup, struct startup_process *process,
	const struct startup_selection *s)
{
	set_end(process, s->profile->trace, s->to_ns);
	set_phases(process);
	while (process->mark_at < startup->marks.count &&
		startup->marks.items[process->mark_at].process < process->process)
		process->mark_at++;
	for (uint32_t i = process->mark_at; i < startup->marks.count; i++) {
		const struct startup_mark *mark = &startup->marks.items[i];
		if (mark->process != process->process)
			break;
		process->mark_count++;
		struct startup_phase *phase = phase_at(process, mark->at_ns);
		if (!phase)
			continue;
		phase->count[mark->kind]++;
		phase->total_ns[mark->kind] += mark->lasts_ns;
	}
	return take_samples(startup, process, s);
}

int startup_finish(struct startup *startup, const struct startup_selection *selection)
{
	uint32_t kept = 0;
	int error = 0;

	vec_done(&startup->begun);
	if (startup->marks.count > 1)
		qsort(startup->marks.items, startup->marks.count, sizeof(startup->marks.items[0]),
			compare_marks);
	for (uint32_t i = 0; i < startup->processes.count; i++)
		if (is_wanted(&startup->processes.items[i], selection))
			startup->processes.items[kept++] = startup->processes.items[i];
	startup->processes.count = kept;
	if (kept > 1)
		qsort(startup->processes.items, kept, sizeof(startup->processes.items[0]),
			compare_processes);
	for (uint32_t i = 0; i < kept && !error; i++)
		error = finish_process(startup, &startup->processes.items[i], selection);
	return error;
}

const char *startup_step_name(enum startup_step step)
{
	static const char *const names[STARTUP_STEPS] = { "exec", "hostfxr", "hostpolicy",
		"coreclr", "runtime", "main", "ready", "request", "answer" };

	return step < STARTUP_STEPS ? names[step] : "end";
}

void startup_done(struct startup *startup)
{
	strtab_done(&startup->texts);
	vec_done(&startup->processes);
	vec_done(&startup->marks);
	vec_done(&startup->functions);
	vec_done(&startup->begun);
}
