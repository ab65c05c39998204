/* See spoor_payload.h. The layouts: spoor_events.def. */
#include "trace/spoor_payload.h"

#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cursor.h"
#include "base/json.h"
#include "base/strtab.h"
#include "base/text.h"

/* 30,000 UTF-16 units in all leave 5,000 of EVENT_PAYLOAD_MAX's bytes for the rest. */
#define UNITS_MAX      30000u
#define TEXT_UNITS_MAX 8000u
/* One UTF-8 text of the universal events; two of them stay under EVENT_PAYLOAD_MAX. */
#define UTF8_MAX      32000u
#define NAME_UTF8_MAX 60000u

struct writer {
	struct bytes *out;
	size_t units_left;
	bool cut;
};

static struct writer writer_of(struct bytes *out)
{
	return (struct writer){ .out = out, .units_left = UNITS_MAX };
}

static size_t count_units(const char *text, size_t len)
{
	size_t units = 0;

	for (size_t at = 0; at < len;)
		units += text_next_char(text, len, &at) >= 0x10000 ? 2 : 1;
	return units;
}

static void put_text(struct writer *w, const char *text)
{
	size_t len = text ? strlen(text) : 0;
	size_t max = w->units_left < TEXT_UNITS_MAX ? w->units_left : TEXT_UNITS_MAX;
	size_t before = w->out->len;

	if (len > max && count_units(text, len) > max)
		w->cut = true;
	bytes_utf16z(w->out, text ? text : "", len, max);
	if (!w->out->failed)
		w->units_left -= (w->out->len - before) / 2 - 1;
}

/* u16 length and valid UTF-8; true when it was cut. */
static bool put_utf8(struct bytes *out, const char *text, size_t len, size_t max)
{
	size_t length_at = out->len;
	size_t used = 0;
	bool cut = false;

	bytes_u16(out, 0);
	for (size_t at = 0; at < len;) {
		char piece[4];
		size_t ascii = at;
		while (ascii < len && ascii - at < max - used && (unsigned char)text[ascii] < 0x80)
			ascii++;
		bytes_add(out, text + at, ascii - at);
		used += ascii - at;
		at = ascii;
		if (at == len)
			break;
		size_t size = text_put_char(piece, text_next_char(text, len, &at));
		if (used + size > max) {
			cut = true;
			break;
		}
		bytes_add(out, piece, size);
		used += size;
	}
	bytes_set_u16(out, length_at, (uint16_t)used);
	return cut;
}

static bool put_utf8z(struct bytes *out, const char *text)
{
	return put_utf8(out, text ? text : "", text ? strlen(text) : 0, UTF8_MAX);
}

bool payload_process(struct bytes *out, const struct payload_process *process)
{
	bytes_varuint(out, process->inner_pid);
	bool cut = put_utf8z(out, process->name);
	return put_utf8z(out, process->name_space) || cut;
}

bool payload_mapping(struct bytes *out, const struct payload_mapping *mapping)
{
	bytes_varuint(out, mapping->id);
	bytes_varuint(out, mapping->begin);
	bytes_varuint(out, mapping->end);
	bytes_varuint(out, mapping->file_offset);
	bool cut = put_utf8z(out, mapping->path);
	bytes_varuint(out, mapping->metadata_id);
	return cut;
}

bool payload_mapping_metadata(struct bytes *out, const struct payload_mapping_metadata *metadata)
{
	bytes_varuint(out, metadata->id);
	bool cut = put_utf8z(out, metadata->symbols);
	return put_utf8z(out, metadata->version ? metadata->version : "{}") || cut;
}

bool payload_symbol(struct bytes *out, const struct payload_symbol *symbol)
{
	bytes_varuint(out, symbol->id);
	bytes_varuint(out, symbol->mapping_id);
	bytes_varuint(out, symbol->begin);
	/*
	 * TraceEvent ignores a symbol of one byte, such as Object's constructor (a single `ret`):
	 * add a byte of the padding after it.
	 */
	bytes_varuint(out, symbol->end - symbol->begin > 1 && symbol->end > symbol->begin
				   ? symbol->end - 1
				   : symbol->begin + 1);
	return put_utf8(out, symbol->name ? symbol->name : "", symbol->name ? symbol->name_len : 0,
		NAME_UTF8_MAX);
}

void payload_cpu(struct bytes *out, const struct payload_cpu *sample, uint64_t period_ns)
{
	bytes_varuint(out, sample->value);
	if (sample->weight_ns == period_ns && sample->count == 1 && !sample->flags)
		return;
	bytes_varuint(out, sample->weight_ns);
	bytes_varuint(out, sample->count);
	bytes_varuint(out, sample->flags);
}

void payload_cswitch(struct bytes *out, const struct payload_cswitch *change)
{
	bytes_varuint(out, change->value);
	bytes_varuint(out, change->state);
	bytes_varuint(out, change->ready_ns);
	bytes_varuint(out, change->waker_pid);
	bytes_varuint(out, change->waker_tid);
	bytes_varuint(out, change->flags);
}

bool payload_session(struct bytes *out, const struct payload_session *session)
{
	struct writer w = writer_of(out);

	bytes_varuint(out, session->event_set);
	put_text(&w, session->tool_version);
	put_text(&w, session->command_line);
	put_text(&w, session->options);
	bytes_varuint(out, session->period_ns);
	put_text(&w, session->clock);
	bytes_u64(out, session->utc_ns);
	bytes_varuint(out, session->cpu_recorded);
	return w.cut;
}

bool payload_session_end(struct bytes *out, const struct payload_session_end *end)
{
	struct writer w = writer_of(out);
	size_t count = end->count_count;

	if (count > PAYLOAD_COUNTS_MAX) {
		count = PAYLOAD_COUNTS_MAX;
		w.cut = true;
	}
	put_text(&w, end->reason);
	bytes_u16(out, (uint16_t)count);
	for (size_t i = 0; i < count; i++)
		put_text(&w, end->counts[i].name);
	bytes_u16(out, (uint16_t)count);
	for (size_t i = 0; i < count; i++)
		bytes_u64(out, end->counts[i].count);
	return w.cut;
}

bool payload_machine(struct bytes *out, const struct payload_machine *machine)
{
	struct writer w = writer_of(out);

	put_text(&w, machine->host);
	put_text(&w, machine->kernel);
	put_text(&w, machine->system);
	put_text(&w, machine->architecture);
	put_text(&w, machine->cpu_model);
	bytes_varuint(out, machine->cpu_online);
	bytes_varuint(out, machine->cpu_possible);
	bytes_u64(out, machine->memory_bytes);
	bytes_varuint(out, machine->page_size_bytes);
	put_text(&w, machine->boot_id);
	put_text(&w, machine->virtualization);
	bytes_varint(out, machine->perf_event_paranoid);
	return w.cut;
}

bool payload_loss(struct bytes *out, const struct payload_loss *loss)
{
	struct writer w = writer_of(out);

	put_text(&w, loss->source);
	put_text(&w, loss->unit);
	bytes_varuint(out, loss->count);
	bytes_varuint(out, loss->pid);
	bytes_varuint(out, loss->tid);
	bytes_varint(out, loss->cpu);
	put_text(&w, loss->provider);
	bytes_u64(out, loss->first_ns);
	bytes_u64(out, loss->last_ns);
	return w.cut;
}

bool payload_notice(struct bytes *out, const struct payload_notice *notice)
{
	struct writer w = writer_of(out);

	bytes_varuint(out, notice->severity);
	put_text(&w, notice->code);
	put_text(&w, notice->text);
	put_text(&w, notice->remedy);
	return w.cut;
}

bool payload_clock_offset(struct bytes *out, const struct payload_clock_offset *offset)
{
	struct writer w = writer_of(out);

	put_text(&w, offset->source);
	bytes_varint(out, offset->offset_ns);
	bytes_varuint(out, offset->error_ns);
	return w.cut;
}

bool payload_cpu_limit(struct bytes *out, const struct payload_cpu_limit *limit)
{
	struct writer w = writer_of(out);

	put_text(&w, limit->path);
	put_text(&w, limit->container);
	bytes_u64(out, limit->quota_ns);
	bytes_u64(out, limit->period_ns);
	bytes_varuint(out, limit->periods);
	bytes_varuint(out, limit->throttled_periods);
	bytes_u64(out, limit->throttled_ns);
	return w.cut;
}

void payload_cpu_state(struct bytes *out, const struct payload_cpu_state *state)
{
	bytes_varuint(out, state->cpu);
	bytes_varuint(out, state->online);
	for (int unknown = 0; unknown < 4; unknown++) /* core, package, node, kilohertz */
		bytes_varuint(out, 0);
}

bool payload_process_facts(struct bytes *out, const struct payload_process_facts *facts)
{
	struct writer w = writer_of(out);
	size_t count = facts->argument_count;

	if (count > PAYLOAD_ARGUMENTS_MAX) {
		count = PAYLOAD_ARGUMENTS_MAX;
		w.cut = true;
	}
	bytes_varint(out, facts->parent_pid);
	bytes_varuint(out, facts->uid);
	bytes_varuint(out, facts->gid);
	bytes_varuint(out, facts->inner_pid);
	bytes_u64(out, facts->born_ns);
	put_text(&w, facts->executable);
	put_text(&w, facts->command);
	bytes_u16(out, (uint16_t)count);
	for (size_t i = 0; i < count; i++)
		put_text(&w, facts->arguments[i]);
	put_text(&w, facts->container);
	put_text(&w, facts->cgroup);
	bytes_u64(out, facts->pid_namespace);
	bytes_u64(out, facts->mount_namespace);
	return w.cut;
}

bool payload_runtime(struct bytes *out, const struct payload_runtime *runtime)
{
	struct writer w = writer_of(out);

	put_text(&w, runtime->kind);
	put_text(&w, runtime->version);
	put_text(&w, runtime->path);
	bytes_add(out, runtime->cookie, sizeof(runtime->cookie));
	bytes_varuint(out, runtime->clr_instance);
	bytes_u32(out, runtime->single_file);
	bytes_u32(out, runtime->reachable);
	put_text(&w, runtime->reason);
	put_text(&w, runtime->sessions);
	return w.cut;
}

void payload_thread_clock(struct bytes *out, const struct payload_thread_clock *clock)
{
	bytes_u64(out, clock->run_ns);
	bytes_u32(out, clock->rest);
}

void payload_process_end(struct bytes *out, const struct payload_process_end *end)
{
	bytes_varint(out, end->exit_code);
	bytes_varuint(out, end->signal);
	bytes_u64(out, end->user_ns);
	bytes_u64(out, end->system_ns);
	bytes_varuint(out, end->rss_max_bytes);
}

bool payload_thread_name(struct bytes *out, const struct payload_thread_name *name)
{
	struct writer w = writer_of(out);

	put_text(&w, name->name);
	bytes_varuint(out, name->inner_tid);
	return w.cut;
}

bool payload_code_added(struct bytes *out, const struct payload_code *code)
{
	struct writer w = writer_of(out);

	bytes_u64(out, code->begin);
	bytes_u64(out, code->end);
	put_text(&w, code->name);
	put_text(&w, code->module);
	bytes_varuint(out, code->kind);
	bytes_varuint(out, code->tier);
	bytes_u64(out, code->method_id);
	bytes_u64(out, code->mapping_id);
	return w.cut;
}

void payload_code_removed(struct bytes *out, uint64_t begin, uint64_t end)
{
	bytes_u64(out, begin);
	bytes_u64(out, end);
}

bool payload_process_info(struct bytes *out, const struct payload_process_info *info)
{
	struct writer w = writer_of(out);

	put_text(&w, info->command_line);
	put_text(&w, info->system);
	put_text(&w, info->architecture);
	return w.cut;
}

void payload_elf_metadata(struct bytes *out, const char *build_id, const char *debug_link,
	uint64_t p_vaddr, uint64_t p_offset)
{
	struct json j = { .out = out };

	json_object(&j, NULL);
	json_z(&j, "type", "ELF");
	if (build_id && *build_id)
		json_z(&j, "build_id", build_id);
	if (debug_link && *debug_link)
		json_z(&j, "debug_link", debug_link);
	json_u64(&j, "p_vaddr", p_vaddr);
	json_u64(&j, "p_offset", p_offset);
	json_end(&j);
}

struct reader {
	struct cursor c;
	struct strtab *strings;
	struct bytes scratch;
};

static struct reader reader_of(const uint8_t *payload, size_t size, struct strtab *strings)
{
	return (struct reader){ .c = cursor_of(payload, size), .strings = strings };
}

static int reader_done(struct reader *r)
{
	bool no_memory = r->scratch.failed;

	bytes_done(&r->scratch);
	return no_memory ? -ENOMEM : r->c.short_read ? -EBADMSG : 0;
}

static const char *get_text(struct reader *r)
{
	size_t units;
	const uint8_t *text = cursor_utf16z(&r->c, &units);

	if (!text || !units)
		return "";
	bytes_reset(&r->scratch);
	text_add_utf16(&r->scratch, text, units);
	return strtab_get(r->strings,
		strtab_add(r->strings, (const char *)r->scratch.data, r->scratch.len));
}

static const char *get_utf8(struct reader *r)
{
	size_t len = cursor_u16(&r->c);
	const uint8_t *text = cursor_take(&r->c, len);

	return text ? strtab_get(r->strings, strtab_add(r->strings, (const char *)text, len)) : "";
}

int payload_read_process(const uint8_t *payload, size_t size, struct strtab *strings,
	struct payload_process *ret_process)
{
	struct reader r = reader_of(payload, size, strings);

	ret_process->inner_pid = cursor_varuint(&r.c);
	ret_process->name = get_utf8(&r);
	ret_process->name_space = get_utf8(&r);
	return reader_done(&r);
}

int payload_read_mapping(const uint8_t *payload, size_t size, struct strtab *strings,
	struct payload_mapping *ret_mapping)
{
	struct reader r = reader_of(payload, size, strings);

	ret_mapping->id = cursor_varuint(&r.c);
	ret_mapping->begin = cursor_varuint(&r.c);
	ret_mapping->end = cursor_varuint(&r.c);
	ret_mapping->file_offset = cursor_varuint(&r.c);
	ret_mapping->path = get_utf8(&r);
	ret_mapping->metadata_id = cursor_varuint(&r.c);
	return reader_done(&r);
}

int payload_read_mapping_metadata(const uint8_t *payload, size_t size, struct strtab *strings,
	struct payload_mapping_metadata *ret_metadata)
{
	struct reader r = reader_of(payload, size, strings);

	ret_metadata->id = cursor_varuint(&r.c);
	ret_metadata->symbols = get_utf8(&r);
	ret_metadata->version = get_utf8(&r);
	return reader_done(&r);
}

int payload_read_symbol(const uint8_t *payload, size_t size, struct strtab *strings,
	struct payload_symbol *ret_symbol)
{
	struct reader r = reader_of(payload, size, strings);

	ret_symbol->id = cursor_varuint(&r.c);
	ret_symbol->mapping_id = cursor_varuint(&r.c);
	ret_symbol->begin = cursor_varuint(&r.c);
	ret_symbol->end = cursor_varuint(&r.c);
	if (ret_symbol->end < UINT64_MAX)
		ret_symbol->end++; /* the last byte of the address space stays out of reach */
	size_t len = cursor_u16(&r.c);
	const uint8_t *text = cursor_take(&r.c, len);
	uint32_t name = text ? strtab_add(strings, (const char *)text, len) : 0;
	ret_symbol->name = strtab_get(strings, name);
	ret_symbol->name_len = strtab_len(strings, name);
	return reader_done(&r);
}

int payload_read_cpu(const uint8_t *payload, size_t size, uint64_t period_ns,
	struct payload_cpu *ret_sample)
{
	struct cursor c = cursor_of(payload, size);

	ret_sample->value = cursor_varuint(&c);
	ret_sample->count = 1;
	ret_sample->flags = 0;
	if (cursor_left(&c)) {
		ret_sample->weight_ns = cursor_varuint(&c);
		if (cursor_left(&c))
			ret_sample->count = cursor_varuint(&c);
		if (cursor_left(&c))
			ret_sample->flags = cursor_varuint(&c);
	} else if (period_ns) {
		ret_sample->weight_ns = period_ns;
	} else {
		ret_sample->weight_ns = ret_sample->value > UINT64_MAX / 1000000
						? UINT64_MAX
						: ret_sample->value * 1000000;
	}
	return c.short_read ? -EBADMSG : 0;
}

int payload_read_cswitch(const uint8_t *payload, size_t size, struct payload_cswitch *ret_change)
{
	struct cursor c = cursor_of(payload, size);

	*ret_change = (struct payload_cswitch){ .value = cursor_varuint(&c) };
	if (c.short_read)
		return -EBADMSG;
	uint64_t *const rest[] = { &ret_change->state, &ret_change->ready_ns,
		&ret_change->waker_pid, &ret_change->waker_tid, &ret_change->flags };

	for (size_t i = 0; i < sizeof(rest) / sizeof(rest[0]) && cursor_left(&c); i++)
		*rest[i] = cursor_varuint(&c);
	return c.short_read ? -EBADMSG : 0;
}

int payload_read_session(const uint8_t *payload, size_t size, struct strtab *strings,
	struct payload_session *ret_session)
{
	struct reader r = reader_of(payload, size, strings);

	ret_session->event_set = cursor_varuint(&r.c);
	ret_session->tool_version = get_text(&r);
	ret_session->command_line = get_text(&r);
	ret_session->options = get_text(&r);
	ret_session->period_ns = cursor_varuint(&r.c);
	ret_session->clock = get_text(&r);
	ret_session->utc_ns = cursor_u64(&r.c);
	/* Not in the files of 0.1 */
	ret_session->cpu_recorded = cursor_left(&r.c) ? cursor_varuint(&r.c) : 0;
	return reader_done(&r);
}

int payload_read_session_end(const uint8_t *payload, size_t size, struct strtab *strings,
	struct payload_count *counts, struct payload_session_end *ret_end)
{
	struct reader r = reader_of(payload, size, strings);

	ret_end->reason = get_text(&r);
	size_t names = cursor_u16(&r.c);
	for (size_t i = 0; i < names && !r.c.short_read; i++) {
		const char *name = get_text(&r);
		if (i < PAYLOAD_COUNTS_MAX)
			counts[i] = (struct payload_count){ .name = name };
	}
	size_t values = cursor_u16(&r.c);
	for (size_t i = 0; i < values && !r.c.short_read; i++) {
		uint64_t value = cursor_u64(&r.c);
		if (i < PAYLOAD_COUNTS_MAX && i < names)
			counts[i].count = value;
	}
	ret_end->counts = counts;
	ret_end->count_count = names < PAYLOAD_COUNTS_MAX ? names : PAYLOAD_COUNTS_MAX;
	return reader_done(&r);
}

int payload_read_clock_offset(const uint8_t *payload, size_t size, struct strtab *strings,
	struct payload_clock_offset *ret_offset)
{
	struct reader r = reader_of(payload, size, strings);

	ret_offset->source = get_text(&r);
	ret_offset->offset_ns = cursor_varint(&r.c);
	ret_offset->error_ns = cursor_varuint(&r.c);
	return reader_done(&r);
}

int payload_read_cpu_limit(const uint8_t *payload, size_t size, struct strtab *strings,
	struct payload_cpu_limit *ret_limit)
{
	struct reader r = reader_of(payload, size, strings);

	ret_limit->path = get_text(&r);
	ret_limit->container = get_text(&r);
	ret_limit->quota_ns = cursor_u64(&r.c);
	ret_limit->period_ns = cursor_u64(&r.c);
	ret_limit->periods = cursor_varuint(&r.c);
	ret_limit->throttled_periods = cursor_varuint(&r.c);
	ret_limit->throttled_ns = cursor_u64(&r.c);
	return reader_done(&r);
}

int payload_read_machine(const uint8_t *payload, size_t size, struct strtab *strings,
	struct payload_machine *ret_machine)
{
	struct reader r = reader_of(payload, size, strings);

	ret_machine->host = get_text(&r);
	ret_machine->kernel = get_text(&r);
	ret_machine->system = get_text(&r);
	ret_machine->architecture = get_text(&r);
	ret_machine->cpu_model = get_text(&r);
	ret_machine->cpu_online = cursor_varuint(&r.c);
	ret_machine->cpu_possible = cursor_varuint(&r.c);
	ret_machine->memory_bytes = cursor_u64(&r.c);
	ret_machine->page_size_bytes = cursor_varuint(&r.c);
	ret_machine->boot_id = get_text(&r);
	ret_machine->virtualization = get_text(&r);
	ret_machine->perf_event_paranoid = cursor_varint(&r.c);
	return reader_done(&r);
}

int payload_read_loss(const uint8_t *payload, size_t size, struct strtab *strings,
	struct payload_loss *ret_loss)
{
	struct reader r = reader_of(payload, size, strings);

	ret_loss->source = get_text(&r);
	ret_loss->unit = get_text(&r);
	ret_loss->count = cursor_varuint(&r.c);
	ret_loss->pid = cursor_varuint(&r.c);
	ret_loss->tid = cursor_varuint(&r.c);
	ret_loss->cpu = cursor_varint(&r.c);
	ret_loss->provider = get_text(&r);
	ret_loss->first_ns = cursor_u64(&r.c);
	ret_loss->last_ns = cursor_u64(&r.c);
	return reader_done(&r);
}

int payload_read_notice(const uint8_t *payload, size_t size, struct strtab *strings,
	struct payload_notice *ret_notice)
{
	struct reader r = reader_of(payload, size, strings);

	ret_notice->severity = cursor_varuint(&r.c);
	ret_notice->code = get_text(&r);
	ret_notice->text = get_text(&r);
	ret_notice->remedy = get_text(&r);
	return reader_done(&r);
}

int payload_read_process_facts(const uint8_t *payload, size_t size, struct strtab *strings,
	const char **arguments, struct payload_process_facts *ret_facts)
{
	struct reader r = reader_of(payload, size, strings);

	ret_facts->parent_pid = cursor_varint(&r.c);
	ret_facts->uid = cursor_varuint(&r.c);
	ret_facts->gid = cursor_varuint(&r.c);
	ret_facts->inner_pid = cursor_varuint(&r.c);
	ret_facts->born_ns = cursor_u64(&r.c);
	ret_facts->executable = get_text(&r);
	ret_facts->command = get_text(&r);
	size_t count = cursor_u16(&r.c);
	for (size_t i = 0; i < count && !r.c.short_read; i++) {
		const char *argument = get_text(&r);
		if (i < PAYLOAD_ARGUMENTS_MAX)
			arguments[i] = argument;
	}
	ret_facts->arguments = arguments;
	ret_facts->argument_count = count < PAYLOAD_ARGUMENTS_MAX ? count : PAYLOAD_ARGUMENTS_MAX;
	ret_facts->container = get_text(&r);
	ret_facts->cgroup = get_text(&r);
	ret_facts->pid_namespace = cursor_u64(&r.c);
	ret_facts->mount_namespace = cursor_u64(&r.c);
	return reader_done(&r);
}

int payload_read_runtime(const uint8_t *payload, size_t size, struct strtab *strings,
	struct payload_runtime *ret_runtime)
{
	struct reader r = reader_of(payload, size, strings);

	ret_runtime->kind = get_text(&r);
	ret_runtime->version = get_text(&r);
	ret_runtime->path = get_text(&r);
	const uint8_t *cookie = cursor_take(&r.c, sizeof(ret_runtime->cookie));
	if (cookie)
		memcpy(ret_runtime->cookie, cookie, sizeof(ret_runtime->cookie));
	ret_runtime->clr_instance = cursor_varuint(&r.c);
	ret_runtime->single_file = cursor_u32(&r.c) != 0;
	ret_runtime->reachable = cursor_u32(&r.c) != 0;
	ret_runtime->reason = get_text(&r);
	ret_runtime->sessions = !r.c.short_read && cursor_left(&r.c) ? get_text(&r) : "";
	return reader_done(&r);
}

int payload_read_thread_clock(const uint8_t *payload, size_t size,
	struct payload_thread_clock *ret_clock)
{
	struct reader r = reader_of(payload, size, NULL);

	ret_clock->run_ns = cursor_u64(&r.c);
	ret_clock->rest = cursor_u32(&r.c) != 0;
	return reader_done(&r);
}

int payload_read_process_end(const uint8_t *payload, size_t size,
	struct payload_process_end *ret_end)
{
	struct cursor c = cursor_of(payload, size);

	ret_end->exit_code = cursor_varint(&c);
	ret_end->signal = cursor_varuint(&c);
	ret_end->user_ns = cursor_u64(&c);
	ret_end->system_ns = cursor_u64(&c);
	ret_end->rss_max_bytes = cursor_varuint(&c);
	return c.short_read ? -EBADMSG : 0;
}

int payload_read_thread_name(const uint8_t *payload, size_t size, struct strtab *strings,
	struct payload_thread_name *ret_name)
{
	struct reader r = reader_of(payload, size, strings);

	ret_name->name = get_text(&r);
	ret_name->inner_tid = cursor_varuint(&r.c);
	return reader_done(&r);
}

int payload_read_code_added(const uint8_t *payload, size_t size, struct strtab *strings,
	struct payload_code *ret_code)
{
	struct reader r = reader_of(payload, size, strings);

	ret_code->begin = cursor_u64(&r.c);
	ret_code->end = cursor_u64(&r.c);
	ret_code->name = get_text(&r);
	ret_code->module = get_text(&r);
	ret_code->kind = cursor_varuint(&r.c);
	ret_code->tier = cursor_varuint(&r.c);
	ret_code->method_id = cursor_u64(&r.c);
	ret_code->mapping_id = cursor_u64(&r.c);
	return reader_done(&r);
}

int payload_read_code_removed(const uint8_t *payload, size_t size, uint64_t *ret_begin,
	uint64_t *ret_end)
{
	struct cursor c = cursor_of(payload, size);

	*ret_begin = cursor_u64(&c);
	*ret_end = cursor_u64(&c);
	return c.short_read ? -EBADMSG : 0;
}

int payload_read_process_info(const uint8_t *payload, size_t size, struct strtab *strings,
	struct payload_process_info *ret_info)
{
	struct reader r = reader_of(payload, size, strings);

	ret_info->command_line = get_text(&r);
	ret_info->system = get_text(&r);
	ret_info->architecture = get_text(&r);
	return reader_done(&r);
}
