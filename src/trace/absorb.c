/* See absorb.h. */
#include "trace/absorb.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/cursor.h"
#include "base/diag.h"
#include "base/text.h"
#include "machine/command_line.h"
#include "trace/clr_event.h"
#include "trace/event.h"
#include "trace/loss_words.h"
#include "trace/spoor_payload.h"
#include "trace/trace.h"

#define OLDER_MAX    64u /* ranges with the same begin that one removal looks at */
#define ID_MASK      (~UINT64_C(0) >> 2)
#define KEY_METADATA (UINT64_C(1) << 62)
#define KEY_MODULE   (UINT64_C(2) << 62)
#define KEY_CODE     (UINT64_C(3) << 62)

/* Process of the event's thread; 0 none. */
static uint32_t process_of(const struct trace *trace, const struct event *event)
{
	return event->thread_index < trace->threads.count
		       ? trace->threads.items[event->thread_index].process
		       : 0;
}

static int absorb_process(struct trace *trace, const struct event *event, bool existed)
{
	struct process *process = &trace->processes.items[process_of(trace, event)];
	struct payload_process read;
	int r = payload_read_process(event->payload, event->payload_size, &trace->strings, &read);

	if (r < 0)
		return r;
	process->name = trace_add_text(trace, read.name);
	if (read.inner_pid)
		process->inner_pid = (uint32_t)read.inner_pid;
	if (*read.name_space && strcmp(read.name_space, "Unknown") != 0)
		process->container = trace_add_text(trace, read.name_space);
	if (!process->begin_ns) {
		process->begin_ns = event->time_ns;
		process->existed = existed;
	}
	return 1;
}

static int absorb_mapping(struct trace *trace, const struct event *event)
{
	uint32_t process = process_of(trace, event);
	struct payload_mapping read;
	int r = payload_read_mapping(event->payload, event->payload_size, &trace->strings, &read);

	if (r < 0)
		return r;
	uint64_t key = read.id & ID_MASK;
	uint32_t index = map_get(&trace->mapping_by_id, key);
	struct mapping *mapping = index ? &trace->mappings.items[index] : NULL;
	if (mapping && mapping->begin == read.begin) {
		/*
		 * It has grown; or another process names it: it is the kernel's, in all processes.
		 */
		if (read.end > mapping->end)
			mapping->end = read.end;
		if (mapping->process && mapping->process != process) {
			mapping->process = 0;
			if (!vec_add(&trace->processes.items[0].mappings, index))
				return -ENOMEM;
		}
		return 1;
	}
	index = trace_add_mapping(trace, process);
	if (!index || !map_put(&trace->mapping_by_id, key, index))
		return -ENOMEM;
	mapping = &trace->mappings.items[index];
	mapping->begin = read.begin;
	mapping->end = read.end;
	mapping->file_offset = read.file_offset;
	mapping->from_ns = event->time_ns;
	mapping->id = read.id;
	mapping->path = trace_add_text(trace, read.path);
	uint32_t identity = read.metadata_id ? map_get(&trace->mapping_by_id,
						       KEY_METADATA | (read.metadata_id & ID_MASK))
					     : 0;
	if (identity) {
		const struct image_identity *known = &trace->identities.items[identity - 1];
		mapping->build_id = known->build_id;
		mapping->text_vaddr = known->text_vaddr;
		mapping->text_offset = known->text_offset;
	}
	return 1;
}

/* The value after a key in flat JSON, a number or the begin of a text; NULL: no such key. */
static const char *find_value(const char *json, const char *quoted_key)
{
	const char *at = strstr(json, quoted_key);

	if (!at)
		return NULL;
	at += strlen(quoted_key);
	at += strspn(at, " \t:");
	return *at == '"' ? at + 1 : at;
}

static uint64_t find_number(const char *json, const char *quoted_key)
{
	const char *at = find_value(json, quoted_key);

	return at ? strtoull(at, NULL, 0) : 0;
}

static int absorb_mapping_metadata(struct trace *trace, const struct event *event)
{
	struct payload_mapping_metadata read;
	int r = payload_read_mapping_metadata(event->payload, event->payload_size, &trace->strings,
		&read);

	if (r < 0)
		return r;
	const char *hex = find_value(read.symbols, "\"build_id\"");
	size_t len = hex ? strspn(hex, "0123456789abcdef") : 0;
	if (!len)
		return 1;
	struct image_identity identity = {
		.build_id = strtab_add(&trace->strings, hex, len),
		.text_vaddr = find_number(read.symbols, "\"p_vaddr\""),
		.text_offset = find_number(read.symbols, "\"p_offset\""),
	};
	if (!vec_add(&trace->identities, identity) ||
		!map_put(&trace->mapping_by_id, KEY_METADATA | (read.id & ID_MASK),
			trace->identities.count))
		return -ENOMEM;
	return 1;
}

static int absorb_symbol(struct trace *trace, const struct event *event)
{
	struct payload_symbol read;
	int r = payload_read_symbol(event->payload, event->payload_size, &trace->strings, &read);

	if (r < 0)
		return r;
	if (read.end <= read.begin)
		return 1; /* zeroed addresses of a kernel that hides them */
	struct symbol *symbol = vec_push(&trace->symbols);
	if (!symbol)
		return -ENOMEM;
	symbol->begin = read.begin;
	symbol->end = read.end;
	symbol->mapping_id = read.mapping_id;
	symbol->name = strtab_add(&trace->strings, read.name, read.name_len);
	return 1;
}

static int absorb_facts(struct trace *trace, const struct event *event)
{
	struct process *process = &trace->processes.items[process_of(trace, event)];
	struct payload_process_facts read;
	const char *arguments[PAYLOAD_ARGUMENTS_MAX];
	cleanup(bytes_done) struct bytes joined = { 0 };
	int r = payload_read_process_facts(event->payload, event->payload_size, &trace->strings,
		arguments, &read);

	if (r < 0)
		return r;
	process->parent_pid = read.parent_pid > 0 ? (uint32_t)read.parent_pid : 0;
	process->uid = (uint32_t)read.uid;
	if (read.inner_pid)
		process->inner_pid = (uint32_t)read.inner_pid;
	process->executable = trace_add_text(trace, read.executable);
	if (!process->name)
		process->name = trace_add_text(trace, read.command);
	if (*read.container)
		process->container = trace_add_text(trace, read.container);
	if (*read.cgroup)
		process->cgroup = trace_add_text(trace, read.cgroup);
	for (size_t i = 0; i < read.argument_count; i++) {
		if (i)
			bytes_u8(&joined, ' ');
		bytes_text(&joined, arguments[i]);
	}
	if (joined.len)
		process->command =
			strtab_add(&trace->strings, (const char *)joined.data, joined.len);
	return 1;
}

static uint8_t runtime_of(const char *kind)
{
	static const char *const names[] = { [RUNTIME_CORECLR] = "coreclr",
		[RUNTIME_NATIVEAOT] = "nativeaot",
		[RUNTIME_MONO] = "mono",
		[RUNTIME_LIBSPOOR] = "libspoor" };

	for (size_t i = 1; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(names[i], kind) == 0)
			return (uint8_t)i;
	return RUNTIME_NONE;
}

static int absorb_runtime(struct trace *trace, const struct event *event)
{
	struct process *process = &trace->processes.items[process_of(trace, event)];
	struct payload_runtime read;
	int r = payload_read_runtime(event->payload, event->payload_size, &trace->strings, &read);

	if (r < 0)
		return r;
	process->runtime_kind = runtime_of(read.kind);
	process->runtime_version = trace_add_text(trace, read.version);
	process->runtime_reason = read.reachable ? 0 : trace_add_text(trace, read.reason);
	process->runtime_sessions = trace_add_text(trace, read.sessions);
	return 1;
}

static int absorb_thread_name(struct trace *trace, const struct event *event)
{
	struct payload_thread_name read;
	int r = payload_read_thread_name(event->payload, event->payload_size, &trace->strings,
		&read);

	if (r < 0)
		return r;
	struct thread *thread = &trace->threads.items[event->thread_index];
	struct process *process = &trace->processes.items[thread->process];

	thread->name = trace_add_text(trace, read.name);
	/* a process is named as its main thread, as in ps */
	if (thread->process && thread->tid == process->pid)
		process->name = thread->name;
	return 1;
}

static uint64_t code_key(uint32_t process, uint64_t begin)
{
	return KEY_CODE | (hash_u64(begin ^ hash_u64(process)) & ID_MASK);
}

static int add_code(struct trace *trace, uint32_t process, const struct code_range *range)
{
	struct process *p = &trace->processes.items[process];
	uint32_t older = map_get(&trace->mapping_by_id, code_key(process, range->begin));

	if (!vec_add(&p->codes, *range) ||
		!map_put(&trace->mapping_by_id, code_key(process, range->begin), p->codes.count))
		return -ENOMEM;
	/* a key may be that of another process's range */
	if (older && older < p->codes.count && p->codes.items[older - 1].begin == range->begin)
		vec_last(&p->codes)->older = older;
	return 1;
}

/*
 * Which range a CodeRemoved is about: removals come in the order in which the ranges ended, but a range
 * may be in the file before its predecessor's removal. So it is the oldest one that exists.
 */
static struct code_range *find_removed(struct trace *trace, uint32_t process, uint64_t begin,
	uint64_t end)
{
	struct process *p = &trace->processes.items[process];
	uint32_t at = map_get(&trace->mapping_by_id, code_key(process, begin));
	struct code_range *found = NULL;

	if (at > p->codes.count)
		return NULL;
	for (unsigned i = 0; at && i < OLDER_MAX; i++, at = p->codes.items[at - 1].older) {
		struct code_range *range = &p->codes.items[at - 1];
		if (range->begin == begin && range->removed_epoch == UINT32_MAX &&
			(!found || range->end == end))
			found = range;
	}
	return found;
}

static int absorb_il_offsets(struct trace *trace, const struct event *event)
{
	uint32_t native[PAYLOAD_LINES_MAX];
	uint32_t il[PAYLOAD_LINES_MAX];
	struct payload_il_offsets read;
	int r = payload_read_il_offsets(event->payload, event->payload_size, &trace->strings,
		native, il, &read);

	if (r < 0)
		return r;
	struct line_body body = { .mapping_id = read.mapping_id,
		.begin = read.begin,
		.method_id = read.method_id,
		.token = read.token,
		.assembly = trace_add_text(trace, read.assembly) };
	memcpy(body.pdb_id, read.pdb_id, sizeof(body.pdb_id));
	return line_table_add_body(&trace->lines, &body, native, il, (uint32_t)read.count)
		       ? 0
		       : -ENOMEM;
}

static int absorb_code_bytes(struct trace *trace, const struct event *event)
{
	struct payload_code_bytes read;

	if (!trace->code.wanted)
		return 0;
	int r = payload_read_code_bytes(event->payload, event->payload_size, &read);

	if (r < 0)
		return r;
	const struct code_copy body = { .mapping_id = read.mapping_id,
		.begin = read.begin,
		.method_id = read.method_id,
		.process = process_of(trace, event) };
	return code_bytes_add(&trace->code, &body, read.offset, read.bytes, (uint32_t)read.size)
		       ? 0
		       : -ENOMEM;
}

static int absorb_code_added(struct trace *trace, const struct event *event)
{
	struct payload_code_added read;
	int r = payload_read_code_added(event->payload, event->payload_size, &trace->strings,
		&read);

	if (r < 0)
		return r;
	if (read.end <= read.begin)
		return -EBADMSG;
	struct code_range range = {
		.begin = read.begin,
		.end = read.end,
		.mapping_id = read.mapping_id,
		.method_id = read.method_id,
		.name = trace_add_text(trace, read.name),
		.module = trace_add_text(trace, read.module),
		.removed_epoch = UINT32_MAX,
		.kind = read.kind <= CODE_OSR ? (uint8_t)read.kind : CODE_UNKNOWN,
		.tier = read.tier <= TIER_1_INSTRUMENTED ? (uint8_t)read.tier : TIER_UNKNOWN,
	};
	return add_code(trace, process_of(trace, event), &range);
}

static int absorb_code_removed(struct trace *trace, const struct event *event)
{
	uint32_t process = process_of(trace, event);
	struct process *p = &trace->processes.items[process];
	struct payload_code_removed removed;
	int r = payload_read_code_removed(event->payload, event->payload_size, &trace->strings,
		&removed);

	if (r < 0)
		return r;
	p->code_epoch++;
	struct code_range *range = find_removed(trace, process, removed.begin, removed.end);
	if (range)
		range->removed_epoch = p->code_epoch;
	return 1;
}

static int absorb_loss(struct trace *trace, const struct event *event)
{
	struct payload_loss read;
	int r = payload_read_loss(event->payload, event->payload_size, &trace->strings, &read);

	if (r < 0)
		return r;
	struct loss *loss = vec_push(&trace->losses);
	if (!loss)
		return -ENOMEM;
	loss->source = trace_add_text(trace, read.source);
	loss->unit = trace_add_text(trace, read.unit);
	loss->count = read.count;
	loss->pid = (uint32_t)read.pid;
	loss->cpu = read.cpu >= 0 && read.cpu <= INT32_MAX ? (int32_t)read.cpu : -1;
	loss->first_ns = read.first_ns;
	loss->last_ns = read.last_ns;
	return 1;
}

static int absorb_notice(struct trace *trace, const struct event *event)
{
	struct payload_notice read;
	uint32_t process = process_of(trace, event);
	int r = payload_read_notice(event->payload, event->payload_size, &trace->strings, &read);

	if (r < 0)
		return r;
	struct notice *notice = vec_push(&trace->notices);
	if (!notice)
		return -ENOMEM;
	notice->severity = (uint32_t)read.severity;
	notice->code = trace_add_text(trace, read.code);
	notice->text = trace_add_text(trace, read.text);
	notice->remedy = trace_add_text(trace, read.remedy);
	notice->process = process == trace->recording.recorder_process ? 0 : process;
	return 1;
}

static int absorb_clock_offset(struct trace *trace, const struct event *event)
{
	struct payload_clock_offset read;
	uint32_t process = process_of(trace, event);
	int r = payload_read_clock_offset(event->payload, event->payload_size, &trace->strings,
		&read);

	if (r < 0)
		return r;
	struct clock_offset *offset = vec_push(&trace->clock_offsets);
	if (!offset)
		return -ENOMEM;
	offset->source = trace_add_text(trace, read.source);
	offset->process = process == trace->recording.recorder_process ? 0 : process;
	offset->offset_ns = read.offset_ns;
	offset->error_ns = read.error_ns;
	offset->time_ns = event->time_ns;
	return 1;
}

/* Sent repeatedly, each time with the counts of the whole time so far: the last event counts. */
static int absorb_cpu_limit(struct trace *trace, const struct event *event)
{
	struct payload_cpu_limit read;
	int r = payload_read_cpu_limit(event->payload, event->payload_size, &trace->strings, &read);

	if (r < 0)
		return r;
	uint32_t path = trace_add_text(trace, read.path);
	struct cpu_grant *grant = NULL;

	for (uint32_t i = 1; i < trace->cpu_grants.count; i++)
		if (trace->cpu_grants.items[i].path == path)
			grant = &trace->cpu_grants.items[i];
	if (!grant)
		grant = vec_push(&trace->cpu_grants);
	if (!grant)
		return -ENOMEM;
	grant->path = path;
	grant->container = trace_add_text(trace, read.container);
	grant->quota_ns = read.quota_ns;
	grant->period_ns = read.period_ns;
	grant->periods = read.periods;
	grant->throttled_periods = read.throttled_periods;
	grant->throttled_ns = read.throttled_ns;
	return 1;
}

static int absorb_session(struct trace *trace, const struct event *event)
{
	struct recording *recording = &trace->recording;
	struct payload_session read;
	uint32_t process = process_of(trace, event);
	int r = payload_read_session(event->payload, event->payload_size, &trace->strings, &read);

	if (r < 0)
		return r;
	recording->tool_version = trace_add_text(trace, read.tool_version);
	recording->command_line = trace_add_text(trace, read.command_line);
	trace_set_options(trace, read.options ? read.options : "");
	recording->period_ns = read.period_ns;
	recording->cpu_recorded = (uint32_t)read.cpu_recorded;
	if (read.utc_ns)
		recording->utc_ns = read.utc_ns;
	if (process)
		recording->recorder_process = process;
	return 1;
}

int absorb_clock(struct trace *trace, const struct event *event)
{
	const struct schema *schema = &trace->schemas.items[event->schema_index];
	struct payload_session read;

	if (schema->provider_kind != PROVIDER_SPOOR || schema->event_id != ID_SPOOR_SESSION)
		return 0;
	int r = payload_read_session(event->payload, event->payload_size, &trace->strings, &read);

	if (r < 0)
		return r;
	if (read.utc_ns)
		trace->recording.utc_ns = read.utc_ns;
	return 1;
}

static int absorb_session_end(struct trace *trace, const struct event *event)
{
	struct recording *recording = &trace->recording;
	struct payload_count counts[PAYLOAD_COUNTS_MAX];
	struct payload_session_end read;
	int r = payload_read_session_end(event->payload, event->payload_size, &trace->strings,
		counts, &read);

	if (r < 0)
		return r;
	recording->end_reason = trace_add_text(trace, read.reason);
	memset(recording->counts, 0, sizeof(recording->counts));
	for (size_t i = 0; i < read.count_count; i++)
		recording->counts[session_count_of(counts[i].name)] = counts[i].count;
	recording->counts[SESSION_COUNT_UNKNOWN] = 0;
	return 1;
}

static int absorb_machine(struct trace *trace, const struct event *event)
{
	struct recording *recording = &trace->recording;
	struct payload_machine read;
	int r = payload_read_machine(event->payload, event->payload_size, &trace->strings, &read);

	if (r < 0)
		return r;
	recording->host = trace_add_text(trace, read.host);
	recording->kernel = trace_add_text(trace, read.kernel);
	recording->system = trace_add_text(trace, read.system);
	recording->architecture = trace_add_text(trace, read.architecture);
	recording->cpu_model = trace_add_text(trace, read.cpu_model);
	recording->cpu_online = (uint32_t)read.cpu_online;
	recording->cpu_possible = (uint32_t)read.cpu_possible;
	recording->memory_bytes = read.memory_bytes;
	recording->page_size_bytes = read.page_size_bytes;
	return 1;
}

/* A name from the command line, in which blanks separate the arguments: "shop" for "/opt/shop -x". */
static uint32_t name_of_command(struct trace *trace, uint32_t command)
{
	const char *line = trace_text(trace, command);
	cleanup(bytes_done) struct bytes args = { 0 };
	const char *name;
	size_t name_len;

	bytes_add(&args, line, strlen(line) + 1);
	if (args.failed)
		return 0;
	for (size_t i = 0; i < args.len; i++)
		args.data[i] = args.data[i] == ' ' ? 0 : args.data[i];
	const char *first = (const char *)args.data;
	const char *slash = strrchr(first, '/');

	name = slash ? slash + 1 : first;
	name_len = strlen(name);
	if (strcmp(name, "dotnet") == 0)
		(void)command_line_application(first, args.len, &name, &name_len);
	return strtab_add(&trace->strings, name, name_len);
}

static int absorb_process_info(struct trace *trace, const struct event *event)
{
	struct process *process = &trace->processes.items[process_of(trace, event)];
	struct payload_process_info read;
	int r = payload_read_process_info(event->payload, event->payload_size, &trace->strings,
		&read);

	if (r < 0)
		return r;
	if (!process->command)
		process->command = trace_add_text(trace, read.command_line);
	/* Streams of a runtime and of libspoor have no other name. */
	if (!process->name)
		process->name = name_of_command(trace, process->command);
	return 1;
}

static void add_text16(struct bytes *out, struct cursor *c)
{
	size_t units;
	const uint8_t *text = cursor_utf16z(c, &units);

	if (text)
		text_add_utf16(out, text, units);
}

static uint64_t module_key(uint32_t process, uint64_t module_id)
{
	return KEY_MODULE | (hash_u64(module_id ^ hash_u64(process)) & ID_MASK);
}

/* The file of the methods of this module, including those whose events came earlier. */
static int absorb_module(struct trace *trace, const struct event *event)
{
	struct cursor c = cursor_of(event->payload, event->payload_size);
	uint64_t module_id = cursor_u64(&c);
	uint32_t index = process_of(trace, event);
	struct process *process = &trace->processes.items[index];
	struct bytes path = { 0 };

	cursor_skip(&c, 8 + 4 + 4); /* AssemblyID, flags, reserved */
	add_text16(&path, &c);
	const char *text = bytes_z(&path);
	size_t at = strlen(text);

	while (at && text[at - 1] != '/' && text[at - 1] != '\\')
		at--;
	uint32_t name = strtab_add(&trace->strings, text + at, strlen(text + at));
	bool failed = path.failed;

	bytes_done(&path);
	if (failed || c.short_read || !name)
		/* a module without a file has no name */
		return failed ? -ENOMEM : c.short_read ? -EBADMSG : 1;
	if (!map_put(&trace->mapping_by_id, module_key(index, module_id), name))
		return -ENOMEM;
	for (uint32_t i = 0; i < process->codes.count; i++)
		if (process->codes.items[i].module_id == module_id &&
			!process->codes.items[i].module)
			process->codes.items[i].module = name;
	return 1;
}

/* Of other writers' files, and MethodDCEndVerbose of traces; our recordings have CodeAdded. */
static int absorb_method(struct trace *trace, const struct event *event)
{
	struct cursor c = cursor_of(event->payload, event->payload_size);
	struct bytes name = { 0 };
	struct bytes signature = { 0 };
	struct code_range range = { .method_id = cursor_u64(&c), .removed_epoch = UINT32_MAX };

	range.module_id = cursor_u64(&c);
	range.module = map_get(&trace->mapping_by_id,
		module_key(process_of(trace, event), range.module_id));
	range.begin = cursor_u64(&c);
	uint32_t size = cursor_u32(&c);
	cursor_skip(&c, 4); /* token */
	uint32_t flags = cursor_u32(&c);
	add_text16(&name, &c);
	bytes_text(&name, "::");
	add_text16(&name, &c);
	add_text16(&signature, &c);
	const char *arguments = strchr(bytes_z(&signature), '(');
	bytes_text(&name, arguments ? arguments : "()");
	range.end = range.begin + size;
	range.kind = flags & 1 ? CODE_DYNAMIC : flags & 8 ? CODE_JIT : CODE_READYTORUN;
	range.tier = (uint8_t)(flags >> 7 & 7);
	bool failed = name.failed;
	if (!failed)
		range.name = strtab_add(&trace->strings, (const char *)name.data, name.len);
	bytes_done(&name);
	bytes_done(&signature);
	if (failed)
		return -ENOMEM;
	if (c.short_read || range.end <= range.begin)
		return -EBADMSG;
	return add_code(trace, process_of(trace, event), &range);
}

/* Selects by the schema's provider and id. 0: the event does not change the tables. */
static int absorb_end_of_process(struct trace *trace, const struct event *event)
{
	struct process *process = &trace->processes.items[process_of(trace, event)];

	process->ended = true;
	process->end_ns = event->time_ns;
	return 1;
}

static int absorb_other_children(struct trace *trace, const struct event *event)
{
	struct process *process = &trace->processes.items[process_of(trace, event)];
	struct payload_other_children children;

	int error =
		payload_read_other_children(event->payload, event->payload_size, NULL, &children);
	if (error < 0)
		return error;
	process->other_children += children.count;
	process->other_lives_ns += children.life_ns;
	return 1;
}

static int absorb_known(struct trace *trace, const struct event *event, const struct schema *schema)
{
	switch (schema->provider_kind) {
	case PROVIDER_UNIVERSAL_SYSTEM:
		switch (schema->event_id) {
		case ID_SYSTEM_EXISTING_PROCESS:
			return absorb_process(trace, event, true);
		case ID_SYSTEM_PROCESS_CREATE:
			return absorb_process(trace, event, false);
		case ID_SYSTEM_PROCESS_EXIT:
			return absorb_end_of_process(trace, event);
		case ID_SYSTEM_PROCESS_MAPPING:
			return absorb_mapping(trace, event);
		case ID_SYSTEM_PROCESS_SYMBOL:
			return absorb_symbol(trace, event);
		case ID_SYSTEM_MAPPING_METADATA:
			return absorb_mapping_metadata(trace, event);
		default:
			return 0;
		}
	case PROVIDER_SPOOR:
		switch (schema->event_id) {
		case ID_SPOOR_SESSION:
			return absorb_session(trace, event);
		case ID_SPOOR_SESSION_END:
			return absorb_session_end(trace, event);
		case ID_SPOOR_MACHINE:
			return absorb_machine(trace, event);
		case ID_SPOOR_LOSS:
			return absorb_loss(trace, event);
		case ID_SPOOR_NOTICE:
			return absorb_notice(trace, event);
		case ID_SPOOR_CLOCK_OFFSET:
			return absorb_clock_offset(trace, event);
		case ID_SPOOR_CPU_LIMIT:
			return absorb_cpu_limit(trace, event);
		case ID_SPOOR_PROCESS_FACTS:
			return absorb_facts(trace, event);
		case ID_SPOOR_RUNTIME:
			return absorb_runtime(trace, event);
		case ID_SPOOR_OTHER_CHILDREN:
			return absorb_other_children(trace, event);
		case ID_SPOOR_PROCESS_END:
			return absorb_end_of_process(trace, event);
		case ID_SPOOR_THREAD_NAME:
			return absorb_thread_name(trace, event);
		case ID_SPOOR_CODE_ADDED:
			return absorb_code_added(trace, event);
		case ID_SPOOR_SOURCE_LINES:
			return payload_read_source_lines(event->payload, event->payload_size,
				&trace->strings, &trace->lines);
		case ID_SPOOR_IL_OFFSETS:
			return absorb_il_offsets(trace, event);
		case ID_SPOOR_CODE_BYTES:
			return absorb_code_bytes(trace, event);
		case ID_SPOOR_CODE_REMOVED:
			return absorb_code_removed(trace, event);
		default:
			return 0;
		}
	case PROVIDER_EVENTPIPE:
		return schema->event_id == ID_EVENTPIPE_PROCESS_INFO
			       ? absorb_process_info(trace, event)
			       : 0;
	case PROVIDER_CLR:
		if (trace->recording.tool_version)
			return 0;
		return schema->event_id == CLR_ID_MethodLoadVerbose ? absorb_method(trace, event)
		       : schema->event_id == CLR_ID_ModuleLoad      ? absorb_module(trace, event)
								    : 0;
	case PROVIDER_CLR_RUNDOWN:
		return schema->event_id == CLR_ID_MethodDCEndVerbose ? absorb_method(trace, event)
		       : schema->event_id == CLR_ID_ModuleDCEnd      ? absorb_module(trace, event)
								     : 0;
	default:
		return 0;
	}
}

int absorb_event(struct trace *trace, const struct event *event, struct diag *diag)
{
	if (event->schema_index >= trace->schemas.count ||
		event->thread_index >= trace->threads.count)
		return 0;
	const struct schema *schema = &trace->schemas.items[event->schema_index];
	int r = absorb_known(trace, event, schema);

	if (r == -EBADMSG)
		return diag_set(diag, r, "an event '%s' of %u bytes does not read",
			trace_text(trace, schema->name), event->payload_size);
	return r < 0 ? diag_set(diag, r, "cannot keep what an event says: %m") : r;
}

int absorb_end(struct trace *trace, uint64_t gap_count, uint64_t first_ns, uint64_t last_ns)
{
	/* Item 0 is unused. Loss events include what is missing by the sequence numbers. */
	if (!gap_count || trace->losses.count > 1)
		return 0;
	struct loss *loss = vec_push(&trace->losses);
	if (!loss)
		return -ENOMEM;
	loss->source = trace_add_text(trace, loss_source_word(LOSS_SEQUENCE));
	loss->unit = trace_add_text(trace, loss_unit_word(LOSS_EVENTS));
	loss->count = gap_count;
	loss->cpu = -1;
	loss->first_ns = first_ns;
	loss->last_ns = last_ns;
	return 0;
}
