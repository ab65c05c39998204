/*
 * See nettrace_edit.h. The file is read block by block. Only blocks of events are taken apart, as
 * far as to find the payloads of ProcessSymbol. The size of a payload is the last field of an
 * event's compressed head, and all other fields are copied.
 */
#include "nettrace/nettrace_edit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/cursor.h"
#include "base/diag.h"
#include "base/input.h"
#include "base/map.h"
#include "nettrace/metadata_row.h"
#include "nettrace/nettrace_tags.h"
#include "trace/schema.h"
#include "trace/spoor_payload.h"
#include "trace/trace.h"

#define SYSTEM_PROVIDER "Universal.System"
#define SYMBOL_EVENT    "ProcessSymbol"
#define HEAD_SIZE       20u /* "Nettrace", u32 0, u32 version, u32 minor version */
#define BLOCK_SIZE_MASK ((UINT32_C(1) << BLOCK_SIZE_BITS) - 1)
#define BLOCK_SIZE_AIM  (256u << 10)
/* More than the metadata row of one of our events takes. */
#define LINE_ROW_ROOM 4096u

struct editor {
	const struct nettrace_edit *edit;
	struct input *in;
	struct diag *diag;
	uint8_t *block; /* content of the block at hand */
	size_t block_room;
	struct bytes out;
	struct bytes payload;
	struct map symbol_ids;    /* metadata id -> event id, of the system provider */
	uint32_t symbol_metadata; /* newest metadata id of ProcessSymbol; 0 none */
	uint32_t metadata_max;
	uint64_t row_max;
	uint64_t last_row; /* thread row of the last event; 0: none that is still defined */
	uint64_t last_ticks;
	uint64_t id_max; /* of the ids in system events */
};

static int broken(struct editor *e, const char *what)
{
	return diag_set(e->diag, -EBADMSG, "cannot copy '%s': %s at offset %llu", e->in->name, what,
		(unsigned long long)e->in->offset);
}

static int read_whole(struct editor *e, void *buffer, size_t size)
{
	for (size_t at = 0; at < size;) {
		ssize_t got = input_read(e->in, (uint8_t *)buffer + at, size - at, e->diag);
		if (got < 0)
			return (int)got;
		if (got == 0)
			return diag_set(e->diag, -EBADMSG,
				"cannot copy '%s': it ends before its end mark", e->in->name);
		at += (size_t)got;
	}
	return 0;
}

static int write_out(struct editor *e)
{
	int result =
		e->out.failed ? -ENOMEM : e->edit->write(e->edit->context, e->out.data, e->out.len);

	bytes_reset(&e->out);
	return result < 0
		       ? diag_set(e->diag, result, "cannot write the copy of '%s': %m", e->in->name)
		       : 0;
}

static int copy_head(struct editor *e)
{
	uint8_t head[HEAD_SIZE];
	int result = read_whole(e, head, sizeof(head));

	if (result < 0)
		return result;
	struct cursor c = cursor_of(head + 8, sizeof(head) - 8);
	uint32_t zero = cursor_u32(&c);
	if (memcmp(head, "Nettrace", 8) != 0 || zero || cursor_u32(&c) != 6)
		return diag_set(e->diag, -ENOTSUP,
			"cannot write names into '%s': it is no nettrace file of version 6",
			e->in->name);
	bytes_add(&e->out, head, sizeof(head));
	return write_out(e);
}

/* Remembers which metadata ids are of system events. */
static int read_metadata(struct editor *e, struct cursor c)
{
	cursor_skip(&c, cursor_u16(&c));
	while (cursor_left(&c) && !c.short_read) {
		struct cursor row = cursor_sub(&c, cursor_u16(&c));
		uint32_t id = cursor_varuint32(&row);
		uint32_t len = cursor_varuint32(&row);
		const uint8_t *provider = cursor_take(&row, len);
		uint32_t event = cursor_varuint32(&row);
		if (row.short_read)
			return broken(e, "a metadata row is too short");
		if (id > e->metadata_max)
			e->metadata_max = id;
		bool system = len == strlen(SYSTEM_PROVIDER) &&
			      memcmp(provider, SYSTEM_PROVIDER, len) == 0;
		if (!system || !id || !event)
			continue;
		if (!map_put(&e->symbol_ids, id, event))
			return -ENOMEM;
		if (event == ID_SYSTEM_PROCESS_SYMBOL)
			e->symbol_metadata = id;
	}
	return c.short_read ? broken(e, "a metadata block is too short") : 0;
}

static int read_threads(struct editor *e, struct cursor c)
{
	while (cursor_left(&c) && !c.short_read) {
		struct cursor row = cursor_sub(&c, cursor_u16(&c));
		uint64_t id = cursor_varuint(&row);
		if (row.short_read)
			return broken(e, "a thread row is too short");
		if (id > e->row_max)
			e->row_max = id;
	}
	return c.short_read ? broken(e, "a thread block is too short") : 0;
}

static void read_sequence_point(struct editor *e, struct cursor c)
{
	cursor_skip(&c, 8);
	uint32_t flags = cursor_u32(&c);

	if (flags & SEQUENCE_POINT_FORGETS_THREADS)
		e->last_row = 0;
	if (flags & SEQUENCE_POINT_FORGETS_METADATA) {
		map_reset(&e->symbol_ids);
		e->symbol_metadata = 0;
	}
}

/* ---- blocks of events ---- */

/* The fields of a compressed event that later events inherit. */
struct event_head {
	uint8_t flags;
	uint32_t metadata;
	uint64_t row;
	uint64_t ticks;
	uint32_t size;         /* of the payload, in the file that is read */
	uint32_t size_out;     /* in the file that is written */
	const uint8_t *fields; /* between the flags and the payload's size */
	size_t fields_size;
	const uint8_t *payload;
};

static void read_event(struct cursor *c, struct event_head *h)
{
	h->flags = cursor_u8(c);
	h->fields = c->at;
	if (h->flags & HAS_METADATA)
		h->metadata = cursor_varuint32(c);
	if (h->flags & HAS_CAPTURE) {
		(void)cursor_varuint32(c); /* sequence number */
		(void)cursor_varuint(c);   /* capture row */
		(void)cursor_varuint32(c); /* CPU */
	}
	if (h->flags & HAS_THREAD)
		h->row = cursor_varuint(c);
	if (h->flags & HAS_STACK)
		(void)cursor_varuint32(c);
	h->ticks += cursor_varuint(c);
	if (h->flags & HAS_LABELS)
		(void)cursor_varuint32(c);
	h->fields_size = (size_t)(c->at - h->fields);
	if (h->flags & HAS_SIZE)
		h->size = cursor_varuint32(c);
	h->payload = cursor_take(c, h->size);
}

/* The payload to be written: the event's own, or a changed one in e->payload. */
static const uint8_t *choose_payload(struct editor *e, const struct event_head *h,
	uint32_t *ret_size)
{
	uint32_t event = map_get(&e->symbol_ids, h->metadata);
	struct cursor c = cursor_of(h->payload, h->size);
	struct payload_symbol symbol = { 0 };

	*ret_size = h->size;
	if (event < ID_SYSTEM_PROCESS_MAPPING)
		return h->payload;
	uint64_t id = cursor_varuint(&c);
	if (id > e->id_max)
		e->id_max = id;
	if (event != ID_SYSTEM_PROCESS_SYMBOL)
		return h->payload;
	symbol.mapping_id = cursor_varuint(&c);
	symbol.begin = cursor_varuint(&c);
	symbol.end = cursor_varuint(&c) + 1;
	if (c.short_read || !e->edit->change(e->edit->context, &symbol))
		return h->payload;
	symbol.id = id;
	bytes_reset(&e->payload);
	(void)payload_symbol(&e->payload, &symbol); /* a long name is cut */
	*ret_size = (uint32_t)e->payload.len;
	e->out.failed |= e->payload.failed;
	return e->payload.data;
}

static void put_event(struct editor *e, struct event_head *h)
{
	uint32_t size;
	const uint8_t *payload = choose_payload(e, h, &size);
	bool sized = h->flags & HAS_SIZE || size != h->size_out;

	bytes_u8(&e->out, (uint8_t)(h->flags | (sized ? HAS_SIZE : 0)));
	bytes_add(&e->out, h->fields, h->fields_size);
	if (sized)
		bytes_varuint(&e->out, size);
	h->size_out = size;
	bytes_add(&e->out, payload, size);
}

/* Ends the block that begins at out.data[at]. */
static int end_block(struct editor *e, size_t at, enum block_kind kind)
{
	size_t size = e->out.len - at - 4;

	if (size > BLOCK_SIZE_MASK)
		return diag_set(e->diag, -EFBIG, "cannot copy '%s': a block would be too large",
			e->in->name);
	if (!e->out.failed)
		bytes_set_u32(&e->out, at, (uint32_t)size | (uint32_t)kind << BLOCK_SIZE_BITS);
	return 0;
}

static int edit_events(struct editor *e, struct cursor c, uint32_t word)
{
	const uint8_t *begin = c.at;
	size_t whole = cursor_left(&c);
	uint16_t header = cursor_u16(&c);
	uint16_t flags = cursor_u16(&c);
	struct event_head h = { 0 };

	if (c.short_read || header < EVENTS_HEADER_SIZE || header > whole)
		return broken(e, "an event block has no valid header");
	if (!(flags & EVENTS_COMPRESSED)) {
		bytes_u32(&e->out, word);
		bytes_add(&e->out, begin, whole);
		return 0;
	}
	bytes_u32(&e->out, 0);
	bytes_add(&e->out, begin, header);
	c = cursor_of(begin + header, whole - header);
	while (cursor_left(&c)) {
		read_event(&c, &h);
		if (c.short_read)
			return broken(e, "an event passes the end of its block");
		put_event(e, &h);
		e->last_row = h.row;
		if (h.ticks > e->last_ticks)
			e->last_ticks = h.ticks;
	}
	return end_block(e, 0, BLOCK_EVENT);
}

/* ---- further events ---- */

static void put_text(struct bytes *out, const char *text)
{
	bytes_varuint(out, strlen(text));
	bytes_text(out, text);
}

/* A row that captures the further events; its sequence numbers begin with 1. */
static int add_capture_row(struct editor *e)
{
	size_t block = e->out.len;

	bytes_u32(&e->out, 0);
	size_t row = e->out.len;
	bytes_u16(&e->out, 0);
	bytes_varuint(&e->out, ++e->row_max);
	bytes_u8(&e->out, THREAD_NAME);
	put_text(&e->out, THREAD_NO_CPU_NAME);
	if (!e->out.failed)
		bytes_set_u16(&e->out, row, (uint16_t)(e->out.len - row - 2));
	return end_block(e, block, BLOCK_THREAD);
}

static int add_metadata(struct editor *e)
{
	size_t block = e->out.len;

	if (e->symbol_metadata)
		return 0;
	e->symbol_metadata = ++e->metadata_max;
	bytes_u32(&e->out, 0);
	bytes_u16(&e->out, 0); /* no header */
	size_t row = e->out.len;
	bytes_u16(&e->out, 0);
	bytes_varuint(&e->out, e->symbol_metadata);
	put_text(&e->out, SYSTEM_PROVIDER);
	bytes_varuint(&e->out, ID_SYSTEM_PROCESS_SYMBOL);
	put_text(&e->out, SYMBOL_EVENT);
	bytes_u16(&e->out, 0); /* fields: every reader has the layout */
	bytes_u16(&e->out, 0); /* optional parts */
	if (!e->out.failed)
		bytes_set_u16(&e->out, row, (uint16_t)(e->out.len - row - 2));
	return end_block(e, block, BLOCK_METADATA);
}

/* Fills e->payload with the next further event; false: no more. */
typedef bool further_event(struct editor *e);

static bool next_symbol(struct editor *e)
{
	struct payload_symbol symbol = { 0 };

	if (!e->edit->next(e->edit->context, &symbol))
		return false;
	symbol.id = ++e->id_max;
	bytes_reset(&e->payload);
	(void)payload_symbol(&e->payload, &symbol); /* a long name is cut */
	return true;
}

static bool next_lines(struct editor *e)
{
	bytes_reset(&e->payload);
	return e->edit->next_lines && e->edit->next_lines(e->edit->context, &e->payload);
}

/* One block of events, beginning with that in e->payload; *more: there is another one. */
static int add_block(struct editor *e, uint32_t metadata, further_event *next, uint32_t *sequence,
	bool *more)
{
	size_t block = e->out.len;
	bool first = true;

	bytes_u32(&e->out, 0);
	bytes_u16(&e->out, EVENTS_HEADER_SIZE);
	bytes_u16(&e->out, EVENTS_COMPRESSED);
	bytes_u64(&e->out, e->last_ticks);
	bytes_u64(&e->out, e->last_ticks);
	while (*more && e->out.len - block < BLOCK_SIZE_AIM) {
		if (e->payload.failed)
			return -ENOMEM;
		bytes_u8(&e->out, IS_SORTED | HAS_SIZE |
					  (first ? HAS_METADATA | HAS_CAPTURE | HAS_THREAD : 0));
		if (first) {
			bytes_varuint(&e->out, metadata);
			bytes_varuint(&e->out, *sequence);
			bytes_varuint(&e->out, e->row_max);
			bytes_varuint(&e->out, 0);
			bytes_varuint(&e->out, e->last_row ? e->last_row : e->row_max);
		}
		bytes_varuint(&e->out, first ? e->last_ticks : 0);
		bytes_varuint(&e->out, e->payload.len);
		bytes_add(&e->out, e->payload.data, e->payload.len);
		first = false;
		(*sequence)++;
		*more = next(e);
	}
	return end_block(e, block, BLOCK_EVENT);
}

static int add_blocks(struct editor *e, uint32_t metadata, further_event *next, uint32_t *sequence)
{
	bool more = true;
	int result = 0;

	while (result == 0 && more) {
		result = add_block(e, metadata, next, sequence, &more);
		if (result == 0)
			result = write_out(e);
	}
	return result;
}

static int add_line_metadata(struct editor *e)
{
	const struct trace *trace = e->edit->trace;
	const struct schema *schema = &trace->schemas.items[e->edit->line_schema];
	const struct metadata_row row = {
		.schema = schema, .first = schema, .id = ++e->metadata_max
	};
	size_t block = e->out.len;

	bytes_u32(&e->out, 0);
	bytes_u16(&e->out, 0); /* no header */
	if (!bytes_reserve(&e->out, LINE_ROW_ROOM))
		return -ENOMEM;
	metadata_row_put(&e->out, trace, &row);
	return end_block(e, block, BLOCK_METADATA);
}

static int add_further(struct editor *e)
{
	uint32_t sequence = 0;
	bool symbols = next_symbol(e);
	int result = symbols ? add_capture_row(e) : 0;

	if (result == 0 && symbols)
		result = add_metadata(e);
	if (result == 0 && symbols)
		result = add_blocks(e, e->symbol_metadata, next_symbol, &sequence);
	if (result < 0 || !next_lines(e))
		return result;
	if (!symbols)
		result = add_capture_row(e);
	if (result == 0)
		result = add_line_metadata(e);
	return result == 0 ? add_blocks(e, e->metadata_max, next_lines, &sequence) : result;
}

/* ---- all ---- */

static int copy_block(struct editor *e, uint32_t word)
{
	uint32_t size = word & BLOCK_SIZE_MASK;
	enum block_kind kind = (enum block_kind)(word >> BLOCK_SIZE_BITS);

	if (size > e->block_room) {
		uint8_t *grown = realloc(e->block, size);
		if (!grown)
			return -ENOMEM;
		e->block = grown;
		e->block_room = size;
	}
	int result = read_whole(e, e->block, size);
	if (result < 0)
		return result;
	struct cursor c = cursor_of(e->block, size);
	if (kind == BLOCK_EVENT) {
		result = edit_events(e, c, word);
		return result < 0 ? result : write_out(e);
	}
	if (kind == BLOCK_METADATA)
		result = read_metadata(e, c);
	else if (kind == BLOCK_THREAD)
		result = read_threads(e, c);
	else if (kind == BLOCK_SEQUENCE_POINT)
		read_sequence_point(e, c);
	if (result < 0)
		return result;
	bytes_u32(&e->out, word);
	bytes_add(&e->out, e->block, size);
	return write_out(e);
}

static int copy_blocks(struct editor *e)
{
	int result = copy_head(e);

	while (result == 0) {
		uint8_t word[4];
		result = read_whole(e, word, sizeof(word));
		if (result < 0)
			break;
		struct cursor c = cursor_of(word, sizeof(word));
		uint32_t value = cursor_u32(&c);
		if (value >> BLOCK_SIZE_BITS == BLOCK_END)
			return add_further(e);
		result = copy_block(e, value);
	}
	return result;
}

int nettrace_edit(struct input *in, const struct nettrace_edit *edit, struct diag *diag)
{
	struct editor e = { .edit = edit, .in = in, .diag = diag };
	int result = copy_blocks(&e);

	free(e.block);
	bytes_done(&e.out);
	bytes_done(&e.payload);
	map_done(&e.symbol_ids);
	if (result == -ENOMEM)
		diag_set(diag, result, "cannot copy '%s': %m", in->name ? in->name : "memory");
	return result;
}
