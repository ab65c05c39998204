/*
 * Decodes nettrace (docs/formats/nettrace.md).
 *
 * Bytes are collected until a whole block has arrived; a block of events is then decoded in place,
 * one event a call, without allocation. Version 4 wraps its blocks in objects, names threads by id
 * and carries activity ids where version 6 has rows and label lists; everything else is common
 * code.
 *
 * `buffer[begin..end)` are the bytes to be decoded; `base` is the offset in the stream of
 * buffer[0].
 */
#include "nettrace/nettrace_read.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/bytes.h"
#include "base/cursor.h"
#include "base/diag.h"
#include "base/input.h"
#include "base/text.h"
#include "nettrace/nettrace_tags.h"
#include "trace/clr_event.h"
#include "trace/event.h"
#include "trace/event_label.h"
#include "trace/spoor_payload.h"
#include "trace/trace.h"

#define BUFFER_LEAST  4096u
#define RESTING_BYTES (8u << 10) /* of buffer that a decoder without work keeps */
/* runtimes write 100 KiB; version 6 has 24 bits for the size */
#define V4_BLOCK_SIZE_MAX (64u << 20)
#define METADATA_ID_MAX   (1u << 20)
#define ROWS_MAX          (1u << 20)
#define FIELDS_MAX        4096u /* of one event */
#define FIELD_DEPTH_MAX   8u
#define STACK_SIZE_MAX    (1u << 19)
#define DIRECT_ROWS       65536u      /* rows below are found without hashing, */
#define DIRECT_GAP        256u        /* if they are dense, which thread ids are not */
#define LABEL_BYTES_MAX   (64u << 20) /* of labels between two sequence points, which end them */
#define V4_NAME_MAX       38u         /* of an object's type, as in the stock reader */

enum state { STATE_HEAD, STATE_BLOCK, STATE_EVENTS, STATE_ENDED, STATE_BROKEN };

/* A thread or a capture row: version 6 defines it in a Thread block, version 4 by its first use. */
struct row {
	uint32_t thread_index; /* in trace.threads; 0: none, or not looked up yet */
	uint32_t last_sequence;
	bool seen; /* last_sequence counts */
	bool no_cpu;
};

/* Consecutive ids and where what they name begins. Sorted by first; none overlap. */
struct id_range {
	uint32_t first;
	uint32_t count;
	uint32_t at; /* in stack_indexes */
};

/* `labels.list` is set only in the decoded event, as label_bytes may move while lists are read. */
struct label_list {
	uint32_t late_ns;
	uint32_t bytes_at; /* in label_bytes, labels.list_size of them */
	bool has_activity;
	uint8_t activity[EVENT_ACTIVITY_SIZE];
	struct event_labels labels;
};

struct nettrace_decoder {
	struct trace *trace;
	char *name;
	bool names_only;
	bool no_stacks;
	bool placed; /* nettrace_decoder_place() */
	nettrace_thread_fn *place;
	void *place_context;
	enum state state;
	struct diag broken; /* why, when the state is STATE_BROKEN */
	struct nettrace_head head;
	uint32_t pointer_size;
	bool plain_ns; /* ticks are nanoseconds */
	/* written by Spoor: one row a thread, a new one for a new life of a pid */
	bool ours;

	uint8_t *buffer;
	size_t capacity;
	size_t begin;
	size_t end;
	uint64_t base;

	/* The event block being decoded, as offsets in the stream. */
	uint64_t events_end;
	bool compressed;

	/* The state from which the next delta is decoded, and the trace's indexes for its ids. */
	uint32_t metadata_id;
	uint32_t sequence;
	uint64_t capture;
	uint32_t cpu;
	uint64_t thread;
	uint32_t stack;
	uint64_t ticks;
	uint32_t label;
	uint32_t size;
	uint32_t schema_index;
	uint32_t capture_row;
	uint32_t thread_index;
	uint32_t stack_index;
	uint32_t late_ns;
	bool has_activity;
	uint8_t activity[EVENT_ACTIVITY_SIZE];
	bool has_labels;
	struct event_labels event_labels;
	bool sorted; /* no event after this one in the stream is older */
	uint64_t sorted_ticks;
	uint64_t last_ticks; /* of the newest event so far */

	VEC(uint32_t) schema_of;   /* by metadata id */
	VEC(struct row) rows;      /* item 0 unused */
	VEC(uint8_t) has_row;      /* by thread index */
	VEC(uint32_t) direct_rows; /* by row index below DIRECT_ROWS; 0: see other_rows */
	struct map other_rows;
	VEC(struct id_range) ranges; /* of stack ids */
	VEC(uint32_t) stack_indexes;
	struct map labels; /* label list -> index in label_lists plus 1 */
	VEC(struct label_list) label_lists;
	struct bytes label_bytes; /* labels that trace/event_label.h reads, list by list */
	/* of nettrace_decoder_move_stacks(): parallel to stack_indexes */
	VEC(uint32_t) moved;
	VEC(uint64_t) frames;
	struct bytes scratch;
	uint64_t pending_lost; /* reported with the next event */
	uint64_t lost;
};

struct nettrace_decoder *nettrace_decoder_new(struct trace *trace, const char *name, unsigned flags)
{
	struct nettrace_decoder *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->trace = trace;
	d->names_only = flags & NETTRACE_NAMES_ONLY;
	d->no_stacks = flags & (NETTRACE_NAMES_ONLY | NETTRACE_NO_STACKS);
	d->name = strdup(name);
	if (!d->name || !vec_push(&d->rows)) {
		nettrace_decoder_free(d);
		return NULL;
	}
	return d;
}

void nettrace_decoder_free(struct nettrace_decoder *d)
{
	if (!d)
		return;
	vec_done(&d->schema_of);
	vec_done(&d->rows);
	vec_done(&d->has_row);
	vec_done(&d->direct_rows);
	map_done(&d->other_rows);
	vec_done(&d->ranges);
	vec_done(&d->stack_indexes);
	map_done(&d->labels);
	vec_done(&d->label_lists);
	bytes_done(&d->label_bytes);
	vec_done(&d->moved);
	vec_done(&d->frames);
	bytes_done(&d->scratch);
	free(d->buffer);
	free(d->name);
	free(d);
}

uint8_t *nettrace_decoder_room(struct nettrace_decoder *d, size_t size)
{
	/* reuse the front of the buffer: it is in the CPU cache, and the buffer stays small */
	if (d->begin == d->end) {
		d->base += d->begin;
		d->begin = d->end = 0;
	}
	if (d->capacity - d->end >= size && d->buffer)
		return d->buffer + d->end;
	if (d->begin) {
		memmove(d->buffer, d->buffer + d->begin, d->end - d->begin);
		d->base += d->begin;
		d->end -= d->begin;
		d->begin = 0;
	}
	if (!d->buffer || d->capacity - d->end < size) {
		/*
		 * One block and one read: there may be many decoders. A larger block does not move.
		 */
		size_t capacity = (d->end + size) + (d->end + size) / 8;
		if (capacity < BUFFER_LEAST)
			capacity = BUFFER_LEAST;
		uint8_t *grown = realloc(d->buffer, capacity);
		if (!grown)
			return NULL;
		d->buffer = grown;
		d->capacity = capacity;
	}
	return d->buffer + d->end;
}

void nettrace_decoder_rest(struct nettrace_decoder *d)
{
	bool over = d->state == STATE_ENDED || d->state == STATE_BROKEN;

	if ((d->begin != d->end && !over) || d->capacity <= RESTING_BYTES)
		return;
	d->base += d->begin;
	d->begin = d->end = 0;
	free(d->buffer);
	d->buffer = NULL;
	d->capacity = 0;
}

void nettrace_decoder_filled(struct nettrace_decoder *d, size_t size)
{
	d->end += size;
}

int nettrace_decoder_push(struct nettrace_decoder *d, const void *data, size_t size)
{
	if (!size || d->state == STATE_ENDED || d->state == STATE_BROKEN)
		return 0;
	uint8_t *room = nettrace_decoder_room(d, size);

	if (!room)
		return -ENOMEM;
	memcpy(room, data, size);
	d->end += size;
	return 0;
}

static uint64_t offset_of(const struct nettrace_decoder *d, const uint8_t *at)
{
	return d->base + (uint64_t)(at - d->buffer);
}

__attribute__((format(printf, 4, 5))) static int stream_broken(struct nettrace_decoder *d,
	uint64_t offset, struct diag *diag, const char *format, ...)
{
	char what[256];
	va_list args;

	va_start(args, format);
	if (vsnprintf(what, sizeof(what), format, args) < 0)
		what[0] = '\0';
	va_end(args);
	d->state = STATE_BROKEN;
	d->broken = (struct diag){ 0 };
	diag_set(&d->broken, -EBADMSG, "cannot read '%s' beyond offset %llu: %s", d->name,
		(unsigned long long)offset, what);
	return diag_set(diag, -EBADMSG, "%s", d->broken.text);
}

static int stream_no_memory(struct nettrace_decoder *d, struct diag *diag)
{
	d->state = STATE_BROKEN;
	d->broken = (struct diag){ 0 };
	diag_set(&d->broken, -ENOMEM, "cannot read '%s': %m", d->name);
	return diag_set(diag, -ENOMEM, "%s", d->broken.text);
}

static uint64_t ticks_to_ns(const struct nettrace_decoder *d, uint64_t ticks)
{
	__extension__ typedef unsigned __int128 u128;

	if (d->plain_ns)
		return ticks;
	return (uint64_t)((u128)ticks * 1000000000u / d->head.ticks_per_second);
}

/* Rows */

static uint32_t row_find(const struct nettrace_decoder *d, uint64_t id)
{
	uint32_t row = id < d->direct_rows.count ? d->direct_rows.items[id] : 0;

	return row ? row : map_get(&d->other_rows, id);
}

/* A new row under this id. 0: no memory, or too many. */
static uint32_t row_add(struct nettrace_decoder *d, uint64_t id)
{
	if (d->rows.count > ROWS_MAX || !vec_push(&d->rows))
		return 0;
	uint32_t row = d->rows.count - 1;

	if (id < DIRECT_ROWS && id <= d->direct_rows.count + DIRECT_GAP) {
		while (d->direct_rows.count <= id)
			if (!vec_push(&d->direct_rows))
				return 0;
		d->direct_rows.items[id] = row;
	} else if (!map_put(&d->other_rows, id, row)) {
		return 0;
	}
	return row;
}

static void forget_rows(struct nettrace_decoder *d)
{
	d->rows.count = 1;
	vec_reset(&d->has_row);
	vec_reset(&d->direct_rows);
	map_reset(&d->other_rows);
}

static void row_count_lost(struct nettrace_decoder *d, struct row *row, uint32_t attempted)
{
	uint32_t lost = attempted - row->last_sequence;

	/* Numbers that go back are a restart (a reused thread id), not 2^31 losses. */
	if (row->seen && lost < 1u << 31) {
		d->lost += lost;
		d->pending_lost += lost;
	}
	row->last_sequence = attempted;
	row->seen = true;
}

/* Head */

static uint64_t days_from_civil(uint64_t y, uint64_t m, uint64_t day)
{
	/* Years begin in March here, so that the leap day is the last. y is 1970 or later. */
	y -= m <= 2;
	uint64_t era_year = y % 400;
	uint64_t day_of_year = (153 * (m + (m > 2 ? (uint64_t)-3 : 9)) + 2) / 5 + day - 1;
	return y / 400 * 146097 + era_year * 365 + era_year / 4 - era_year / 100 + day_of_year -
	       719468;
}

static uint64_t read_utc(struct cursor *c)
{
	uint64_t year = cursor_u16(c);
	uint64_t month = cursor_u16(c);
	cursor_skip(c, 2); /* day of the week */
	uint64_t day = cursor_u16(c);
	uint64_t hour = cursor_u16(c);
	uint64_t minute = cursor_u16(c);
	uint64_t second = cursor_u16(c);
	uint64_t millisecond = cursor_u16(c);

	if (year < 1970 || year > 2500 || month < 1 || month > 12 || day < 1 || day > 31)
		return 0;
	uint64_t seconds =
		days_from_civil(year, month, day) * 86400 + hour * 3600 + minute * 60 + second;
	return (seconds * 1000 + millisecond) * 1000000;
}

static int take_clock(struct nettrace_decoder *d, uint64_t ticks, const uint8_t *at,
	struct diag *diag)
{
	struct nettrace_head *head = &d->head;

	if (!head->ticks_per_second || head->ticks_per_second > UINT64_C(1) << 40)
		return stream_broken(d, offset_of(d, at), diag, "a clock of %llu ticks a second",
			(unsigned long long)head->ticks_per_second);
	if (d->pointer_size != 4 && d->pointer_size != 8)
		return stream_broken(d, offset_of(d, at), diag, "pointers of %u bytes",
			d->pointer_size);
	d->plain_ns = head->ticks_per_second == 1000000000;
	head->sync_ns = ticks_to_ns(d, ticks);
	if (!d->names_only && !d->placed) {
		d->trace->recording.sync_ns = head->sync_ns;
		d->trace->recording.utc_ns = head->utc_ns;
		d->trace->recording.cpu_possible = head->cpu_count;
	}
	return 0;
}

/* Eight i16 of time, ticks, ticks a second, pointer size: the same in both versions. */
static uint64_t read_clock(struct nettrace_decoder *d, struct cursor *c)
{
	d->head.utc_ns = read_utc(c);
	uint64_t ticks = cursor_u64(c);
	d->head.ticks_per_second = cursor_u64(c);
	d->pointer_size = cursor_u32(c);
	return ticks;
}

static int read_trace_v4(struct nettrace_decoder *d, struct cursor c, struct diag *diag)
{
	const uint8_t *at = c.at;
	uint64_t ticks = read_clock(d, &c);

	d->head.process_id = cursor_u32(&c);
	d->head.cpu_count = cursor_u32(&c);
	cursor_skip(&c, 4); /* sampling period of the runtime's own profiler */
	int r = take_clock(d, ticks, at, diag);
	if (r == 0 && !d->names_only && !d->placed && !trace_process(d->trace, d->head.process_id))
		return stream_no_memory(d, diag);
	return r;
}

struct span {
	const char *text;
	size_t len;
};

static struct span read_string(struct cursor *c)
{
	uint32_t len = cursor_varuint32(c);
	const uint8_t *text = cursor_take(c, len);

	return text ? (struct span){ (const char *)text, len } : (struct span){ "", 0 };
}

static bool span_is(struct span span, const char *text)
{
	return span.len == strlen(text) && memcmp(span.text, text, span.len) == 0;
}

static uint64_t span_number(struct span span)
{
	char text[24];
	uint64_t value = 0;

	if (span.len >= sizeof(text))
		return 0;
	memcpy(text, span.text, span.len);
	text[span.len] = '\0';
	return text_parse_u64(text, &value) ? value : 0;
}

static uint32_t number32(struct span span)
{
	uint64_t value = span_number(span);

	return value <= UINT32_MAX ? (uint32_t)value : 0;
}

static int read_trace_v6(struct nettrace_decoder *d, struct cursor c, struct diag *diag)
{
	const uint8_t *at = c.at;
	struct recording *recording = &d->trace->recording;
	uint64_t ticks = read_clock(d, &c);
	uint32_t count = cursor_u32(&c);
	uint64_t period_ns = 0;
	uint64_t page_size = 0;

	if (d->head.version)
		return stream_broken(d, offset_of(d, at), diag, "a second head");
	for (uint32_t i = 0; i < count && !c.short_read; i++) {
		struct span key = read_string(&c);
		struct span value = read_string(&c);
		if (span_is(key, KEY_CPU_COUNT))
			d->head.cpu_count = number32(value);
		else if (span_is(key, KEY_PROCESS_ID))
			d->head.process_id = number32(value);
		else if (span_is(key, KEY_PERIOD))
			period_ns = span_number(value);
		else if (span_is(key, KEY_PAGE_SIZE))
			page_size = span_number(value);
		else if (span_is(key, KEY_WRITER))
			d->ours = span_is(value, KEY_WRITER_OURS);
	}
	if (c.short_read)
		return stream_broken(d, offset_of(d, at), diag, "the head's texts pass its end");
	d->head.version = 6;
	int r = take_clock(d, ticks, at, diag);
	if (r < 0 || d->names_only)
		return r;
	recording->period_ns = period_ns;
	recording->page_size_bytes = page_size;
	if (d->head.process_id) {
		recording->recorder_process = trace_process(d->trace, d->head.process_id);
		if (!recording->recorder_process)
			return stream_no_memory(d, diag);
	}
	return 0;
}

/* Metadata */

static uint32_t span_text(struct nettrace_decoder *d, struct span span)
{
	return strtab_add(&d->trace->strings, span.text, span.len);
}

static uint32_t read_text16(struct nettrace_decoder *d, struct cursor *c)
{
	size_t units;
	const uint8_t *text = cursor_utf16z(c, &units);

	if (!text || !units)
		return 0;
	bytes_reset(&d->scratch);
	text_add_utf16(&d->scratch, text, units);
	return strtab_add(&d->trace->strings, (const char *)d->scratch.data, d->scratch.len);
}

/* Methods, modules, assemblies and the runtime. The rundown provider has the same ids for these. */
static bool is_of_code(uint32_t id)
{
	return (id >= CLR_ID_MethodLoad && id <= CLR_ID_MethodUnloadVerbose) ||
	       (id >= CLR_ID_DomainModuleLoad && id <= CLR_ID_AppDomainLoad) ||
	       id == CLR_ID_RuntimeInformationStart;
}

/* The kind that analyses select by: Universal.Events by name, Spoor's other events by id. */
static uint8_t kind_of(const struct trace *trace, const struct schema *schema)
{
	const char *name = trace_text(trace, schema->name);

	switch (schema->provider_kind) {
	case PROVIDER_UNIVERSAL_EVENTS:
		if (strcmp(name, "cpu") == 0)
			return EVENT_SAMPLE;
		if (strcmp(name, "cswitch") == 0)
			return EVENT_SWITCH;
		return strncmp(name, "syscall:", 8) == 0 ? EVENT_SYSCALL : EVENT_OTHER;
	case PROVIDER_CLR:
	case PROVIDER_CLR_RUNDOWN:
		return is_of_code(schema->event_id) ? EVENT_METHOD : EVENT_OTHER;
	case PROVIDER_OTHER:
	case PROVIDER_SAMPLE:
		return EVENT_OTHER;
	default:
		break;
	}
	for (size_t i = 1; i < KNOWN_EVENT_COUNT; i++)
		if (known_events[i].provider == schema->provider_kind &&
			known_events[i].event_id == schema->event_id)
			return known_events[i].kind;
	return EVENT_OTHER;
}

/* One that another stream (or an earlier record of this one) has brought; 0 none. */
static uint32_t find_same_schema(const struct trace *trace, const struct schema *schema)
{
	for (uint32_t i = trace->schemas.count - 1; i > 0; i--) {
		const struct schema *other = &trace->schemas.items[i];
		if (other->event_id == schema->event_id && other->provider == schema->provider &&
			schema_is_same(other, schema))
			return i;
	}
	return 0;
}

/*
 * Our writer describes events of the runtime for readers without the runtime's list. That
 * description has less than the list, so it is removed, as before the file was written.
 */
static void forget_known_layout(const struct trace *trace, struct schema *schema)
{
	enum provider_kind provider = (enum provider_kind)schema->provider_kind;
	struct clr_event event;

	if (!schema->name || !clr_event_provider(provider) ||
		!clr_event_find(provider, schema->event_id, schema->version, &event) ||
		strcmp(trace_text(trace, schema->name), event.symbol) != 0)
		return;
	schema->name = 0;
	vec_reset(&schema->fields);
}

/* Takes the schema over. */
static int add_schema(struct nettrace_decoder *d, uint32_t id, struct schema *schema)
{
	struct trace *trace = d->trace;

	schema->provider_kind = (uint8_t)provider_kind_of(trace_text(trace, schema->provider));
	/* The second layout of a Spoor event has id + 0x8000. */
	if (schema->provider_kind == PROVIDER_SPOOR && schema->event_id >= 0x8000)
		schema->event_id -= 0x8000;
	if (d->head.version == 6)
		forget_known_layout(trace, schema);
	schema->kind = kind_of(trace, schema);
	if (!schema->has_guid && provider_guid(schema->provider_kind)) {
		schema->has_guid = true;
		memcpy(schema->guid, provider_guid(schema->provider_kind), sizeof(schema->guid));
	}
	while (d->schema_of.count <= id)
		if (!vec_push(&d->schema_of))
			goto failed;
	uint32_t same = d->placed ? find_same_schema(trace, schema) : 0;
	if (same) {
		d->schema_of.items[id] = same;
		schema_done(schema);
		return 0;
	}
	if (!vec_add(&trace->schemas, *schema))
		goto failed;
	d->schema_of.items[id] = trace->schemas.count - 1;
	return 0;
failed:
	schema_done(schema);
	return -ENOMEM;
}

static struct field *add_field(struct schema *schema, uint32_t name, uint8_t type, unsigned depth)
{
	struct field *field = schema->fields.count < FIELDS_MAX ? vec_push(&schema->fields) : NULL;

	if (!field)
		return NULL;
	field->name = name;
	field->type = type;
	field->depth = (uint16_t)depth;
	return field;
}

static bool read_fields_v6(struct nettrace_decoder *d, struct cursor *c, struct schema *schema,
	unsigned depth);

/* A type, as a field of this name. The type of its elements follows in the same form. */
static bool read_type_v6(struct nettrace_decoder *d, struct cursor *c, struct schema *schema,
	uint32_t name, unsigned depth)
{
	uint8_t type = cursor_u8(c);
	struct field *field =
		depth <= FIELD_DEPTH_MAX ? add_field(schema, name, type, depth) : NULL;
	uint32_t at = schema->fields.count - 1;
	uint8_t innermost = type;

	if (!field || !cursor_left(c))
		return field && !c->short_read && !field_type_has_element(type) &&
		       type != FIELD_OBJECT;
	if (field_type_has_element(type)) {
		innermost = field->element = *c->at;
		if (!field_type_has_element(innermost))
			cursor_skip(c, 1);
		else if (!read_type_v6(d, c, schema, 0, depth + 1))
			return false;
	}
	if (innermost == FIELD_OBJECT && !read_fields_v6(d, c, schema, depth + 1))
		return false;
	if (type == FIELD_FIXED_ARRAY)
		schema->fields.items[at].count = cursor_u16(c);
	return !c->short_read;
}

/* False: not understood; the event is kept without fields. */
static bool read_fields_v6(struct nettrace_decoder *d, struct cursor *c, struct schema *schema,
	unsigned depth)
{
	uint16_t count = cursor_u16(c);

	if (depth > FIELD_DEPTH_MAX)
		return false;
	for (uint16_t i = 0; i < count; i++) {
		struct cursor sub = cursor_sub(c, cursor_u16(c));
		uint32_t name = span_text(d, read_string(&sub));
		if (!read_type_v6(d, &sub, schema, name, depth))
			return false;
	}
	return !c->short_read;
}

/* "0,3": the fields that are Booleans, or have them as elements, but are described as bytes. */
static void restore_bools(struct schema *schema, struct span list)
{
	for (size_t i = 0; i < list.len; i++) {
		uint32_t index = 0;
		for (; i < list.len && list.text[i] >= '0' && list.text[i] <= '9'; i++)
			index = index < FIELDS_MAX ? index * 10 + (uint32_t)(list.text[i] - '0')
						   : index;
		struct field *field =
			index < schema->fields.count ? &schema->fields.items[index] : NULL;
		if (field && field->type == FIELD_U8)
			field->type = FIELD_BOOL8;
		else if (field && field_type_has_element(field->type) && field->element == FIELD_U8)
			field->element = FIELD_BOOL8;
	}
}

/* A key and a value of the metadata: others than our own are not kept. */
static void read_key(struct cursor *c, struct schema *schema)
{
	struct span key = read_string(c);
	struct span value = read_string(c);

	if (span_is(key, METADATA_BYTE_BOOLS_KEY))
		restore_bools(schema, value);
}

static void read_optional(struct cursor c, struct schema *schema)
{
	while (cursor_left(&c) && !c.short_read) {
		const uint8_t *guid;
		switch (cursor_u8(&c)) {
		case METADATA_OPCODE:
			schema->opcode = cursor_u8(&c);
			break;
		case METADATA_KEYWORDS:
			schema->keywords = cursor_u64(&c);
			break;
		case METADATA_MESSAGE:
		case METADATA_DESCRIPTION:
			(void)read_string(&c); /* not kept */
			break;
		case METADATA_KEY_VALUE:
			read_key(&c, schema);
			break;
		case METADATA_GUID:
			guid = cursor_take(&c, sizeof(schema->guid));
			if (guid) {
				schema->has_guid = true;
				memcpy(schema->guid, guid, sizeof(schema->guid));
			}
			break;
		case METADATA_LEVEL:
			schema->level = cursor_u8(&c);
			break;
		case METADATA_VERSION:
			schema->version = cursor_u8(&c);
			break;
		default:
			return; /* of unknown length: what follows cannot be found */
		}
	}
}

static int nettrace_read_metadata_v6(struct nettrace_decoder *d, struct cursor c, struct diag *diag)
{
	cursor_skip(&c, cursor_u16(&c));
	while (cursor_left(&c) && !c.short_read) {
		const uint8_t *at = c.at;
		struct cursor row = cursor_sub(&c, cursor_u16(&c));
		struct schema schema = { 0 };
		uint32_t id = cursor_varuint32(&row);
		schema.provider = span_text(d, read_string(&row));
		schema.event_id = cursor_varuint32(&row);
		schema.name = span_text(d, read_string(&row));
		if (row.short_read)
			return stream_broken(d, offset_of(d, at), diag,
				"a metadata row is too short");
		if (!id || id > METADATA_ID_MAX)
			return stream_broken(d, offset_of(d, at), diag, "metadata id %u", id);
		struct cursor fields = row;
		if (!read_fields_v6(d, &fields, &schema, 0))
			vec_reset(&schema.fields);
		else
			read_optional(cursor_sub(&fields, cursor_u16(&fields)), &schema);
		if (add_schema(d, id, &schema) < 0)
			return stream_no_memory(d, diag);
	}
	if (c.short_read)
		return stream_broken(d, offset_of(d, c.end), diag,
			"the metadata passes the end of its block");
	return 0;
}

/* Version 4: the type precedes the name, and has 32 bits. */
static bool read_fields_v4(struct nettrace_decoder *d, struct cursor *c, struct schema *schema,
	unsigned depth)
{
	uint32_t count = cursor_u32(c);

	if (depth > FIELD_DEPTH_MAX || count > FIELDS_MAX)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t type = cursor_u32(c);
		if (!add_field(schema, 0, (uint8_t)type, depth) || type > FIELD_TEXT16 ||
			c->short_read)
			return false;
		uint32_t at = schema->fields.count - 1;
		if (type == FIELD_OBJECT && !read_fields_v4(d, c, schema, depth + 1))
			return false;
		schema->fields.items[at].name = read_text16(d, c);
	}
	return !c->short_read;
}

/* The second list, which has arrays: size, name and type of each field. */
static bool read_fields_v4_sized(struct nettrace_decoder *d, struct cursor *c,
	struct schema *schema, unsigned depth)
{
	uint32_t count = cursor_u32(c);

	if (depth > FIELD_DEPTH_MAX || count > FIELDS_MAX)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t size = cursor_u32(c);
		if (size < 4)
			return false;
		struct cursor sub = cursor_sub(c, size - 4);
		uint32_t name = read_text16(d, &sub);
		uint32_t type = cursor_u32(&sub);
		unsigned at_depth = depth;
		struct field *field = add_field(schema, name, (uint8_t)type, at_depth);
		if (!field || type > FIELD_ARRAY || sub.short_read)
			return false;
		while (type == FIELD_ARRAY) {
			type = cursor_u32(&sub);
			field->element = (uint8_t)type;
			if (type == FIELD_ARRAY)
				field = at_depth < FIELD_DEPTH_MAX
						? add_field(schema, 0, (uint8_t)type, ++at_depth)
						: NULL;
			if (!field || type > FIELD_ARRAY)
				return false;
		}
		if (type == FIELD_OBJECT && !read_fields_v4_sized(d, &sub, schema, at_depth + 1))
			return false;
		if (sub.short_read)
			return false;
	}
	return !c->short_read;
}

static void read_tags_v4(struct nettrace_decoder *d, struct cursor *c, struct schema *schema)
{
	while (cursor_left(c) && !c->short_read) {
		uint32_t size = cursor_u32(c);
		uint8_t kind = cursor_u8(c);
		struct cursor tag = cursor_sub(c, size);
		if (kind == 1) {
			schema->opcode = cursor_u8(&tag);
		} else if (kind == 2 && !schema->fields.count) {
			if (!read_fields_v4_sized(d, &tag, schema, 0))
				vec_reset(&schema->fields);
		}
	}
}

/* The payload of a metadata event. */
static int nettrace_read_metadata_v4(struct nettrace_decoder *d, struct cursor c, struct diag *diag)
{
	const uint8_t *at = c.at;
	struct schema schema = { 0 };
	uint32_t id = cursor_u32(&c);

	schema.provider = read_text16(d, &c);
	schema.event_id = cursor_u32(&c) & 0xffff;
	schema.name = read_text16(d, &c);
	schema.keywords = cursor_u64(&c);
	schema.version = (uint8_t)cursor_u32(&c);
	schema.level = (uint8_t)cursor_u32(&c);
	if (c.short_read)
		return stream_broken(d, offset_of(d, at), diag, "a metadata record is too short");
	if (!id || id > METADATA_ID_MAX)
		return stream_broken(d, offset_of(d, at), diag, "metadata id %u", id);
	if (cursor_left(&c)) {
		if (!read_fields_v4(d, &c, &schema, 0))
			vec_reset(&schema.fields);
		else
			read_tags_v4(d, &c, &schema);
	}
	if (add_schema(d, id, &schema) < 0)
		return stream_no_memory(d, diag);
	return 0;
}

/* Stacks */

/* *ret_at: where a range belongs in the sorted list. False when it overlaps one in the list. */
static bool place_range(const struct nettrace_decoder *d, uint32_t first, uint32_t count,
	uint32_t *ret_at)
{
	uint32_t low = 0;
	uint32_t high = d->ranges.count;

	while (low < high) {
		uint32_t middle = (low + high) / 2;
		if (d->ranges.items[middle].first <= first)
			low = middle + 1;
		else
			high = middle;
	}
	*ret_at = low;
	if (low && first - d->ranges.items[low - 1].first < d->ranges.items[low - 1].count)
		return false;
	return low == d->ranges.count || (uint64_t)first + count <= d->ranges.items[low].first;
}

static int add_range(struct nettrace_decoder *d, uint32_t first, uint32_t count, uint32_t stacks_at,
	uint32_t at)
{
	struct id_range *before = at ? &d->ranges.items[at - 1] : NULL;

	if (before && before->first + before->count == first &&
		before->at + before->count == stacks_at) {
		before->count += count;
		return 0;
	}
	if (!vec_push(&d->ranges))
		return -ENOMEM;
	struct id_range *range = &d->ranges.items[at];
	memmove(range + 1, range, (d->ranges.count - 1 - at) * sizeof(*range));
	*range = (struct id_range){ .first = first, .count = count, .at = stacks_at };
	return 0;
}

static uint32_t stack_find(const struct nettrace_decoder *d, uint32_t id)
{
	uint32_t low = 0;
	uint32_t high = d->ranges.count;

	while (low < high) {
		uint32_t middle = (low + high) / 2;
		const struct id_range *range = &d->ranges.items[middle];
		if (id < range->first)
			high = middle;
		else if (id - range->first >= range->count)
			low = middle + 1;
		else
			return d->stack_indexes.items[range->at + (id - range->first)];
	}
	return 0; /* not defined: no stack, as the stock reader has it */
}

static int nettrace_read_stacks(struct nettrace_decoder *d, struct cursor c, struct diag *diag)
{
	const uint8_t *at = c.at;
	uint32_t first = cursor_u32(&c);
	uint32_t count = cursor_u32(&c);
	uint32_t stacks_at = d->stack_indexes.count;
	uint32_t place;

	if (d->no_stacks)
		return 0;
	if (c.short_read || count > cursor_left(&c) / 4 || (uint64_t)first + count > UINT32_MAX)
		return stream_broken(d, offset_of(d, at), diag,
			"a stack block for %u stacks is too short", count);
	if (!count)
		return 0;
	if (!place_range(d, first, count, &place))
		return stream_broken(d, offset_of(d, at), diag,
			"stack ids from %u on are given twice", first);
	for (uint32_t i = 0; i < count; i++) {
		const uint8_t *stack_at = c.at;
		uint32_t size = cursor_u32(&c);
		const uint8_t *frames = cursor_take(&c, size);
		if (!frames || size > STACK_SIZE_MAX || size % d->pointer_size)
			return stream_broken(d, offset_of(d, stack_at), diag, "a stack of %u bytes",
				size);
		uint32_t depth = size / d->pointer_size;
		vec_reset(&d->frames);
		if (!vec_reserve(&d->frames, (size_t)depth + 1))
			return stream_no_memory(d, diag);
		struct cursor f = cursor_of(frames, size);
		if (d->pointer_size == 8) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
			if (size)
				memcpy(d->frames.items, frames, size);
#else
			for (uint32_t j = 0; j < depth; j++)
				d->frames.items[j] = cursor_u64(&f);
#endif
		} else {
			for (uint32_t j = 0; j < depth; j++)
				d->frames.items[j] = cursor_u32(&f);
		}
		uint32_t index = stack_table_intern(&d->trace->stacks, d->frames.items, depth);
		if ((depth && !index) || !vec_add(&d->stack_indexes, index))
			return stream_no_memory(d, diag);
	}
	return add_range(d, first, count, stacks_at, place) < 0 ? stream_no_memory(d, diag) : 0;
}

/* Sequence points, threads, labels */

static void forget_stacks(struct nettrace_decoder *d)
{
	vec_reset(&d->ranges);
	vec_reset(&d->stack_indexes);
	map_reset(&d->labels);
	vec_reset(&d->label_lists);
	bytes_reset(&d->label_bytes);
}

static int nettrace_read_sequence_point(struct nettrace_decoder *d, struct cursor c,
	struct diag *diag)
{
	const uint8_t *at = c.at;
	bool v4 = d->head.version == 4;

	uint64_t ticks = cursor_u64(&c);
	uint32_t flags = v4 ? 0 : cursor_u32(&c);
	uint32_t count = cursor_u32(&c);
	for (uint32_t i = 0; i < count && !c.short_read; i++) {
		uint64_t id = v4 ? cursor_u64(&c) : cursor_varuint(&c);
		uint32_t sequence = v4 ? cursor_u32(&c) : cursor_varuint32(&c);
		uint32_t row = row_find(d, id);
		if (!row && v4)
			row = row_add(d, id);
		if (row && !c.short_read)
			row_count_lost(d, &d->rows.items[row], sequence);
	}
	if (c.short_read)
		return stream_broken(d, offset_of(d, at), diag,
			"a sequence point for %u threads is too short", count);
	forget_stacks(d);
	/* No later event is older than this. A time after all events so far is not believed. */
	if (ticks > d->sorted_ticks)
		d->sorted_ticks = ticks < d->last_ticks ? ticks : d->last_ticks;
	if (flags & SEQUENCE_POINT_FORGETS_THREADS)
		forget_rows(d);
	if (flags & SEQUENCE_POINT_FORGETS_METADATA)
		vec_reset(&d->schema_of);
	return 0;
}

/*
 * A new row's thread. Rows precede their events, so a second row of a main thread is a reused pid.
 */
static uint32_t row_thread(struct nettrace_decoder *d, uint32_t pid, uint32_t tid)
{
	struct trace *trace = d->trace;
	uint32_t thread = trace_thread(trace, pid, tid);

	if (thread && d->ours && pid == tid && thread < d->has_row.count &&
		d->has_row.items[thread]) {
		uint32_t process = trace_new_process(trace, pid);
		thread = process ? trace->processes.items[process].main_thread : 0;
	}
	while (d->has_row.count <= thread)
		if (!vec_push(&d->has_row))
			return 0;
	d->has_row.items[thread] = 1;
	return thread;
}

static int nettrace_read_threads(struct nettrace_decoder *d, struct cursor c, struct diag *diag)
{
	while (cursor_left(&c) && !c.short_read) {
		const uint8_t *at = c.at;
		struct cursor row = cursor_sub(&c, cursor_u16(&c));
		uint64_t id = cursor_varuint(&row);
		struct span name = { "", 0 };
		uint64_t pid = 0;
		uint64_t tid = 0;
		bool known = true;
		while (known && cursor_left(&row)) {
			switch (cursor_u8(&row)) {
			case THREAD_NAME:
				name = read_string(&row);
				break;
			case THREAD_PID:
				pid = cursor_varuint(&row);
				break;
			case THREAD_TID:
				tid = cursor_varuint(&row);
				break;
			case THREAD_KEY_VALUE:
				(void)read_string(&row); /* key and value: not kept */
				(void)read_string(&row);
				break;
			default:
				/* a tag of unknown length: the fields before it are used */
				known = false;
			}
		}
		if (row.short_read)
			return stream_broken(d, offset_of(d, at), diag,
				"a thread row is too short");
		if (row_find(d, id))
			return stream_broken(d, offset_of(d, at), diag,
				"thread row %llu is given twice", (unsigned long long)id);
		uint32_t index = row_add(d, id);
		if (!index)
			return d->rows.count > ROWS_MAX
				       ? stream_broken(d, offset_of(d, at), diag,
						 "more than %u thread rows", ROWS_MAX)
				       : stream_no_memory(d, diag);
		/* Numbers begin with 1 for every row, so those before the first event are lost. */
		d->rows.items[index].seen = true;
		d->rows.items[index].no_cpu = !pid && !tid && span_is(name, THREAD_NO_CPU_NAME);
		if ((!pid && !tid) || d->names_only)
			continue;
		if (!pid)
			pid = d->head.process_id;
		uint32_t thread = row_thread(d, (uint32_t)pid, (uint32_t)(tid ? tid : pid));
		if (!thread)
			return stream_no_memory(d, diag);
		if (name.len && !d->trace->threads.items[thread].name)
			d->trace->threads.items[thread].name = span_text(d, name);
		d->rows.items[index].thread_index = thread;
	}
	if (c.short_read)
		return stream_broken(d, offset_of(d, c.end), diag,
			"the thread rows pass the end of their block");
	return 0;
}

/* The list of the event at hand; NULL when there is no memory. */
static struct label_list *keep_label(struct nettrace_decoder *d, uint32_t id)
{
	uint32_t at = map_get(&d->labels, id);

	if (at)
		return &d->label_lists.items[at - 1];
	if (!vec_push(&d->label_lists))
		return NULL;
	if (!map_put(&d->labels, id, d->label_lists.count)) {
		d->label_lists.count--;
		return NULL;
	}
	return vec_last(&d->label_lists);
}

/* These labels replace what the event's metadata states. False: no memory. */
static bool read_override(struct nettrace_decoder *d, struct cursor *c, unsigned kind, uint32_t id)
{
	struct label_list none = { 0 };
	struct label_list *list = d->names_only ? &none : keep_label(d, id);

	if (!list)
		return false;
	struct event_labels *labels = &list->labels;

	switch (kind) {
	case LABEL_OPCODE:
		labels->opcode = cursor_u8(c);
		labels->which |= EVENT_LABEL_OPCODE;
		break;
	case LABEL_KEYWORDS:
		labels->keywords = cursor_u64(c);
		labels->which |= EVENT_LABEL_KEYWORDS;
		break;
	case LABEL_LEVEL:
		labels->level = cursor_u8(c);
		labels->which |= EVENT_LABEL_LEVEL;
		break;
	default:
		labels->version = cursor_u8(c);
		labels->which |= EVENT_LABEL_VERSION;
		break;
	}
	return true;
}

/*
 * A label with a key, or an id of a trace or span: bytes are kept, but for our own late_ns. False:
 * no memory.
 */
static bool read_label(struct nettrace_decoder *d, struct cursor *c, unsigned kind, uint32_t id)
{
	const uint8_t *begin = c->at - 1; /* the kind */
	struct event_label label;

	if (!event_label_read(c, kind, &label))
		return true;
	bool late = kind == LABEL_NUMBER &&
		    span_is((struct span){ label.key, label.key_len }, LABEL_LATE_KEY) &&
		    label.number > 0;
	if (!late && d->names_only)
		return true;
	struct label_list *list = keep_label(d, id);
	if (!list)
		return false;
	if (late) {
		list->late_ns = label.number > UINT32_MAX ? UINT32_MAX : (uint32_t)label.number;
		return true;
	}
	/* the first one, or of a list that is given again */
	if (list->bytes_at + list->labels.list_size != d->label_bytes.len) {
		list->bytes_at = (uint32_t)d->label_bytes.len;
		list->labels.list_size = 0;
	}
	size_t size = (size_t)(c->at - begin);
	bytes_add(&d->label_bytes, begin, size);
	list->labels.list_size += (uint32_t)size;
	return !d->label_bytes.failed;
}

/* All labels are kept that have a known kind. */
static int nettrace_read_labels(struct nettrace_decoder *d, struct cursor c, struct diag *diag)
{
	const uint8_t *at = c.at;
	uint32_t first = cursor_u32(&c);
	uint32_t count = cursor_u32(&c);

	for (uint32_t i = 0; i < count; i++) {
		uint8_t kind;
		do {
			kind = cursor_u8(&c);
			unsigned k = kind & LABEL_KIND_MASK;
			if (event_label_has_kind(k)) {
				if (!c.short_read && !read_label(d, &c, k, first + i))
					return stream_no_memory(d, diag);
			} else if (k == LABEL_ACTIVITY || k == LABEL_RELATED_ACTIVITY) {
				const uint8_t *guid = cursor_take(&c, 16);
				struct label_list *list =
					guid && !d->names_only ? keep_label(d, first + i) : NULL;
				if (!list && guid && !d->names_only)
					return stream_no_memory(d, diag);
				if (!list)
					continue;
				list->has_activity = true;
				memcpy(list->activity + (k == LABEL_RELATED_ACTIVITY ? 16 : 0),
					guid, 16);
			} else if (k >= LABEL_OPCODE && k <= LABEL_VERSION) {
				if (!c.short_read && !read_override(d, &c, k, first + i))
					return stream_no_memory(d, diag);
			} else {
				cursor_skip(&c, SIZE_MAX);
			}
		} while (!(kind & LABEL_LAST) && !c.short_read);
		if (c.short_read)
			return stream_broken(d, offset_of(d, at), diag,
				"the label lists pass the end of their block");
		if (d->label_bytes.len > LABEL_BYTES_MAX)
			return stream_broken(d, offset_of(d, at), diag,
				"more than %u bytes of labels before a sequence point",
				LABEL_BYTES_MAX);
	}
	return 0;
}

/* Events */

static int nettrace_begin_events(struct nettrace_decoder *d, struct cursor c, struct diag *diag)
{
	const uint8_t *at = c.at;
	uint16_t header = cursor_u16(&c);
	uint16_t flags = cursor_u16(&c);

	if (header < EVENTS_HEADER_SIZE || header > (size_t)(c.end - at))
		return stream_broken(d, offset_of(d, at), diag,
			"an event block with a header of %u bytes", header);
	d->compressed = flags & EVENTS_COMPRESSED;
	d->begin = (size_t)(at - d->buffer) + header;
	d->events_end = offset_of(d, c.end);
	d->metadata_id = d->sequence = d->cpu = d->stack = d->label = d->size = 0;
	d->capture = d->thread = d->ticks = 0;
	d->schema_index = d->capture_row = d->thread_index = d->stack_index = d->late_ns = 0;
	d->has_labels = false;
	d->has_activity = false;
	memset(d->activity, 0, sizeof(d->activity));
	if (d->head.version == 6) {
		/*
		 * Row 0 is a row like any other (other writers use it for capture), and the
		 * default.
		 */
		d->capture_row = row_find(d, 0);
		d->thread_index = d->capture_row ? d->rows.items[d->capture_row].thread_index : 0;
	}
	return 0;
}

/*
 * LEB128. With 10 bytes left no check is needed inside. *failed: no more bytes, or above 64 bits.
 */
static inline uint64_t varuint(const uint8_t **at, const uint8_t *end, bool *failed)
{
	const uint8_t *p = *at;

	if (__builtin_expect(p < end && *p < 0x80, 1)) {
		*at = p + 1;
		return *p;
	}
	uint64_t value = 0;
	for (unsigned shift = 0; p < end; shift += 7) {
		uint8_t byte = *p++;
		if (shift == 63 && byte > 1)
			break;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80) {
			*at = p;
			return value;
		}
		if (shift == 63)
			break;
	}
	*failed = true;
	*at = end;
	return 0;
}

static inline uint32_t varuint32(const uint8_t **at, const uint8_t *end, bool *failed)
{
	uint64_t value = varuint(at, end, failed);

	if (__builtin_expect(value > UINT32_MAX, 0)) {
		*failed = true;
		return 0;
	}
	return (uint32_t)value;
}

/*
 * The row that has captured the event; made for a thread id of version 4. 0: undefined, or no
 * memory.
 */
static uint32_t row_for(struct nettrace_decoder *d, uint64_t id)
{
	uint32_t row = row_find(d, id);

	return row || d->head.version == 6 ? row : row_add(d, id);
}

static int take_thread(struct nettrace_decoder *d, const uint8_t *at, struct diag *diag)
{
	if (d->names_only)
		return 0;
	uint32_t row = row_for(d, d->thread);

	if (!row)
		return d->head.version == 6 || d->rows.count > ROWS_MAX
			       ? stream_broken(d, offset_of(d, at), diag,
					 "an event of thread row %llu, which is not defined",
					 (unsigned long long)d->thread)
			       : stream_no_memory(d, diag);
	if (d->head.version == 4 && !d->rows.items[row].thread_index) {
		d->rows.items[row].thread_index =
			d->placed ? d->place(d->place_context, d->thread)
				  : trace_thread(d->trace, d->head.process_id, (uint32_t)d->thread);
		if (!d->rows.items[row].thread_index)
			return stream_no_memory(d, diag);
	}
	d->thread_index = d->rows.items[row].thread_index;
	return 0;
}

static int take_capture(struct nettrace_decoder *d, const uint8_t *at, struct diag *diag)
{
	d->capture_row = row_for(d, d->capture);
	if (d->capture_row)
		return 0;
	return d->head.version == 6 || d->rows.count > ROWS_MAX
		       ? stream_broken(d, offset_of(d, at), diag,
				 "an event captured by row %llu, which is not defined",
				 (unsigned long long)d->capture)
		       : stream_no_memory(d, diag);
}

static void take_label(struct nettrace_decoder *d)
{
	uint32_t at = d->label ? map_get(&d->labels, d->label) : 0;
	const struct label_list *list = at ? &d->label_lists.items[at - 1] : NULL;

	d->late_ns = list ? list->late_ns : 0;
	d->has_labels = list && (list->labels.which || list->labels.list_size);
	if (d->has_labels) {
		d->event_labels = list->labels;
		d->event_labels.list =
			list->labels.list_size ? d->label_bytes.data + list->bytes_at : NULL;
	}
	d->has_activity = list && list->has_activity;
	if (d->has_activity)
		memcpy(d->activity, list->activity, sizeof(d->activity));
}

/* Version 4 has the guids in the event; all zero means none. */
static void take_activity(struct nettrace_decoder *d)
{
	static const uint8_t none[EVENT_ACTIVITY_SIZE];

	d->has_activity = memcmp(d->activity, none, sizeof(none)) != 0;
}

/* What an event is worth: read from the begin of its payload. */
static uint64_t value_of(const struct nettrace_decoder *d, const struct schema *schema,
	const uint8_t *payload, uint32_t size)
{
	struct payload_cpu sample;

	if (schema->kind == EVENT_SAMPLE)
		return payload_read_cpu(payload, size, d->trace->recording.period_ns, &sample) == 0
			       ? sample.weight_ns
			       : 0;
	struct cursor c = cursor_of(payload, size);
	if (schema->kind == EVENT_LOSS) {
		size_t units;
		(void)cursor_utf16z(&c, &units); /* source and unit precede the count */
		(void)cursor_utf16z(&c, &units);
	}
	return cursor_varuint(&c);
}

/* An event without its compression, both versions. */
static int read_plain_event(struct nettrace_decoder *d, const uint8_t **ret_payload,
	struct diag *diag)
{
	const uint8_t *at = d->buffer + d->begin;
	const uint8_t *end = d->buffer + (d->events_end - d->base);
	bool v4 = d->head.version == 4;
	struct cursor c = cursor_of(at, (size_t)(end - at));
	uint32_t size = cursor_u32(&c);
	struct cursor row = cursor_sub(&c, size);

	uint32_t metadata = cursor_u32(&row);
	d->metadata_id = metadata & ~EVENT_UNSORTED;
	d->sorted = !(metadata & EVENT_UNSORTED);
	d->sequence = cursor_u32(&row);
	d->thread = cursor_u64(&row);
	d->capture = cursor_u64(&row);
	d->cpu = cursor_u32(&row);
	d->stack = cursor_u32(&row);
	d->ticks = cursor_u64(&row);
	const uint8_t *activity = v4 ? cursor_take(&row, EVENT_ACTIVITY_SIZE) : NULL;
	if (activity)
		memcpy(d->activity, activity, EVENT_ACTIVITY_SIZE);
	if (!v4)
		d->label = cursor_u32(&row);
	d->size = cursor_u32(&row);
	*ret_payload = cursor_take(&row, d->size);
	if (!*ret_payload || c.short_read)
		return stream_broken(d, offset_of(d, at), diag,
			"an event of %u bytes passes the end of its block", size);
	if (v4 && cursor_left(&c)) /* each begins at a multiple of 4 */
		cursor_skip(&c, (size_t)(-offset_of(d, c.at) & 3));
	d->begin = (size_t)(c.at - d->buffer);
	int r = take_capture(d, at, diag);
	if (r == 0)
		r = take_thread(d, at, diag);
	if (v4)
		take_activity(d);
	else
		take_label(d);
	d->stack_index = stack_find(d, d->stack);
	return r;
}

static int read_compressed_event(struct nettrace_decoder *d, const uint8_t **ret_payload,
	struct diag *diag)
{
	const uint8_t *const at = d->buffer + d->begin;
	const uint8_t *const end = d->buffer + (d->events_end - d->base);
	const uint8_t *p = at + 1;
	uint8_t flags = *at;
	bool failed = false;
	bool v4 = d->head.version == 4;
	bool new_label = false;
	int r;

	if (flags & HAS_METADATA)
		d->metadata_id = varuint32(&p, end, &failed);
	if (flags & HAS_CAPTURE) {
		d->sequence += varuint32(&p, end, &failed) + 1;
		uint64_t capture = varuint(&p, end, &failed);
		d->cpu = varuint32(&p, end, &failed);
		if (capture != d->capture || !d->capture_row) {
			d->capture = capture;
			r = failed ? 0 : take_capture(d, at, diag);
			if (r < 0)
				return r;
		}
	} else if (d->metadata_id || !v4) {
		d->sequence++;
	}
	if (flags & HAS_THREAD) {
		d->thread = varuint(&p, end, &failed);
		r = failed ? 0 : take_thread(d, at, diag);
		if (r < 0)
			return r;
	}
	if (flags & HAS_STACK) {
		d->stack = varuint32(&p, end, &failed);
		d->stack_index = stack_find(d, d->stack);
	}
	d->ticks += varuint(&p, end, &failed);
	if (v4) {
		size_t guids = (flags & HAS_ACTIVITY_V4 ? 16u : 0) +
			       (flags & HAS_RELATED_ACTIVITY_V4 ? 16u : 0);
		if (guids > (size_t)(end - p)) {
			failed = true;
		} else if (guids) {
			if (flags & HAS_ACTIVITY_V4)
				memcpy(d->activity, p, 16);
			if (flags & HAS_RELATED_ACTIVITY_V4)
				memcpy(d->activity + 16, p + guids - 16, 16);
			p += guids;
			take_activity(d);
		}
	} else if (flags & HAS_LABELS) {
		d->label = varuint32(&p, end, &failed);
		new_label = true;
	}
	if (flags & HAS_SIZE)
		d->size = varuint32(&p, end, &failed);
	if (failed || d->size > (size_t)(end - p))
		return stream_broken(d, offset_of(d, at), diag,
			"an event passes the end of its block");
	if (new_label)
		take_label(d);
	d->sorted = flags & IS_SORTED;
	*ret_payload = p;
	d->begin = (size_t)(p + d->size - d->buffer);
	return 0;
}

static int nettrace_read_event(struct nettrace_decoder *d, struct event *ret_event,
	struct diag *diag)
{
	const uint64_t at = d->base + d->begin;
	uint32_t last_metadata = d->metadata_id;
	const uint8_t *payload;
	int r = d->compressed ? read_compressed_event(d, &payload, diag)
			      : read_plain_event(d, &payload, diag);

	if (r < 0)
		return r;
	/*
	 * Not of metadata records, which have the time at which they were written: older events
	 * follow.
	 */
	if (d->sorted)
		d->sorted_ticks = d->ticks;
	if (d->ticks > d->last_ticks)
		d->last_ticks = d->ticks;
	if (d->metadata_id != last_metadata || !d->schema_index) {
		d->schema_index = d->metadata_id < d->schema_of.count
					  ? d->schema_of.items[d->metadata_id]
					  : 0;
		if (!d->schema_index)
			return stream_broken(d, at, diag,
				"an event of metadata id %u, which is not defined", d->metadata_id);
	}
	struct row *row = &d->rows.items[d->capture_row];
	if (row->seen && d->sequence == row->last_sequence + 1) {
		row->last_sequence = d->sequence;
	} else {
		/* For the first event of a version 4 thread nothing is known to compare with. */
		row_count_lost(d, row, d->sequence - 1);
		row->last_sequence = d->sequence;
	}
	uint64_t lost = d->pending_lost;
	d->pending_lost = 0;
	if (lost > UINT32_MAX) {
		d->pending_lost = lost - UINT32_MAX;
		lost = UINT32_MAX;
	}
	const struct schema *schema = &d->trace->schemas.items[d->schema_index];
	*ret_event = (struct event){
		.time_ns = ticks_to_ns(d, d->ticks),
		.payload = payload,
		.activity = d->has_activity ? d->activity : NULL,
		.labels = d->has_labels ? &d->event_labels : NULL,
		.payload_size = d->size,
		.thread_index = d->thread_index,
		.stack_index = d->stack_index,
		.schema_index = d->schema_index,
		.lost_before = (uint32_t)lost,
		.late_ns = d->late_ns,
		.cpu = row->no_cpu || d->cpu > INT32_MAX ? EVENT_CPU_UNKNOWN : (int32_t)d->cpu,
		.kind = schema->kind,
	};
	if (schema->provider_kind == PROVIDER_UNIVERSAL_EVENTS || schema->kind == EVENT_LOSS)
		ret_event->value = value_of(d, schema, payload, d->size);
	if (!d->names_only && !d->placed && ret_event->time_ns > d->trace->recording.end_ns)
		d->trace->recording.end_ns = ret_event->time_ns;
	return 1;
}

/* Version 4: metadata is sent as events, too. */
static int nettrace_read_metadata_events(struct nettrace_decoder *d, struct cursor c,
	struct diag *diag)
{
	size_t content_end = (size_t)(c.end - d->buffer);
	int r = nettrace_begin_events(d, c, diag);

	while (r == 0 && d->begin < content_end) {
		const uint8_t *payload;
		r = d->compressed ? read_compressed_event(d, &payload, diag)
				  : read_plain_event(d, &payload, diag);
		if (r == 0)
			r = nettrace_read_metadata_v4(d, cursor_of(payload, d->size), diag);
	}
	return r;
}

/* The containers */

static size_t bytes_left(const struct nettrace_decoder *d)
{
	return d->end - d->begin;
}

static const uint8_t magic[8] = { 'N', 'e', 't', 't', 'r', 'a', 'c', 'e' };
static const uint8_t serialization[20] = { '!', 'F', 'a', 's', 't', 'S', 'e', 'r', 'i', 'a', 'l',
	'i', 'z', 'a', 't', 'i', 'o', 'n', '.', '1' };

/* 1: done, look again; 0: more bytes needed. */
static int read_head(struct nettrace_decoder *d, struct diag *diag)
{
	struct cursor c = cursor_of(d->buffer + d->begin, bytes_left(d));
	size_t have = bytes_left(d) < sizeof(magic) ? bytes_left(d) : sizeof(magic);

	if (have && memcmp(c.at, magic, have) != 0)
		return stream_broken(d, 0, diag, "it does not begin as a nettrace file does");
	if (bytes_left(d) < 12)
		return 0;
	cursor_skip(&c, sizeof(magic));
	uint32_t word = cursor_u32(&c);
	if (word == 0) {
		uint32_t major = cursor_u32(&c);
		cursor_skip(&c, 4); /* a higher minor version reads the same */
		if (c.short_read)
			return 0;
		if (major != 6)
			return stream_broken(d, 12, diag, "nettrace version %u is not known here",
				major);
	} else {
		const uint8_t *text = cursor_take(&c, sizeof(serialization));
		if (!text)
			return 0;
		if (word != sizeof(serialization) ||
			memcmp(text, serialization, sizeof(serialization)) != 0)
			return stream_broken(d, 8, diag,
				"it does not begin as a nettrace file does");
		d->head.version = 4;
	}
	d->begin = (size_t)(c.at - d->buffer);
	d->state = STATE_BLOCK;
	return 1;
}

static int read_block_v6(struct nettrace_decoder *d, struct diag *diag)
{
	struct cursor c = cursor_of(d->buffer + d->begin, bytes_left(d));
	const uint8_t *at = c.at;
	uint32_t word = cursor_u32(&c);

	if (c.short_read)
		return 0;
	uint32_t kind = word >> BLOCK_SIZE_BITS;
	if (kind == BLOCK_END) {
		if (!d->head.version)
			return stream_broken(d, offset_of(d, at), diag, "it ends before its head");
		d->begin += 4;
		d->state = STATE_ENDED;
		return 1;
	}
	struct cursor body = cursor_sub(&c, word & ((UINT32_C(1) << BLOCK_SIZE_BITS) - 1));
	if (c.short_read)
		return 0;
	if (!d->head.version && kind != BLOCK_TRACE)
		return stream_broken(d, offset_of(d, at), diag,
			"a block of kind %u before the head", kind);
	d->begin = (size_t)(c.at - d->buffer);
	int r = 0;
	switch (kind) {
	case BLOCK_TRACE:
		r = read_trace_v6(d, body, diag);
		break;
	case BLOCK_EVENT:
		r = nettrace_begin_events(d, body, diag);
		if (r == 0)
			d->state = STATE_EVENTS;
		break;
	case BLOCK_METADATA:
		r = nettrace_read_metadata_v6(d, body, diag);
		break;
	case BLOCK_SEQUENCE_POINT:
		r = nettrace_read_sequence_point(d, body, diag);
		break;
	case BLOCK_STACK:
		r = nettrace_read_stacks(d, body, diag);
		break;
	case BLOCK_THREAD:
		r = nettrace_read_threads(d, body, diag);
		break;
	case BLOCK_LABELS:
		r = nettrace_read_labels(d, body, diag);
		break;
	default:
		/* Unknown kinds are skipped, as the format requires; a removed row may stay. */
		break;
	}
	return r < 0 ? r : 1;
}

/*
 * One object of version 4:
 *
 *   05 05 01, i32 version, i32 least reader, i32 name length, name, 06, payload, 06
 *
 * The payload of all but Trace is i32 size, filler up to a multiple of 4 in the stream, content.
 */
static int read_object_v4(struct nettrace_decoder *d, struct diag *diag)
{
	struct cursor c = cursor_of(d->buffer + d->begin, bytes_left(d));
	const uint8_t *at = c.at;
	uint8_t tag = cursor_u8(&c);

	if (c.short_read)
		return 0;
	if (tag == 1) {
		d->begin++;
		d->state = STATE_ENDED;
		return 1;
	}
	const uint8_t *tags = cursor_take(&c, 2);
	if (tag != 5 || (tags && (tags[0] != 5 || tags[1] != 1)))
		return stream_broken(d, offset_of(d, at), diag,
			"no object begins where one should");
	uint32_t version = cursor_u32(&c);
	cursor_skip(&c, 4);
	uint32_t name_len = cursor_u32(&c);
	if (!c.short_read && name_len > V4_NAME_MAX)
		return stream_broken(d, offset_of(d, at), diag,
			"an object whose type has a name of %u bytes", name_len);
	struct span name = { (const char *)cursor_take(&c, name_len), name_len };
	uint8_t end_tag = cursor_u8(&c);
	if (c.short_read)
		return 0;
	if (end_tag != 6)
		return stream_broken(d, offset_of(d, at), diag,
			"an object whose type does not end");
	struct cursor body;
	bool trace = span_is(name, "Trace");
	if (version > (trace ? 4u : 2u))
		return stream_broken(d, offset_of(d, at), diag,
			"an object of version %u is not known here", version);
	if (trace) {
		body = cursor_sub(&c, 48);
	} else {
		uint32_t size = cursor_u32(&c);
		if (!c.short_read && size > V4_BLOCK_SIZE_MAX)
			return stream_broken(d, offset_of(d, at), diag, "a block of %u bytes",
				size);
		if (!c.short_read)
			cursor_skip(&c, (size_t)(-offset_of(d, c.at) & 3));
		body = cursor_sub(&c, size);
	}
	end_tag = cursor_u8(&c);
	if (c.short_read)
		return 0;
	if (end_tag != 6)
		return stream_broken(d, offset_of(d, at), diag,
			"an object does not end where it should");
	if (trace == (d->pointer_size != 0))
		return stream_broken(d, offset_of(d, at), diag,
			trace ? "a second head" : "a block before the head");
	size_t next = (size_t)(c.at - d->buffer);
	int r;
	if (trace) {
		r = read_trace_v4(d, body, diag);
	} else if (span_is(name, "EventBlock")) {
		r = nettrace_begin_events(d, body, diag);
		if (r == 0)
			d->state = STATE_EVENTS;
		return r < 0 ? r : 1; /* the end tag is read after the last event */
	} else if (span_is(name, "MetadataBlock")) {
		r = nettrace_read_metadata_events(d, body, diag);
	} else if (span_is(name, "StackBlock")) {
		r = nettrace_read_stacks(d, body, diag);
	} else if (span_is(name, "SPBlock")) {
		r = nettrace_read_sequence_point(d, body, diag);
	} else {
		return stream_broken(d, offset_of(d, at), diag, "an object of unknown type '%.*s'",
			(int)name.len, name.text);
	}
	d->begin = next;
	return r < 0 ? r : 1;
}

int nettrace_decoder_next(struct nettrace_decoder *d, struct event *ret_event, struct diag *diag)
{
	int r = 1;

	while (r > 0) {
		switch (d->state) {
		case STATE_EVENTS:
			if (d->base + d->begin < d->events_end)
				return nettrace_read_event(d, ret_event, diag);
			if (d->head.version == 4)
				d->begin++; /* the end tag, checked before */
			d->state = STATE_BLOCK;
			break;
		case STATE_HEAD:
			r = bytes_left(d) ? read_head(d, diag) : 0;
			break;
		case STATE_BLOCK:
			r = !bytes_left(d)         ? 0
			    : d->head.version == 4 ? read_object_v4(d, diag)
						   : read_block_v6(d, diag);
			break;
		case STATE_ENDED:
			return 0;
		case STATE_BROKEN:
			return diag_set(diag, d->broken.error, "%s", d->broken.text);
		}
	}
	return r;
}

bool nettrace_decoder_ended(const struct nettrace_decoder *d)
{
	return d->state == STATE_ENDED;
}

int nettrace_decoder_finish(struct nettrace_decoder *d, struct diag *diag)
{
	uint64_t at = d->base + d->begin;

	switch (d->state) {
	case STATE_ENDED:
		return 0;
	case STATE_BROKEN:
		return diag_set(diag, d->broken.error, "%s", d->broken.text);
	case STATE_HEAD:
		if (!bytes_left(d))
			return stream_broken(d, 0, diag, "it is empty");
		return stream_broken(d, 0, diag, "it ends after %zu bytes, inside its head",
			bytes_left(d));
	default:
		if (bytes_left(d))
			return stream_broken(d, at, diag, "it ends %zu bytes later, inside a block",
				bytes_left(d));
		return stream_broken(d, at, diag, "it ends there, without an end mark");
	}
}

const struct nettrace_head *nettrace_decoder_head(const struct nettrace_decoder *d)
{
	return &d->head;
}

uint64_t nettrace_decoder_thread_id(const struct nettrace_decoder *d)
{
	return d->thread;
}

uint64_t nettrace_decoder_lost(const struct nettrace_decoder *d)
{
	return d->lost;
}

void nettrace_decoder_place(struct nettrace_decoder *d, nettrace_thread_fn *thread, void *context)
{
	d->placed = true;
	d->place = thread;
	d->place_context = context;
}

uint64_t nettrace_decoder_sorted_ns(const struct nettrace_decoder *d)
{
	return d->sorted_ticks && d->head.ticks_per_second ? ticks_to_ns(d, d->sorted_ticks) : 0;
}

bool nettrace_decoder_move_stacks(struct nettrace_decoder *d, struct stack_table *fresh)
{
	vec_reset(&d->moved);
	if (!vec_reserve(&d->moved, (size_t)d->stack_indexes.count + 1))
		return false;
	for (uint32_t i = 0; i < d->stack_indexes.count; i++) {
		uint32_t count;
		const uint64_t *frames =
			stack_table_get(&d->trace->stacks, d->stack_indexes.items[i], &count);
		uint32_t index = count ? stack_table_intern(fresh, frames, count) : 0;
		if (count && !index)
			return false;
		(void)vec_add(&d->moved, index); /* there is room */
	}
	return true;
}

void nettrace_decoder_stacks_moved(struct nettrace_decoder *d)
{
	for (uint32_t i = 0; i < d->moved.count; i++)
		d->stack_indexes.items[i] = d->moved.items[i];
	vec_reset(&d->moved);
	d->stack_index = stack_find(d, d->stack);
}

/* The source */

struct nettrace_file {
	struct input in;
	struct nettrace_decoder *decoder;
};

static bool nettrace_probe(const uint8_t *head, size_t len)
{
	return len >= sizeof(magic) && memcmp(head, magic, sizeof(magic)) == 0;
}

static int nettrace_open(struct input *in, struct trace *trace, bool stacks,
	struct source **ret_source, struct diag *diag)
{
	struct nettrace_file *file = calloc(1, sizeof(*file));
	const char *name = in->name ? in->name : "memory";

	if (file)
		file->decoder = nettrace_decoder_new(trace, name, stacks ? 0 : NETTRACE_NO_STACKS);
	if (!file || !file->decoder) {
		free(file);
		return diag_set(diag, -ENOMEM, "cannot read '%s': %m", name);
	}
	file->in = *in;
	*in = (struct input){ .fd = -1 };
	*ret_source = (struct source *)(void *)file;
	return 0;
}

static int nettrace_next(struct source *source, struct event *ret_event, struct diag *diag)
{
	struct nettrace_file *file = (struct nettrace_file *)(void *)source;
	struct nettrace_decoder *d = file->decoder;

	for (;;) {
		int r = nettrace_decoder_next(d, ret_event, diag);
		if (r || nettrace_decoder_ended(d))
			return r;
		uint8_t *room = nettrace_decoder_room(d, INPUT_WINDOW);
		if (!room)
			return stream_no_memory(d, diag);
		ssize_t n = input_read(&file->in, room, INPUT_WINDOW, diag);
		if (n < 0)
			return (int)n;
		if (n == 0)
			return nettrace_decoder_finish(d, diag);
		nettrace_decoder_filled(d, (size_t)n);
	}
}

static void nettrace_close(struct source *source)
{
	struct nettrace_file *file = (struct nettrace_file *)(void *)source;

	if (!file)
		return;
	nettrace_decoder_free(file->decoder);
	input_close(&file->in);
	free(file);
}

static uint64_t nettrace_sorted_ns(const struct source *source)
{
	return nettrace_decoder_sorted_ns(
		((const struct nettrace_file *)(const void *)source)->decoder);
}

static uint64_t nettrace_lost(const struct source *source)
{
	return ((const struct nettrace_file *)(const void *)source)->decoder->lost;
}

const struct source_ops nettrace_source = {
	.name = "nettrace",
	.probe = nettrace_probe,
	.open = nettrace_open,
	.next = nettrace_next,
	.sorted_ns = nettrace_sorted_ns,
	.lost = nettrace_lost,
	.close = nettrace_close,
};
