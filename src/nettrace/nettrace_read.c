/*
 * Decodes nettrace (docs/formats/nettrace.md): the buffer, the head and the frames of blocks. The
 * content of blocks is decoded by the files that are included here.
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
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/input.h"
#include "base/text.h"
#include "nettrace/nettrace_decoder.h"
#include "nettrace/nettrace_events.h"
#include "nettrace/nettrace_metadata.h"
#include "nettrace/nettrace_rows.h"
#include "nettrace/nettrace_stacks.h"
#include "nettrace/nettrace_tags.h"
#include "trace/trace.h"

#define BUFFER_LEAST  4096u
#define RESTING_BYTES (8u << 10) /* of buffer that a decoder without work keeps */
/* runtimes write 100 KiB; version 6 has 24 bits for the size */
#define V4_BLOCK_SIZE_MAX (64u << 20)
#define V4_NAME_MAX       38u /* of an object's type, as in the stock reader */

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

static uint64_t span_number(struct text_span span)
{
	char text[24];
	uint64_t value = 0;

	if (span.len >= sizeof(text))
		return 0;
	memcpy(text, span.text, span.len);
	text[span.len] = '\0';
	return text_parse_u64(text, &value) ? value : 0;
}

static uint32_t number32(struct text_span span)
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
		struct text_span key = read_string(&c);
		struct text_span value = read_string(&c);
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
	struct text_span name = { (const char *)cursor_take(&c, name_len), name_len };
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

/*
 * Decodes what precedes the next event. 1: an event is next; 0: more bytes needed, or ended. Not
 * inlined, so that nettrace_decoder_next() saves no registers.
 */
__attribute__((noinline)) static int find_event(struct nettrace_decoder *d, struct diag *diag)
{
	int r = 1;

	while (r > 0) {
		switch (d->state) {
		case STATE_EVENTS:
			if (d->base + d->begin < d->events_end)
				return 1;
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

int nettrace_decoder_next(struct nettrace_decoder *d, struct event *ret_event, struct diag *diag)
{
	/* Nearly always the next event of the same block. */
	if (d->state == STATE_EVENTS && d->base + d->begin < d->events_end)
		return nettrace_read_event(d, ret_event, diag);
	int r = find_event(d, diag);

	return r > 0 ? nettrace_read_event(d, ret_event, diag) : r;
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

struct nettrace_reader {
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
	struct nettrace_reader *file = calloc(1, sizeof(*file));
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
	struct nettrace_reader *file = (struct nettrace_reader *)(void *)source;
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
	struct nettrace_reader *file = (struct nettrace_reader *)(void *)source;

	if (!file)
		return;
	nettrace_decoder_free(file->decoder);
	input_close(&file->in);
	free(file);
}

static uint64_t nettrace_sorted_ns(const struct source *source)
{
	return nettrace_decoder_sorted_ns(
		((const struct nettrace_reader *)(const void *)source)->decoder);
}

static uint64_t nettrace_lost(const struct source *source)
{
	return ((const struct nettrace_reader *)(const void *)source)->decoder->lost;
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
