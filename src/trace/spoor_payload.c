/* See spoor_payload.h. The layouts: spoor_events.def. */
#include "trace/spoor_payload.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/cursor.h"
#include "base/json.h"
#include "base/strtab.h"
#include "base/text.h"
#include "trace/line_table.h"

/* 30,000 UTF-16 units in all leave 5,000 of EVENT_PAYLOAD_MAX's bytes for the rest. */
#define UNITS_MAX      30000u
#define TEXT_UNITS_MAX 8000u
/* One UTF-8 text of the universal events; two of them stay under EVENT_PAYLOAD_MAX. */
#define UTF8_MAX      32000u
#define NAME_UTF8_MAX 60000u

/* Writes a payload to `out`, or reads one from `c` if `out` is NULL. */
struct coder {
	struct bytes *out;
	size_t units_left;
	bool cut;
	struct cursor c;
	struct strtab *strings;
	struct bytes scratch;
};

static struct coder writer_of(struct bytes *out)
{
	return (struct coder){ .out = out, .units_left = UNITS_MAX };
}

static struct coder reader_of(const uint8_t *payload, size_t size, struct strtab *strings)
{
	return (struct coder){ .c = cursor_of(payload, size), .strings = strings };
}

static int reader_done(struct coder *r)
{
	bool no_memory = r->scratch.failed;

	bytes_done(&r->scratch);
	return no_memory ? -ENOMEM : r->c.short_read ? -EBADMSG : 0;
}

static size_t count_units(const char *text, size_t len)
{
	size_t units = 0;

	for (size_t at = 0; at < len;)
		units += text_next_char(text, len, &at) >= 0x10000 ? 2 : 1;
	return units;
}

static void put_text(struct coder *w, const char *text)
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

static const char *get_text(struct coder *r)
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

static const char *get_utf8(struct coder *r)
{
	size_t len = cursor_u16(&r->c);
	const uint8_t *text = cursor_take(&r->c, len);

	return text ? strtab_get(r->strings, strtab_add(r->strings, (const char *)text, len)) : "";
}

/* Each of these writes the value to the payload, or reads it from there. */

static void text(struct coder *x, const char **value)
{
	if (x->out)
		put_text(x, *value);
	else
		*value = get_text(x);
}

static void utf8(struct coder *x, const char **value)
{
	if (x->out)
		x->cut |= put_utf8(x->out, *value ? *value : "", *value ? strlen(*value) : 0,
			UTF8_MAX);
	else
		*value = get_utf8(x);
}

static void varuint(struct coder *x, uint64_t *value)
{
	if (x->out)
		bytes_varuint(x->out, *value);
	else
		*value = cursor_varuint(&x->c);
}

static void varint(struct coder *x, int64_t *value)
{
	if (x->out)
		bytes_varint(x->out, *value);
	else
		*value = cursor_varint(&x->c);
}

static void u64(struct coder *x, uint64_t *value)
{
	if (x->out)
		bytes_u64(x->out, *value);
	else
		*value = cursor_u64(&x->c);
}

static void boolean(struct coder *x, bool *value)
{
	if (x->out)
		bytes_u32(x->out, *value);
	else
		*value = cursor_u32(&x->c) != 0;
}

static void guid(struct coder *x, uint8_t value[static 16])
{
	const uint8_t *read = x->out ? NULL : cursor_take(&x->c, 16);

	if (x->out)
		bytes_add(x->out, value, 16);
	else if (read)
		memcpy(value, read, 16);
}

/* False: reading, and a file of an earlier version ends here. */
static bool has_more(const struct coder *x)
{
	return x->out || (!x->c.short_read && cursor_left(&x->c));
}

#define PAYLOAD(name)                                                            \
	static void code_##name(struct coder *x, struct payload_##name *payload) \
	{
#define TEXT(member)    text(x, &payload->member);
#define UTF8(member)    utf8(x, &payload->member);
#define VARUINT(member) varuint(x, &payload->member);
#define VARINT(member)  varint(x, &payload->member);
#define U64(member)     u64(x, &payload->member);
#define BOOLEAN(member) boolean(x, &payload->member);
#define GUID(member)    guid(x, payload->member);
#define UTF8_OR(member, other)           \
	if (x->out && !payload->member)  \
		payload->member = other; \
	utf8(x, &payload->member);
#define APPENDED_VARUINT(member)     \
	if (!x->out)                 \
		payload->member = 0; \
	if (has_more(x))             \
		varuint(x, &payload->member);
#define APPENDED_TEXT(member)         \
	if (!x->out)                  \
		payload->member = ""; \
	if (has_more(x))              \
		text(x, &payload->member);
#define END(name)                                                                            \
	}                                                                                    \
	bool payload_##name(struct bytes *out, const struct payload_##name *payload)         \
	{                                                                                    \
		struct coder x = writer_of(out);                                             \
		struct payload_##name copy = *payload;                                       \
                                                                                             \
		code_##name(&x, &copy);                                                      \
		return x.cut;                                                                \
	}                                                                                    \
	int payload_read_##name(const uint8_t *payload, size_t size, struct strtab *strings, \
		struct payload_##name *ret_payload)                                          \
	{                                                                                    \
		struct coder x = reader_of(payload, size, strings);                          \
                                                                                             \
		code_##name(&x, ret_payload);                                                \
		return reader_done(&x);                                                      \
	}
#include "trace/payloads.def"

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

int payload_read_symbol(const uint8_t *payload, size_t size, struct strtab *strings,
	struct payload_symbol *ret_symbol)
{
	struct coder r = reader_of(payload, size, strings);

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

void payload_cpu(struct bytes *out, const struct payload_cpu *sample, uint64_t period_ns)
{
	bytes_varuint(out, sample->value);
	if (sample->weight_ns == period_ns && sample->count == 1 && !sample->flags)
		return;
	bytes_varuint(out, sample->weight_ns);
	bytes_varuint(out, sample->count);
	bytes_varuint(out, sample->flags);
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

void payload_cswitch(struct bytes *out, const struct payload_cswitch *change)
{
	bytes_varuint(out, change->value);
	bytes_varuint(out, change->state);
	bytes_varuint(out, change->ready_ns);
	bytes_varuint(out, change->waker_pid);
	bytes_varuint(out, change->waker_tid);
	bytes_varuint(out, change->flags);
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

bool payload_session_end(struct bytes *out, const struct payload_session_end *end)
{
	struct coder w = writer_of(out);
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

int payload_read_session_end(const uint8_t *payload, size_t size, struct strtab *strings,
	struct payload_count *counts, struct payload_session_end *ret_end)
{
	struct coder r = reader_of(payload, size, strings);

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

void payload_cpu_state(struct bytes *out, const struct payload_cpu_state *state)
{
	bytes_varuint(out, state->cpu);
	bytes_varuint(out, state->online);
	for (int unknown = 0; unknown < 4; unknown++) /* core, package, node, kilohertz */
		bytes_varuint(out, 0);
}

bool payload_look_stack(struct bytes *out, const struct payload_look_stack *stack)
{
	struct coder w = writer_of(out);
	size_t count = stack->frame_count;

	if (count > PAYLOAD_LOOK_FRAMES_MAX) {
		count = PAYLOAD_LOOK_FRAMES_MAX;
		w.cut = true;
	}
	bytes_varuint(out, stack->look);
	bytes_varuint(out, stack->stack);
	bytes_varuint(out, stack->own);
	bytes_u16(out, (uint16_t)count);
	for (size_t i = 0; i < count; i++)
		put_text(&w, stack->frames[i]);
	return w.cut;
}

int payload_read_look_stack(const uint8_t *payload, size_t size, struct strtab *strings,
	const char **frames, struct payload_look_stack *ret_stack)
{
	struct coder r = reader_of(payload, size, strings);

	ret_stack->look = cursor_varuint(&r.c);
	ret_stack->stack = cursor_varuint(&r.c);
	ret_stack->own = cursor_varuint(&r.c);
	size_t count = cursor_u16(&r.c);
	for (size_t i = 0; i < count && !r.c.short_read; i++) {
		const char *frame = get_text(&r);
		if (i < PAYLOAD_LOOK_FRAMES_MAX)
			frames[i] = frame;
	}
	ret_stack->frames = frames;
	ret_stack->frame_count = count < PAYLOAD_LOOK_FRAMES_MAX ? count : PAYLOAD_LOOK_FRAMES_MAX;
	return reader_done(&r);
}

bool payload_process_facts(struct bytes *out, const struct payload_process_facts *facts)
{
	struct coder w = writer_of(out);
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

int payload_read_process_facts(const uint8_t *payload, size_t size, struct strtab *strings,
	const char **arguments, struct payload_process_facts *ret_facts)
{
	struct coder r = reader_of(payload, size, strings);

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

static void put_u32s(struct bytes *out, const uint32_t *numbers, size_t count)
{
	bytes_u16(out, (uint16_t)count);
	for (size_t i = 0; i < count; i++)
		bytes_u32(out, numbers[i]);
}

/* A cursor over the numbers of an array. */
static struct cursor get_u32s(struct coder *r, size_t *ret_count)
{
	*ret_count = cursor_u16(&r->c);
	return cursor_sub(&r->c, *ret_count * 4);
}

bool payload_il_offsets(struct bytes *out, const struct payload_il_offsets *il)
{
	struct coder w = writer_of(out);
	size_t count = il->count;

	if (count > PAYLOAD_LINES_MAX) {
		count = PAYLOAD_LINES_MAX;
		w.cut = true;
	}
	bytes_varuint(out, il->mapping_id);
	bytes_u64(out, il->begin);
	bytes_u64(out, il->method_id);
	bytes_u32(out, il->token);
	put_text(&w, il->assembly);
	bytes_add(out, il->pdb_id, sizeof(il->pdb_id));
	put_u32s(out, il->native, count);
	put_u32s(out, il->il, count);
	return w.cut;
}

int payload_read_il_offsets(const uint8_t *payload, size_t size, struct strtab *strings,
	uint32_t *native, uint32_t *il, struct payload_il_offsets *ret_il)
{
	struct coder r = reader_of(payload, size, strings);
	size_t native_count;
	size_t il_count;

	*ret_il = (struct payload_il_offsets){ .native = native, .il = il };
	ret_il->mapping_id = cursor_varuint(&r.c);
	ret_il->begin = cursor_u64(&r.c);
	ret_il->method_id = cursor_u64(&r.c);
	ret_il->token = cursor_u32(&r.c);
	ret_il->assembly = get_text(&r);
	const uint8_t *pdb_id = cursor_take(&r.c, sizeof(ret_il->pdb_id));
	if (pdb_id)
		memcpy(ret_il->pdb_id, pdb_id, sizeof(ret_il->pdb_id));
	struct cursor natives = get_u32s(&r, &native_count);
	struct cursor ils = get_u32s(&r, &il_count);
	if (native_count != il_count)
		r.c.short_read = true;
	ret_il->count = il_count < PAYLOAD_LINES_MAX ? il_count : PAYLOAD_LINES_MAX;
	for (size_t i = 0; i < ret_il->count; i++) {
		native[i] = cursor_u32(&natives);
		il[i] = cursor_u32(&ils);
	}
	return reader_done(&r);
}

void payload_code_bytes(struct bytes *out, const struct payload_code_bytes *code)
{
	bytes_varuint(out, code->mapping_id);
	bytes_u64(out, code->begin);
	bytes_u64(out, code->method_id);
	bytes_u32(out, code->offset);
	bytes_u16(out, (uint16_t)code->size);
	bytes_add(out, code->bytes, code->size);
}

int payload_read_code_bytes(const uint8_t *payload, size_t size,
	struct payload_code_bytes *ret_code)
{
	struct cursor c = cursor_of(payload, size);

	ret_code->mapping_id = cursor_varuint(&c);
	ret_code->begin = cursor_u64(&c);
	ret_code->method_id = cursor_u64(&c);
	ret_code->offset = cursor_u32(&c);
	ret_code->size = cursor_u16(&c);
	ret_code->bytes = cursor_take(&c, ret_code->size);
	return c.short_read ? -EBADMSG : 0;
}

bool payload_source_lines(struct bytes *out, const struct payload_source_lines *lines)
{
	struct coder w = writer_of(out);

	bytes_varuint(out, lines->mapping_id);
	bytes_u64(out, lines->begin);
	bytes_u64(out, lines->method_id);
	bytes_u16(out, (uint16_t)lines->text_count);
	for (size_t i = 0; i < lines->text_count; i++)
		put_text(&w, lines->texts[i]);
	put_u32s(out, lines->offsets, lines->offset_count);
	put_u32s(out, lines->frame_counts, lines->offset_count);
	put_u32s(out, lines->functions, lines->frame_count);
	put_u32s(out, lines->files, lines->frame_count);
	put_u32s(out, lines->lines, lines->frame_count);
	return w.cut;
}

/* A number in the event's texts as one of the table. */
static uint32_t text_number(const uint32_t *texts, size_t count, uint32_t number)
{
	return number && number <= count ? texts[number - 1] : 0;
}

int payload_read_source_lines(const uint8_t *payload, size_t size, struct strtab *strings,
	struct line_table *table)
{
	struct coder r = reader_of(payload, size, strings);
	struct line_place place = { .mapping_id = cursor_varuint(&r.c) };
	size_t counts[5];

	place.begin = cursor_u64(&r.c);
	place.method_id = cursor_u64(&r.c);
	size_t text_count = cursor_u16(&r.c);
	cleanup(freep) uint32_t *texts = calloc(text_count + 1, sizeof(*texts));
	cleanup(freep) struct line_frame *frames = NULL;
	if (!texts)
		return -ENOMEM;
	for (size_t i = 0; i < text_count && !r.c.short_read; i++)
		texts[i] = strtab_add_z(strings, get_text(&r));
	struct cursor offsets = get_u32s(&r, &counts[0]);
	struct cursor frame_counts = get_u32s(&r, &counts[1]);
	struct cursor functions = get_u32s(&r, &counts[2]);
	struct cursor files = get_u32s(&r, &counts[3]);
	struct cursor lines = get_u32s(&r, &counts[4]);
	if (reader_done(&r) < 0 || counts[0] != counts[1] || counts[2] != counts[3] ||
		counts[2] != counts[4])
		return -EBADMSG;
	frames = calloc(counts[2] + 1, sizeof(*frames));
	if (!frames)
		return -ENOMEM;
	for (size_t i = 0; i < counts[0]; i++) {
		uint32_t count = cursor_u32(&frame_counts);
		place.offset = cursor_u32(&offsets);
		if (count > cursor_left(&lines) / 4)
			return -EBADMSG;
		for (uint32_t f = 0; f < count; f++)
			frames[f] = (struct line_frame){
				text_number(texts, text_count, cursor_u32(&functions)),
				text_number(texts, text_count, cursor_u32(&files)),
				cursor_u32(&lines),
			};
		if (count && !line_table_add(table, &place, frames, count))
			return -ENOMEM;
	}
	return 0;
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
