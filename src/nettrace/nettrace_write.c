/*
 * Writing nettrace version 6. See nettrace_write.h for what the sink promises,
 * docs/formats/nettrace.md for the layout.
 *
 * A flush becomes one piece of bytes: [SequencePoint] Metadata Thread LabelList Stack Event... . It
 * is encoded once; the ids assigned in it count as written from then on, so when write() fails the
 * piece is kept and written again later, never encoded again.
 *
 * There are two capture rows, whose sequence numbers carry the losses: one for everything that has
 * a CPU, one for the rest. One row a CPU would be more exact in theory, but a change of row costs
 * up to seven bytes (the number's difference is taken modulo 2^32, so every second change costs
 * five for it alone), a change of CPU within a row three. Loss events have the CPU.
 */
#include "nettrace/nettrace_write.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/diag.h"
#include "base/vec.h"
#include "nettrace/nettrace_tags.h"
#include "nettrace/packed_file.h"
#include "trace/clr_event.h"
#include "trace/event.h"
#include "trace/event_label.h"
#include "trace/payload_layout.h"
#include "trace/trace.h"

/* The most that is buffered between two flushes; beyond it, the sink flushes itself. */
#define BUFFER_EVENTS_MAX  65536u
#define BUFFER_PAYLOAD_MAX (4u << 20)

/* Content of a block stays below this plus one event or stack; the format's limit is 16 MiB - 1. */
#define BLOCK_SIZE_AIM (1u << 20)

/* At this size the stacks of the file are forgotten, and the next ones numbered from the start. */
#define STACKS_MAX      65536u
#define STACK_BYTES_MAX (16u << 20)

/* The stock reader has 16 bits for a stack's size; one of exactly 8191 frames ends its process. */
#define STACK_FRAMES_MAX 8190u

/* A gap in the sequence numbers, and their sum, must stay below 2^31 for the stock reader. */
#define LOST_MAX (1u << 30)

/* Recently used label lists, and after how many lists the file numbers them from the start. */
#define LABELS_RECENT 64u
#define LABELS_MAX    (1u << 20)

/* Payloads of a new schema that show how many bytes its Booleans have. */
#define LAYOUT_EVENTS_MAX 64u
#define BYTE_BOOLS_MAX    400u /* bytes of the value of METADATA_BYTE_BOOLS_KEY */

/* A row with a longer list of fields is written without it: its size has 16 bits. */
#define METADATA_ROW_MAX 65000u

#define ROW_CPUS   1u /* capture rows */
#define ROW_OTHERS 2u
#define ROW_FIRST  3u /* of a thread; an index is never given twice */

/* An event that waits for the flush. */
struct kept {
	uint64_t time_ns;
	uint32_t payload_at;
	uint32_t payload_size;
	uint32_t thread_index;
	uint32_t stack_index;
	uint32_t schema_index;
	uint32_t lost_before;
	uint32_t label; /* in `labels`, plus 1; 0 none */
	int16_t cpu;
	uint8_t kind;
};

/* A list of labels that waits for the flush. */
struct label {
	uint32_t late_ns;
	bool has_activity;
	uint8_t activity[EVENT_ACTIVITY_SIZE];
};

struct nettrace_sink {
	int fd;
	const char *name;
	struct trace *trace;
	ssize_t (*write_at)(int fd, const void *data, size_t size, off_t offset);
	/* a regular file that was empty: its end is rewritten at each flush */
	bool in_place;
	bool regular;
	int dead;              /* the error that ended the sink permanently, or 0 */
	uint64_t offset;       /* of the next block: the zero word is at this place now */
	uint64_t append_start; /* of a regular file that had something before us */
	uint64_t last_ns;      /* time of the last event taken */
	uint64_t lost_total;

	VEC(struct kept) events;
	VEC(struct label) labels;
	/* in `labels`, plus 1: events of one activity follow one another */
	uint32_t recent_labels[LABELS_RECENT];
	struct bytes payloads;

	VEC(uint32_t) stack_ids; /* by trace stack: its id in the file; 0 not there */
	VEC(uint32_t) new_stacks;
	VEC(uint32_t) thread_rows;  /* by trace thread: its row in the file; 0 not there */
	uint32_t row_count;         /* rows given to threads */
	VEC(uint32_t) metadata_ids; /* by trace schema; 0 not there */
	VEC(uint8_t) byte_bools;    /* by trace schema: its Booleans are written as bytes */
	uint32_t metadata_count;
	uint32_t stack_count; /* since the last sequence point */
	uint32_t label_count;
	size_t stack_bytes;
	bool rows_written;    /* the two capture rows */
	bool restart;         /* a sequence point is due before the next block */
	uint32_t sequence[2]; /* of each capture row: the last number given */

	struct packed_file *packed; /* NULL: written as it is */
	struct bytes out;           /* encoded, not yet in the file; empty most of the time */
	struct nettrace_sink_counts out_counts; /* what `out` adds */
	struct nettrace_sink_counts counts;
};

static struct nettrace_sink *nettrace_of(struct sink *sink)
{
	return (struct nettrace_sink *)(void *)sink;
}

const struct nettrace_sink_counts *nettrace_sink_counts(const struct sink *sink)
{
	return &((const struct nettrace_sink *)(const void *)sink)->counts;
}

/* Writing */

static int write_error(struct nettrace_sink *s, int error, struct diag *diag)
{
	diag_set(diag, error, "cannot write '%s': %m", s->name);
	if (error == -EFBIG)
		diag_remedy(diag,
			"ulimit -f unlimited lifts the limit of file sizes; what was written up to then can be read");
	if (error == -ENOSPC || error == -EDQUOT)
		diag_remedy(diag, "make room on the disk, or write to another one with -o");
	return error;
}

/* All of the data, or an error. *ret_done: how much went out before it. */
static int write_all(struct nettrace_sink *s, const uint8_t *data, size_t size, uint64_t offset,
	size_t *ret_done)
{
	*ret_done = 0;
	while (*ret_done < size) {
		const uint8_t *from = data + *ret_done;
		size_t left = size - *ret_done;
		ssize_t n = s->in_place
				    ? s->write_at(s->fd, from, left, (off_t)(offset + *ret_done))
				    : write(s->fd, from, left);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -EIO;
		*ret_done += (size_t)n;
	}
	return 0;
}

/* The encoded piece was written to the file: adds its counts to the totals. */
static void count_out(struct nettrace_sink *s)
{
	s->counts.bytes = s->offset;
	s->counts.events += s->out_counts.events;
	for (size_t i = 0; i < sizeof(s->counts.events_by_kind) / sizeof(uint64_t); i++)
		s->counts.events_by_kind[i] += s->out_counts.events_by_kind[i];
	s->counts.stacks += s->out_counts.stacks;
	s->counts.stack_frames += s->out_counts.stack_frames;
	s->counts.stack_bytes += s->out_counts.stack_bytes;
	s->counts.event_bytes += s->out_counts.event_bytes;
	s->out_counts = (struct nettrace_sink_counts){ 0 };
}

/*
 * First the bytes after the first word, with a new zero word at the end; then the first word, over
 * the old zero word. Its offset is a multiple of 4, so no page boundary splits it.
 */
static int put_in_place(struct nettrace_sink *s, struct bytes *out)
{
	size_t size = out->len;
	size_t done;

	if (!bytes_reserve(out, 4))
		return -ENOMEM;
	memset(out->data + size, 0, 4); /* the next zero word; not counted in len */
	int r = write_all(s, out->data + 4, size, s->offset + 4, &done);

	if (r == 0)
		r = write_all(s, out->data, 4, s->offset, &done);
	/* The file is valid with or without the bytes after the zero word. */
	if (r < 0 && ftruncate(s->fd, (off_t)s->offset + 4) < 0)
		errno = 0;
	return r;
}

/* Where nothing is rewritten. */
static int put_behind(struct nettrace_sink *s, const struct bytes *out)
{
	size_t done;
	int r = write_all(s, out->data, out->len, 0, &done);

	if (r < 0 && done &&
		(!s->regular || ftruncate(s->fd, (off_t)(s->append_start + s->offset)) < 0))
		s->dead = r;
	return r;
}

/* Puts `out`, packed if so wanted, into the file. */
static int commit(struct nettrace_sink *s, struct diag *diag)
{
	struct bytes *out = &s->out;
	int r = 0;

	if (s->packed) {
		struct bytes *plain = out;
		if (plain->len)
			r = packed_file_add(s->packed, plain->data, plain->len);
		if (r < 0) {
			s->dead = r;
			return write_error(s, r, diag);
		}
		bytes_reset(plain); /* the packer has it now */
		out = packed_file_pending(s->packed);
	}
	size_t size = out->len;

	if (!size)
		return 0;
	if (s->packed && s->in_place)
		r = packed_file_put(s->packed, s->fd, s->write_at);
	else if (s->in_place)
		r = put_in_place(s, out);
	else
		r = put_behind(s, out);
	if (r < 0)
		return write_error(s, r, diag);
	s->offset = s->packed && s->in_place ? packed_file_size(s->packed) : s->offset + size;
	count_out(s);
	bytes_reset(out);
	return 0;
}

/* Blocks */

static size_t block_begin(struct bytes *out)
{
	size_t at = out->len;

	bytes_u32(out, 0);
	return at;
}

static size_t block_end(struct bytes *out, size_t at, enum block_kind kind)
{
	size_t size = out->len - at - 4;

	assert(out->failed || size < 1u << BLOCK_SIZE_BITS);
	bytes_set_u32(out, at, (uint32_t)size | (uint32_t)kind << BLOCK_SIZE_BITS);
	return size + 4;
}

/* varuint length and bytes. */
static void put_string(struct bytes *out, const char *text, size_t len)
{
	bytes_varuint(out, len);
	bytes_add(out, text, len);
}

static void put_z(struct bytes *out, const char *text)
{
	put_string(out, text, strlen(text));
}

static void put_index(struct bytes *out, const struct trace *trace, uint32_t text)
{
	put_string(out, strtab_get(&trace->strings, text), strtab_len(&trace->strings, text));
}

static void put_key_number(struct bytes *out, const char *key, uint64_t value)
{
	char text[24];
	int len = snprintf(text, sizeof(text), "%llu", (unsigned long long)value);

	put_z(out, key);
	put_string(out, text, (size_t)len);
}

static void put_utc(struct bytes *out, uint64_t utc_ns)
{
	time_t seconds = (time_t)(utc_ns / 1000000000u);
	struct tm tm = { 0 };

	if (!gmtime_r(&seconds, &tm))
		tm = (struct tm){ .tm_year = 70, .tm_mday = 1, .tm_wday = 4 };
	bytes_u16(out, (uint16_t)(tm.tm_year + 1900));
	bytes_u16(out, (uint16_t)(tm.tm_mon + 1));
	bytes_u16(out, (uint16_t)tm.tm_wday);
	bytes_u16(out, (uint16_t)tm.tm_mday);
	bytes_u16(out, (uint16_t)tm.tm_hour);
	bytes_u16(out, (uint16_t)tm.tm_min);
	bytes_u16(out, (uint16_t)tm.tm_sec);
	bytes_u16(out, (uint16_t)(utc_ns / 1000000u % 1000u));
}

static void put_head(struct nettrace_sink *s, const struct nettrace_sink_options *options)
{
	const struct recording *recording = &s->trace->recording;
	struct bytes *out = &s->out;
	uint32_t pid = s->trace->processes.items[recording->recorder_process].pid;

	bytes_add(out, "Nettrace", 8);
	bytes_u32(out, 0);
	bytes_u32(out, 6);
	bytes_u32(out, 0);
	size_t block = block_begin(out);
	put_utc(out, recording->utc_ns);
	bytes_u64(out, recording->sync_ns);
	bytes_u64(out, 1000000000);
	bytes_u32(out, 8);
	bytes_u32(out, (uint32_t)(6 + options->key_count));
	/* The stock reader sizes an array by it and indexes that with the CPU. */
	put_key_number(out, KEY_CPU_COUNT, recording->cpu_possible ? recording->cpu_possible : 1);
	put_key_number(out, KEY_PAGE_SIZE,
		recording->page_size_bytes ? recording->page_size_bytes : 4096);
	put_key_number(out, KEY_PROCESS_ID, pid);
	put_key_number(out, KEY_PERIOD, recording->period_ns);
	for (size_t i = 0; i < options->key_count; i++) {
		put_z(out, options->keys[i].key);
		put_z(out, options->keys[i].value);
	}
	/* With this key, a second row of a main thread is a reused pid to our reader. */
	put_z(out, KEY_WRITER);
	put_z(out, KEY_WRITER_OURS);
	/* Fills the head up to a multiple of 4: see commit(). */
	put_z(out, KEY_PADDING);
	put_string(out, "...", 3 - (out->len & 3));
	(void)block_end(out, block, BLOCK_TRACE);
	assert(out->failed || out->len % 4 == 0);
}

/* A description, and how it is written. */
struct description {
	const struct trace *trace;
	const struct schema *schema;
	bool byte_bools;
};

static uint8_t type_in_file(const struct description *d, uint8_t type)
{
	return type == FIELD_BOOL && d->byte_bools ? FIELD_U8 : type;
}

static uint32_t put_fields(struct bytes *out, const struct description *d, uint32_t i,
	uint16_t depth);

/* The type of field i. Returns the index after the fields that describe it. */
static uint32_t put_type(struct bytes *out, const struct description *d, uint32_t i, uint16_t depth)
{
	const struct schema *schema = d->schema;
	const struct field *field = &schema->fields.items[i++];
	uint8_t innermost = field->type;

	bytes_u8(out, type_in_file(d, field->type));
	if (field_type_has_element(field->type)) {
		innermost = field->element;
		if (!field_type_has_element(innermost))
			bytes_u8(out, type_in_file(d, innermost));
		else if (i < schema->fields.count && schema->fields.items[i].depth == depth + 1)
			i = put_type(out, d, i, (uint16_t)(depth + 1));
	}
	if (innermost == FIELD_OBJECT)
		i = put_fields(out, d, i, (uint16_t)(depth + 1));
	if (field->type == FIELD_FIXED_ARRAY)
		bytes_u16(out, field->count);
	return i;
}

/* The fields of an object follow it, one level deeper. Returns the index after the last of them. */
static uint32_t put_fields(struct bytes *out, const struct description *d, uint32_t i,
	uint16_t depth)
{
	const struct schema *schema = d->schema;
	size_t count_at = out->len;
	uint16_t count = 0;

	bytes_u16(out, 0);
	while (i < schema->fields.count && schema->fields.items[i].depth == depth) {
		size_t size_at = out->len;
		bytes_u16(out, 0);
		put_index(out, d->trace, schema->fields.items[i].name);
		i = put_type(out, d, i, depth);
		bytes_set_u16(out, size_at, (uint16_t)(out->len - size_at - 2));
		count++;
	}
	bytes_set_u16(out, count_at, count);
	return i;
}

/*
 * The runtime's own events travel without a description; for readers without the list their rows
 * get one, up to the first field that the format cannot describe: an array whose count is another
 * field, or a text of 8-bit characters.
 */
static bool put_known_event(struct bytes *out, const struct schema *schema)
{
	enum provider_kind provider = (enum provider_kind)schema->provider_kind;
	struct clr_event event;
	uint16_t count = 0;

	if (schema->name || schema->fields.count || !clr_event_provider(provider) ||
		!clr_event_find(provider, schema->event_id, schema->version, &event))
		return false;
	put_z(out, event.symbol);
	size_t count_at = out->len;
	bytes_u16(out, 0);
	while (count < event.field_count && clr_field_type(&event.fields[count])) {
		size_t size_at = out->len;
		bytes_u16(out, 0);
		put_z(out, clr_field_name(&event.fields[count]));
		bytes_u8(out, clr_field_type(&event.fields[count]));
		bytes_set_u16(out, size_at, (uint16_t)(out->len - size_at - 2));
		count++;
	}
	bytes_set_u16(out, count_at, count);
	return true;
}

/* The name and the fields of an event. */
static void put_event_layout(struct bytes *out, const struct description *d, size_t row_at)
{
	if (put_known_event(out, d->schema))
		return;
	put_index(out, d->trace, d->schema->name);
	size_t fields_at = out->len;

	(void)put_fields(out, d, 0, 0);
	if (out->len - row_at > METADATA_ROW_MAX) { /* the event stays, without its fields */
		out->len = fields_at;
		bytes_u16(out, 0);
	}
}

/*
 * The schema whose row was the first of this provider and event id. Readers let the last row win
 * for all events, so that schema has the id; any other layout goes under id + 0x8000.
 */
static uint32_t first_of_event(const struct nettrace_sink *s, uint32_t schema_index)
{
	const struct schema *schema = &s->trace->schemas.items[schema_index];
	uint32_t first = schema_index;
	uint32_t first_id = UINT32_MAX;

	for (uint32_t i = 1; i < s->metadata_ids.count; i++) {
		const struct schema *other = &s->trace->schemas.items[i];
		uint32_t id = s->metadata_ids.items[i];
		if (id && id < first_id && other->provider == schema->provider &&
			other->event_id == schema->event_id) {
			first = i;
			first_id = id;
		}
	}
	return first;
}

/* Whether the schema's waiting payloads (up to LAYOUT_EVENTS_MAX) have Booleans of one byte. */
static bool payloads_fit(const struct nettrace_sink *s, uint32_t at, bool byte_bools)
{
	uint32_t schema_index = s->events.items[at].schema_index;
	const struct schema *schema = &s->trace->schemas.items[schema_index];
	unsigned seen = 0;

	for (uint32_t i = at; i < s->events.count && seen < LAYOUT_EVENTS_MAX; i++) {
		const struct kept *kept = &s->events.items[i];
		const uint8_t *payload = s->payloads.data + kept->payload_at;
		if (kept->schema_index != schema_index)
			continue;
		seen++;
		if (!payload_layout_fits(schema,
			    (struct payload_layout){ .byte_bools = byte_bools }, payload,
			    kept->payload_size) &&
			!payload_layout_fits(schema,
				(struct payload_layout){
					.byte_bools = byte_bools, .counted_by_4 = true },
				payload, kept->payload_size))
			return false;
	}
	return true;
}

/* "0,3": the fields with Booleans, as values or elements. False: none, or too many for `list`. */
static bool list_bools(const struct schema *schema, char list[BYTE_BOOLS_MAX])
{
	size_t len = 0;

	for (uint32_t i = 0; i < schema->fields.count; i++) {
		const struct field *field = &schema->fields.items[i];
		if (field->type != FIELD_BOOL &&
			(!field_type_has_element(field->type) || field->element != FIELD_BOOL))
			continue;
		len += (size_t)snprintf(list + len, BYTE_BOOLS_MAX - len, len ? ",%u" : "%u", i);
		if (len >= BYTE_BOOLS_MAX)
			return false;
	}
	return len > 0;
}

/*
 * Runtimes describe Booleans of one byte and of four alike; the payloads' sizes decide. Event `at`
 * is the first of its schema.
 */
static bool has_byte_bools(const struct nettrace_sink *s, uint32_t at)
{
	uint32_t schema_index = s->events.items[at].schema_index;
	const struct schema *schema = &s->trace->schemas.items[schema_index];
	uint32_t first = first_of_event(s, schema_index);
	char list[BYTE_BOOLS_MAX];

	if (first != schema_index &&
		schema_has_same_fields(schema, &s->trace->schemas.items[first]))
		return s->byte_bools.items[first];
	return list_bools(schema, list) && !payloads_fit(s, at, false) && payloads_fit(s, at, true);
}

static void put_metadata_row(struct nettrace_sink *s, struct bytes *out, uint32_t schema_index)
{
	const struct trace *trace = s->trace;
	const struct schema *schema = &trace->schemas.items[schema_index];
	const struct schema *first = &trace->schemas.items[first_of_event(s, schema_index)];
	const struct description description = { trace, schema, s->byte_bools.items[schema_index] };
	char bools[BYTE_BOOLS_MAX];
	size_t row_at = out->len;

	bytes_u16(out, 0);
	bytes_varuint(out, s->metadata_ids.items[schema_index]);
	put_index(out, trace, schema->provider);
	bytes_varuint(out, schema_has_same_fields(schema, first)
				   ? schema->event_id
				   : (schema->event_id + 0x8000) & 0xffff);
	put_event_layout(out, &description, row_at);
	size_t optional_at = out->len;
	bytes_u16(out, 0);
	if (schema->opcode) {
		bytes_u8(out, METADATA_OPCODE);
		bytes_u8(out, schema->opcode);
	}
	if (schema->keywords) {
		bytes_u8(out, METADATA_KEYWORDS);
		bytes_u64(out, schema->keywords);
	}
	if (schema->has_guid) {
		bytes_u8(out, METADATA_GUID);
		bytes_add(out, schema->guid, sizeof(schema->guid));
	}
	if (schema->level) {
		bytes_u8(out, METADATA_LEVEL);
		bytes_u8(out, schema->level);
	}
	if (schema->version) {
		bytes_u8(out, METADATA_VERSION);
		bytes_u8(out, schema->version);
	}
	if (description.byte_bools && list_bools(schema, bools)) {
		bytes_u8(out, METADATA_KEY_VALUE);
		put_z(out, METADATA_BYTE_BOOLS_KEY);
		put_z(out, bools);
	}
	bytes_set_u16(out, optional_at, (uint16_t)(out->len - optional_at - 2));
	bytes_set_u16(out, row_at, (uint16_t)(out->len - row_at - 2));
}

static int put_metadata(struct nettrace_sink *s)
{
	const struct trace *trace = s->trace;
	struct bytes *out = &s->out;
	size_t block = 0;
	bool begun = false;

	if (!vec_reserve(&s->metadata_ids, trace->schemas.count - s->metadata_ids.count) ||
		!vec_reserve(&s->byte_bools, trace->schemas.count - s->byte_bools.count))
		return -ENOMEM;
	while (s->metadata_ids.count < trace->schemas.count)
		s->metadata_ids.items[s->metadata_ids.count++] = 0;
	while (s->byte_bools.count < trace->schemas.count)
		s->byte_bools.items[s->byte_bools.count++] = 0;
	for (uint32_t i = 0; i < s->events.count; i++) {
		uint32_t schema = s->events.items[i].schema_index;
		if (s->metadata_ids.items[schema])
			continue;
		if (!begun) {
			block = block_begin(out);
			bytes_u16(out, 0);
			begun = true;
		} else if (out->len - block > BLOCK_SIZE_AIM) {
			(void)block_end(out, block, BLOCK_METADATA);
			block = block_begin(out);
			bytes_u16(out, 0);
		}
		s->byte_bools.items[schema] = has_byte_bools(s, i);
		s->metadata_ids.items[schema] = ++s->metadata_count;
		put_metadata_row(s, out, schema);
	}
	if (begun)
		(void)block_end(out, block, BLOCK_METADATA);
	return 0;
}

static void put_thread_row(struct bytes *out, uint64_t row, const char *name, size_t name_len,
	bool has_ids, uint32_t pid, uint32_t tid)
{
	size_t at = out->len;

	bytes_u16(out, 0);
	bytes_varuint(out, row);
	if (name_len) {
		bytes_u8(out, THREAD_NAME);
		put_string(out, name, name_len);
	}
	if (has_ids) {
		bytes_u8(out, THREAD_PID);
		bytes_varuint(out, pid);
		bytes_u8(out, THREAD_TID);
		bytes_varuint(out, tid);
	}
	bytes_set_u16(out, at, (uint16_t)(out->len - at - 2));
}

static int put_threads(struct nettrace_sink *s)
{
	const struct trace *trace = s->trace;
	struct bytes *out = &s->out;
	size_t block = block_begin(out);
	size_t empty = out->len;

	if (!vec_reserve(&s->thread_rows, trace->threads.count - s->thread_rows.count))
		return -ENOMEM;
	while (s->thread_rows.count < trace->threads.count)
		s->thread_rows.items[s->thread_rows.count++] = 0;
	if (!s->rows_written) {
		put_thread_row(out, ROW_CPUS, "cpus", 4, false, 0, 0);
		put_thread_row(out, ROW_OTHERS, THREAD_NO_CPU_NAME, strlen(THREAD_NO_CPU_NAME),
			false, 0, 0);
		s->rows_written = true;
	}
	for (uint32_t i = 0; i < s->events.count; i++) {
		uint32_t index = s->events.items[i].thread_index;
		if (!index || s->thread_rows.items[index])
			continue;
		s->thread_rows.items[index] = ROW_FIRST + s->row_count++;
		const struct thread *thread = &trace->threads.items[index];
		size_t name_len = strtab_len(&trace->strings, thread->name);
		put_thread_row(out, s->thread_rows.items[index], trace_text(trace, thread->name),
			name_len < 1024 ? name_len : 1024, thread->process != 0,
			trace->processes.items[thread->process].pid, thread->tid);
		if (out->len - block > BLOCK_SIZE_AIM) {
			(void)block_end(out, block, BLOCK_THREAD);
			block = block_begin(out);
			empty = out->len;
		}
	}
	if (out->len == empty)
		out->len = block;
	else
		(void)block_end(out, block, BLOCK_THREAD);
	return 0;
}

/* One label of a list; the last one is marked. */
static void put_label_kind(struct bytes *out, unsigned kind, bool last)
{
	bytes_u8(out, (uint8_t)(kind | (last ? LABEL_LAST : 0)));
}

static void put_label(struct bytes *out, const struct label *label)
{
	static const uint8_t none[16];
	const uint8_t *related = label->activity + 16;
	bool has_related = label->has_activity && memcmp(related, none, sizeof(none)) != 0;
	bool has_own = label->has_activity &&
		       (!has_related || memcmp(label->activity, none, sizeof(none)) != 0);

	if (has_own) {
		put_label_kind(out, LABEL_ACTIVITY, !has_related && !label->late_ns);
		bytes_add(out, label->activity, 16);
	}
	if (has_related) {
		put_label_kind(out, LABEL_RELATED_ACTIVITY, !label->late_ns);
		bytes_add(out, related, 16);
	}
	if (label->late_ns) {
		put_label_kind(out, LABEL_NUMBER, true);
		put_z(out, LABEL_LATE_KEY);
		bytes_varint(out, label->late_ns);
	}
}

static void put_labels(struct nettrace_sink *s)
{
	struct bytes *out = &s->out;

	for (uint32_t i = 0; i < s->labels.count;) {
		size_t block = block_begin(out);
		size_t count_at;
		uint32_t first = i;
		bytes_u32(out, s->label_count + i + 1);
		count_at = out->len;
		bytes_u32(out, 0);
		while (i < s->labels.count && out->len - block < BLOCK_SIZE_AIM)
			put_label(out, &s->labels.items[i++]);
		if (out->failed)
			return;
		bytes_set_u32(out, count_at, i - first);
		(void)block_end(out, block, BLOCK_LABELS);
	}
}

/* The list, new or of an earlier event, for a late event or an activity. False: no memory. */
static bool keep_label(struct nettrace_sink *s, const struct event *event, uint32_t *ret_label)
{
	uint32_t *recent = NULL;

	*ret_label = 0;
	if (!event->late_ns && !event->activity)
		return true;
	if (event->activity && !event->late_ns) {
		uint64_t hash;
		memcpy(&hash, event->activity, sizeof(hash));
		hash ^= hash >> 32;
		recent = &s->recent_labels[(hash ^ hash >> 8 ^ hash >> 16) % LABELS_RECENT];
		const struct label *same = *recent ? &s->labels.items[*recent - 1] : NULL;
		if (same && memcmp(same->activity, event->activity, EVENT_ACTIVITY_SIZE) == 0) {
			*ret_label = *recent;
			return true;
		}
	}
	struct label *label = vec_push(&s->labels);

	if (!label)
		return false;
	label->late_ns = event->late_ns;
	if (event->activity) {
		label->has_activity = true;
		memcpy(label->activity, event->activity, EVENT_ACTIVITY_SIZE);
	}
	*ret_label = s->labels.count;
	if (recent)
		*recent = s->labels.count;
	return true;
}

/* Stacks */

#define STACK_MARKED UINT32_MAX

static void restart_stacks(struct nettrace_sink *s)
{
	if (s->stack_ids.count)
		memset(s->stack_ids.items, 0, s->stack_ids.count * sizeof(uint32_t));
	s->stack_count = 0;
	s->stack_bytes = 0;
	s->label_count = 0;
	s->restart = true;
}

/* Lists the buffered events' stacks that have no id yet, and their size in the file. */
static int find_new_stacks(struct nettrace_sink *s, size_t *ret_bytes)
{
	uint32_t count = s->trace->stacks.stacks.count;

	*ret_bytes = 0;
	vec_reset(&s->new_stacks);
	if (s->stack_ids.count < count) {
		if (!vec_reserve(&s->stack_ids, count - s->stack_ids.count))
			return -ENOMEM;
		memset(s->stack_ids.items + s->stack_ids.count, 0,
			(count - s->stack_ids.count) * sizeof(uint32_t));
		s->stack_ids.count = count;
	}
	for (uint32_t i = 0; i < s->events.count; i++) {
		uint32_t index = s->events.items[i].stack_index;
		if (!index || s->stack_ids.items[index])
			continue;
		if (!vec_add(&s->new_stacks, index))
			return -ENOMEM;
		s->stack_ids.items[index] = STACK_MARKED;
		*ret_bytes += 4 + s->trace->stacks.stacks.items[index].count * sizeof(uint64_t);
	}
	return 0;
}

/* By frames from the root on; a stack that is the beginning of another comes first. */
static int compare_from_root(const void *a, const void *b, void *context)
{
	const struct stack_table *table = context;
	const struct stack *x = &table->stacks.items[*(const uint32_t *)a];
	const struct stack *y = &table->stacks.items[*(const uint32_t *)b];
	const uint64_t *fx = table->frames.items + x->at + x->count;
	const uint64_t *fy = table->frames.items + y->at + y->count;
	uint32_t common = x->count < y->count ? x->count : y->count;

	for (uint32_t i = 0; i < common; i++) {
		fx--;
		fy--;
		if (*fx != *fy)
			return *fx < *fy ? -1 : 1;
	}
	return (x->count > y->count) - (x->count < y->count);
}

static void put_stack(struct nettrace_sink *s, uint32_t index)
{
	struct bytes *out = &s->out;
	uint32_t count;
	const uint64_t *frames = stack_table_get(&s->trace->stacks, index, &count);

	if (count > STACK_FRAMES_MAX) {
		count = STACK_FRAMES_MAX;
		s->counts.stacks_cut++;
	}
	uint8_t *p = bytes_reserve(out, 4 + count * sizeof(uint64_t));
	if (!p)
		return;
	bytes_u32(out, count * (uint32_t)sizeof(uint64_t));
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	bytes_add(out, frames, count * sizeof(uint64_t));
#else
	for (uint32_t i = 0; i < count; i++)
		bytes_u64(out, frames[i]);
#endif
	s->stack_ids.items[index] = ++s->stack_count;
	s->out_counts.stack_frames += count;
}

static int put_stacks(struct nettrace_sink *s)
{
	struct bytes *out = &s->out;
	uint32_t n = s->new_stacks.count;
	uint32_t done = 0;

	if (!n)
		return 0;
	qsort_r(s->new_stacks.items, n, sizeof(uint32_t), compare_from_root, &s->trace->stacks);
	while (done < n) {
		size_t block = block_begin(out);
		uint32_t first = done;
		bytes_u32(out, s->stack_count + 1);
		bytes_u32(out, 0);
		while (done < n && out->len - block < BLOCK_SIZE_AIM && !out->failed)
			put_stack(s, s->new_stacks.items[done++]);
		if (out->failed)
			return -ENOMEM;
		bytes_set_u32(out, block + 8, done - first);
		size_t size = block_end(out, block, BLOCK_STACK);
		s->stack_bytes += size;
		s->out_counts.stack_bytes += size;
	}
	s->out_counts.stacks += n;
	return 0;
}

/* Events */

static uint8_t *put_varuint(uint8_t *p, uint64_t value)
{
	while (value >= 0x80) {
		*p++ = (uint8_t)(value | 0x80);
		value >>= 7;
	}
	*p++ = (uint8_t)value;
	return p;
}

/* Flags and the fields that differ: 1 + 5 + (5 + 10 + 5) + 10 + 5 + 10 + 5 + 5 at most. */
#define EVENT_HEAD_MAX 64u

/* The delta state of a block: all zero at its begin. */
struct previous {
	uint32_t metadata_id;
	uint32_t sequence;
	uint32_t row;
	uint32_t cpu;
	uint32_t thread;
	uint32_t stack;
	uint32_t label;
	uint32_t size;
	uint64_t time_ns;
};

/* For events of the whole recording: the recorder's main thread, or a row without a process. */
static uint32_t nobodys_row(const struct nettrace_sink *s)
{
	uint32_t process = s->trace->recording.recorder_process;
	uint32_t thread = process ? s->trace->processes.items[process].main_thread : 0;

	return thread && thread < s->thread_rows.count && s->thread_rows.items[thread]
		       ? s->thread_rows.items[thread]
		       : ROW_OTHERS;
}

static uint8_t *put_event(struct nettrace_sink *s, uint8_t *p, const struct kept *event,
	struct previous *previous, uint32_t nobody)
{
	uint8_t *flags_at = p++;
	uint8_t flags = IS_SORTED;
	uint32_t metadata_id = s->metadata_ids.items[event->schema_index];
	uint32_t row = event->cpu >= 0 ? ROW_CPUS : ROW_OTHERS;
	uint32_t cpu = event->cpu >= 0 ? (uint32_t)event->cpu : 0;
	uint32_t thread = event->thread_index ? s->thread_rows.items[event->thread_index] : nobody;
	uint32_t stack = event->stack_index ? s->stack_ids.items[event->stack_index] : 0;
	uint32_t label = event->label ? s->label_count + event->label : 0;
	uint32_t sequence = s->sequence[row - 1] + event->lost_before + 1;

	s->sequence[row - 1] = sequence;
	if (metadata_id != previous->metadata_id) {
		flags |= HAS_METADATA;
		p = put_varuint(p, metadata_id);
	}
	if (sequence != previous->sequence + 1 || row != previous->row || cpu != previous->cpu) {
		flags |= HAS_CAPTURE;
		p = put_varuint(p, (uint32_t)(sequence - previous->sequence - 1));
		p = put_varuint(p, row);
		p = put_varuint(p, cpu);
	}
	if (thread != previous->thread) {
		flags |= HAS_THREAD;
		p = put_varuint(p, thread);
	}
	if (stack != previous->stack) {
		flags |= HAS_STACK;
		p = put_varuint(p, stack);
	}
	p = put_varuint(p, event->time_ns - previous->time_ns);
	if (label != previous->label) {
		flags |= HAS_LABELS;
		p = put_varuint(p, label);
	}
	if (event->payload_size != previous->size) {
		flags |= HAS_SIZE;
		p = put_varuint(p, event->payload_size);
	}
	*previous = (struct previous){ metadata_id, sequence, row, cpu, thread, stack, label,
		event->payload_size, event->time_ns };
	*flags_at = flags;
	if (event->payload_size) {
		memcpy(p, s->payloads.data + event->payload_at, event->payload_size);
		p += event->payload_size;
	}
	return p;
}

static int put_event_block(struct nettrace_sink *s, uint32_t *from)
{
	struct bytes *out = &s->out;
	struct previous previous = { 0 };
	uint32_t nobody = nobodys_row(s);
	size_t block = block_begin(out);

	/* A longer header fills the piece up to a multiple of 4, once the size is known. */
	uint8_t *p = bytes_reserve(out, EVENTS_HEADER_SIZE);
	if (!p)
		return -ENOMEM;
	size_t header = out->len;
	out->len += EVENTS_HEADER_SIZE;
	uint64_t first_ns = s->events.items[*from].time_ns;
	while (*from < s->events.count && out->len - block < BLOCK_SIZE_AIM) {
		const struct kept *event = &s->events.items[*from];
		p = bytes_reserve(out, EVENT_HEAD_MAX + event->payload_size);
		if (!p)
			return -ENOMEM;
		out->len = (size_t)(put_event(s, p, event, &previous, nobody) - out->data);
		s->out_counts.events++;
		s->out_counts.events_by_kind[event->kind & 15]++;
		(*from)++;
	}
	unsigned filler = (unsigned)(-out->len & 3);
	if (filler) {
		if (!bytes_reserve(out, filler))
			return -ENOMEM;
		uint8_t *body = out->data + header + EVENTS_HEADER_SIZE;
		memmove(body + filler, body, out->len - header - EVENTS_HEADER_SIZE);
		memset(body, 0, filler);
		out->len += filler;
	}
	struct bytes fixed = { .data = out->data + header, .capacity = EVENTS_HEADER_SIZE };
	bytes_u16(&fixed, (uint16_t)(EVENTS_HEADER_SIZE + filler));
	bytes_u16(&fixed, EVENTS_COMPRESSED);
	bytes_u64(&fixed, first_ns);
	bytes_u64(&fixed, previous.time_ns);
	assert(!fixed.failed && fixed.data == out->data + header);
	s->out_counts.event_bytes += block_end(out, block, BLOCK_EVENT);
	return 0;
}

/* Everything buffered becomes `out`. */
static int encode(struct nettrace_sink *s)
{
	size_t new_bytes;
	int r = find_new_stacks(s, &new_bytes);

	if (r < 0)
		return r;
	if ((s->stack_count && (s->stack_count + s->new_stacks.count > STACKS_MAX ||
				       s->stack_bytes + new_bytes > STACK_BYTES_MAX)) ||
		s->label_count > LABELS_MAX) {
		restart_stacks(s);
		r = find_new_stacks(s, &new_bytes);
		if (r < 0)
			return r;
	}
	if (s->restart) {
		size_t block = block_begin(&s->out);
		bytes_u64(&s->out, s->events.items[0].time_ns);
		bytes_u32(&s->out, 0);
		bytes_u32(&s->out, 0);
		(void)block_end(&s->out, block, BLOCK_SEQUENCE_POINT);
		s->restart = false;
	}
	r = put_metadata(s);
	if (r == 0)
		r = put_threads(s);
	if (r < 0)
		return r;
	put_labels(s);
	r = put_stacks(s);
	for (uint32_t i = 0; r == 0 && i < s->events.count;)
		r = put_event_block(s, &i);
	if (r == 0 && s->out.failed)
		r = -ENOMEM;
	if (r < 0)
		return r;
	assert(s->out.len % 4 == 0);
	s->label_count += s->labels.count;
	vec_reset(&s->labels);
	memset(s->recent_labels, 0, sizeof(s->recent_labels));
	vec_reset(&s->events);
	bytes_reset(&s->payloads);
	return 0;
}

static int nettrace_flush(struct sink *sink, struct diag *diag)
{
	struct nettrace_sink *s = nettrace_of(sink);

	if (s->dead)
		return write_error(s, s->dead, diag);
	int r = commit(s, diag);
	if (r < 0 || !s->events.count)
		return r;
	r = encode(s);
	if (r < 0) {
		/* Assigned ids cannot be taken back; the file stays as the last flush left it. */
		s->dead = r;
		bytes_reset(&s->out);
		return diag_set(diag, r, "cannot write '%s': %m", s->name);
	}
	return commit(s, diag);
}

static int nettrace_event(struct sink *sink, const struct event *event, struct diag *diag)
{
	struct nettrace_sink *s = nettrace_of(sink);

	if (s->dead)
		return write_error(s, s->dead, diag);
	assert(event->schema_index && event->schema_index < s->trace->schemas.count);
	assert(event->thread_index < s->trace->threads.count);
	assert(!event->stack_index || event->stack_index < s->trace->stacks.stacks.count);
	if (s->events.count >= BUFFER_EVENTS_MAX || s->payloads.len >= BUFFER_PAYLOAD_MAX) {
		int r = nettrace_flush(sink, diag);
		if (r < 0) {
			s->counts.refused++;
			return r;
		}
	}
	uint32_t size = event->payload_size;
	if (size > EVENT_PAYLOAD_MAX) {
		size = EVENT_PAYLOAD_MAX;
		s->counts.payloads_cut++;
	}
	uint32_t lost = event->lost_before;
	if (s->lost_total + lost > LOST_MAX)
		lost = (uint32_t)(LOST_MAX - s->lost_total);
	struct kept *kept = vec_reserve(&s->events, 1) ? &s->events.items[s->events.count] : NULL;
	uint8_t *room = kept ? bytes_reserve(&s->payloads, size + 1) : NULL;
	uint32_t label = 0;

	if (!room || !keep_label(s, event, &label)) {
		bytes_reset(&s->payloads);
		s->dead = -ENOMEM;
		return diag_set(diag, -ENOMEM, "cannot write '%s': %m", s->name);
	}
	s->lost_total += lost;
	if (size)
		memcpy(room, event->payload, size);
	*kept = (struct kept){
		.time_ns = event->time_ns,
		.payload_at = (uint32_t)s->payloads.len,
		.payload_size = size,
		.thread_index = event->thread_index,
		.stack_index = event->stack_index,
		.schema_index = event->schema_index,
		.lost_before = lost,
		.label = label,
		.cpu = (int16_t)(event->cpu >= 0 && event->cpu <= INT16_MAX ? event->cpu : -1),
		.kind = event->kind,
	};
	s->payloads.len += size;
	s->events.count++;
	if (event->time_ns < s->last_ns) {
		kept->time_ns = s->last_ns;
		s->counts.clamped++;
	}
	s->last_ns = kept->time_ns;
	return 0;
}

static int nettrace_forget_stacks(struct sink *sink, struct diag *diag)
{
	struct nettrace_sink *s = nettrace_of(sink);

	/* What waits refers to the old table, until it is encoded, even if the disk fails. */
	if (s->events.count) {
		int r = nettrace_flush(sink, diag);
		if (r < 0 && s->events.count)
			return r;
	}
	restart_stacks(s);
	s->stack_ids.count = 0;
	return 0;
}

static void nettrace_forget_thread(struct sink *sink, uint32_t thread_index)
{
	struct nettrace_sink *s = nettrace_of(sink);

	assert(!s->events.count || s->dead);
	if (thread_index < s->thread_rows.count)
		s->thread_rows.items[thread_index] = 0;
}

static int nettrace_end(struct sink *sink, struct diag *diag)
{
	struct nettrace_sink *s = nettrace_of(sink);
	int r = nettrace_flush(sink, diag);

	if (r < 0)
		return r;
	if (s->in_place) {
		if (s->packed && packed_file_cut(s->packed, s->fd) < 0)
			errno = 0; /* the file is valid with the room after the frame, too */
		/*
		 * For a process that writes next through the same open file, as in a shell's group.
		 */
		if (lseek(s->fd, (off_t)s->offset + (s->packed ? 0 : 4), SEEK_SET) < 0)
			errno = 0;
		return 0;
	}
	bytes_u32(&s->out, 0);
	if (s->packed) {
		r = packed_file_add(s->packed, s->out.data, s->out.len);
		bytes_reset(&s->out);
		if (r == 0)
			r = packed_file_finish(s->packed);
		if (r < 0)
			return write_error(s, r, diag);
	}
	return commit(s, diag);
}

static void nettrace_close(struct sink *sink)
{
	struct nettrace_sink *s = nettrace_of(sink);

	if (!s)
		return;
	vec_done(&s->events);
	vec_done(&s->labels);
	vec_done(&s->stack_ids);
	vec_done(&s->new_stacks);
	vec_done(&s->thread_rows);
	vec_done(&s->metadata_ids);
	vec_done(&s->byte_bools);
	bytes_done(&s->payloads);
	bytes_done(&s->out);
	packed_file_free(s->packed);
	free(s);
}

int nettrace_sink_open(const struct nettrace_sink_options *options, struct trace *trace,
	struct sink **ret_sink, struct diag *diag)
{
	struct stat status;
	struct nettrace_sink *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->fd = options->fd;
	s->name = options->name;
	s->trace = trace;
	s->write_at = options->write_at ? options->write_at : pwrite;
	s->last_ns = trace->recording.sync_ns;
	int flags = fcntl(s->fd, F_GETFL);
	if (flags < 0 || fstat(s->fd, &status) < 0) {
		r = write_error(s, -errno, diag);
		goto failed;
	}
	s->regular = S_ISREG(status.st_mode);
	s->append_start = (uint64_t)status.st_size;
	s->in_place = s->regular && !(flags & O_APPEND) && status.st_size == 0 &&
		      lseek(s->fd, 0, SEEK_CUR) == 0;
	put_head(s, options);
	if (s->out.failed) {
		r = -ENOMEM;
		goto failed;
	}
	if (options->packed) {
		r = packed_file_new(&s->packed);
		if (r < 0)
			goto failed;
	}
	if (s->in_place && !s->packed) {
		/* With its zero word in one write, as a part of the head is no valid file. */
		size_t done;
		size_t size = s->out.len;
		bytes_u32(&s->out, 0);
		r = s->out.failed ? -ENOMEM : write_all(s, s->out.data, size + 4, 0, &done);
		if (r < 0) {
			if (ftruncate(s->fd, 0) < 0)
				errno = 0;
			(void)write_error(s, r, diag); /* r goes back below */
			goto failed;
		}
		s->offset = size;
		bytes_reset(&s->out);
	} else {
		r = commit(s, diag);
		if (r < 0)
			goto failed;
	}
	s->counts.bytes = s->offset;
	*ret_sink = (struct sink *)(void *)s;
	return 0;
failed:
	nettrace_close((struct sink *)(void *)s);
	return r;
}

const struct sink_ops nettrace_sink = {
	.name = "nettrace",
	.event = nettrace_event,
	.flush = nettrace_flush,
	.forget_stacks = nettrace_forget_stacks,
	.forget_thread = nettrace_forget_thread,
	.end = nettrace_end,
	.close = nettrace_close,
};
