/* See usdt_sites.h. */
#include "recording/usdt_sites.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/utf8.h"
#include "code/usdt_arguments.h"
#include "image/elf.h"
#include "image/usdt_notes.h"
#include "perf/usdt_probe.h"
#include "trace/schema.h"
#include "trace/trace.h"

/* The same range as that of other tracers' events without an id of their own (formats/ctf_event.c). */
#define EVENT_ID_FIRST 0x4000u
#define EVENT_ID_LAST  0x7fffu
#define NAME_ROOM      32u

_Static_assert(USDT_ARGUMENTS_MAX == USDT_HIT_VALUES_MAX, "a hit has all arguments");
_Static_assert(ABSENT_TEXT_MAX == USDT_TEXT_MAX, "as long as the others");
_Static_assert(USDT_NO_REGISTER == UINT16_MAX, "as usdt_probe.h has it");

void usdt_sites_init(struct usdt_sites *sites, struct usdt_probe *probe, struct trace *trace)
{
	*sites = (struct usdt_sites){
		.probe = probe,
		.trace = trace,
		.next_event_id = EVENT_ID_FIRST,
		.absent = { .fd = -1 },
	};
}

/* ---- layouts ---- */

static uint8_t field_type_of(const struct usdt_argument *argument)
{
	if (argument->is_float)
		return argument->size == 8 ? FIELD_F64 : FIELD_F32;
	switch (argument->size) {
	case 1:
		return argument->is_signed ? FIELD_I8 : FIELD_U8;
	case 2:
		return argument->is_signed ? FIELD_I16 : FIELD_U16;
	case 4:
		return argument->is_signed ? FIELD_I32 : FIELD_U32;
	default:
		return argument->is_signed ? FIELD_I64 : FIELD_U64;
	}
}

static bool may_be_text(const struct usdt_argument *argument)
{
	return argument->size == 8 && !argument->is_signed && !argument->is_float &&
	       argument->place != USDT_CONSTANT && argument->place != USDT_UNKNOWN;
}

static bool add_field(struct usdt_sites *sites, struct schema *schema, const char *name,
	uint8_t type)
{
	struct field field = { .name = trace_add_text(sites->trace, name), .type = type };

	return vec_add(&schema->fields, field);
}

static bool add_fields(struct usdt_sites *sites, const uint8_t *types, unsigned count,
	bool unreadable, struct schema *schema)
{
	char name[NAME_ROOM];

	for (unsigned i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "arg%u", i);
		if (!add_field(sites, schema, name, types[i] & (uint8_t)~USDT_ARGUMENT_TEXT))
			return false;
		snprintf(name, sizeof(name), "arg%u_text", i);
		if (types[i] & USDT_ARGUMENT_TEXT && !add_field(sites, schema, name, FIELD_TEXT16))
			return false;
	}
	return !unreadable || add_field(sites, schema, "unreadable", FIELD_TEXT16);
}

/* The schema of this layout, shared by all sites of the same probe; 0 without memory. */
static uint32_t find_schema(struct usdt_sites *sites, const struct usdt_note *note,
	const uint8_t *types, unsigned count, bool unreadable)
{
	struct trace *trace = sites->trace;
	struct schema made = { .provider = trace_add_foreign_provider(trace, note->provider,
				       strlen(note->provider)),
		.name = trace_add_text(trace, note->name),
		.level = 4 };
	uint64_t hash = hash_bytes(types, count) ^
			hash_u64((uint64_t)made.provider << 32 | made.name) ^ hash_u64(unreadable);

	if (!add_fields(sites, types, count, unreadable, &made))
		goto fail;
	for (struct map_walk w = map_find(&sites->schemas, hash); w.value; map_next(&w)) {
		const struct schema *other = &trace->schemas.items[w.value];
		if (other->provider == made.provider && other->name == made.name &&
			schema_has_same_fields(other, &made)) {
			schema_done(&made);
			return w.value;
		}
	}
	made.event_id = sites->next_event_id;
	if (!vec_add(&trace->schemas, made))
		goto fail;
	sites->next_event_id = made.event_id < EVENT_ID_LAST ? made.event_id + 1 : EVENT_ID_FIRST;
	/* without memory another row is made for the next site */
	(void)map_add(&sites->schemas, hash, trace->schemas.count - 1);
	return trace->schemas.count - 1;
fail:
	schema_done(&made);
	return 0;
}

/* ---- sites ---- */

/* The operand for the program: symbols become distances from the probe, as both move together. */
static struct usdt_operand operand_of(const struct usdt_argument *argument, const struct elf *elf,
	const struct image_file *file, const struct usdt_note *note)
{
	struct usdt_operand operand = { .value = argument->value,
		.base = argument->base,
		.index = argument->index,
		.scale = argument->scale,
		.shift = argument->shift,
		.size = argument->size,
		.is_signed = argument->is_signed,
		.is_text = may_be_text(argument) };
	uint64_t vaddr;

	switch ((enum usdt_place)argument->place) {
	case USDT_CONSTANT:
		operand.kind = USDT_OPERAND_CONSTANT;
		break;
	case USDT_REGISTER:
		operand.kind = USDT_OPERAND_REGISTER;
		break;
	case USDT_MEMORY:
		operand.kind = USDT_OPERAND_MEMORY;
		break;
	case USDT_SYMBOL:
		if (usdt_symbol_find(elf, file, argument->symbol, argument->symbol_len, &vaddr) < 0)
			break; /* a stripped image: it stays unreadable */
		operand.kind = USDT_OPERAND_MEMORY;
		operand.base = usdt_instruction_pointer(elf->machine);
		operand.value = (int64_t)((uint64_t)operand.value + vaddr - note->vaddr);
		break;
	case USDT_UNKNOWN:
		break;
	}
	return operand;
}

int usdt_sites_add(struct usdt_sites *sites, const struct elf *elf, const struct image_file *file,
	const struct usdt_note *note)
{
	struct usdt_argument arguments[USDT_ARGUMENTS_MAX];
	struct usdt_operand operands[USDT_ARGUMENTS_MAX];
	uint8_t types[USDT_ARGUMENTS_MAX];

	if (sites->rows.count == USDT_SITES_MAX)
		return -ENOSPC;
	unsigned count = usdt_arguments_parse(elf->machine, note->arguments, arguments);
	struct usdt_row row = { .argument_first = sites->arguments.count,
		.argument_count = (uint8_t)count };
	for (unsigned i = 0; i < count; i++) {
		operands[i] = operand_of(&arguments[i], elf, file, note);
		types[i] = field_type_of(&arguments[i]);
		if (operands[i].is_text)
			types[i] |= USDT_ARGUMENT_TEXT;
	}
	row.schema_index = find_schema(sites, note, types, count, false);
	row.schema_unreadable = find_schema(sites, note, types, count, true);
	if (!row.schema_index || !row.schema_unreadable || !vec_reserve(&sites->arguments, count))
		return -ENOMEM;
	struct usdt_site site = { .offset = note->offset,
		.semaphore = note->semaphore_offset,
		.number = sites->rows.count };
	int result = usdt_probe_describe(sites->probe, operands, count, &site.operands);
	if (result < 0)
		return result;
	if (!vec_add(&sites->rows, row) || !vec_add(&sites->waiting, site))
		return -ENOMEM;
	if (count)
		memcpy(sites->arguments.items + row.argument_first, types, count);
	sites->arguments.count += count;
	return 0;
}

uint32_t usdt_sites_attach(struct usdt_sites *sites, int fd, int *ret_error)
{
	uint32_t count = sites->waiting.count;
	size_t attached =
		usdt_probe_attach(sites->probe, fd, sites->waiting.items, count, ret_error);

	vec_reset(&sites->waiting);
	return count - (uint32_t)attached;
}

/* ---- events ---- */

/* Whether it is UTF-8. Control characters, as of a terminal's colours, are part of a text. */
static bool is_text(const char *text, size_t len)
{
	for (size_t at = 0; at < len;) {
		size_t from = at;
		if (text_next_char(text, len, &at) == 0xfffd && at - from == 1)
			return false;
	}
	return true;
}

/* Returns the sample's next text, and moves the sample to the text after it. */
static const char *next_text(struct usdt_hit *hit, size_t *ret_len)
{
	const char *text = hit->text;
	const char *end = hit->text_size ? memchr(text, '\0', hit->text_size) : NULL;

	*ret_len = end ? (size_t)(end - text) : 0;
	if (end) {
		hit->text += *ret_len + 1;
		hit->text_size -= *ret_len + 1;
	}
	return end ? text : "";
}

static void add_value(struct bytes *payload, uint8_t type, uint64_t value)
{
	switch (type) {
	case FIELD_U8:
	case FIELD_I8:
		bytes_u8(payload, (uint8_t)value);
		break;
	case FIELD_U16:
	case FIELD_I16:
		bytes_u16(payload, (uint16_t)value);
		break;
	case FIELD_U32:
	case FIELD_I32:
	case FIELD_F32:
		bytes_u32(payload, (uint32_t)value);
		break;
	default:
		bytes_u64(payload, value);
		break;
	}
}

/* `texts`: arguments that were read, and their texts were not. */
static void add_unreadable(struct bytes *payload, uint64_t unreadable, uint64_t texts)
{
	char names[USDT_HIT_VALUES_MAX * 11 + 1];
	size_t len = 0;

	for (unsigned i = 0; i < USDT_HIT_VALUES_MAX; i++)
		if ((unreadable | texts) >> i & 1)
			len += (size_t)snprintf(names + len, sizeof(names) - len, "%sarg%u%s",
				len ? " " : "", i, texts >> i & 1 ? "_text" : "");
	bytes_utf16z(payload, names, len, sizeof(names));
}

bool usdt_sites_decode(struct usdt_sites *sites, const struct usdt_raw *raw, struct bytes *payload,
	uint32_t *ret_schema_index, unsigned *ret_unreadable)
{
	char late[ABSENT_TEXT_MAX + 1];
	uint64_t texts = 0;
	struct usdt_hit hit;

	if (!usdt_hit_read(raw->bytes, raw->size, &hit) || hit.number >= sites->rows.count)
		return false;
	const struct usdt_row *row = &sites->rows.items[hit.number];
	if (row->argument_count != hit.count)
		return false;
	for (unsigned i = 0; i < hit.count; i++) {
		uint8_t type = sites->arguments.items[row->argument_first + i];
		size_t len = 0;
		const char *text = hit.texts >> i & 1 ? next_text(&hit, &len) : "";
		add_value(payload, type & (uint8_t)~USDT_ARGUMENT_TEXT, usdt_hit_value(&hit, i));
		if (!(type & USDT_ARGUMENT_TEXT))
			continue;
		if (!((hit.texts | hit.unreadable) >> i & 1)) {
			enum absent_text found = absent_text_read(&sites->absent, raw->pid,
				usdt_hit_value(&hit, i), raw->time_ns, late);
			if (found == ABSENT_TEXT_READ) {
				text = late;
				len = strlen(late);
			}
			texts |= (uint64_t)(found == ABSENT_TEXT_UNREADABLE) << i;
		}
		bytes_utf16z(payload, text, is_text(text, len) ? len : 0, USDT_TEXT_MAX);
	}
	if (hit.unreadable | texts)
		add_unreadable(payload, hit.unreadable, texts);
	*ret_schema_index = hit.unreadable | texts ? row->schema_unreadable : row->schema_index;
	*ret_unreadable = (unsigned)__builtin_popcountll(hit.unreadable | texts);
	return true;
}

void usdt_sites_done(struct usdt_sites *sites)
{
	vec_done(&sites->rows);
	vec_done(&sites->waiting);
	vec_done(&sites->arguments);
	map_done(&sites->schemas);
	absent_texts_done(&sites->absent);
}
