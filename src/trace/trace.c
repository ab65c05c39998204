/* See trace.h. */
#include "trace/trace.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/bytes.h"

/* The reader cuts a longer chain at the root's end; the file cannot hold more than 8190 frames. */
#define STACK_FRAMES_MAX (1u << 16)

int trace_init(struct trace *trace)
{
	*trace = (struct trace){ 0 };
	/* Item 0 of each table; the kernel's mappings hang on process 0. */
	if (!vec_push(&trace->processes) || !vec_push(&trace->threads) ||
		!vec_push(&trace->mappings) || !vec_push(&trace->symbols) ||
		!vec_push(&trace->schemas) || !vec_push(&trace->losses) ||
		!vec_push(&trace->notices) || !vec_push(&trace->clock_offsets) ||
		!vec_push(&trace->cpu_grants) || !vec_push(&trace->stacks.stacks)) {
		trace_done(trace);
		return -ENOMEM;
	}
	return 0;
}

void trace_done(struct trace *trace)
{
	for (uint32_t i = 0; i < trace->processes.count; i++) {
		vec_done(&trace->processes.items[i].mappings);
		vec_done(&trace->processes.items[i].codes);
	}
	for (uint32_t i = 0; i < trace->schemas.count; i++)
		schema_done(&trace->schemas.items[i]);
	strtab_done(&trace->strings);
	vec_done(&trace->processes);
	vec_done(&trace->threads);
	vec_done(&trace->mappings);
	vec_done(&trace->symbols);
	vec_done(&trace->identities);
	vec_done(&trace->schemas);
	vec_done(&trace->losses);
	vec_done(&trace->notices);
	vec_done(&trace->clock_offsets);
	vec_done(&trace->cpu_grants);
	stack_table_done(&trace->stacks);
	line_table_done(&trace->lines);
	code_bytes_done(&trace->code);
	map_done(&trace->by_pid);
	map_done(&trace->by_tid);
	map_done(&trace->mapping_by_id);
	*trace = (struct trace){ 0 };
}

const char *trace_text(const struct trace *trace, uint32_t index)
{
	return strtab_get(&trace->strings, index);
}

void trace_set_options(struct trace *trace, const char *json)
{
	trace->recording.options = trace_add_text(trace, json);
	session_options_read(json, strlen(json), &trace->recording.session);
}

uint32_t trace_add_text(struct trace *trace, const char *text)
{
	return text ? strtab_add_z(&trace->strings, text) : 0;
}

uint32_t trace_add_foreign_provider(struct trace *trace, const char *name, size_t len)
{
	const char *own = provider_name(PROVIDER_SPOOR);
	static const char mark[] = " (of a program)";
	bool taken = len >= strlen(own) && memcmp(name, own, strlen(own)) == 0;

	for (int kind = PROVIDER_UNIVERSAL_SYSTEM; !taken && kind <= PROVIDER_SPOOR; kind++)
		taken = strlen(provider_name((enum provider_kind)kind)) == len &&
			memcmp(name, provider_name((enum provider_kind)kind), len) == 0;
	uint32_t index = strtab_add(&trace->strings, name, len);
	if (!taken || !index)
		return index;
	/* The text of an index may move when another is added: so it is copied. */
	struct bytes marked = { 0 };
	bytes_add(&marked, name, len);
	bytes_add(&marked, mark, sizeof(mark) - 1);
	index = marked.failed ? 0
			      : strtab_add(&trace->strings, (const char *)marked.data, marked.len);
	bytes_done(&marked);
	return index;
}

/*
 * The newest thread of a tid has the key tid, the thread of one process (process, tid), where the
 * process is never 0: equal tids in two pid namespaces do not replace each other.
 */
static uint64_t thread_key(uint32_t process, uint32_t tid)
{
	return (uint64_t)process << 32 | tid;
}

static uint32_t add_thread(struct trace *trace, uint32_t process, uint32_t tid)
{
	struct thread *thread = vec_push(&trace->threads);

	if (!thread)
		return 0;
	thread->process = process;
	thread->tid = tid;
	uint32_t index = trace->threads.count - 1;
	if (!map_put(&trace->by_tid, tid, index) ||
		!map_put(&trace->by_tid, thread_key(process, tid), index))
		return 0;
	return index;
}

uint32_t trace_find_process(const struct trace *trace, uint32_t pid)
{
	return map_get(&trace->by_pid, pid);
}

uint32_t trace_new_process(struct trace *trace, uint32_t pid)
{
	struct process *process = vec_push(&trace->processes);

	if (!process)
		return 0;
	uint32_t index = trace->processes.count - 1;
	process->pid = pid;
	uint32_t main_thread = add_thread(trace, index, pid);
	if (!main_thread || !map_put(&trace->by_pid, pid, index)) {
		trace->processes.count--;
		return 0;
	}
	trace->processes.items[index].main_thread = main_thread;
	return index;
}

uint32_t trace_process(struct trace *trace, uint32_t pid)
{
	uint32_t index = trace_find_process(trace, pid);

	return index ? index : trace_new_process(trace, pid);
}

void trace_forget_thread(struct trace *trace, uint32_t thread)
{
	const struct thread *row = &trace->threads.items[thread];

	map_remove(&trace->by_tid, row->tid, thread);
	map_remove(&trace->by_tid, thread_key(row->process, row->tid), thread);
}

void trace_forget_process(struct trace *trace, uint32_t process)
{
	const struct process *row = &trace->processes.items[process];

	trace_forget_thread(trace, row->main_thread);
	map_remove(&trace->by_pid, row->pid, process);
}

bool trace_reuse_thread(struct trace *trace, uint32_t thread, uint32_t process, uint32_t tid)
{
	trace->threads.items[thread] = (struct thread){ .process = process, .tid = tid };
	return map_put(&trace->by_tid, tid, thread) &&
	       map_put(&trace->by_tid, thread_key(process, tid), thread);
}

uint32_t trace_thread(struct trace *trace, uint32_t pid, uint32_t tid)
{
	uint32_t index = map_get(&trace->by_tid, tid);
	uint32_t process = trace_process(trace, pid);

	if (!process)
		return 0;
	if (index && trace->threads.items[index].process == process)
		return index;
	index = map_get(&trace->by_tid, thread_key(process, tid));
	return index ? index : add_thread(trace, process, tid);
}

uint32_t trace_add_mapping(struct trace *trace, uint32_t process)
{
	assert(process < trace->processes.count);
	struct mapping *mapping = vec_push(&trace->mappings);

	if (!mapping)
		return 0;
	mapping->process = process;
	uint32_t index = trace->mappings.count - 1;
	if (!vec_add(&trace->processes.items[process].mappings, index)) {
		trace->mappings.count--;
		return 0;
	}
	return index;
}

static uint32_t find_in(const struct trace *trace, uint32_t process, uint64_t address)
{
	const struct process *p = &trace->processes.items[process];

	for (uint32_t i = p->mappings.count; i-- > 0;) {
		uint32_t index = p->mappings.items[i];
		const struct mapping *mapping = &trace->mappings.items[index];
		if (address >= mapping->begin && address < mapping->end)
			return index;
	}
	return 0;
}

uint32_t trace_find_mapping(const struct trace *trace, uint32_t process, uint64_t address)
{
	uint32_t index = process < trace->processes.count ? find_in(trace, process, address) : 0;

	return index || !process ? index : find_in(trace, 0, address);
}

/* "V Value, [S Names": letter by letter as spoor_events.def explains them. */
static bool parse_fields(struct trace *trace, struct schema *schema, const char *text)
{
	static const uint8_t types[128] = {
		['V'] = FIELD_VARUINT,
		['Z'] = FIELD_VARINT,
		['S'] = FIELD_TEXT16,
		['B'] = FIELD_BOOL,
		['G'] = FIELD_GUID,
		['1'] = FIELD_U8,
		['4'] = FIELD_U32,
		['8'] = FIELD_U64,
		['D'] = FIELD_F64,
	};

	while (*text) {
		struct field *field = vec_push(&schema->fields);
		if (!field)
			return false;
		if (*text == '[') {
			field->type = FIELD_ARRAY;
			text++;
			field->element = types[*text & 0x7f];
		} else {
			field->type = types[*text & 0x7f];
		}
		assert(field->type && (field->type != FIELD_ARRAY || field->element));
		text += 2;
		size_t len = strcspn(text, ",");
		field->name = strtab_add(&trace->strings, text, len);
		text += len;
		if (*text)
			text += 2;
	}
	return true;
}

static uint32_t add_known_schema(struct trace *trace, enum known_event known)
{
	const struct known_event_info *info = &known_events[known];
	struct schema *schema = vec_push(&trace->schemas);
	if (!schema)
		return 0;
	schema->provider = trace_add_text(trace, provider_name(info->provider));
	schema->name = trace_add_text(trace, info->name);
	schema->event_id = info->event_id;
	schema->provider_kind = (uint8_t)info->provider;
	schema->kind = info->kind;
	if (info->provider == PROVIDER_CLR || info->provider == PROVIDER_CLR_RUNDOWN) {
		/* The layout that trace/clr.c writes: version 1 of the verbose method events. */
		schema->version = 1;
		schema->level = 4;
	}
	const uint8_t *guid = provider_guid(info->provider);
	if (guid) {
		schema->has_guid = true;
		memcpy(schema->guid, guid, sizeof(schema->guid));
	}
	if (!parse_fields(trace, schema, info->fields)) {
		schema_done(schema);
		trace->schemas.count--;
		return 0;
	}
	return trace->schemas.count - 1;
}

uint32_t trace_known_schema(struct trace *trace, enum known_event known)
{
	uint32_t *index = &trace->known_schemas[known];
	bool full = trace->strings.full;

	if (*index)
		return *index;
	/* These names are few, and an event without them cannot be read: a full table takes them too. */
	trace->strings.full = false;
	*index = add_known_schema(trace, known);
	trace->strings.full = full;
	return *index;
}

uint32_t stack_table_intern(struct stack_table *table, const uint64_t *frames, uint32_t count)
{
	if (!count)
		return 0;
	if (count > STACK_FRAMES_MAX)
		count = STACK_FRAMES_MAX;
	if (!table->stacks.count && !vec_push(&table->stacks))
		return 0;
	size_t size = count * sizeof(*frames);
	uint64_t hash = hash_bytes(frames, size);

	for (struct map_walk w = map_find(&table->index, hash); w.value; map_next(&w)) {
		const struct stack *stack = &table->stacks.items[w.value];
		if (stack->count == count &&
			memcmp(table->frames.items + stack->at, frames, size) == 0)
			return w.value;
	}
	if (!vec_reserve(&table->frames, count))
		return 0;
	struct stack *stack = vec_push(&table->stacks);
	if (!stack)
		return 0;
	uint32_t index = table->stacks.count - 1;
	if (!map_add(&table->index, hash, index)) {
		table->stacks.count--;
		return 0;
	}
	stack->at = table->frames.count;
	stack->count = count;
	memcpy(table->frames.items + table->frames.count, frames, size);
	table->frames.count += count;
	return index;
}

const uint64_t *stack_table_get(const struct stack_table *table, uint32_t index,
	uint32_t *ret_count)
{
	if (!index || index >= table->stacks.count) {
		*ret_count = 0;
		return NULL;
	}
	const struct stack *stack = &table->stacks.items[index];
	*ret_count = stack->count;
	return table->frames.items + stack->at;
}

size_t stack_table_size_bytes(const struct stack_table *table)
{
	return table->stacks.capacity * sizeof(struct stack) +
	       table->frames.capacity * sizeof(uint64_t) + map_size_bytes(&table->index);
}

void stack_table_done(struct stack_table *table)
{
	vec_done(&table->stacks);
	vec_done(&table->frames);
	map_done(&table->index);
}

/* Whether a control group is `ancestor` or below it. */
static bool is_below(const char *path, const char *ancestor)
{
	size_t len = strlen(ancestor);

	return len > 1 && strncmp(path, ancestor, len) == 0 && (!path[len] || path[len] == '/');
}

const struct cpu_grant *trace_cpu_grant(const struct trace *trace, uint32_t process)
{
	const struct process *p = &trace->processes.items[process];
	const struct cpu_grant *found = NULL;

	for (uint32_t i = 1; i < trace->cpu_grants.count; i++) {
		const struct cpu_grant *grant = &trace->cpu_grants.items[i];
		if ((p->container && grant->container == p->container) ||
			is_below(trace_text(trace, p->cgroup), trace_text(trace, grant->path)))
			found = grant;
	}
	if (!found && trace->cpu_grants.count == 2 &&
		trace->recording.session.scope != SESSION_MACHINE)
		found = &trace->cpu_grants.items[1];
	return found;
}
